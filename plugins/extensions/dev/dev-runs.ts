import { mkdir, mkdtemp, readdir, realpath, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Context } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import { flushFolders, flushTree } from '../../../sdk/node/files/files.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { record } from '../../../sdk/node/record/record.js'
import { approvedBy } from '../approval/approval.js'
import { nameOfSource, powersIn } from '../listing/catalog.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { folderHash, readExtensionFolder, type ExtensionFolder } from '../manifest/extension-folder.js'
import { readExtension } from '../manifest/parse.js'
import { comparedPowers, powersDigest } from '../powers/compared.js'
import type { ExtensionPower } from '../powers/powers.js'
import type { DevRun, DevSource } from '../records/kept-extension.js'
import type { ExtensionUpdates, InstalledExtension } from '../update/updates.js'
import { copyCheckout, NOT_COPIED } from './checkout-copy.js'
import { bundlesOf, gitStateOf, isStale, extensionsIn } from './checkout-state.js'
import type { DevCheckout } from './contract.js'

/** A copy of a checkout that was checked and does not run yet. */
interface CheckedCopy {
  readonly root: string
  readonly revision: string
  readonly powers: readonly ExtensionPower[]
}

const STAGED = '.copy-'

/** Runs installed extensions from folders of the workspace. */
export class DevRuns {
  readonly #all: LoadedExtensions
  readonly #updates: ExtensionUpdates
  /** The folders as they were last read, by their paths. */
  readonly #folders = new Map<string, ExtensionFolder>()

  constructor(all: LoadedExtensions, updates: ExtensionUpdates) {
    this.#all = all
    this.#updates = updates
  }

  /** Every folder that an installed extension could run from. */
  async checkouts(): Promise<DevCheckout[]> {
    const all = this.#all
    const found: DevCheckout[] = []
    for await (const { path, parsed } of extensionsIn(all.host.place.workspace)) {
      const kept = all.kept.get(parsed.id)
      if (!kept?.installed || kept.removing) continue
      const folder = await this.#read(path)
      const bundles = bundlesOf(parsed)
      const { branch, uncommitted } = await gitStateOf(all.host, path)
      found.push({
        ...{ id: parsed.id, path, branch, revision: folderHash(folder), uncommitted, version: parsed.version },
        built: bundles.every(bundle => folder.files.has(bundle)),
        stale: isStale(folder, bundles),
        running: kept.installed.dev?.path === path,
        source: 'installed',
      })
    }
    return found
  }

  /** Runs an extension from a folder. */
  async begin(id: string, path: string, digest: string | undefined, context: Context): Promise<DevRun> {
    const all = this.#all
    this.#updates.installed(id)
    const dev = await all.turns.with(id, () => this.#run(id, path, digest, context))
    await record(
      all.host,
      { type: 'extension.dev', outcome: 'ok', extra: { id, path, revision: dev.revision } },
      context,
    )
    return dev
  }

  /** Runs the folder as it is now. */
  reload(id: string, digest: string | undefined, context: Context): Promise<DevRun> {
    return this.#all.turns.with(id, () => {
      const { dev } = this.#updates.installed(id).installed
      if (!dev) return refuse('conflict', `${id} runs its commit: name a folder with POST /extensions/${id}/dev`)
      return this.#run(id, dev.path, digest, context)
    })
  }

  /** Goes back to the commit. */
  async end(id: string, context: Context): Promise<string> {
    const all = this.#all
    this.#updates.installed(id)
    const ended = await all.turns.with(id, async () => {
      const kept = this.#updates.installed(id)
      const { dev, ...installed } = kept.installed
      if (!dev) return false
      await this.#swap({ ...kept, installed })
      return true
    })
    if (ended) await record(all.host, { type: 'extension.dev', outcome: 'ok', extra: { id } }, context)
    return this.#updates.installed(id).installed.current.ref
  }

  /** How a folder that an extension runs from stands now. */
  async shown(id: string, dev: DevSource): Promise<DevRun> {
    const { path, revision, uncommitted } = dev
    const held = await this.#held(id, dev).catch((error: Error) => `its folder cannot be read: ${error.message}`)
    return { path, revision, uncommitted, ...(held !== undefined && { held: held.slice(0, 500) }) }
  }

  /** Removes copies that no record names. */
  async sweep(): Promise<void> {
    const { devFolder, kept } = this.#all
    for (const id of await readdir(devFolder).catch(() => [] as string[])) {
      const revision = kept.get(id)?.installed?.dev?.revision
      if (revision === undefined) await rm(join(devFolder, id), { recursive: true, force: true })
      else await this.#forgetOthers(id, revision)
    }
  }

  async #run(id: string, path: string, digest: string | undefined, context: Context): Promise<DevRun> {
    const all = this.#all
    const kept = this.#updates.installed(id)
    const { root, revision, powers } = await this.#copied(kept, path)
    try {
      const { dev: before } = kept.installed
      const approved = before?.approval ?? kept.installed.current.approval
      const { added } = comparedPowers(powers, approved.powers)
      if (digest === undefined ? added.length > 0 : digest !== powersDigest(id, powers))
        refuse('conflict', `approve the powers of ${path} with their digest; it adds: ${added.join('; ')}`, {
          fields: { added, digest: powersDigest(id, powers) },
        })
      const approval = added.length > 0 ? approvedBy(powers, context) : before?.approval
      const { uncommitted } = await gitStateOf(all.host, path)
      const dev: DevSource = { path, revision, uncommitted, ...(approval && { approval }) }
      if (before?.path === path && before.revision === revision) {
        await all.endQuarantine(id)
        return await this.shown(id, before)
      }
      const to = join(all.devFolder, id, revision)
      await rm(to, { recursive: true, force: true })
      await flushTree(root)
      await rename(root, to)
      await flushFolders(to)
      failpoint('extensions.dev.copied')
      await this.#swap({ ...kept, installed: { ...kept.installed, dev } })
      await this.#forgetOthers(id, revision)
      return await this.shown(id, dev)
    } finally {
      await rm(root, { recursive: true, force: true })
    }
  }

  /** Copies a folder and judges the copy: the folder itself may change meanwhile. */
  async #copied({ id, installed }: InstalledExtension, path: string): Promise<CheckedCopy> {
    const { host, devFolder } = this.#all
    const segments = path === '.' ? [] : segmentsOf(path)
    if (isClosedName(segments)) return noFolder(path)
    await mkdir(join(devFolder, id), { recursive: true, mode: 0o700 })
    const root = await mkdtemp(join(devFolder, id, STAGED))
    try {
      if (!(await copyCheckout(await realpath(host.place.workspace), segments, root))) return noFolder(path)
      const folder = await readExtensionFolder(root, { hashed: true })
      const parsed = await readExtension(root, nameOfSource(installed.url, installed.path))
      if ('error' in parsed) return refuse('unprocessable', parsed.error)
      if (parsed.id !== id) refuse('unprocessable', `${path} is the extension ${parsed.id}, not ${id}`)
      if (!parsed.compatible) refuse('unprocessable', `${path} is for host versions ${parsed.engines}`)
      const missing = bundlesOf(parsed).find(bundle => !folder.files.has(bundle))
      if (missing !== undefined) refuse('unprocessable', `${path} is not built: ${missing} is not there`)
      return { root, revision: folderHash(folder), powers: powersIn(parsed, folder) }
    } catch (error) {
      await rm(root, { recursive: true, force: true })
      if (isFull(error)) refuse('too-large', 'the disk is full: free some space and try again', { cause: error })
      throw error
    }
  }

  async #held(id: string, { path, revision }: DevSource): Promise<string | undefined> {
    const all = this.#all
    const folder = await this.#read(path)
    if (folder.wrong !== undefined) return folder.wrong
    if (folder.files.size === 0) return 'its folder is gone'
    if (folderHash(folder) === revision) return undefined
    const parsed = await readExtension(join(await realpath(all.host.place.workspace), path), id)
    if ('error' in parsed) return parsed.error
    const { added } = comparedPowers(powersIn(parsed, folder), all.approvalOf(id)?.powers ?? [])
    return added.length > 0 ? `it adds: ${added.join('; ')}` : 'rebuilt'
  }

  async #read(path: string): Promise<ExtensionFolder> {
    const root = await realpath(this.#all.host.place.workspace)
    const before = this.#folders.get(path)
    const how = { hashed: true, without: NOT_COPIED, ...(before && { before }) }
    const folder = await readExtensionFolder(join(root, path), how)
    this.#folders.set(path, folder)
    return folder
  }

  async #swap(next: InstalledExtension): Promise<void> {
    const all = this.#all
    await all.kept.put(next)
    failpoint('extensions.dev.swapped')
    await all.catalog.reload(next.id)
    await all.converge(next.id)
    if (!next.installed.dev) await rm(join(all.devFolder, next.id), { recursive: true, force: true })
    all.changed(next.id)
  }

  async #forgetOthers(id: string, revision: string): Promise<void> {
    const folder = join(this.#all.devFolder, id)
    for (const name of await readdir(folder).catch(() => [] as string[]))
      if (name !== revision) await rm(join(folder, name), { recursive: true, force: true })
  }
}

const noFolder = (path: string): never =>
  refuse('not-found', `the workspace has no folder ${JSON.stringify(path.slice(0, 200))}`)
