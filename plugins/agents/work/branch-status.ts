import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Files } from '../../../sdk/index.js'
import { bytePath } from '../../../sdk/node/byte-names.js'
import type { CheckoutRepo, Conversation } from '../../agent/contract.js'
import type { ScratchRepos } from './scratch-repos.js'
import { totalsOf } from './changes.js'
import type { ScratchRepo } from './scratch-repo.js'
import type { DiffTotals, LandedPresence } from '../contract.js'
import { stampOf } from '../landing/folder.js'
import { gitFoldersOf, type GitFolders, type Head, type Refs } from './git-folders.js'
import { headMove } from '../landing/head-move.js'
import { hashing, KnownStatuses, NOWHERE, pathsOf, type KnownStatus } from './known-statuses.js'
import { planLanding } from '../landing/plan.js'
import { branchOf, tipOf, type Repository } from './repository.js'
import { forkPoint, outstandingSpan } from './span.js'
import { changesBetween } from './tree-diff.js'

/** The status of a conversation's work: none, outstanding (main lacks some of it), or landed. */
export interface BranchStatus {
  readonly work: 'none' | 'outstanding' | 'landed'
  /** The totals of all changes since the branch left main; absent without changes. */
  readonly diff?: DiffTotals
  /** How much of the landed work is still there; absent if all of it is. */
  readonly presence?: LandedPresence
}

/** The dependencies of branch statuses. */
export interface BranchStatusDeps {
  readonly workspace: string
  readonly scratchRepos: ScratchRepos
  readonly refs: Refs
  readonly signal: AbortSignal
  /** Stores the cache across restarts; absent: not stored. */
  readonly files?: Pick<Files, 'read' | 'write'>
  /** Called for each repository that could not be read. */
  readonly failed: (message: string, fields: object) => void
}

const NOTHING: DiffTotals = { files: 0, insertions: 0, deletions: 0 }
const NOTHING_LANDED: LandedPresence = { landed: 0, present: 0 }
const BATCH = 256

const sum = (one: DiffTotals, other: DiffTotals): DiffTotals => ({
  files: one.files + other.files,
  insertions: one.insertions + other.insertions,
  deletions: one.deletions + other.deletions,
})

const stamp = (main: string, path: string): string => {
  try {
    return stampOf(lstatSync(bytePath(join(main, path)), { bigint: true, throwIfNoEntry: false }))
  } catch {
    return 'closed'
  }
}

/** The folder of a repository of the workspace. */
export const folderOfRepository = (workspace: string, repo: string): string =>
  repo === 'root' ? workspace : join(workspace, repo)

/**
 * Computes and caches the branch status of every conversation.
 *
 * A cached answer is valid while the commits and, if content decided, the stamps of the touched files are unchanged;
 * then no process is started. When main's HEAD moves, one comparison of both heads decides which answers stay valid.
 */
export class BranchStatuses {
  readonly #deps: BranchStatusDeps
  readonly #known: KnownStatuses
  /** The moves of main's HEAD being processed. */
  readonly #following = new Map<string, Promise<void>>()
  #compared = 0

  constructor(deps: BranchStatusDeps) {
    this.#deps = deps
    this.#known = new KnownStatuses(deps)
  }

  /** Loads the stored cache. */
  open(): Promise<void> {
    return this.#known.open()
  }

  /** Stores the cache. */
  close(): Promise<void> {
    return this.#known.close()
  }

  /** Starts a round, in which each main checkout is read only once. */
  round(): Round {
    return new Round(this.#deps)
  }

  /** The current branch status of a conversation. */
  async of({ id, branch, repos }: Conversation, round: Round = this.round()): Promise<BranchStatus> {
    if (branch === undefined) return { work: 'none' }
    let [produced, outstanding, totals, landed, present] = [false, false, NOTHING, 0, 0]
    for (const repo of repos) {
      const here = round.look(repo, branch)
      if (!here) continue
      produced ||= here.tip !== repo.base || repo.landedTip !== undefined
      const known = await this.#look(id, here, branch)
      outstanding ||= known.outstanding
      totals = sum(totals, known.totals)
      landed += known.presence.landed
      present += known.presence.present
    }
    return {
      work: outstanding ? 'outstanding' : produced ? 'landed' : 'none',
      ...(totals.files > 0 && { diff: totals }),
      ...(present < landed && { presence: { landed, present } }),
    }
  }

  /** Deletes a removed conversation from the cache. */
  forget(id: string): void {
    this.#known.forget(id)
  }

  async #look(id: string, here: Repository, branch: string): Promise<KnownStatus> {
    const {
      checkout: { repo, base, landedTip, left = [] },
      tip,
      head: { commit: head = '' },
      main,
    } = here
    const work = JSON.stringify([tip, base, landedTip, left])
    const name = `${id} ${repo}`
    const before = this.#known.get(name)
    if (before?.work === work && before.head !== head) await this.#follow(here, before.head, head)
    const known = this.#known.get(name)
    if (known?.work === work && known.head === head && (await this.#holds(main, known))) return known
    const commits = [tip, ...(landedTip === undefined ? [] : [landedTip])]
    const found = { repo, head, work, commits }
    if (tip === base && landedTip === undefined) {
      return this.#known.keep(name, {
        ...found,
        outstanding: false,
        totals: NOTHING,
        presence: NOTHING_LANDED,
        paths: '',
        stamp: NOWHERE,
      })
    }
    try {
      return this.#known.keep(name, { ...found, ...(await this.#measure(here)) })
    } catch (error) {
      if (this.#deps.signal.aborted) throw error
      this.#deps.failed('comparing a repository failed', { conversation: id, repo, branch, error: String(error) })
      // Work that cannot be compared counts as outstanding.
      return { ...found, outstanding: true, totals: NOTHING, presence: NOTHING_LANDED, paths: '', stamp: '' }
    }
  }

  /** Moves cached answers from one HEAD of a repository to another, if the move does not affect them. */
  #follow(here: Repository, from: string, to: string): Promise<void> {
    const move = `${here.main}\0${from}\0${to}`
    const following =
      this.#following.get(move) ?? this.#carry(here, from, to).finally(() => this.#following.delete(move))
    this.#following.set(move, following)
    return following
  }

  async #carry(here: Repository, from: string, to: string): Promise<void> {
    const {
      checkout: { repo },
    } = here
    const { scratchRepos, failed, signal } = this.#deps
    const known = this.#known.under(repo, from)
    const commits = new Set(known.flatMap(([, each]) => each.commits))
    const moved =
      from === '' || to === ''
        ? undefined
        : await scratchRepos
            .with(here, scratch => headMove(scratch, from, to, commits), signal)
            .catch(error => {
              if (signal.aborted) throw error
              failed('comparing the main line after a move failed', { repo, error: String(error) })
              return undefined
            })
    for (const [name, each] of known) {
      // It may have been recomputed meanwhile.
      if (this.#known.get(name) !== each) continue
      const same = moved && !each.commits.some(moved.parts) && !pathsOf(each.paths).some(moved.differs)
      if (same) this.#known.keep(name, { ...each, head: to })
      else this.#known.drop(name)
    }
  }

  async #holds(main: string, { paths, stamp: before }: KnownStatus): Promise<boolean> {
    const stamps = hashing()
    for (const path of pathsOf(paths)) {
      if (++this.#compared % BATCH === 0) await new Promise<void>(resolve => setImmediate(resolve))
      stamps.add(stamp(main, path))
    }
    return stamps.end() === before
  }

  #measure(here: Repository): Promise<Pick<KnownStatus, 'outstanding' | 'totals' | 'presence' | 'paths' | 'stamp'>> {
    const {
      checkout: { repo, landedTip, left = [] },
      main,
      tip,
      head: { commit: head },
    } = here
    return this.#deps.scratchRepos.with(
      here,
      async scratch => {
        const work = branchOf(here)
        const changes = await changesBetween(scratch, repo, await forkPoint(scratch, work), tip)
        const totals = totalsOf(changes)
        const merged = head !== undefined && (await scratch.mergeBase(head, tip)) === tip
        if (merged) return { outstanding: false, totals, presence: NOTHING_LANDED, paths: '', stamp: NOWHERE }
        const before = landedTip !== undefined && (await scratch.has(landedTip)) ? landedTip : undefined
        const landed =
          before === undefined
            ? []
            : await changesBetween(scratch, repo, await forkPoint(scratch, { ...work, tip: before }), before)
        const { from } = await outstandingSpan(scratch, work)
        const held = tip === landedTip && left.length === 0
        const touched = held ? [] : await changesBetween(scratch, repo, from, tip)
        const paths = [
          ...new Set(
            [...landed, ...touched].flatMap(({ path, from: source }) =>
              source === undefined ? [path] : [path, source],
            ),
          ),
        ]
        // Taken before the tree is read, so that a change in between invalidates the answer.
        const stamps = hashing()
        for (const path of paths) stamps.add(stamp(main, path))
        const rests = { paths: paths.join('\0'), stamp: stamps.end() }
        const presence =
          before === undefined || landed.length === 0 ? NOTHING_LANDED : await this.#presence(scratch, here, before)
        if (held) return { outstanding: false, totals, presence, ...rests }
        const { changes: owed, there } = await planLanding(scratch, {
          repo,
          main,
          workspace: this.#deps.workspace,
          from,
          to: tip,
          cumulative: false,
          ...(head !== undefined && { head }),
        })
        return { outstanding: owed.some(({ path }) => !there.has(path)), totals, presence, ...rests }
      },
      this.#deps.signal,
    )
  }

  /** How many of the landed paths the working tree still has. */
  async #presence(scratch: ScratchRepo, here: Repository, landedTip: string): Promise<LandedPresence> {
    const {
      checkout: { repo, left = [] },
      main,
      head: { commit: head },
    } = here
    const { changes, missing } = await planLanding(scratch, {
      repo,
      main,
      workspace: this.#deps.workspace,
      from: await forkPoint(scratch, { ...branchOf(here), tip: landedTip }),
      to: landedTip,
      cumulative: true,
      ...(head !== undefined && { head }),
    })
    const behind = new Set(left.map(({ path }) => path))
    const landed = changes.filter(({ path }) => !behind.has(path))
    return { landed: landed.length, present: landed.filter(({ path }) => !missing.has(path)).length }
  }
}

/** One reading of the workspace's repositories: reads each main checkout once for all conversations. */
export class Round {
  readonly #deps: BranchStatusDeps
  readonly #mains = new Map<string, { folders: GitFolders; head: Head } | undefined>()

  constructor(deps: BranchStatusDeps) {
    this.#deps = deps
  }

  /** The state of a conversation's repository in this round. */
  look(repo: Conversation['repos'][number], branch: string): Repository | undefined {
    const { refs, workspace } = this.#deps
    const main = folderOfRepository(workspace, repo.repo)
    if (!this.#mains.has(main)) {
      const folders = gitFoldersOf(repo, main)
      this.#mains.set(main, folders && { folders, head: refs.head(folders) })
    }
    const seen = this.#mains.get(main)
    const tip = seen && tipOf(refs, seen.folders, branch)
    return seen && tip !== undefined
      ? { checkout: { ...repo, main } satisfies CheckoutRepo, main, ...seen, tip }
      : undefined
  }
}
