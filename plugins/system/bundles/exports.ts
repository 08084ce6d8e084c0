import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Caller, type Host, Refusal, refuse, ignored } from '../../../sdk/index.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import type { Bundle, BundlePart } from './contract.js'
import { pack, weighBundle, type Contents } from './packing.js'
import type { BundleStore } from './bundle-store.js'
import { assertSpace } from './staging.js'
import { findFiles, findRepositories } from './workspace-files.js'
import { everyGitdir } from '../../../sdk/node/wall/gitdirs.js'

/** A requested backup. */
export interface AskedExport {
  readonly secrets?: boolean
  readonly passphrase?: string
  readonly repos?: readonly string[]
  readonly since?: number
}

interface ExportDeps {
  readonly host: Pick<Host, 'call' | 'collect' | 'log' | 'signal' | 'place'>
  readonly store: BundleStore
  /** Writes an activity entry. */
  readonly record: (
    type: string,
    bundle: Pick<Bundle, 'name'>,
    facts?: { error?: string; actor?: string },
  ) => Promise<unknown>
  readonly changed: () => void
}

const PROGRESS_MS = 500
const FAILED = 'packing failed unexpectedly; the log of the sandbox says why'
const MAKING = 'making'

/** Makes backups, one at a time. */
export class Exports {
  readonly #deps: ExportDeps
  #starting = false
  #running: { readonly name: string; readonly stop: AbortController; readonly over: Promise<void> } | undefined

  constructor(deps: ExportDeps) {
    this.#deps = deps
  }

  get busy(): boolean {
    return this.#starting || this.#running !== undefined
  }

  /** Lists what to pack and begins packing; returns without waiting for the end. */
  async begin(asked: AskedExport, { actor }: Caller): Promise<Bundle> {
    const { host, store, changed, record } = this.#deps
    if (asked.secrets && asked.passphrase === undefined) {
      refuse(
        'invalid',
        'secrets are packed only encrypted: expected a passphrase of at least 12 characters, found none',
        { errors: [{ path: 'passphrase', expected: 'at least 12 characters' }] },
      )
    }
    if (this.busy)
      refuse(
        'conflict',
        `a bundle is being packed (${this.#running?.name ?? 'it has just begun'}): wait for it, or delete it`,
      )
    this.#starting = true
    try {
      const contents = await this.#survey(asked)
      const weight = await weighBundle(contents.files, contents.repositories, bytesBelow)
      // The compressed data is briefly on the disk twice: once without its manifest.
      await assertSpace(store.folder, weight)
      const bundle = await store.begin(
        { sizeBytes: weight, secrets: asked.secrets === true, createdBy: actor },
        asked.passphrase !== undefined,
      )
      changed()
      await record('bundle.started', bundle, { actor })
      const stop = new AbortController()
      const over = this.#pack(bundle, contents, asked.passphrase, AbortSignal.any([stop.signal, host.signal]))
      this.#running = { name: bundle.name, stop, over }
      return bundle
    } finally {
      this.#starting = false
    }
  }

  /** Stops the one being packed; resolves when its files are removed. */
  async stop(name?: string): Promise<void> {
    const running = this.#running
    if (!running || (name !== undefined && running.name !== name)) return
    running.stop.abort()
    await running.over
  }

  async #survey({ repos, secrets = false, since }: AskedExport): Promise<Contents> {
    const {
      host: {
        place: { workspace, data, hidden, grants },
        call,
      },
    } = this.#deps
    const all = await findRepositories(workspace)
    const unknown = repos?.find(repo => !all.some(found => found.repo === repo))
    if (unknown !== undefined) {
      const known =
        all
          .map(({ repo }) => repo)
          .slice(0, 20)
          .join(', ') || 'none: the workspace has no repository'
      refuse(
        'invalid',
        `repos: expected repositories of the workspace (${known}), found ${JSON.stringify(unknown.slice(0, 120))}`,
        { errors: [{ path: 'repos', expected: known }] },
      )
    }
    const repositories = repos ? all.filter(({ repo }) => repos.includes(repo)) : all
    const whole = repos === undefined
    const wall = { workspace, data, hide: hidden, grants, exposed: await everyGitdir(data), offline: true }
    const files = await findFiles({ workspace, wall, repositories, whole })
    const { sandboxId, version } = await call('kernel.info')
    return {
      workspace,
      data,
      files,
      repositories,
      whole,
      secrets,
      from: { sandboxId, version, createdAt: Date.now() },
      ...(since !== undefined && { since }),
    }
  }

  async #pack(bundle: Bundle, contents: Contents, passphrase: string | undefined, signal: AbortSignal): Promise<void> {
    const { host, store, changed, record } = this.#deps
    const { name, createdBy: actor } = bundle
    const ticker = setInterval(changed, PROGRESS_MS)
    try {
      const sizeBytes = await pack(contents, {
        folder: join(host.place.folder, MAKING),
        to: join(store.folder, name),
        signal,
        progress: bytes => store.moved(bytes),
        parts: () => Promise.race([handedOver(host), abortOf(signal)]),
        ...(passphrase !== undefined && { passphrase }),
      })
      await store.change(name, { state: 'ready', sizeBytes })
      await store.sweep()
      await record('bundle.ready', bundle, { actor })
    } catch (error) {
      const detail = signal.aborted ? 'it was stopped' : sentenceOf(error)
      if (detail === FAILED)
        host.log.error('packing a bundle failed', {
          name,
          error: error instanceof Error ? error.stack : String(error),
        })
      await store
        .change(name, { state: 'failed', sizeBytes: 0, detail })
        .catch(ignored('the failure before it is logged'))
      await record('bundle.failed', bundle, { actor, error: detail })
    } finally {
      clearInterval(ticker)
      this.#running = undefined
      changed()
    }
  }
}

/** Removes what a killed daemon was packing. */
export const sweepMaking = (folder: string): Promise<void> => rm(join(folder, MAKING), { recursive: true, force: true })

/** The parts of the groups; fails if one group does, because the backup would be incomplete. */
export const handedOver = async (host: Pick<Host, 'collect'>): Promise<BundlePart[]> => {
  const parts = await host.collect('bundle.parts')
  const missing = (await host.collect('bundle.takers')).flat().find(group => !parts.some(part => part.group === group))
  return missing === undefined
    ? parts
    : refuse('dependency', `group ${missing} could not export its data: the log of the sandbox says why`)
}

/** Never resolves; rejects when aborted. */
const abortOf = async (signal: AbortSignal): Promise<never> => {
  signal.throwIfAborted()
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  )
}

const sentenceOf = (error: unknown): string => {
  if (error instanceof Refusal && error.reason !== 'failed') return error.message
  return isFull(error) ? 'the disk is full: free some space and pack it again' : FAILED
}

const bytesBelow = async (folder: string): Promise<number> => {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])
  let sum = 0
  for (const entry of entries)
    if (entry.isFile()) sum += (await lstat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0
  return sum
}
