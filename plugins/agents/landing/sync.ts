import { shownName } from '../../../sdk/node/byte-names.js'
import { refuse, type Host } from '../../../sdk/index.js'
import { requireBranch } from '../../../sdk/node/access/conversation-branch.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { CheckoutRepo, CheckoutSync, ConversationState } from '../../agent/contract.js'
import type { ScratchRepos } from '../work/scratch-repos.js'
import type { SyncReport } from '../contract.js'
import { asRefusal } from '../roster/fleet.js'
import type { Refs } from '../work/git-folders.js'
import { branchOf, lookAt } from '../work/repository.js'
import { holding } from '../work/run-notes.js'
import { forkPoint } from '../work/span.js'
import type { BranchStatuses } from '../work/branch-status.js'
import { changesBetween, type TreeChange } from '../work/tree-diff.js'

/** The dependencies of `Syncing`. */
export interface SyncDeps {
  readonly host: Pick<Host, 'call'>
  readonly turns: KeyedMutex
  readonly scratchRepos: ScratchRepos
  readonly refs: Refs
  readonly statuses: BranchStatuses
}

const namesOf = (changes: readonly TreeChange[]): Set<string> =>
  new Set(changes.flatMap(({ path, from }) => (from === undefined ? [path] : [from, path]).map(shownName)))

const assertNoTurn = ({ conversation: { id }, live }: ConversationState): void => {
  if (live) refuse('conflict', `a turn of ${id} is ${live.state}: stop it, or wait until it has ended`)
}

/** Rebases branches onto the current main line while no turn runs. */
export class Syncing {
  readonly #deps: SyncDeps

  constructor(deps: SyncDeps) {
    this.#deps = deps
  }

  /** Updates a conversation's branch; returns the repositories that were behind. */
  async sync(id: string, signal: AbortSignal): Promise<SyncReport[]> {
    const { host, statuses, turns } = this.#deps
    const before = await host.call('agent.conversation', { id })
    const branch = requireBranch(before.conversation, 'it sees the main line as it is')
    assertNoTurn(before)
    return turns.with(
      id,
      () =>
        holding(host, id, signal, async ({ state }) => {
          assertNoTurn(state)
          const { reports: synced, repos } = await host.call('checkouts.sync', { id })
          statuses.forget(id)
          const now = new Map(repos.map(checkout => [checkout.repo, checkout]))
          const reports: SyncReport[] = []
          for (const done of synced) reports.push(await this.#report(done, now.get(done.repo), branch, signal))
          return reports
        }),
      signal,
    )
  }

  async #report(
    done: CheckoutSync,
    checkout: CheckoutRepo | undefined,
    branch: string,
    signal: AbortSignal,
  ): Promise<SyncReport> {
    const { repo, onto, from, commits, blocked, paths } = done
    const here = checkout && lookAt(this.#deps.refs, checkout, branch)
    const report = { repo, onto, commits, ...(blocked && { blocked, ...(paths.length > 0 && { paths }) }) }
    if (!here) return { ...report, moved: [], overlap: [] }
    const { moved, mine } = await this.#deps.scratchRepos
      .with(
        here,
        async scratch => ({
          moved: namesOf(await changesBetween(scratch, repo, from, onto)),
          mine: namesOf(await changesBetween(scratch, repo, await forkPoint(scratch, branchOf(here)), here.tip)),
        }),
        signal,
      )
      .catch(error => Promise.reject(asRefusal(error)))
    return { ...report, moved: [...moved], overlap: [...moved].filter(path => mine.has(path)) }
  }
}
