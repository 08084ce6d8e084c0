import { randomUUID } from 'node:crypto'
import { lstat, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Context, type Input } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import { openOwnFolder, openParent, shownPath, type OpenedPath } from '../../../sdk/node/files/open-path.js'
import { git } from '../../../sdk/node/programs/git.js'
import { record } from '../../../sdk/node/record/record.js'
import { checkedRef } from '../repositories/names.js'
import type { RemoteDeps } from '../remotes/fetching.js'
import { remoteAddress, type RemoteAddress } from '../../../sdk/node/transport/remote-address.js'
import type { CloneCalls, ClonedRepo } from './contract.js'
import { reposChanged } from './repos-changed.js'
import { pointerTo, type NewGitdirs } from './new-gitdirs.js'

/** A repository to clone. */
export type CloneOrder = Input<CloneCalls, 'POST /workspace/repos'>

const RESERVED = ['root', 'refs', 'public']
const STAGING = ['.sandbox', 'local', 'clones'] as const

/** Clones repositories into the workspace: first to a temporary folder, then to their path by one rename. */
export class Clones {
  readonly #deps: RemoteDeps
  readonly #gitdirs: NewGitdirs
  /** The names of running clones. */
  readonly #names = new Set<string>()

  constructor(deps: RemoteDeps, gitdirs: NewGitdirs) {
    this.#deps = deps
    this.#gitdirs = gitdirs
  }

  /** Removes the temporary folders that a killed daemon left. */
  async sweep(): Promise<void> {
    const { workspace } = this.#deps.host.place
    if (!(await lstat(join(workspace, ...STAGING)).catch(() => undefined))) return
    await using folder = await openOwnFolder(workspace, STAGING)
    for (const name of await readdir(folder.at)) await rm(join(folder.at, name), { recursive: true, force: true })
  }

  /** Clones a repository, or starts to with `detach`. */
  async add(order: CloneOrder, context: Context): Promise<ClonedRepo> {
    const { name, cloneUrl, branch, detach = false } = order
    const { host } = this.#deps
    const { workspace } = host.place
    const expected = `a name other than ${RESERVED.join(', ')}, without .lock or a dot at its end`
    if (RESERVED.includes(name.toLowerCase()) || /\.$|\.lock$/i.test(name))
      refuse('invalid', `name: expected ${expected}, found ${shownPath(name)}`, {
        errors: [{ path: 'name', expected, value: name }],
      })
    if (branch !== undefined) checkedRef(branch, 'branch')
    const address = remoteAddress(cloneUrl, { workspace, from: workspace, field: 'cloneUrl' })
    const taken = this.#names.has(name) || (await lstat(join(workspace, name)).catch(() => undefined)) !== undefined
    if (taken || this.#names.has(name)) nameTaken(name)
    this.#names.add(name)
    const cloned = this.#clone(order, address, context).finally(() => this.#names.delete(name))
    if (!detach) await cloned
    else
      cloned.catch(async error => {
        host.log.warn('a clone failed', { name, error: String(error) })
        const extra = { name, reason: error instanceof Error ? error.message : String(error) }
        await record(host, { type: 'workspace.cloned', outcome: 'error', extra }, context)
      })
    return { name, path: name }
  }

  async #clone(order: CloneOrder, address: RemoteAddress, context: Context): Promise<void> {
    const { host, transfers } = this.#deps
    const { name } = order
    const gitdir = await this.#gitdirs.make(name)
    const id = randomUUID()
    const scratch = join(transfers.folder, id)
    await using staging = await openOwnFolder(host.place.workspace, [...STAGING, id])
    try {
      await writeFile(join(staging.at, '.gitignore'), '*\n')
      await mkdir(scratch, { mode: 0o700 })
      const folder = join(host.place.workspace, ...STAGING, id)
      const made = join(scratch, 'git')
      await this.#transfer(order, address, { folder, scratch, made })
      await this.#settle(address, made)
      await rename(made, gitdir.dir)
      failpoint('git.clone.staged')
      await this.#place(name, staging, gitdir.dir)
      await gitdir.finished()
    } catch (error) {
      await gitdir.drop()
      throw error
    } finally {
      await rm(scratch, { recursive: true, force: true })
      await rm(join(host.place.workspace, ...STAGING, id), { recursive: true, force: true })
    }
    await reposChanged(host, this.#deps.repositories)
    const extra = { name, ...(address.kind !== 'local' && { host: address.host }) }
    await record(host, { type: 'workspace.cloned', outcome: 'ok', extra }, context)
  }

  async #transfer(
    { branch, depth, filter }: CloneOrder,
    address: RemoteAddress,
    { folder, scratch, made }: { readonly folder: string; readonly scratch: string; readonly made: string },
  ): Promise<void> {
    const how = [
      ...['--progress', '--template=', '--no-local', '--no-recurse-submodules', `--separate-git-dir=${made}`],
      ...(branch === undefined ? [] : [`--branch=${branch}`]),
      ...(depth === undefined ? [] : [`--depth=${depth}`]),
      ...(filter === undefined ? [] : [`--filter=${filter}`]),
    ]
    const { failure, stderr } = await this.#deps.transfers.run({
      address,
      args: url => ['clone', ...how, '--', url, join(folder, 'work')],
      folder: scratch,
      dir: folder,
      writable: [folder],
      // Missing objects of the checkout are fetched by the same git, from the same server.
      ...(filter !== undefined && { env: { GIT_NO_LAZY_FETCH: '0' } }),
    })
    if (!failure) return
    if (/no space left on device|disk quota exceeded/i.test(stderr)) refuse('too-large', 'the disk is full')
    refuse('dependency', failure.reason)
  }

  /** Writes the final settings: the requested address, and no path of the working tree. */
  async #settle(address: RemoteAddress, gitdir: string): Promise<void> {
    const set = (args: readonly string[], ok = [0]) =>
      git(gitdir, ['config', '--file', join(gitdir, 'config'), ...args], { ok })
    await set(['remote.origin.url', address.url])
    await set(['--unset-all', 'core.worktree'], [0, 5])
  }

  async #place(name: string, staging: OpenedPath, gitdir: string): Promise<void> {
    await writeFile(join(staging.at, 'work', '.git'), pointerTo(gitdir))
    const tree = { root: this.#deps.host.place.workspace, reach: undefined, readsGit: false }
    await using target = await openParent(tree, name)
    if (await lstat(target.target).catch(() => undefined)) nameTaken(name)
    await rename(join(staging.at, 'work'), target.target)
    await flushFolder(target.at)
  }
}

const nameTaken = (name: string): never =>
  refuse('conflict', `${shownPath(name)} is taken: a file or folder of the workspace has that name`)
