import { refuse } from '../../sdk/index.js'
import type { Locks } from '../../sdk/node/lock.js'
import type { CheckoutRepo, CopyRepo, LandConflict } from '../agent/contract.js'
import { operationIn, type Refs } from './git-folders.js'
import { applyLanding } from './landing-apply.js'
import { planLanding } from './landing-plan.js'
import type { LandingRecord, LandingRecords } from './landing-record.js'
import { branchOf, lookAt, onBench, tipOf, type Repository } from './repository.js'
import { forkPoint, outstandingFrom } from './span.js'

/** What landings need of the daemon. */
export interface LandingDeps {
  /** The workspace's real path. */
  readonly workspace: string
  /** The folder in which benches are laid. */
  readonly benches: string
  readonly refs: Refs
  readonly locks: Locks
  readonly records: LandingRecords
  readonly now: () => number
}

/** Which part of a conversation's work is to land. */
export interface LandingSpan {
  readonly conversation: string
  readonly branch: string
  readonly span: 'outstanding' | 'cumulative'
  /** What is read and made up to the first write stops with it. */
  readonly signal?: AbortSignal
}

/** What became of one repository: what to write down, or what does not fit. */
export interface RepoLanding {
  readonly repo: string
  readonly from: string
  readonly outcome?: CopyRepo
  readonly conflict?: LandConflict
  readonly record?: LandingRecord
}

const kept = ({ main: _main, copy: _copy, ...repo }: CheckoutRepo): CopyRepo => repo

/** Refuses while the main checkout is in the middle of something only a person can end. */
export const checkFree = ({ repo }: CheckoutRepo, folders: Repository['folders']): void => {
  const operation = operationIn(folders)
  if (operation) refuse('conflict', `the main checkout of ${repo} is in the middle of a ${operation}: end or abort it, then land again`)
}

/**
 * Lands what one repository owes, under that repository's lock: all of it in the working tree, or nothing.
 *
 * Answers nothing when there is nothing outstanding and nothing to write down. `tip` is what was read at the start of the
 * call: a branch that moved since is refused.
 */
export const landRepo = async (
  deps: LandingDeps, { conversation, branch, span, signal }: LandingSpan, checkout: CheckoutRepo, tip: string,
): Promise<RepoLanding | undefined> => {
  const { repo, base } = checkout
  const found = lookAt(deps.refs, checkout, branch, tip)
  if (!found) return { repo, from: base, conflict: { repo, paths: [], clean: 0 } }
  return deps.locks.with(found.folders.common, async () => {
    const here = lookAt(deps.refs, checkout, branch, tip)
    if (!here) return { repo, from: base, conflict: { repo, paths: [], clean: 0 } }
    const now = tipOf(deps.refs, here.folders, branch)
    if (now !== tip) {
      const [expected, found] = [tip.slice(0, 12), now?.slice(0, 12) ?? 'none']
      refuse('conflict', `${branch} of ${repo} moved while it was landing (expected ${expected}, found ${found}): land again`)
    }
    checkFree(checkout, here.folders)
    if (tip === base && checkout.landedTip === undefined) return undefined
    if (span === 'outstanding' && tip === checkout.landedTip) return undefined
    return onBench(deps.benches, here, async bench => {
      const work = branchOf(here)
      const head = here.head.commit
      const outcome: CopyRepo = { ...kept(checkout), landedTip: tip, ...(head && { landedHead: head }), landedAt: deps.now() }
      if (span === 'outstanding' && head !== undefined && await bench.contains(head, tip)) return { repo, from: tip, outcome }
      const from = span === 'outstanding' ? await outstandingFrom(bench, work) : await forkPoint(bench, work)
      const plan = await planLanding(bench, {
        repo, main: here.main, workspace: deps.workspace, from, to: tip, cumulative: span === 'cumulative', ...(head && { head }),
      })
      const { branch: mainBranch } = here.head
      if (plan.blocked.length > 0) {
        return { repo, from, conflict: { repo, paths: [...plan.blocked], clean: plan.clean, ...(mainBranch && { mainBranch }) } }
      }
      if (plan.steps.length === 0) return { repo, from, outcome }
      signal?.throwIfAborted()
      const record = await applyLanding(bench, deps.records, { conversation, main: here.main, outcome }, plan.steps)
      return { repo, from, outcome, record }
    }, signal)
  }, signal)
}
