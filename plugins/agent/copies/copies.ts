import { mkdir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { refuse, type Log, ignored } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isTemporary, sweepOld, sweepTemporary } from '../../../sdk/node/files/files.js'
import { everyGitdir } from '../../../sdk/node/wall/gitdirs.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { CheckoutRepo, CopyRepo, CopyStart, TreeContent } from '../contract.js'
import { dependenciesOf, mountable, share } from './dependencies.js'
import { filesAt, isPointed } from './apart.js'
import { RepositoryScan } from '../../../sdk/node/repositories/repository-scan.js'
import { freeBranch } from './branch-name.js'
import { Branches } from './branches.js'
import { treeContentOf } from './content.js'
import { branchHeads, CopyWork } from './copy-work.js'
import { dropEntries, sweepEntries } from './earlier.js'
import { branchTip, dropBranch, parkBranch, unparkBranch } from './refs.js'
import { below, type MainRepository, pathOf } from '../../../sdk/node/repositories/main-repository.js'
import { besideRepositories, exists, sweepObjects, isWhole } from './repositories.js'
import { branchIn, CopyStore, type CopyRecord, type CopyStoreOptions, type TurnWall } from './copy-store.js'
import { WarmCopy } from './warm-copy.js'
import { checkpointOf, type Checkpoint, type Opened, type SyncedCopy, type Tip } from './states.js'
import { Trash } from './trash.js'
import { uncommittedIn } from './tree.js'

/** Where private copies are kept. */
export interface CopiesOptions extends CopyStoreOptions {
  readonly log?: Pick<Log, 'warn'>
}

const ID = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/

/** The private copies of conversations. Callers hold the conversation's turn lock. */
export class Copies {
  readonly #options: CopiesOptions
  readonly #locks = new KeyedMutex()
  readonly #branches: Branches
  readonly #scan: RepositoryScan
  readonly #store: CopyStore
  readonly #warm: WarmCopy
  readonly #work: CopyWork
  readonly #trash: Trash
  /** Locks and half-written files older than this are not of this daemon. */
  readonly #since = Date.now()
  /** The copies whose git dirs have been swept since this daemon started. */
  readonly #swept = new Set<string>()

  constructor(options: CopiesOptions) {
    const { log } = options
    this.#options = options
    this.#branches = new Branches(join(options.folder, 'branches'))
    this.#scan = new RepositoryScan(options)
    this.#store = new CopyStore(options, this.#locks)
    this.#work = new CopyWork({
      folder: options.folder,
      log,
      branches: this.#branches,
      scan: this.#scan,
      store: this.#store,
    })
    this.#trash = new Trash(join(options.folder, 'trash'), log)
    const failed = (error: unknown) =>
      log?.warn('updating the warm copy to the main line failed', { error: String(error) })
    this.#warm = new WarmCopy({ store: this.#store, scan: this.#scan, trash: this.#trash, locks: this.#locks, failed })
  }

  /** The repositories of the workspace that have a commit. */
  async repositories(): Promise<Pick<MainRepository, 'repo' | 'dir' | 'gitdir' | 'head'>[]> {
    return (await this.#scan.now()).repositories.map(({ repo, dir, gitdir, head }) => ({ repo, dir, gitdir, head }))
  }

  /** Whether the workspace holds a repository with a commit. */
  possible(): Promise<boolean> {
    return this.#scan.some()
  }

  /** The files of a copy outside its repositories, which cannot land: about the first 100. */
  async beside(id: string): Promise<string[]> {
    const made = await this.#work.record(id)
    return made
      ? besideRepositories(
          this.dir(id),
          made.repos.map(({ repo }) => pathOf(repo)),
        )
      : []
  }

  /** The files of a copy that are not committed because of where they lie, by what its tips say. */
  async apart(id: string, tips: readonly Tip[]): Promise<string[]> {
    const each = tips.map(({ repo, apart = [] }) => filesAt(this.dir(id), { repo }, apart))
    return (await Promise.all(each)).flat()
  }

  /** How many files at or below a path of a copy are uncommitted; those outside its repositories are not counted. */
  async uncommitted(id: string, path: string): Promise<number> {
    const made = await this.#work.need(id)
    const [repo] = made.repos
      .map(each => each.repo)
      .filter(each => pathOf(each) === path || below(each, path) !== undefined)
      .sort((one, other) => pathOf(other).length - pathOf(one).length)
    return repo === undefined ? 0 : uncommittedIn(this.#store.tree(id, made, repo), below(repo, path) ?? '')
  }

  /** What the repositories of a copy, or of the workspace, hold; undefined: there is none. */
  async content(id: string | undefined, repos: readonly CopyRepo[]): Promise<TreeContent | undefined> {
    const { workspace } = this.#options
    const bases = new Map(repos.map(({ repo, base }) => [repo, base]))
    if (id === undefined) {
      const all = (await this.#scan.now()).repositories.map(({ repo }) => repo)
      const wall = await this.wall()
      const foreign = (repo: string) => [...all, '.sandbox'].flatMap(each => below(repo, each) ?? [])
      const trees = all.map(repo => ({ repo, branch: '', workspace, wall, foreign: foreign(repo) }))
      return trees.length === 0 ? undefined : treeContentOf(workspace, trees, bases)
    }
    const made = await this.#work.record(id)
    const trees = made?.repos.map(({ repo }) => this.#store.tree(id, made, repo)) ?? []
    return trees.length === 0 ? undefined : treeContentOf(this.dir(id), trees, bases)
  }

  /** The folder of a conversation's copy, which may not exist yet. */
  dir(id: string): string {
    if (!ID.test(id)) refuse('invalid', `expected a conversation id, found ${JSON.stringify(id.slice(0, 80))}`)
    return this.#store.place(id)
  }

  /** Creates or repairs the copy and returns its repositories; does not change a complete copy. */
  async ensure(id: string, known: readonly CopyRepo[], starts: readonly CopyStart[] = []): Promise<CopyRepo[]> {
    return (await this.open(id, known, starts)).repos
  }

  /** As `ensure`; for a new copy also returns its state. */
  async open(id: string, known: readonly CopyRepo[], starts: readonly CopyStart[] = []): Promise<Opened> {
    const dir = this.dir(id)
    return this.#locks.with(id, async () => {
      const made = await this.#work.record(id)
      if (made && known.length > 0 && (await isWhole(dir, made.repos))) {
        await this.#sweepGitdirs(id, made)
        await this.#work.recover(id, made)
        return { repos: known.map(repo => ({ ...repo })), branch: branchIn(id, made) }
      }
      return known.length > 0 ? this.#rebuild(id, known) : this.#begin(id, starts)
    })
  }

  /**
   * Commits uncommitted work and rebases the branch onto the main line; a repository with conflicts stays unchanged.
   */
  async sync(id: string, repos: readonly CopyRepo[]): Promise<SyncedCopy> {
    return this.#locked(id, async () => this.#withAdded(id, await this.#work.sync(id, repos)))
  }

  /**
   * Commits uncommitted work, imports it into the repositories and returns the tips; a missing repository has none.
   * Work that git's strict checks refuse is not imported; its tip says so.
   */
  async commitRest(id: string, repos: readonly CopyRepo[], message?: string): Promise<Tip[]> {
    return this.#locked(id, () => this.#work.commitRest(id, repos, message))
  }

  /** Commits uncommitted work and returns the checkpoint. */
  async checkpoint(id: string, repos: readonly CopyRepo[]): Promise<Checkpoint> {
    return checkpointOf(await this.commitRest(id, repos))
  }

  /** Resets the trees to these commits and discards changes; ignored files stay. */
  async restore(id: string, tips: readonly Tip[]): Promise<void> {
    return this.#locked(id, () => this.#work.restore(id, tips))
  }

  /** The repositories with their folders on this machine. */
  async resolve(id: string, repos: readonly CopyRepo[]): Promise<CheckoutRepo[]> {
    const dir = this.dir(id)
    const [made, left] = await Promise.all([this.#store.made(id), this.#branches.left(id)])
    return Promise.all(
      repos.map(async repo => {
        const main = join(this.#options.workspace, pathOf(repo.repo))
        const copy = join(dir, pathOf(repo.repo))
        const [hasMain, hasCopy] = await Promise.all([
          exists(repo.module === undefined ? join(main, '.git') : join(this.#options.workspace, repo.module)),
          exists(join(copy, '.git')),
        ])
        const gitdir = hasCopy ? made?.repos.find(each => each.repo === repo.repo)?.gitdir : undefined
        const tip = left.get(repo.repo)
        return {
          ...repo,
          ...(hasMain && { main }),
          ...(hasCopy && { copy }),
          ...(gitdir && { gitdir }),
          ...(tip && { tip }),
        }
      }),
    )
  }

  /** Removes the copy and its branches; deletes the files in the background. Can be repeated. */
  async remove(id: string, repos: readonly Pick<CopyRepo, 'repo'>[]): Promise<void> {
    const dir = this.dir(id)
    await this.#locks.with(id, async () => {
      const made = await this.#store.made(id)
      const place = await this.#trash.put(dir)
      failpoint('agent.copy.trashed')
      await this.#work.dropMarks(id)
      // A copy whose creation was interrupted is recorded only with its branches.
      const names = new Set([...repos.map(({ repo }) => repo), ...(await this.#branches.left(id)).keys()])
      const branch = await this.#branches.name(id)
      await Promise.all(
        [...names].map(async repo => {
          const common = await this.#common(made, repo)
          if (!common) return
          const forgotten = this.#locks
            .with(common, () => dropEntries(common, join(dir, pathOf(repo))))
            .then(() => failpoint('agent.copy.dropped'))
          await Promise.all([forgotten, dropBranch(common, branch, await this.#own(id, repo, branch, made))])
        }),
      )
      await this.#trash.dropGitdirs(made?.repos ?? [])
      await this.#branches.forget(id)
      failpoint('agent.copy.forgotten')
      await this.#store.unfinish(id)
      if (place) this.#trash.delete(place)
    })
  }

  /** Commits uncommitted work, removes the copy and hides its branches; the next `ensure` restores all. */
  async retire(id: string, repos: readonly CopyRepo[]): Promise<void> {
    const dir = this.dir(id)
    await this.#locks.with(id, async () => {
      const made = (await exists(dir)) ? await this.#work.record(id) : undefined
      if (made && (await isWhole(dir, made.repos))) {
        await this.#work.recover(id, made)
        for (const { repo } of made.repos) await this.#work.commitAll(id, made, repo)
      }
      await this.#store.unfinish(id)
      failpoint('agent.copy.retiring')
      const place = await this.#trash.put(dir)
      const branch = await this.#branches.name(id)
      failpoint('agent.copy.away')
      for (const { repo } of repos) {
        const common = await this.#common(made, repo)
        if (!common) continue
        await this.#locks.with(common, () => dropEntries(common, join(dir, pathOf(repo))))
        failpoint('agent.copy.detached')
        await parkBranch(common, branch, await this.#branches.own(id, repo))
      }
      await this.#trash.dropGitdirs(made?.repos ?? [])
      if (place) this.#trash.delete(place)
    })
  }

  /**
   * Removes the half-written objects of a killed git; only while no turn runs, which could replace folders by links.
   */
  async sweep(): Promise<void> {
    const { repositories } = await this.#scan.now()
    await Promise.all(repositories.map(({ common }) => sweepObjects(common, this.#since)))
  }

  /**
   * Removes the copies of deleted conversations, leftovers of a crash, and the trash; turns may run meanwhile.
   *
   * @param isKept Whether a conversation has a copy, asked when its turn comes.
   */
  async prune(isKept: (id: string) => boolean): Promise<void> {
    const { repositories } = await this.#scan.now()
    await Promise.all([
      this.#store.sweep(),
      this.#branches.sweep(),
      sweepTemporary(this.#work.marks),
      this.#sweepRefLocks(repositories),
      ...repositories.map(({ common }) => sweepEntries(common, this.#store)),
    ])
    const known = new Set([...(await this.#store.ids()), ...(await this.#branches.ids())])
    for (const id of known) if (!isKept(id) && ID.test(id)) await this.remove(id, repositories)
    for (const id of new Set(await this.#store.ids()))
      await this.#locks.with(id, async () => this.#sweepGitdirs(id, await this.#store.made(id)))
    for (const place of await this.#store.leftGitdirs()) await this.throwAway(place)
    await this.#trash.empty()
  }

  /** The wall of a turn: with this conversation's copy, or without an id with the shared tree. */
  async wall(id?: string): Promise<TurnWall> {
    const { workspace, data, hidden = [], grants } = this.#options
    if (id !== undefined) {
      const made = await this.#work.need(id)
      return { ...this.#store.wall(id, made), shown: await mountable(workspace, this.dir(id), made.shown) }
    }
    return { workspace, data, hide: hidden, ...(grants && { grants }), exposed: await everyGitdir(data) }
  }

  /** Prepares a warm copy for the next conversation, unless one is ready. */
  warm(): Promise<void> {
    return this.#warm.warm()
  }

  /** Removes a folder of a conversation; deletes its files in the background. */
  throwAway(folder: string): Promise<void> {
    return this.#trash.throwAway(folder)
  }

  /** Waits until the trash is deleted. */
  settled(): Promise<void> {
    return this.#trash.settled()
  }

  /** Stops background work. */
  close(): Promise<void> {
    return this.#warm.close()
  }

  /**
   * Removes what a killed git left in the git dirs of a copy, once and before programs of a turn run in it: they could
   * replace folders by links.
   */
  async #sweepGitdirs(id: string, made: CopyRecord | undefined): Promise<void> {
    if (this.#swept.has(id)) return
    this.#swept.add(id)
    for (const { gitdir } of made?.repos ?? []) {
      if (gitdir === undefined) continue
      await Promise.all([
        sweepObjects(gitdir, this.#since),
        ...['', dirname(`refs/heads/${branchIn(id, made ?? {})}`)].map(part =>
          sweepOld(join(gitdir, part), name => isTemporary(name) || isLock(name), this.#since),
        ),
      ])
    }
  }

  /** Removes the locks that a killed daemon left of branches of its own; others may hold theirs. */
  async #sweepRefLocks(repositories: readonly MainRepository[]): Promise<void> {
    const names = await Promise.all((await this.#branches.ids()).map(id => this.#branches.name(id)))
    const locks = new Set(names.map(name => `${basename(name)}.lock`))
    for (const folder of new Set(names.map(name => dirname(name))))
      await Promise.all(
        repositories.map(({ common }) =>
          sweepOld(join(common, 'refs/heads', folder), name => locks.has(name), this.#since),
        ),
      )
  }

  /** Runs work while nothing else works in the copy. */
  #locked<T>(id: string, work: () => Promise<T>): Promise<T> {
    this.dir(id)
    return this.#locks.with(id, work)
  }

  /** The commits at which a branch is that of a conversation; a copy of an earlier version has no record of them. */
  async #own(id: string, repo: string, branch: string, made: CopyRecord | undefined): Promise<string[]> {
    const own = await this.#branches.own(id, repo)
    const earlier = own.length === 0 ? made?.repos.find(each => each.repo === repo) : undefined
    const tip = earlier && (await branchTip(earlier.common, branch))
    return tip === undefined ? own : [tip]
  }

  /** The git dir of one of a copy's repositories; for an incomplete copy, that of the workspace's repository. */
  async #common(made: CopyRecord | undefined, repo: string): Promise<string | undefined> {
    return (made?.repos.find(each => each.repo === repo) ?? (await this.#scan.at(repo)))?.common
  }

  /** Creates the copy of a conversation that has none yet. */
  async #begin(id: string, starts: readonly CopyStart[]): Promise<Opened> {
    const seen = await this.#scan.now()
    const sources = seen.repositories.map(source => ({
      ...source,
      head: starts.find(({ repo }) => repo === source.repo)?.tip ?? source.head,
    }))
    if (sources.length === 0) noRepository()
    await this.#clear(id)
    const shared = dependenciesOf(this.#scan, sources, seen)
    shared.catch(ignored('the caller that awaits it gets the failure'))
    const branch = await this.#newBranch(id, sources)
    // Recorded before the branch is created: the next start removes branches whose record has no conversation.
    await this.#branches.begin(id, sources, branch)
    const made = (await this.#warm.adopt(id, branch, sources)) ?? { repos: [], shown: [], branch }
    if (made.repos.length === 0)
      for (const source of sources)
        await this.#store.add(made, id, source, { name: branch, own: await this.#branches.own(id, source.repo) })
    made.shown = await share(this.dir(id), await shared)
    await this.#store.finish(id, made)
    const repos = sources.map(({ repo, head, module }) => {
      const { base = head, pinned } = starts.find(start => start.repo === repo) ?? {}
      return { repo, base, ...(pinned && { pinned }), ...(module !== undefined && { module }) }
    })
    const checkpoint = checkpointOf(sources.map(({ repo, head }) => ({ repo, tip: head })))
    return { repos, branch, checkpoint, unfiltered: unfilteredIn(made) }
  }

  /**
   * The name of a new conversation's branches. Those that an interrupted creation left are recorded: they are removed
   * first, unless somebody moved them.
   */
  async #newBranch(id: string, sources: readonly MainRepository[]): Promise<string> {
    const left = await this.#branches.name(id)
    for (const { repo, common } of sources) {
      const own = await this.#branches.own(id, repo)
      if (own.length > 0) await this.#locks.with(common, () => dropBranch(common, left, own))
    }
    return freeBranch(
      id,
      sources.map(({ common }) => common),
    )
  }

  /** Recreates a copy from its branches; a repository without its branch starts over. */
  async #rebuild(id: string, known: readonly CopyRepo[]): Promise<Opened> {
    const seen = await this.#scan.now()
    const named = await Promise.all(known.map(({ repo }) => this.#scan.at(repo)))
    const sources = named.filter(source => source !== undefined)
    if (sources.length === 0) noRepository()
    await this.#work.save(id)
    await this.#clear(id)
    const branch = await this.#branches.name(id)
    const made: CopyRecord = { repos: [], shown: [], branch }
    const repos: CopyRepo[] = []
    for (const source of sources) {
      await this.#locks.with(source.common, () => unparkBranch(source.common, branch))
      await this.#branches.check(id, source.repo, source.common)
      const own = await this.#branches.own(id, source.repo)
      const kept = await this.#store.add(made, id, source, { name: branch, own, rebuild: true })
      repos.push(
        kept
          ? { ...known.find(({ repo }) => repo === source.repo)! }
          : { repo: source.repo, base: source.head, ...(source.module !== undefined && { module: source.module }) },
      )
    }
    made.shown = await share(this.dir(id), await dependenciesOf(this.#scan, sources, seen))
    await this.#branches.begin(id, await branchHeads(made, id), branch)
    await this.#store.finish(id, made)
    return { repos, branch, unfiltered: unfilteredIn(made) }
  }

  /** Adds the submodules that the main line has added since the copy was made. */
  async #withAdded(id: string, synced: SyncedCopy): Promise<SyncedCopy> {
    const made = await this.#work.need(id)
    const trees = made.repos.map(({ repo }) => join(this.dir(id), pathOf(repo)))
    if (!(await Promise.all(trees.map(tree => exists(join(tree, '.gitmodules'))))).some(Boolean)) return synced
    const added: CopyRepo[] = []
    for (const source of (await this.#scan.now()).repositories) {
      if (made.repos.some(({ repo }) => repo === source.repo) || !(await this.#isPlaced(id, made, source))) continue
      const { repo, common, head, module } = source
      const branch = branchIn(id, made)
      // A branch of somebody else with this name is left alone, and so is the submodule.
      if ((await branchTip(common, branch)) && (await this.#branches.own(id, repo)).length === 0) continue
      await this.#branches.begin(id, [{ repo, head }], branch)
      // Until the record names the new tree, a crash leaves no whole copy.
      await this.#store.unfinish(id)
      await this.#store.add(made, id, source, { name: branch, own: await this.#branches.own(id, repo) })
      await this.#store.finish(id, made)
      added.push({ repo, base: head, ...(module !== undefined && { module }) })
    }
    if (added.length === 0) return synced
    const { checkpoint: _, ...rest } = synced
    return { ...rest, repos: [...synced.repos, ...added] }
  }

  /** Whether a copy has an empty folder for a submodule, and a pointer to it. */
  async #isPlaced(id: string, made: CopyRecord, { repo }: MainRepository): Promise<boolean> {
    const [parent] = made.repos
      .filter(each => below(each.repo, repo) !== undefined)
      .sort((one, other) => pathOf(other.repo).length - pathOf(one.repo).length)
    const names = await readdir(join(this.dir(id), repo)).catch(() => undefined)
    if (!parent || names?.length !== 0) return false
    return isPointed(this.#store.tree(id, made, parent.repo), below(parent.repo, repo)!)
  }

  /** Removes whatever is in the place of a copy. */
  async #clear(id: string): Promise<void> {
    const made = await this.#store.made(id)
    await this.#store.unfinish(id)
    await this.#work.dropMarks(id)
    await this.#trash.dropGitdirs(made?.repos ?? [])
    await this.#trash.throwAway(this.dir(id))
    await mkdir(dirname(this.dir(id)), { recursive: true, mode: 0o700 })
  }
}

/** The filters that could not run in a copy, by repository. */
const unfilteredIn = ({ repos }: CopyRecord): { repo: string; filters: readonly string[] }[] =>
  repos.flatMap(({ repo, unfiltered: filters }) => (filters ? [{ repo, filters }] : []))

/** A lock file, which a killed git leaves where it was writing. */
const isLock = (name: string): boolean => name.endsWith('.lock')

const noRepository = (): never =>
  refuse(
    'unprocessable',
    'expected a git repository with at least one commit in the workspace, found none: '
      + 'run `git init`, `git add -A` and `git commit` there, or work in the shared tree',
  )
