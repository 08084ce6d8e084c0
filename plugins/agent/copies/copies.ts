import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse, type Log } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isTemporary, sweepOld, sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import { git, GitFailure } from '../../../sdk/node/programs/git.js'
import { tooLarge } from '../../../sdk/node/files/large-files.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { CheckoutRepo, CheckoutSync, CopyRepo, CopyStart, LargeFile } from '../contract.js'
import { dependenciesOf, mountable, share } from './dependencies.js'
import { RepositoryScan } from './repository-scan.js'
import { Branches } from './branches.js'
import { dropEntries, renewEarlierCopy, sweepEntries, isEarlierCopy } from './earlier.js'
import { clearOwn, followRefs, ownTip } from './gitdir.js'
import { branchTip, dropBranch, parkBranch, unparkBranch } from './refs.js'
import {
  besideRepositories,
  exists,
  pathOf,
  sweepObjects,
  isWhole,
  workBegins,
  type MainRepository,
  type TreeEntry,
} from './repositories.js'
import { keeping, CopyStore, type CopyRecord, type CopyStoreOptions, type TurnWall } from './copy-store.js'
import { WarmCopy } from './warm-copy.js'
import type { Checkpoint, Opened, SyncedCopy, Tip } from './states.js'
import { Trash } from './trash.js'
import { commitTree, dropLocks, dropRebase, inTree, rebaseTree, resetTree, type Tree } from './tree.js'

/** Where private copies are kept. */
export interface CopiesOptions extends CopyStoreOptions {
  readonly log?: Pick<Log, 'warn'>
}

const ID = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/
const MESSAGE = 'Keep uncommitted work'

/** The private copies of conversations. Callers hold the conversation's turn lock. */
export class Copies {
  readonly #options: CopiesOptions
  readonly #locks = new KeyedMutex()
  readonly #branches: Branches
  readonly #look: RepositoryScan
  readonly #store: CopyStore
  readonly #warm: WarmCopy
  readonly #trash: Trash
  /** Locks and half-written files from before it are not of this daemon. */
  readonly #since = Date.now()

  constructor(options: CopiesOptions) {
    const { log } = options
    this.#options = options
    this.#branches = new Branches(join(options.folder, 'branches'))
    this.#look = new RepositoryScan(options)
    this.#store = new CopyStore(options, this.#locks)
    this.#trash = new Trash(join(options.folder, 'trash'), log)
    const failed = (error: unknown) =>
      log?.warn('the warm copy could not follow the main line', { error: String(error) })
    this.#warm = new WarmCopy({ store: this.#store, look: this.#look, trash: this.#trash, locks: this.#locks, failed })
  }

  /** The repositories of the workspace that have a commit. */
  async repositories(): Promise<{ repo: string; dir: string }[]> {
    return (await this.#look.now()).repositories.map(({ repo, dir }) => ({ repo, dir }))
  }

  /** Whether the workspace holds a repository with a commit. */
  possible(): Promise<boolean> {
    return this.#look.some()
  }

  /** The files of a copy that lie in none of its repositories, which nothing lands: the first 100 or so. */
  async beside(id: string): Promise<string[]> {
    const made = await this.#made(id)
    return made
      ? besideRepositories(
          this.dir(id),
          made.repos.map(({ repo }) => pathOf(repo)),
        )
      : []
  }

  /** Where a conversation's copy is, made or not. */
  dir(id: string): string {
    if (!ID.test(id)) refuse('invalid', `expected a conversation id, found ${JSON.stringify(id.slice(0, 80))}`)
    return this.#store.place(id)
  }

  /** Makes the copy, or repairs it, and answers its repositories; one that is whole is left as it is. */
  async ensure(id: string, known: readonly CopyRepo[], starts: readonly CopyStart[] = []): Promise<CopyRepo[]> {
    return (await this.open(id, known, starts)).repos
  }

  /** As `ensure`; of a copy that was made anew it also answers the state it is in. */
  async open(id: string, known: readonly CopyRepo[], starts: readonly CopyStart[] = []): Promise<Opened> {
    const dir = this.dir(id)
    return this.#locks.with(id, async () => {
      const made = await this.#made(id)
      if (made && known.length > 0 && (await isWhole(dir, made.repos))) {
        await this.#settle(id, made)
        return { repos: known.map(repo => ({ ...repo })) }
      }
      return known.length > 0 ? { repos: await this.#rebuild(id, known) } : this.#begin(id, starts)
    })
  }

  /** Commits the rest and moves the branch onto the main line; where that does not apply, all stays as it was. */
  async sync(id: string, repos: readonly CopyRepo[]): Promise<SyncedCopy> {
    return this.#locks.with(id, async () => {
      const made = await this.#usable(id)
      const reports: CheckoutSync[] = []
      const now: CopyRepo[] = []
      const tips: Tip[] = []
      for (const repo of repos) {
        if (!standsIn(made)(repo)) {
          now.push({ ...repo })
          continue
        }
        const main = await this.#look.at(repo.repo)
        const tree = this.#store.tree(id, made, repo.repo)
        const { common, gitdir } = made.repos.find(standsFor(repo))!
        await followRefs(gitdir, common, tree.branch)
        const { attached, tip, large } = await commitTree(tree, MESSAGE)
        tips.push(tipOf(repo.repo, tip, large))
        const behind = main !== undefined && main.head !== repo.base && !repo.pinned
        if (!behind) {
          now.push({ ...repo })
          continue
        }
        // No rebase begins over changes of a file that no commit can hold.
        const stuck = large.flatMap(({ path, tracked }) => (tracked ? [path] : []))
        const stopped = attached && stuck.length === 0 ? await this.#rebase(id, tree, main, repo, tip) : stuck
        const blocked = stopped !== undefined
        // Counting reads commits only: nothing of the repository can run.
        const commits = blocked
          ? 0
          : Number((await git(main.dir, ['rev-list', '--count', `${repo.base}..${main.head}`])).text)
        reports.push({ repo: repo.repo, onto: main.head, from: repo.base, commits, blocked, paths: stopped ?? [] })
        now.push(blocked ? { ...repo } : { ...repo, base: main.head })
      }
      // What cannot be taken over now is told when the turn ends.
      for (const { repo } of now.filter(standsIn(made))) await this.#take(id, made, repo)
      const commits = reports.reduce((sum, report) => sum + report.commits, 0)
      const blocked = reports.filter(report => report.blocked).map(({ repo }) => repo)
      return {
        repos: now,
        commits,
        blocked,
        reports,
        ...(blocked.length === reports.length && { checkpoint: checkpointOf(tips) }),
      }
    })
  }

  /**
   * Commits what the copy holds uncommitted, takes it into the repositories and answers the tips; a repository that is
   * gone has none. What git's strict checks refuse stays out, and its tip says so.
   */
  async commitRest(id: string, repos: readonly CopyRepo[], message: string = MESSAGE): Promise<Tip[]> {
    return this.#locks.with(id, async () => {
      const made = await this.#usable(id)
      const tips: Tip[] = []
      for (const { repo } of repos.filter(standsIn(made))) {
        const { tip, large, out } = await this.#commit(id, made, repo, message)
        tips.push({ ...tipOf(repo, tip, large), ...(out !== undefined && { out }) })
      }
      return tips
    })
  }

  /** Commits the rest and answers the state that can be gone back to. */
  async checkpoint(id: string, repos: readonly CopyRepo[]): Promise<Checkpoint> {
    return checkpointOf(await this.commitRest(id, repos))
  }

  /** Puts the trees back to these commits, whatever stands there now; ignored files stay. */
  async restore(id: string, tips: readonly Tip[]): Promise<void> {
    await this.#locks.with(id, async () => {
      const made = await this.#usable(id)
      for (const { repo, tip } of tips) {
        await resetTree(this.#store.tree(id, made, repo), tip)
        await this.#take(id, made, repo)
      }
    })
  }

  /** The repositories with their folders on this machine. */
  async resolve(id: string, repos: readonly CopyRepo[]): Promise<CheckoutRepo[]> {
    const dir = this.dir(id)
    const [made, left] = await Promise.all([this.#store.made(id), this.#branches.left(id)])
    return Promise.all(
      repos.map(async repo => {
        const main = join(this.#options.workspace, pathOf(repo.repo))
        const copy = join(dir, pathOf(repo.repo))
        const [hasMain, hasCopy] = await Promise.all([exists(join(main, '.git')), exists(join(copy, '.git'))])
        const gitdir = hasCopy ? made?.repos.find(standsFor(repo))?.gitdir : undefined
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

  /** Takes the copy and its branches away; the files themselves go in the background. Repeating it is harmless. */
  async remove(id: string, repos: readonly Pick<CopyRepo, 'repo'>[]): Promise<void> {
    const dir = this.dir(id)
    await this.#locks.with(id, async () => {
      const made = await this.#store.made(id)
      const place = await this.#trash.put(dir)
      failpoint('agent.copy.trashed')
      await this.#forgetMarks(id)
      // A copy that was cut off while it was made is in no record but its note.
      const names = new Set([...repos.map(({ repo }) => repo), ...(await this.#branches.left(id)).keys()])
      await Promise.all(
        [...names].map(async repo => {
          const common = await this.#common(made, repo)
          if (!common) return
          const forgotten = this.#locks
            .with(common, () => dropEntries(common, join(dir, pathOf(repo))))
            .then(() => failpoint('agent.copy.dropped'))
          await Promise.all([forgotten, dropBranch(common, `agent/${id}`)])
        }),
      )
      await this.#trash.dropGitdirs(made?.repos ?? [])
      await this.#branches.forget(id)
      failpoint('agent.copy.forgotten')
      await this.#store.unfinish(id)
      if (place) this.#trash.delete(place)
    })
  }

  /** Commits the rest, takes the copy away and parks its branches; the next `ensure` brings all back. */
  async retire(id: string, repos: readonly CopyRepo[]): Promise<void> {
    const dir = this.dir(id)
    await this.#locks.with(id, async () => {
      const made = (await exists(dir)) ? await this.#made(id) : undefined
      if (made && (await isWhole(dir, made.repos))) {
        await this.#settle(id, made)
        for (const { repo } of made.repos) await this.#commitAll(id, made, repo)
      }
      await this.#store.unfinish(id)
      failpoint('agent.copy.retiring')
      const place = await this.#trash.put(dir)
      failpoint('agent.copy.away')
      for (const { repo } of repos) {
        const common = await this.#common(made, repo)
        if (!common) continue
        await this.#locks.with(common, () => dropEntries(common, join(dir, pathOf(repo))))
        failpoint('agent.copy.detached')
        await parkBranch(common, `agent/${id}`)
      }
      await this.#trash.dropGitdirs(made?.repos ?? [])
      if (place) this.#trash.delete(place)
    })
  }

  /** Commits everything in a tree that is to go; what no branch would keep is never given up. */
  async #commitAll(id: string, made: CopyRecord, repo: string): Promise<void> {
    const { branch } = this.#store.tree(id, made, repo)
    const { attached, clean, large, out } = await this.#commit(id, made, repo, MESSAGE)
    if (out !== undefined) refuse('conflict', `the private copy of ${repo} cannot be put away: ${out}`)
    if (attached && clean) return
    const sizes = large.map(({ path, size }) => tooLarge(path, size)).join('; ')
    const found = !attached
      ? `it does not stand on its branch ${branch}`
      : sizes || 'it holds work that cannot be committed'
    refuse(
      'conflict',
      `the private copy of ${repo} cannot be put away: ${found}; have the agent put that right, or discard the work`,
    )
  }

  /**
   * Takes away the objects that a killed git had half-written; only while no turn works, which could lead it elsewhere.
   */
  async sweep(): Promise<void> {
    const { repositories } = await this.#look.now()
    await Promise.all(repositories.map(({ common }) => sweepObjects(common, this.#since)))
  }

  /** Takes away the copies of conversations that are gone, what a crash left of them, and the trash. */
  async prune(ids: Iterable<string>): Promise<void> {
    const kept = new Set(ids)
    const { repositories } = await this.#look.now()
    await Promise.all([
      this.#store.sweep(),
      this.#branches.sweep(),
      sweepTemporary(dirname(this.#mark('', ''))),
      ...repositories.map(({ common }) => sweepOld(join(common, 'refs/heads/agent'), isLock, this.#since)),
      ...repositories.map(({ common }) => sweepEntries(common, this.#store)),
    ])
    const known = [...new Set([...(await this.#store.ids()), ...(await this.#branches.ids())])]
    for (const id of known) if (!kept.has(id) && ID.test(id)) await this.remove(id, repositories)
    const notes = await Promise.all(known.map(id => this.#store.made(id)))
    const used = notes.flatMap(made => made?.repos ?? [])
    for (const { gitdir } of used) {
      if (gitdir === undefined) continue
      await Promise.all([
        sweepObjects(gitdir, this.#since),
        ...['', 'refs/heads/agent'].map(part =>
          sweepOld(join(gitdir, part), name => isTemporary(name) || isLock(name), this.#since),
        ),
      ])
    }
    for (const place of await this.#store.leftGitdirs()) await this.throwAway(place)
    await this.#trash.empty()
  }

  /** What the wall of a turn needs to know: of this conversation's copy, or without an id of the shared tree. */
  async wall(id?: string): Promise<TurnWall> {
    const { workspace, data, hidden = [], grants } = this.#options
    if (id !== undefined) {
      const made = await this.#need(id)
      return { ...this.#store.wall(id, made), shown: await mountable(workspace, this.dir(id), made.shown) }
    }
    const gitdirs = join(data, 'gitdirs')
    const names = await readdir(gitdirs).catch(() => [] as string[])
    return { workspace, data, hide: hidden, ...(grants && { grants }), exposed: names.map(name => join(gitdirs, name)) }
  }

  /** Keeps a warm copy ready that the next conversation's copy is made of; one that is ready is left alone. */
  warm(): Promise<void> {
    return this.#warm.warm()
  }

  /** Takes a folder of a conversation away; its files go in the background. */
  throwAway(folder: string): Promise<void> {
    return this.#trash.throwAway(folder)
  }

  /** Waits until everything that was thrown away is really gone. */
  settled(): Promise<void> {
    return this.#trash.settled()
  }

  /** Ends what goes on in the background. */
  close(): Promise<void> {
    return this.#warm.close()
  }

  #mark(id: string, repo: string): string {
    return join(this.#options.folder, 'rebasing', `${id}:${encodeURIComponent(repo)}`)
  }

  /** A tree that is made anew is not put back by what was begun in the one before. */
  async #forgetMarks(id: string): Promise<void> {
    const folder = dirname(this.#mark(id, ''))
    const names = await readdir(folder).catch(() => [] as string[])
    await Promise.all(
      names.filter(name => name.startsWith(`${id}:`)).map(name => rm(join(folder, name), { force: true })),
    )
  }

  /** The git dir of one of a copy's repositories; of a copy that is not whole, that of the workspace's. */
  async #common(made: CopyRecord | undefined, repo: string): Promise<string | undefined> {
    return (made?.repos.find(each => each.repo === repo) ?? (await this.#look.at(repo)))?.common
  }

  /** What is written down of a finished copy; one that an earlier version made is given git dirs of its own first. */
  async #made(id: string): Promise<CopyRecord | undefined> {
    const made = await this.#store.made(id)
    if (!made || !isEarlierCopy(made) || !(await exists(this.dir(id)))) return made
    const next = await renewEarlierCopy(this.#store, id, made)
    await this.#branches.begin(id, await tipsOf(next, id))
    return next
  }

  /**
   * Commits the rest of a tree and takes its branch over; where git cannot read what a turn wrote, it is that which
   * stays out.
   */
  async #commit(id: string, made: CopyRecord, repo: string, message: string) {
    const tree = this.#store.tree(id, made, repo)
    try {
      const standing = await commitTree(tree, message)
      return { ...standing, out: await this.#take(id, made, repo) }
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error
      const tip = ownTip(made.repos.find(each => each.repo === repo)!.gitdir, tree.branch)
      const out = await this.#take(id, made, repo)
      if (tip === undefined || out === undefined) throw error
      return { tip, large: [], attached: true, clean: false, out }
    }
  }

  /** Takes what a copy's branch holds into its repository; answers why it stays out. */
  async #take(id: string, made: CopyRecord, repo: string): Promise<string | undefined> {
    const out = await this.#branches.take(
      id,
      made.repos.find(each => each.repo === repo)!,
      this.#store.tree(id, made, repo),
      await this.#look.at(repo),
    )
    if (out !== undefined)
      this.#options.log?.warn('what a private copy holds was not taken over', { conversation: id, repo, why: out })
    return out
  }

  async #need(id: string): Promise<CopyRecord> {
    const made = (await exists(this.dir(id))) ? await this.#made(id) : undefined
    return (
      made
      ?? refuse('conflict', 'expected a private copy, found none: it was cleaned up, and its work is on its branch')
    )
  }

  /**
   * What of a copy git can work on, without repositories that are gone: what a turn left where git keeps files of its
   * own is cleared away.
   */
  async #usable(id: string): Promise<CopyRecord> {
    const made = await keeping(await this.#need(id), ({ common }) => exists(common))
    for (const { gitdir } of made.repos) await clearOwn(gitdir, `agent/${id}`)
    if (!(await isWhole(this.dir(id), made.repos))) {
      return refuse(
        'conflict',
        'the private copy is damaged: say something to its agent, and it is made again from its branch',
      )
    }
    await this.#undoRebases(id, made)
    return made
  }

  /** Moves the branch onto the main line; answers the paths it stopped at when it did not apply. */
  async #rebase(
    id: string,
    tree: Tree,
    main: MainRepository,
    copy: CopyRepo,
    tip: string,
  ): Promise<string[] | undefined> {
    const holds = async (commit: string) =>
      (await inTree(tree, ['merge-base', '--is-ancestor', commit, tip], { ok: [0, 1, 128] })).code === 0
    const from = await workBegins(main, copy, holds)
    const mark = this.#mark(id, copy.repo)
    await mkdir(dirname(mark), { recursive: true, mode: 0o700 })
    await writeAtomic(mark, tip)
    failpoint('agent.copy.marked')
    const stopped = await rebaseTree(tree, main.head, from, tip)
    failpoint('agent.copy.rebased')
    await rm(mark, { force: true })
    return stopped
  }

  /** Undoes what a killed daemon left half-way in a copy that is whole. */
  async #settle(id: string, made: CopyRecord): Promise<void> {
    for (const { gitdir } of made.repos) {
      await clearOwn(gitdir, `agent/${id}`)
      await dropLocks(gitdir, `agent/${id}`)
    }
    await this.#undoRebases(id, made)
  }

  /**
   * Puts trees whose rebase was cut off, or done and not told, back to where they stood: all work was committed by
   * then.
   */
  async #undoRebases(id: string, made: CopyRecord): Promise<void> {
    for (const { repo, gitdir } of made.repos) {
      const mark = this.#mark(id, repo)
      const tip = await readFile(mark, 'utf8').catch(() => undefined)
      if (tip === undefined) continue
      await Promise.all([dropLocks(gitdir, `agent/${id}`), dropRebase(gitdir)])
      await resetTree(this.#store.tree(id, made, repo), tip)
      await rm(mark, { force: true })
    }
  }

  /** Makes the copy of a conversation that has none yet. */
  async #begin(id: string, starts: readonly CopyStart[]): Promise<Opened> {
    const seen = await this.#look.now()
    const sources = seen.repositories.map(source => ({
      ...source,
      head: starts.find(({ repo }) => repo === source.repo)?.tip ?? source.head,
    }))
    if (sources.length === 0) noRepository()
    await this.#clear(id)
    const shared = dependenciesOf(this.#look, sources, seen)
    shared.catch(() => {})
    // The note comes before the branch: the next start removes the branches of notes that no conversation belongs to.
    await this.#branches.begin(id, sources)
    const made = (await this.#warm.adopt(id, sources)) ?? { repos: [], shown: [] }
    if (made.repos.length === 0) for (const source of sources) await this.#store.add(made, id, source, `agent/${id}`)
    made.shown = await share(this.dir(id), await shared)
    await this.#store.finish(id, made)
    const repos = sources.map(({ repo, head }) => {
      const { base = head, pinned } = starts.find(start => start.repo === repo) ?? {}
      return { repo, base, ...(pinned && { pinned }) }
    })
    return { repos, checkpoint: checkpointOf(sources.map(({ repo, head }) => ({ repo, tip: head }))) }
  }

  /** Makes a copy again from its branches; a repository whose branch is gone begins anew. */
  async #rebuild(id: string, known: readonly CopyRepo[]): Promise<CopyRepo[]> {
    const seen = await this.#look.now()
    const named = await Promise.all(known.map(({ repo }) => this.#look.at(repo)))
    const sources = named.filter(source => source !== undefined)
    if (sources.length === 0) noRepository()
    await this.#save(id)
    await this.#clear(id)
    const made: CopyRecord = { repos: [], shown: [] }
    const repos: CopyRepo[] = []
    for (const source of sources) {
      await this.#locks.with(source.common, () => unparkBranch(source.common, `agent/${id}`))
      await this.#branches.check(id, source.repo, source.common)
      const kept = await this.#store.add(made, id, source, `agent/${id}`, true)
      repos.push(
        kept ? { ...known.find(({ repo }) => repo === source.repo)! } : { repo: source.repo, base: source.head },
      )
    }
    made.shown = await share(this.dir(id), await dependenciesOf(this.#look, sources, seen))
    await this.#branches.begin(id, await tipsOf(made, id))
    await this.#store.finish(id, made)
    return repos
  }

  /** Commits what the trees of a damaged copy hold that are whole themselves: it is made again from its branches. */
  async #save(id: string): Promise<void> {
    const made = await this.#made(id)
    if (!made) return
    const sound = await keeping(made, entry => isWhole(this.dir(id), [entry]))
    await this.#settle(id, sound)
    for (const { repo } of sound.repos) {
      await commitTree(this.#store.tree(id, sound, repo), MESSAGE)
      await this.#take(id, sound, repo)
    }
  }

  /** Puts away whatever is in a copy's place. */
  async #clear(id: string): Promise<void> {
    const made = await this.#store.made(id)
    await this.#store.unfinish(id)
    await this.#forgetMarks(id)
    await this.#trash.dropGitdirs(made?.repos ?? [])
    await this.#trash.throwAway(this.dir(id))
    await mkdir(dirname(this.dir(id)), { recursive: true, mode: 0o700 })
  }
}

const tipOf = (repo: string, tip: string, large: readonly LargeFile[]): Tip => ({
  repo,
  tip,
  ...(large.length > 0 && { large: [...large] }),
})

/** The state that can be gone back to, from the commits of its repositories. */
const checkpointOf = (commits: Tip[]): Checkpoint => {
  const root = commits.find(({ repo }) => repo === 'root') ?? commits[0]
  return { id: `branch:${root?.tip ?? ''}`, commits }
}

/** What a killed git leaves where it was writing. */
const isLock = (name: string): boolean => name.endsWith('.lock')

/** Tells the tree of a repository. */
const standsFor =
  ({ repo }: Pick<CopyRepo, 'repo'>) =>
  (each: TreeEntry): boolean =>
    each.repo === repo

/** Where the branches of a copy stand in their repositories. */
const tipsOf = async ({ repos }: CopyRecord, id: string): Promise<{ repo: string; head: string }[]> =>
  Promise.all(
    repos.map(async ({ repo, common, head }) => ({ repo, head: (await branchTip(common, `agent/${id}`)) ?? head })),
  )

/** Whether a repository has a tree in a copy. */
const standsIn =
  ({ repos }: CopyRecord) =>
  ({ repo }: Pick<CopyRepo, 'repo'>): boolean =>
    repos.some(each => each.repo === repo)

const noRepository = (): never =>
  refuse(
    'unprocessable',
    'expected a git repository with at least one commit in the workspace, found none: '
      + 'run `git init`, `git add -A` and `git commit` there, or work in the shared tree',
  )
