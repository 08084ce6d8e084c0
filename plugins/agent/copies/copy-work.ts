import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse, type Log } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import { git, GitFailure } from '../../../sdk/node/programs/git.js'
import { tooLarge } from '../../../sdk/node/files/large-files.js'
import type { CheckoutSync, CopyRepo, LargeFile } from '../contract.js'
import { movedPointers, pointedFolders, type MovedPointer } from './apart.js'
import type { Branches } from './branches.js'
import { branchIn, keeping, type CopyRecord, type CopyStore } from './copy-store.js'
import { isEarlierCopy, renewEarlierCopy } from './earlier.js'
import { clearOwn, followRefs, ownTip } from './gitdir.js'
import { branchTip } from './refs.js'
import { pathOf, type MainRepository } from '../../../sdk/node/repositories/main-repository.js'
import { exists, isWhole, workBegins, type TreeEntry } from './repositories.js'
import type { RepositoryScan } from '../../../sdk/node/repositories/repository-scan.js'
import { checkpointOf, type SyncedCopy, type Tip } from './states.js'
import {
  attachHead,
  commitTree,
  dropLocks,
  dropRebase,
  inTree,
  rebaseTree,
  resetTree,
  treeStatus,
  type Tree,
} from './tree.js'

/** The dependencies of working in copies. */
export interface CopyWorkDeps {
  /** The plugin's own folder. */
  readonly folder: string
  readonly branches: Branches
  readonly scan: RepositoryScan
  readonly store: CopyStore
  readonly log?: Pick<Log, 'warn'> | undefined
}

const MESSAGE = 'Keep uncommitted work'

/**
 * Commits, rebases and restores the work in private copies, and imports it into the repositories. Callers hold the lock
 * of the copy.
 */
export class CopyWork {
  readonly #deps: CopyWorkDeps

  constructor(deps: CopyWorkDeps) {
    this.#deps = deps
  }

  /** The folder of the records of running rebases. */
  get marks(): string {
    return join(this.#deps.folder, 'rebasing')
  }

  /**
   * Commits uncommitted work and rebases the branch onto the main line; a repository with conflicts stays unchanged.
   */
  async sync(id: string, repos: readonly CopyRepo[]): Promise<SyncedCopy> {
    const made = await this.#usable(id)
    const reports: CheckoutSync[] = []
    const now: CopyRepo[] = []
    const tips: Tip[] = []
    for (const repo of repos) {
      if (!standsIn(made)(repo)) {
        now.push({ ...repo })
        continue
      }
      const main = await this.#deps.scan.at(repo.repo)
      const tree = this.#deps.store.tree(id, made, repo.repo)
      const { common, gitdir } = made.repos.find(standsFor(repo))!
      await followRefs(gitdir, common, tree.branch)
      const { attached, tip, large } = await commitTree(tree, gitdir, MESSAGE)
      tips.push(tipOf(repo.repo, tip, large))
      const behind = main !== undefined && main.head !== repo.base && !repo.pinned
      if (!behind) {
        now.push({ ...repo })
        continue
      }
      // A rebase cannot start while a file that is too large to commit is changed.
      const stuck = large.flatMap(({ path, tracked }) => (tracked ? [path] : []))
      const stopped = attached && stuck.length === 0 ? await this.#rebase(id, tree, main, repo, tip) : stuck
      const blocked = stopped !== undefined
      // Counting only reads commits, which runs no program of the repository.
      const commits = blocked
        ? 0
        : Number((await git(main.dir, ['rev-list', '--count', `${repo.base}..${main.head}`])).text)
      reports.push({ repo: repo.repo, onto: main.head, from: repo.base, commits, blocked, paths: stopped ?? [] })
      now.push(blocked ? { ...repo } : { ...repo, base: main.head })
    }
    // An import that fails now is reported when the turn ends.
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
  }

  /**
   * Commits uncommitted work, imports it into the repositories and returns the tips; a missing repository has none.
   * Work that git's strict checks refuse is not imported; its tip says so.
   */
  async commitRest(id: string, repos: readonly CopyRepo[], message: string = MESSAGE): Promise<Tip[]> {
    const made = await this.#usable(id)
    const tips: Tip[] = []
    const moved = new Map<string, MovedPointer[]>()
    for (const { repo, base } of repos.filter(standsIn(made))) {
      const { tip, large, left, ignored, attached, out } = await this.#commit(id, made, repo, message)
      const { gitdir } = made.repos.find(standsFor({ repo }))!
      const tree = this.#deps.store.tree(id, made, repo)
      const apart = [...left, ...(await pointedFolders(tree, gitdir))]
      moved.set(repo, await movedPointers(tree, gitdir, base, tip))
      const facts = {
        ...(!attached && { detached: true as const }),
        ...(out !== undefined && { out }),
        ...(apart.length > 0 && { apart }),
        ...(ignored.length > 0 && { ignored: [...ignored] }),
      }
      tips.push({ ...tipOf(repo, tip, large), ...facts })
    }
    return Promise.all(
      tips.map(async tip => {
        const pointers = await this.#lost(id, made, tip.repo, moved.get(tip.repo) ?? [], tips)
        return { ...tip, ...(pointers.length > 0 && { pointers }) }
      }),
    )
  }

  /** Resets the trees to these commits and discards changes; ignored files stay. */
  async restore(id: string, tips: readonly Tip[]): Promise<void> {
    const made = await this.#usable(id)
    for (const { repo, tip } of tips) {
      await resetTree(this.#deps.store.tree(id, made, repo), tip)
      await this.#take(id, made, repo)
    }
  }

  /** Commits everything in a tree before it is removed; refuses if some work would not be on a branch. */
  async commitAll(id: string, made: CopyRecord, repo: string): Promise<void> {
    const tree = this.#deps.store.tree(id, made, repo)
    const { branch } = tree
    const { attached, large, out } = await this.#commit(id, made, repo, MESSAGE)
    if (out !== undefined) refuse('conflict', `the private copy of ${repo} cannot be removed: ${out}`)
    if (attached && (await treeStatus(tree)).clean) return
    const sizes = large.map(({ path, size }) => tooLarge(path, size)).join('; ')
    const found = !attached ? `it is not on its branch ${branch}` : sizes || 'it holds work that cannot be committed'
    refuse(
      'conflict',
      `the private copy of ${repo} cannot be removed: ${found}; have the agent fix that, or discard the work`,
    )
  }

  /** Commits the work in the intact trees of a damaged copy, which is then recreated from its branches. */
  async save(id: string): Promise<void> {
    const made = await this.record(id)
    if (!made) return
    const sound = await keeping(made, entry => isWhole(this.#deps.store.place(id), [entry]))
    await this.recover(id, sound)
    for (const { repo, gitdir } of sound.repos) {
      await commitTree(this.#deps.store.tree(id, sound, repo), gitdir, MESSAGE)
      await this.#take(id, sound, repo)
    }
  }

  /** The record of a complete copy; a copy of an earlier version gets its own git dirs first. */
  async record(id: string): Promise<CopyRecord | undefined> {
    const made = await this.#deps.store.made(id)
    if (!made || !isEarlierCopy(made) || !(await exists(this.#deps.store.place(id)))) return made
    const next = await renewEarlierCopy(this.#deps.store, id, made)
    await this.#deps.branches.begin(id, await branchHeads(next, id), branchIn(id, next))
    return next
  }

  /** As `record`; refuses when there is no copy. */
  async need(id: string): Promise<CopyRecord> {
    const made = (await exists(this.#deps.store.place(id))) ? await this.record(id) : undefined
    return (
      made
      ?? refuse('conflict', 'expected a private copy, found none: it was cleaned up, and its work is on its branch')
    )
  }

  /** Undoes interrupted work of a killed daemon in a complete copy. */
  async recover(id: string, made: CopyRecord): Promise<void> {
    for (const { gitdir } of made.repos) {
      await clearOwn(gitdir, branchIn(id, made))
      await dropLocks(gitdir, branchIn(id, made))
    }
    await this.#undoRebases(id, made)
  }

  /** Deletes the records of rebases, so that they do not reset a recreated tree. */
  async dropMarks(id: string): Promise<void> {
    const names = await readdir(this.marks).catch(() => [] as string[])
    await Promise.all(
      names.filter(name => name.startsWith(`${id}:`)).map(name => rm(join(this.marks, name), { force: true })),
    )
  }

  /** Commits the rest of a tree and imports its branch; work that git cannot read is not imported. */
  async #commit(id: string, made: CopyRecord, repo: string, message: string) {
    const tree = this.#deps.store.tree(id, made, repo)
    const { gitdir } = made.repos.find(each => each.repo === repo)!
    try {
      if (repo !== 'root') await attachHead(tree, gitdir)
      const standing = await commitTree(tree, gitdir, message)
      return { ...standing, out: await this.#take(id, made, repo) }
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error
      const tip = ownTip(gitdir, tree.branch)
      const out = await this.#take(id, made, repo)
      if (tip === undefined || out === undefined) throw error
      return { tip, large: [], left: [], ignored: [], attached: true, clean: false, out }
    }
  }

  /** The submodules to whose commits a repository points although their own branches do not hold them. */
  async #lost(
    id: string,
    made: CopyRecord,
    repo: string,
    moved: readonly MovedPointer[],
    tips: readonly Tip[],
  ): Promise<string[]> {
    const lost: string[] = []
    for (const { path, to } of moved) {
      const own = tips.find(tip => tip.repo === join(pathOf(repo), path))
      const holds =
        own !== undefined
        && !own.detached
        && (await holdsCommit(this.#deps.store.tree(id, made, own.repo), own.tip, to))
      if (!holds) lost.push(path)
    }
    return lost
  }

  /** Imports a copy's branch into its repository; returns why it was not imported. */
  async #take(id: string, made: CopyRecord, repo: string): Promise<string | undefined> {
    const out = await this.#deps.branches.take(
      id,
      made.repos.find(each => each.repo === repo)!,
      this.#deps.store.tree(id, made, repo),
      await this.#deps.scan.at(repo),
    )
    if (out !== undefined)
      this.#deps.log?.warn('importing the work of a private copy failed', { conversation: id, repo, why: out })
    return out
  }

  /**
   * The part of a copy that git can work on, without missing repositories; first cleans up what a turn left in its git
   * dirs.
   */
  async #usable(id: string): Promise<CopyRecord> {
    const made = await keeping(await this.need(id), ({ common }) => exists(common))
    for (const { gitdir } of made.repos) await clearOwn(gitdir, branchIn(id, made))
    if (!(await isWhole(this.#deps.store.place(id), made.repos))) {
      return refuse(
        'conflict',
        'the private copy is damaged: send its agent a message, which recreates it from its branch',
      )
    }
    await this.#undoRebases(id, made)
    return made
  }

  /** Rebases the branch onto the main line; returns the conflicting paths. */
  async #rebase(
    id: string,
    tree: Tree,
    main: MainRepository,
    copy: CopyRepo,
    tip: string,
  ): Promise<string[] | undefined> {
    const from = await workBegins(main, copy, commit => holdsCommit(tree, tip, commit))
    const mark = this.#mark(id, copy.repo)
    await mkdir(dirname(mark), { recursive: true, mode: 0o700 })
    await writeAtomic(mark, tip)
    failpoint('agent.copy.marked')
    const stopped = await rebaseTree(tree, main.head, from, tip)
    failpoint('agent.copy.rebased')
    await rm(mark, { force: true })
    return stopped
  }

  /** Resets trees whose rebase was interrupted or not reported; all work was committed before. */
  async #undoRebases(id: string, made: CopyRecord): Promise<void> {
    for (const { repo, gitdir } of made.repos) {
      const mark = this.#mark(id, repo)
      const tip = await readFile(mark, 'utf8').catch(() => undefined)
      if (tip === undefined) continue
      await Promise.all([dropLocks(gitdir, branchIn(id, made)), dropRebase(gitdir)])
      await resetTree(this.#deps.store.tree(id, made, repo), tip)
      await rm(mark, { force: true })
    }
  }

  #mark(id: string, repo: string): string {
    return join(this.marks, `${id}:${encodeURIComponent(repo)}`)
  }
}

/** Whether a commit of a tree has another in its history. */
const holdsCommit = async (tree: Tree, tip: string, commit: string): Promise<boolean> =>
  (await inTree(tree, ['merge-base', '--is-ancestor', commit, tip], { ok: [0, 1, 128] })).code === 0

const tipOf = (repo: string, tip: string, large: readonly LargeFile[]): Tip => ({
  repo,
  tip,
  ...(large.length > 0 && { large: [...large] }),
})

/** Returns a test for the tree of a repository. */
const standsFor =
  ({ repo }: Pick<CopyRepo, 'repo'>) =>
  (each: TreeEntry): boolean =>
    each.repo === repo

/** The commits of the branches of a copy in their repositories. */
export const branchHeads = async (made: CopyRecord, id: string): Promise<{ repo: string; head: string }[]> =>
  Promise.all(
    made.repos.map(async ({ repo, common, head }) => ({
      repo,
      head: (await branchTip(common, branchIn(id, made))) ?? head,
    })),
  )

/** Whether a repository has a tree in a copy. */
const standsIn =
  ({ repos }: CopyRecord) =>
  ({ repo }: Pick<CopyRepo, 'repo'>): boolean =>
    repos.some(each => each.repo === repo)
