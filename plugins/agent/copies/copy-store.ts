import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse, type WallGrants } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { readJson, sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import type { ProgramGroup } from '../../../sdk/node/limits/group.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { WallNetwork, WallSpec } from '../../../sdk/node/wall/wall.js'
import { filtersOf, treeFormOf, formStamp, formWithout, type TreeForm } from './form.js'
import { BESIDE, writeForm } from './gitdir.js'
import { failedFilter } from '../../../sdk/node/repositories/conversion.js'
import { below, pathOf, type MainRepository } from '../../../sdk/node/repositories/main-repository.js'
import { usualBranch } from './branch-name.js'
import { dropOwnLargeFiles } from './lfs-objects.js'
import { addTree, patternOf, type OwnBranch, type TreeEntry } from './repositories.js'
import { fillTree, type Tree } from './tree.js'

/** The stored record of a complete copy; a copy without it is incomplete. */
export interface CopyRecord {
  repos: (TreeEntry & {
    head: string
    /** Identifies the form that its files were checked out in. */
    form?: string
    /** The filters that could not run: their files have the form of the repository. */
    unfiltered?: string[]
  })[]
  /** Dependency folders shown inside, as paths from the workspace root. */
  shown: string[]
  /** Its branch, if that is not the usual one. */
  branch?: string
}

/** The branch of a copy. */
export const branchIn = (id: string, { branch }: Pick<CopyRecord, 'branch'>): string => branch ?? usualBranch(id)

/** The wall of a turn. */
export type TurnWall = Omit<WallSpec, 'cwd' | 'env'>

/** The location of the store, and the options of its walls. */
export interface CopyStoreOptions {
  readonly workspace: string
  /** The plugin's own folder. */
  readonly folder: string
  readonly data: string
  /** Folders elsewhere that nothing behind a wall may see. */
  readonly hidden?: readonly string[]
  /** Folders that the deployment makes visible behind every wall. */
  readonly grants?: WallGrants
  /** The group that limits the programs of a conversation. */
  readonly limits?: (id: string) => ProgramGroup
  /** The network of a conversation, for programs that git runs in its copy. */
  readonly network?: (id: string) => WallNetwork
}

/** Stores private copies, each with the record that it is complete. */
export class CopyStore {
  readonly #options: CopyStoreOptions
  readonly #locks: KeyedMutex
  /** Git dirs that this daemon created or found, which it removes itself. */
  readonly #given = new Set<string>()

  constructor(options: CopyStoreOptions, locks: KeyedMutex) {
    this.#options = options
    this.#locks = locks
  }

  /** The folder of a copy, which may not exist yet. */
  place(id: string): string {
    return join(this.checkouts, id)
  }

  /** The folder of all copies. */
  get checkouts(): string {
    return join(this.#options.folder, 'checkouts')
  }

  /** The ids that have a folder or a record. */
  async ids(): Promise<string[]> {
    const names = (path: string) => readdir(path).catch(() => [] as string[])
    const notes = await names(join(this.#options.folder, 'made'))
    return [...(await names(this.checkouts)), ...notes.map(name => name.replace(/\.json$/, ''))]
  }

  /** Removes half-written records of a killed daemon. */
  sweep(): Promise<void> {
    return sweepTemporary(join(this.#options.folder, 'made'))
  }

  /** The record of a complete copy. */
  async made(id: string): Promise<CopyRecord | undefined> {
    const made = await readJson<CopyRecord>(this.#note(id))
    for (const { gitdir } of made?.repos ?? []) this.#given.add(gitdir)
    return made
  }

  /** Records that a copy is complete. */
  async finish(id: string, made: CopyRecord): Promise<void> {
    failpoint('agent.copy.filled')
    await mkdir(dirname(this.#note(id)), { recursive: true, mode: 0o700 })
    await writeAtomic(this.#note(id), JSON.stringify(made), { flush: true })
    failpoint('agent.copy.made')
  }

  /** Marks a copy as incomplete, so that it is recreated after a crash. */
  async unfinish(id: string): Promise<void> {
    await rm(this.#note(id), { force: true })
  }

  /** A new unique path for a copy's git dir, so that it stays valid wherever the copy is moved. */
  async newGitdir(): Promise<string> {
    await mkdir(this.gitdirs, { recursive: true, mode: 0o700 })
    const gitdir = join(this.gitdirs, randomBytes(9).toString('hex'))
    this.#given.add(gitdir)
    return gitdir
  }

  /** The git dirs that no record has named since this daemon started: a crash left them. */
  async leftGitdirs(): Promise<string[]> {
    const places = (await readdir(this.gitdirs).catch(() => [] as string[])).map(name => join(this.gitdirs, name))
    for (const id of await this.ids()) await this.made(id)
    return places.filter(
      place =>
        !this.#given.has(
          BESIDE.reduce((at, beside) => (at.endsWith(beside) ? at.slice(0, -beside.length) : at), place),
        ),
    )
  }

  /** The folder of the copies' own git dirs. */
  get gitdirs(): string {
    return join(this.#options.folder, 'git')
  }

  /** Adds a filled tree to a new copy; returns whether its branch existed and was kept. */
  async add(made: CopyRecord, id: string, source: MainRepository, branch?: OwnBranch): Promise<boolean> {
    const { repo, common, head } = source
    const copy = join(this.place(id), pathOf(repo))
    const gitdir = await this.newGitdir()
    const form = await treeFormOf(source)
    const kept = await this.#locks.with(common, () => addTree(source, copy, gitdir, form, branch))
    const entry: CopyRecord['repos'][number] = { repo, common, gitdir, head, form: formStamp(form) }
    made.repos.push(entry)
    failpoint('agent.copy.added')
    // A nested tree is filled into the folder that its parent's branch has for it.
    const unfiltered = await this.#fill(this.tree(id, made, repo), entry, form)
    if (unfiltered.length > 0) entry.unfiltered = unfiltered
    return kept
  }

  /** Fills a tree; returns the filters that could not run, without which it was filled. */
  async #fill(tree: Tree, { gitdir, common }: TreeEntry, form: TreeForm): Promise<string[]> {
    const unfiltered: string[] = []
    for (let now = form; ;) {
      try {
        await fillTree(tree, gitdir)
        await dropOwnLargeFiles(gitdir, common)
        return unfiltered
      } catch (error) {
        const filter = failedFilter(error)?.filter
        if (filter === undefined || !filtersOf(now).has(filter)) throw error
        unfiltered.push(filter)
        now = formWithout(now, filter)
        await writeForm(gitdir, common, now)
      }
    }
  }

  /** One working tree of a copy. */
  tree(id: string, made: CopyRecord, repo: string): Tree {
    const { repos } = made
    if (!repos.some(each => each.repo === repo)) refuse('not-found', `the private copy has no repository ${repo}`)
    const { workspace } = this.#options
    return {
      repo,
      branch: branchIn(id, made),
      workspace,
      wall: this.wall(id, made),
      foreign: foreignTo(repo, made),
    }
  }

  /** The wall around a copy. */
  wall(id: string, made: CopyRecord): TurnWall {
    const { workspace, data, hidden = [], grants, limits, network } = this.#options
    const gitdirs = made.repos.map(({ repo, common, gitdir }) => ({
      path: pathOf(repo),
      common,
      own: gitdir,
      exclude: foreignTo(repo, made).map(patternOf),
    }))
    const copy = { dir: this.place(id), gitdirs }
    return {
      workspace,
      data,
      hide: hidden,
      ...(grants && { grants }),
      ...(limits && { limits: limits(id) }),
      ...(network && { network: network(id) }),
      copy,
    }
  }

  #note(id: string): string {
    return join(this.#options.folder, 'made', `${id}.json`)
  }
}

/** The paths in a repository's tree that do not belong to it. */
const foreignTo = (repo: string, { repos, shown }: CopyRecord): string[] => {
  const others = repos.map(each => pathOf(each.repo)).filter(path => path !== '' && path !== pathOf(repo))
  return ['.sandbox', ...[...others, ...shown].flatMap(path => below(repo, path) ?? [])]
}

/** A copy with only some of its trees; the paths of the others are foreign to these. */
export const keeping = async (made: CopyRecord, keeps: (entry: TreeEntry) => Promise<boolean>): Promise<CopyRecord> => {
  const kept = await Promise.all(made.repos.map(keeps))
  const others = made.repos.flatMap(({ repo }, at) => (kept[at] ? [] : [pathOf(repo)]))
  return { ...made, repos: made.repos.filter((_, at) => kept[at]), shown: [...made.shown, ...others] }
}
