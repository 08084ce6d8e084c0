import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, Refusal, type Context } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import { flushFolders, flushTree } from '../../../sdk/node/files/files.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { inRealFolder } from '../../../sdk/node/files/real-folders.js'
import { record } from '../../../sdk/node/record/record.js'
import { approvedBy } from '../approval/approval.js'
import { nameOfSource, powersIn } from '../listing/catalog.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { folderHash, readCodeFolder, type CodeFolder } from '../../../sdk/node/transport/code-folder.js'
import { readExtension } from '../manifest/parse.js'
import { comparedPowers, powersDigest } from '../powers/compared.js'
import type { ExtensionPower } from '../powers/power.js'
import type { DevRun, DevSource } from '../records/kept-extension.js'
import type { ExtensionUpdates, InstalledExtension } from '../update/updates.js'
import { copyCheckout, NOT_COPIED } from './checkout-copy.js'
import { bundlesOf, isStale, extensionsIn } from './checkout-state.js'
import { CheckoutTrees, isSameFolder, type CheckoutTree } from './checkout-trees.js'
import type { DevCheckout } from './contract.js'

/** A folder to run from: its path from the workspace, or from the private copy of a conversation. */
export interface CheckoutFolder {
  readonly path: string
  readonly conversation?: string
}

/** A copy of a checkout that was checked and does not run yet. */
interface CheckedCopy {
  readonly root: string
  readonly revision: string
  readonly powers: readonly ExtensionPower[]
}

const STAGED = '.copy-'
const MOST_SEARCHED = 20_000
const MOST_FOUND = 100

/** Runs installed extensions from folders of the workspace and of private copies. */
export class DevRuns {
  readonly #all: LoadedExtensions
  readonly #updates: ExtensionUpdates
  readonly #trees: CheckoutTrees
  /** The folders as they were last read, by conversation and path. */
  readonly #folders = new Map<string, CodeFolder>()

  constructor(all: LoadedExtensions, updates: ExtensionUpdates) {
    this.#all = all
    this.#updates = updates
    this.#trees = new CheckoutTrees(all.host)
  }

  /** Every folder that an installed extension could run from. */
  async checkouts(): Promise<DevCheckout[]> {
    const { kept } = this.#all
    const found: DevCheckout[] = []
    if (!kept.all().some(({ installed }) => installed)) return found
    const left = { folders: MOST_SEARCHED, found: MOST_FOUND }
    for await (const tree of this.#trees.all()) {
      const { conversation } = tree
      for await (const { path, parsed } of extensionsIn(tree.root, left)) {
        const { installed, removing } = kept.get(parsed.id) ?? {}
        if (!installed || removing) continue
        const at = { path, ...(conversation !== undefined && { conversation }) }
        const folder = await this.#read(tree, path)
        const bundles = bundlesOf(parsed)
        const { branch, uncommitted } = await tree.state(path)
        found.push({
          ...{ id: parsed.id, ...at, branch, revision: folderHash(folder), uncommitted, version: parsed.version },
          built: bundles.every(bundle => folder.files.has(bundle)),
          stale: isStale(folder, bundles),
          running: isSameFolder(installed.dev, at),
          source: 'installed',
        })
      }
      if (left.folders < 0 || left.found <= 0) break
    }
    this.#forgetFolders(found)
    return found
  }

  /** Runs an extension from a folder. */
  async begin(id: string, from: CheckoutFolder, digest: string | undefined, context: Context): Promise<DevRun> {
    const all = this.#all
    this.#updates.installed(id)
    const dev = await all.turns.with(id, () => this.#run(id, from, digest, context))
    const { path, conversation, revision } = dev
    const extra = { id, path, ...(conversation !== undefined && { conversation }), revision }
    await record(all.host, { type: 'extension.dev', outcome: 'ok', extra }, context)
    return dev
  }

  /** Runs the folder as it is now. */
  reload(id: string, digest: string | undefined, context: Context): Promise<DevRun> {
    return this.#all.turns.with(id, () => {
      const { dev } = this.#updates.installed(id).installed
      if (!dev) return refuse('conflict', `${id} runs its commit: name a folder with POST /extensions/${id}/dev`)
      return this.#run(id, dev, digest, context)
    })
  }

  /** Goes back to the commit. */
  async end(id: string, context: Context): Promise<string> {
    this.#updates.installed(id)
    await this.#endRun(id, () => true, context)
    return this.#updates.installed(id).installed.current.ref
  }

  /** Goes back to the commits of extensions that run from the private copy of a conversation that is gone. */
  async copyGone(conversation: string): Promise<void> {
    // One that is just beginning is waited for.
    for (const { id, installed } of this.#all.kept.all())
      if (installed) await this.#endRun(id, dev => dev.conversation === conversation)
  }

  /** Does so for conversations that ended while this group did not run. */
  async endGone(): Promise<void> {
    const { host, kept } = this.#all
    if (!(await host.serves('agent.conversation'))) return
    for (const { installed } of kept.all()) {
      const id = installed?.dev?.conversation
      if (id === undefined) continue
      await host.call('agent.conversation', { id }).catch(async error => {
        if (error instanceof Refusal && error.reason === 'not-found') await this.copyGone(id)
      })
    }
  }

  /** How a folder that an extension runs from stands now; a conversation is named to callers that may see it. */
  async shown(id: string, dev: DevSource, context?: Context): Promise<DevRun> {
    const { path, conversation, revision, uncommitted } = dev
    const named = conversation !== undefined && (await this.#isVisible(conversation, context))
    const held = await this.#held(id, dev).catch((error: Error) => `its folder cannot be read: ${error.message}`)
    return {
      path,
      ...(named && { conversation }),
      ...{ revision, uncommitted },
      ...(held !== undefined && { held: held.slice(0, 500) }),
    }
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

  async #endRun(id: string, ends: (dev: DevSource) => boolean, context?: Context): Promise<void> {
    const all = this.#all
    const ended = await all.turns.with(id, async () => {
      const kept = all.kept.get(id)
      if (!kept?.installed) return false
      const { dev, ...installed } = kept.installed
      if (!dev || !ends(dev)) return false
      failpoint('extensions.dev.ending')
      await this.#swap({ ...kept, installed })
      return true
    })
    if (ended) await record(all.host, { type: 'extension.dev', outcome: 'ok', extra: { id } }, context)
  }

  async #isVisible(conversation: string, context: Context | undefined): Promise<boolean> {
    const { host } = this.#all
    if (!context) return true
    if (!(await host.serves('agent.visible'))) return false
    return (await host.call('agent.visible', { ids: [conversation] }, { as: context })).ids.length > 0
  }

  async #run(id: string, from: CheckoutFolder, digest: string | undefined, context: Context): Promise<DevRun> {
    const all = this.#all
    const { path, conversation } = from
    const kept = this.#updates.installed(id)
    const tree = await this.#trees.of(conversation)
    const { root, revision, powers } = await this.#copied(kept, tree, path)
    try {
      const { dev: before } = kept.installed
      const approved = before?.approval ?? kept.installed.current.approval
      const { added } = comparedPowers(powers, approved.powers)
      if (digest === undefined ? added.length > 0 : digest !== powersDigest(id, powers))
        refuse('conflict', `approve the powers of ${path} with their digest; it adds: ${added.join('; ')}`, {
          fields: { added, digest: powersDigest(id, powers) },
        })
      const approval = added.length > 0 ? approvedBy(powers, context) : before?.approval
      const { uncommitted } = await tree.state(path)
      const at = { path, ...(conversation !== undefined && { conversation }) }
      const dev: DevSource = { ...at, revision, uncommitted, ...(approval && { approval }) }
      if (before && isSameFolder(before, at) && before.revision === revision) {
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
  async #copied({ id, installed }: InstalledExtension, tree: CheckoutTree, path: string): Promise<CheckedCopy> {
    const { devFolder } = this.#all
    const segments = namesOf(path)
    if (isClosedName(segments)) return noFolder(tree, path)
    await mkdir(join(devFolder, id), { recursive: true, mode: 0o700 })
    const root = await mkdtemp(join(devFolder, id, STAGED))
    try {
      if (!(await copyCheckout(tree.root, segments, root))) return noFolder(tree, path)
      const folder = await readCodeFolder(root, { hashed: true })
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

  async #held(id: string, { path, conversation, revision }: DevSource): Promise<string | undefined> {
    const tree = await this.#trees.of(conversation)
    const folder = await this.#read(tree, path)
    if (folder.wrong !== undefined) return folder.wrong
    if (folder.files.size === 0) return 'its folder is gone'
    if (folderHash(folder) === revision) return undefined
    const parsed = await inRealFolder(tree.root, namesOf(path), {}, at => readExtension(at, id))
    if (!parsed) return 'its folder is gone'
    if ('error' in parsed) return parsed.error
    const { added } = comparedPowers(powersIn(parsed, folder), this.#all.approvalOf(id)?.powers ?? [])
    return added.length > 0 ? `it adds: ${added.join('; ')}` : 'rebuilt'
  }

  async #read({ root, conversation }: CheckoutTree, path: string): Promise<CodeFolder> {
    const key = keyOf({ path, ...(conversation !== undefined && { conversation }) })
    const before = this.#folders.get(key)
    const how = { hashed: true, without: NOT_COPIED, ...(before && { before }) }
    const read = await inRealFolder(root, namesOf(path), {}, at => readCodeFolder(at, how))
    const folder = read ?? { files: new Map(), bytes: 0 }
    this.#folders.set(key, folder)
    return folder
  }

  /** Forgets what was read of folders that are not there any more. */
  #forgetFolders(found: readonly CheckoutFolder[]): void {
    const running = this.#all.kept.all().flatMap(({ installed }) => installed?.dev ?? [])
    const used = new Set([...found, ...running].map(keyOf))
    for (const key of this.#folders.keys()) if (!used.has(key)) this.#folders.delete(key)
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

const namesOf = (path: string): string[] => (path === '.' ? [] : segmentsOf(path))

const keyOf = ({ path, conversation = '' }: CheckoutFolder): string => `${conversation}:${path}`

const noFolder = ({ conversation }: CheckoutTree, path: string): never => {
  const where = conversation === undefined ? 'the workspace' : `the private copy of ${conversation}`
  return refuse('not-found', `${where} has no folder ${JSON.stringify(path.slice(0, 200))}`)
}
