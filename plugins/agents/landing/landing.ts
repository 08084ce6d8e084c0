import { refuse } from '../../../sdk/index.js'
import type { CheckoutRepo, CopyRepo, LandConflict, LeftPath } from '../../agent/contract.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import type { ScratchRepos } from '../work/scratch-repos.js'
import { conflictOf } from '../work/changes.js'
import type { LandMode } from '../contract.js'
import { gitFolders, operationIn, type Refs } from '../work/git-folders.js'
import { applyLanding } from './apply.js'
import type { Choose } from './choices.js'
import { planLanding, type Plan } from './plan.js'
import type { RepositoryLock } from './shared-lock.js'
import { takeGitSteps, type GitSteps } from './git-steps.js'
import { ignoredFiles } from './ignored-files.js'
import type { LandingRecord, LandingRecords } from './record.js'
import { moduleCommit, moduleStep } from './module-commit.js'
import { branchOf, lookAt, takenOver, tipOf, type Repository } from '../work/repository.js'
import { outstandingSpan, wholeSpan, type Span } from '../work/span.js'

/** The dependencies of landings. */
export interface LandingDeps {
  /** The workspace's real path. */
  readonly workspace: string
  /** Creates scratch repositories. */
  readonly scratchRepos: ScratchRepos
  readonly refs: Refs
  readonly locks: RepositoryLock
  readonly records: LandingRecords
  readonly now: () => number
}

/** The part of a conversation's work to land. */
export interface LandingSpan {
  readonly conversation: string
  readonly branch: string
  readonly span: 'outstanding' | 'cumulative'
  /** Default: `check`. */
  readonly mode?: LandMode
  /** The choices of a person, by repository. */
  readonly choose?: (repo: string) => Choose
  /** The repositories that are submodules of others. */
  readonly submodules?: ReadonlySet<string>
  /** Aborts the landing before its first write. */
  readonly signal?: AbortSignal
}

/** The result for one repository: what to record, or its conflicts. */
export interface RepoLanding {
  readonly repo: string
  readonly from: string
  readonly outcome?: CopyRepo
  readonly conflict?: LandConflict
  readonly record?: LandingRecord
  /** The paths that were written. */
  readonly written?: readonly string[]
  /** Paths that stay outstanding. */
  readonly left?: readonly string[]
  /** New files whose names git ignores. */
  readonly ignored?: readonly string[]
  /** Files that now contain conflict markers. */
  readonly resolving?: readonly string[]
  /** The commit that a submodule's checkout is on now. */
  readonly commit?: string
  /** Work is outstanding, but the mode is `measure`. */
  readonly held?: boolean
}

const kept = ({ main: _main, copy: _copy, gitdir: _gitdir, tip: _tip, left: _left, ...repo }: CheckoutRepo): CopyRepo =>
  repo

/** Plans a landing in a repository, with the commit since which each path is part of it. */
export const planOf = async (
  scratch: ScratchRepo,
  workspace: string,
  here: Repository,
  { span, mode, choose, branch }: Omit<LandingSpan, 'conversation'>,
  to = here.tip,
): Promise<{ plan: Plan; span: Span }> => {
  const {
    checkout: { repo },
    main,
    head: { commit: head },
  } = here
  const work = branchOf(here)
  const measured = span === 'outstanding' ? await outstandingSpan(scratch, work) : await wholeSpan(scratch, work)
  const plan = await planLanding(scratch, {
    repo,
    main,
    workspace,
    from: measured.from,
    to,
    cumulative: span === 'cumulative',
    ...(head && { head }),
    ...(choose && { choose: choose(repo) }),
    ...(mode === 'merge' && { merge: branch }),
  })
  return { plan, span: measured }
}

const leftPaths = ({ left }: Plan, { since }: Span): LeftPath[] =>
  left
    .flatMap(({ path, from }) => (from === undefined ? [path] : [from, path]))
    .map(path => ({ path, from: since(path) }))

/** Refuses while the main checkout is in a merge, rebase or similar operation. */
export const checkFree = ({ repo }: CheckoutRepo, folders: Repository['folders']): void => {
  const operation = operationIn(folders)
  if (operation)
    refuse(
      'conflict',
      `the main checkout of ${repo} is in the middle of a ${operation}: end or abort it, then land again`,
    )
}

const refuseAbsent = ({ repo }: CheckoutRepo): never =>
  refuse(
    'conflict',
    `the submodule ${repo} is not checked out in the workspace, so its work has no place to land: check it out `
      + `(git submodule update --init -- ${repo}), then land again`,
  )

/**
 * Lands the outstanding work of one repository under its lock: all of it or nothing.
 *
 * Returns undefined if nothing is outstanding and nothing must be recorded. `tip` was read at the start of the call;
 * refuses a branch that moved since.
 */
export const landRepo = async (
  deps: LandingDeps,
  order: LandingSpan,
  checkout: CheckoutRepo,
  tip: string,
): Promise<RepoLanding | undefined> => {
  const { branch, span, signal } = order
  const { repo, base, landedTip, left = [] } = checkout
  const taken = takenOver(checkout)
  const found = lookAt(deps.refs, taken, branch, tip)
  if (!found) return { repo, from: base, conflict: { repo, paths: [], clean: 0 } }
  return deps.locks.with(
    found.folders.common,
    async () => {
      const here = lookAt(deps.refs, taken, branch, tip)
      if (!here) return { repo, from: base, conflict: { repo, paths: [], clean: 0 } }
      const now = tipOf(deps.refs, here.folders, branch)
      if (now !== tip) {
        const [expected, found] = [tip.slice(0, 12), now?.slice(0, 12) ?? 'none']
        refuse(
          'conflict',
          `${branch} of ${repo} moved while it was landing (expected ${expected}, found ${found}): land again`,
        )
      }
      checkFree(checkout, here.folders)
      if (tip === base && landedTip === undefined) return undefined
      if (span === 'outstanding' && tip === landedTip && left.length === 0) return undefined
      if (!gitFolders(here.main)) return refuseAbsent(checkout)
      return deps.scratchRepos.with(here, scratch => land(deps, order, scratch, here), signal)
    },
    signal,
  )
}

const land = async (
  deps: LandingDeps,
  order: LandingSpan,
  scratch: ScratchRepo,
  here: Repository,
): Promise<RepoLanding> => {
  const {
    checkout,
    main,
    tip,
    head: { commit: head, branch: mainBranch },
  } = here
  const { repo } = checkout
  const outcome: CopyRepo = {
    ...kept(checkout),
    landedTip: tip,
    ...(head && { landedHead: head }),
    landedAt: deps.now(),
  }
  if (order.span === 'outstanding' && head !== undefined && (await scratch.contains(head, tip)))
    return { repo, from: tip, outcome }
  const { plan, span } = await planOf(scratch, deps.workspace, here, order)
  const { from } = span
  const commit = order.submodules?.has(repo) ? await moduleCommit(scratch, here) : undefined
  const conflict = plan.blocked.length > 0 ? conflictOf(repo, plan, mainBranch) : undefined
  if (order.mode === 'measure' && (commit !== undefined || plan.changes.some(({ path }) => !plan.there.has(path)))) {
    return { repo, from, held: true, ...(conflict && { conflict }) }
  }
  if (conflict) return { repo, from, conflict }
  const left = leftPaths(plan, span)
  // A commit lands whole: while parts of it are skipped, the others are uncommitted changes.
  const step = commit === undefined || left.length > 0 ? undefined : await moduleStep(scratch, here, commit)
  const done = {
    ...{ repo, from, left: plan.left.map(({ path }) => path), resolving: plan.resolving },
    ...(step && { commit: step.to }),
  }
  const written: CopyRepo = {
    ...outcome,
    ...(step && { landedHead: step.to }),
    ...(left.length > 0 && { left }),
  }
  order.signal?.throwIfAborted()
  if (plan.steps.length === 0) {
    if (step) await takeGitSteps(main, deps.scratchRepos.wall, { head: step })
    return { ...done, outcome: written }
  }
  const shown = await ignoredFiles(scratch, here, plan.steps)
  const git: GitSteps = { ...(step && { head: step }), ...(shown.length > 0 && { shown }) }
  const hasGit = step !== undefined || shown.length > 0
  const record = await applyLanding(
    scratch,
    deps.records,
    { conversation: order.conversation, main, outcome: written, ...(hasGit && { git }) },
    plan.steps,
  )
  return { ...done, outcome: written, record, written: plan.steps.map(({ path }) => path), ignored: shown }
}
