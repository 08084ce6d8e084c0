import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Context } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { git } from '../../../sdk/node/programs/git.js'
import { record } from '../../../sdk/node/record/record.js'
import { approvedBy } from '../approval/approval.js'
import type { ChangedAmount, UpdatePreview } from '../install/contract.js'
import type { InstallDeps } from '../install/installing.js'
import type { StagedCode } from '../install/staging.js'
import { problemsOf } from '../listing/problems.js'
import { comparedPowers, powersDigest } from '../powers/compared.js'
import type { InstalledCode, KeptExtension, PowersDiff } from '../records/kept-extension.js'
import type { HealthWatch } from './health.js'

/** A record of an extension that is installed from a repository. */
export type InstalledExtension = KeptExtension & { readonly installed: InstalledCode }

/** What an update changes. */
export interface UpdateDifference {
  readonly powers: PowersDiff
  readonly changed: ChangedAmount
  /** The difference of the files as git shows it. */
  readonly text: string
  /** Only the beginning is there. */
  readonly cut: boolean
}

const MOST_TEXT = 200_000

/** Updates installed extensions, and reverts updates. */
export class ExtensionUpdates {
  readonly #deps: InstallDeps
  readonly #health: HealthWatch
  readonly #running = new Set<string>()

  constructor(deps: InstallDeps, health: HealthWatch) {
    this.#deps = deps
    this.#health = health
  }

  /** Whether an update of it is being applied. */
  isRunning(id: string): boolean {
    return this.#running.has(id)
  }

  /** The record of an installed extension. 404: no such extension; 409: it is not from a repository. */
  installed(id: string): InstalledExtension {
    const { all } = this.#deps
    const kept = all.kept.get(id)
    if (kept?.installed && !kept.removing) return kept as InstalledExtension
    if (!all.isBuiltin(id)) all.get(id)
    return refuse('conflict', `${id} is not installed from a repository`)
  }

  /** 409: it runs from a folder, so its commits stay as they are. */
  assertPinned(id: string): void {
    const { dev } = this.installed(id).installed
    if (dev)
      refuse('conflict', `${id} runs from ${dev.path}: go back to its commit first, with DELETE /extensions/${id}/dev`)
  }

  async preview(id: string, wanted: string | undefined): Promise<UpdatePreview> {
    const { all, staging } = this.#deps
    const { installed } = this.installed(id)
    const staged = await this.#fetch(id, installed, wanted)
    try {
      const { powers, version, engines = '*', compatible } = staged
      return {
        ref: staged.ref,
        version,
        installedVersion: installed.current.version ?? '0.0.0',
        engines,
        compatible,
        powers: comparedPowers(powers, installed.current.approval.powers),
        digest: powersDigest(id, powers),
        problems: await problemsOf(staged, { routes: all.routes, earlier: [] }),
        changed: await changedAmount(join(all.codeFolder, id, installed.current.ref), staged.root),
      }
    } finally {
      await staging.drop(staged.root)
    }
  }

  /** What a commit changes in the installed one, for somebody to read. */
  async difference(id: string, ref: string): Promise<UpdateDifference> {
    const { all, staging } = this.#deps
    const { installed } = this.installed(id)
    const staged = await this.#fetch(id, installed, ref)
    try {
      const before = join(all.codeFolder, id, installed.current.ref)
      return {
        powers: comparedPowers(staged.powers, installed.current.approval.powers),
        changed: await changedAmount(before, staged.root),
        ...(await changedText(before, staged.root)),
      }
    } finally {
      await staging.drop(staged.root)
    }
  }

  /** Applies an update; until the record is swapped in one step, the old version is untouched. */
  async apply(
    id: string,
    { ref: wanted, digest }: { readonly ref?: string; readonly digest?: string },
    context: Context,
  ): Promise<{ ok: true; ref: string; rebuildNeeded?: boolean }> {
    const { all, staging } = this.#deps
    this.installed(id)
    if (this.#running.has(id)) refuse('conflict', `an update of ${id} is being applied: wait until that is done`)
    this.#running.add(id)
    try {
      const { installed } = this.installed(id)
      this.assertPinned(id)
      const staged = await this.#fetch(id, installed, wanted)
      const { ref, version, powers, compatible, engines } = staged
      try {
        const { added } = comparedPowers(powers, installed.current.approval.powers)
        const shown = powersDigest(id, powers)
        if (!compatible) refuse('unprocessable', `${id} at ${ref} is for host versions ${engines}`)
        if (digest === undefined ? added.length > 0 : digest !== shown)
          refuse('conflict', `approve the powers of ${id} at ${ref} with their digest; it adds: ${added.join('; ')}`, {
            fields: { added, digest: shown },
          })
        if (ref === installed.current.ref) refuse('conflict', `${id} is at ${ref} already`)
        const kept = ref === installed.previous?.ref
        await staging.place(staged, join(all.codeFolder, id, ref), kept)
      } catch (error) {
        await staging.drop(staged.root)
        throw error
      }
      await all.turns.with(id, async () => {
        const now = this.installed(id)
        this.assertPinned(id)
        const { update: _update, health: _health, previous, current, ...rest } = now.installed
        const next = { ...rest, current: { ref, version, approval: approvedBy(powers, context) }, previous: current }
        const health = { state: 'watching' as const, fromRef: current.ref, at: new Date().toISOString() }
        await this.#swap({ ...now, installed: { ...next, ...(now.enabled && { health }) } })
        if (previous && previous.ref !== ref) await this.#forget(id, previous.ref)
        if (now.enabled) this.#health.watch(id)
      })
      const extra = { id, ref, from: installed.current.ref }
      await record(all.host, { type: 'extension.updated', outcome: 'ok', extra }, context)
      return { ok: true, ref, ...this.#rebuild(id) }
    } finally {
      this.#running.delete(id)
    }
  }

  /** Exchanges the current and the previous commit. */
  async revert(
    { id, ref: expected }: { readonly id: string; readonly ref?: string | undefined },
    context: Context,
  ): Promise<{ ok: true; ref: string; rebuildNeeded?: boolean }> {
    const { all } = this.#deps
    if (this.#running.has(id)) refuse('conflict', `an update of ${id} is being applied: wait until that is done`)
    const { from, ref } = await all.turns.with(id, () => this.exchange(id, { expected }))
    await record(all.host, { type: 'extension.reverted', outcome: 'ok', extra: { id, ref, from } }, context)
    return { ok: true, ref, ...this.#rebuild(id) }
  }

  /** Exchanges the commits while holding the lock; `health` is its state afterwards. */
  async exchange(
    id: string,
    { health, expected }: { readonly health?: InstalledCode['health']; readonly expected?: string | undefined } = {},
  ): Promise<{ from: string; ref: string }> {
    const now = this.installed(id)
    this.assertPinned(id)
    const { previous, current, health: _health, ...rest } = now.installed
    if (!previous) return refuse('conflict', `no previous version of ${id} is kept`)
    if (expected !== undefined && previous.ref !== expected)
      refuse('conflict', `the previous version of ${id} is ${previous.ref}, expected ${expected}: look again`, {
        fields: { ref: previous.ref },
      })
    const next = { ...rest, current: previous, previous: current, ...(health && { health }) }
    await this.#swap({ ...now, installed: next })
    return { from: current.ref, ref: previous.ref }
  }

  /** Removes code that no record names. */
  async sweep(): Promise<void> {
    const { all } = this.#deps
    for (const id of await readdir(all.codeFolder).catch(() => [] as string[])) {
      const { current, previous } = all.kept.get(id)?.installed ?? {}
      for (const ref of await readdir(join(all.codeFolder, id)).catch(() => [] as string[]))
        if (ref !== current?.ref && ref !== previous?.ref) await this.#forget(id, ref)
      if (!current) await rm(join(all.codeFolder, id), { recursive: true, force: true })
    }
  }

  async #swap(next: InstalledExtension): Promise<void> {
    const { all } = this.#deps
    await all.kept.put(next)
    failpoint('extensions.update.swapped')
    await all.catalog.reload(next.id)
    await all.converge(next.id)
    all.changed(next.id)
  }

  async #fetch(
    id: string,
    { url, path, secret, link, update }: InstalledCode,
    wanted: string | undefined,
  ): Promise<StagedCode & { readonly ref: string }> {
    const ref = wanted ?? update?.ref
    if (ref === undefined) return refuse('conflict', `no update of ${id} is recorded: name a commit`)
    const from = ref === update?.ref ? { url: update.url, path: update.path } : { url, path }
    const given = { url: from.url, ref, ...(from.path !== undefined && { path: from.path }) }
    const token =
      from.url !== url ? {} : { ...(secret !== undefined && { secret }), ...(link !== undefined && { link }) }
    const staged = await this.#deps.staging.fetch({ ...given, ...token })
    if (staged.id === id) return { ...staged, ref }
    await this.#deps.staging.drop(staged.root)
    return refuse('unprocessable', `${ref} is the extension ${staged.id}, not ${id}`)
  }

  #rebuild(id: string): { rebuildNeeded?: true } {
    return this.#deps.all.get(id).manifest.contributes?.environment ? { rebuildNeeded: true } : {}
  }

  #forget(id: string, ref: string): Promise<void> {
    return rm(join(this.#deps.all.codeFolder, id, ref), { recursive: true, force: true })
  }
}

/** How much differs between two folders. */
const changedAmount = async (before: string, after: string): Promise<ChangedAmount> => {
  const { text } = await git(after, ['diff', '--no-index', '--shortstat', before, after], { ok: [0, 1] })
  const count = (what: RegExp) => Number(what.exec(text)?.[1] ?? 0)
  return {
    files: count(/(\d+) files? changed/),
    insertions: count(/(\d+) insertion/),
    deletions: count(/(\d+) deletion/),
  }
}

/** The difference of two folders, with paths from these folders. */
const changedText = async (before: string, after: string): Promise<Pick<UpdateDifference, 'text' | 'cut'>> => {
  const pieces: Buffer[] = []
  let size = 0
  const to = (piece: Buffer): void => {
    if (size < MOST_TEXT) pieces.push(piece.subarray(0, MOST_TEXT - size))
    size += piece.length
  }
  await git(after, ['diff', '--no-index', '--no-prefix', before, after], { ok: [0, 1], to })
  const text = Buffer.concat(pieces).toString().toWellFormed()
  return { text: text.replaceAll(before.slice(1), 'a').replaceAll(after.slice(1), 'b'), cut: size > MOST_TEXT }
}
