import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { requireBranch } from '../../../sdk/node/access/conversation-branch.js'
import { isClosed, isFull } from '../../../sdk/node/files/disk.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { GitFailure } from '../../../sdk/node/programs/git.js'
import { tooLarge } from '../../../sdk/node/files/large-files.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { shownName } from '../../../sdk/node/byte-names.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { placesOfConversation, type ConversationPlace } from '../../../sdk/node/access/conversation-reach.js'
import { WorkspacePaths } from '../../../sdk/node/files/workspace-paths.js'
import type { CheckoutRepo, ConversationState, CopyRepo, HeldConversation, LandConflict } from '../../agent/contract.js'
import type { ExpectedTips, LandChoice, LandMode, LandOutcome, LandPath, LandResult, RepoPaths } from '../contract.js'
import { gitFoldersOf, gitFolders } from '../work/git-folders.js'
import { endLanding } from '../landing/apply.js'
import { wishesOf, type Wishes } from '../landing/choices.js'
import type { NoteLanding } from '../landing/landed-work.js'
import { submodulesAmong } from '../landing/module-commit.js'
import type { Plan } from '../landing/plan.js'
import {
  checkFree,
  landRepo,
  planOf,
  type LandingDeps,
  type LandingSpan,
  type RepoLanding,
} from '../landing/landing.js'
import { branchOf, lookAt, takenOver, tipOf, type Repository } from '../work/repository.js'
import { spanOf } from '../work/changes.js'
import { expectedOf, isExpected, pathsMoved, refuseUnseen, shownTip, type MovedRepo } from '../work/expected-tips.js'
import { forkPoint } from '../work/span.js'
import { holding, type RunNotes } from '../work/run-notes.js'
import type { BranchStatuses } from '../work/branch-status.js'
import { sweepWaiting } from '../landing/waiting-files.js'

/** The parameters of a landing, with defaults applied. */
export interface LandOrder {
  readonly id: string
  readonly span: 'outstanding' | 'cumulative'
  readonly force: boolean
  readonly mode: LandMode
  readonly only?: readonly LandPath[]
  readonly choices?: readonly LandChoice[]
  /** What the caller saw of the work; undefined: lands whatever there is. */
  readonly expect?: ExpectedTips
  /** Whether the caller may read the name of a file. */
  readonly sees?: SeesFile
}

type SeesFile = (repo: string, path: string) => boolean

/** The dependencies of the fleet. */
export interface FleetDeps extends LandingDeps {
  readonly host: Pick<Host, 'call' | 'emit' | 'log'>
  readonly notes: RunNotes
  readonly statuses: BranchStatuses
  readonly turns: KeyedMutex
  /** Called after a landing. */
  readonly landed?: NoteLanding
}

/** Converts an error of a landing: a full disk, a closed folder and git's errors become refusals. */
export const asRefusal = (error: unknown): unknown => {
  if (error instanceof Refusal) return error
  if (isFull(error) || (error instanceof GitFailure && /No space left|quota/i.test(error.stderr))) {
    return new Refusal('too-large', 'the disk is full, so nothing was written: make room, then land again', {
      cause: error,
    })
  }
  if (isClosed(error)) {
    const message =
      `the workspace could not be written (${codeOf(error)}), so nothing was: open it for writing, ` + 'then land again'
    return new Refusal('dependency', message, { cause: error })
  }
  if (error instanceof GitFailure) return new Refusal('dependency', error.message, { cause: error })
  return error
}

/** A finished landing, with the conversation's title. */
export interface Landed {
  readonly id: string
  readonly result: LandResult
  readonly title?: string
}

/** One of several landings, or why it failed. */
export type LandedOrNot = LandOutcome & Pick<Landed, 'title'>

/** A parked turn stays parked during a landing; a writing one needs `force`. */
const assertNotWriting = ({ conversation: { id }, live }: ConversationState, force: boolean): void => {
  if (!live || live.state === 'parked' || force) return
  const doing = live.state === 'stopping' ? 'stopping' : 'writing'
  refuse('conflict', `the agent of ${id} is ${doing}: wait until its turn has ended, or pass force`)
}

/** Facts about the conversation for the report on a landing. */
interface Reported {
  readonly id: string
  readonly branch: string
  readonly title: string | undefined
  /** Its start folder, from the workspace root. */
  readonly place: ConversationPlace
  /** The run that had ended before the landing. */
  readonly settled: string | undefined
  /** The conflicts of the last landing. */
  readonly had: readonly LandConflict[]
  /** A person requested the landing. */
  readonly requested: boolean
  readonly mode: LandMode
}

const paths = (done: readonly RepoLanding[], which: 'left' | 'resolving' | 'ignored' | 'written'): RepoPaths[] =>
  done.flatMap(landing =>
    landing[which]?.length ? [{ repo: landing.repo, paths: landing[which].map(shownName) }] : [],
  )

/** Lands and discards the work of conversations. */
export class Fleet {
  readonly #deps: FleetDeps

  constructor(deps: FleetDeps) {
    this.#deps = deps
  }

  /** Lands a conversation's work in the shared tree, one repository at a time. */
  async land(order: LandOrder, signal: AbortSignal): Promise<Landed> {
    const { host, turns } = this.#deps
    const { id, force } = order
    const wishes = wishesOf(order.only, order.choices)
    const work = async (): Promise<Landed> => {
      const before = await host.call('agent.conversation', { id })
      requireBranch(before.conversation, 'its work is in the shared tree already')
      assertNotWriting(before, force)
      return holding(host, id, signal, async held => {
        assertNotWriting(held.state, force)
        const { title } = held.state.conversation
        const result = await this.#land(order, wishes, held, signal)
        return { id, result, ...(title !== undefined && { title }) }
      })
    }
    return turns.with(id, work, signal).catch(error => Promise.reject(asRefusal(error)))
  }

  /** Lands conversations one after another; a failure does not stop the rest. */
  async landMany(
    ids: readonly string[],
    {
      mode,
      expect,
      sees,
    }: Pick<LandOrder, 'sees'> & { mode: 'check' | 'merge'; expect?: { readonly [id: string]: ExpectedTips } },
    signal: AbortSignal,
  ): Promise<LandedOrNot[]> {
    const { host } = this.#deps
    const twice = ids.find((id, at) => ids.indexOf(id) !== at)
    if (twice !== undefined) refuse('invalid', `ids name ${twice} twice: expected each conversation once`)
    const unseen = expect && ids.find(id => !Object.hasOwn(expect, id))
    if (unseen !== undefined)
      refuse('invalid', `expect: expected the tips of each conversation in ids, found none of ${unseen}`)
    for (const id of ids) await host.call('agent.conversation', { id })
    const outcomes: LandedOrNot[] = []
    for (const id of ids) {
      signal.throwIfAborted()
      try {
        const seen = { ...(expect && { expect: expect[id]! }), ...(sees && { sees }) }
        outcomes.push(await this.land({ id, span: 'outstanding', force: false, mode, ...seen }, signal))
      } catch (error) {
        signal.throwIfAborted()
        const refusal = Refusal.from(error)
        if (refusal !== error)
          host.log.error('landing a conversation failed', { conversation: id, error: String(error) })
        outcomes.push({ id, error: { status: refusal.status, message: refusal.message } })
      }
    }
    return outcomes
  }

  /** Discards a conversation's work; returns its title. */
  async discard(
    { id, expect, sees }: Pick<LandOrder, 'id' | 'expect' | 'sees'>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { host, turns } = this.#deps
    return turns.with(
      id,
      async () => {
        const { conversation, live } = await host.call('agent.conversation', { id })
        const branch = requireBranch(conversation, 'archive it instead')
        if (live) refuse('conflict', `a turn of ${id} is ${live.state}: stop it, then discard`)
        if (expect) {
          const { repos } = await host.call('checkouts.repos', { id })
          const found = repos.flatMap(checkout => lookAt(this.#deps.refs, checkout, branch) ?? [])
          await this.#assertExpected({ id, expect, verb: 'discard', ...(sees && { sees }) }, found, signal)
        }
        // A turn that came and went meanwhile has left work that nobody saw.
        await host.call('agent.discard', { id, ...(expect && { lastRun: conversation.lastRun ?? '' }) })
        failpoint('agents.discard.told')
        return conversation.title
      },
      signal,
    )
  }

  /** Recovers landings after a crash: completes and reports those that had begun to write, undoes the others. */
  async recover(): Promise<void> {
    const { records, host, workspace, scratchRepos } = this.#deps
    const ended: string[] = []
    for (const record of await records.open()) {
      const { conversation, outcome, main, id, state } = record
      try {
        const left = gitFolders(main) ? await endLanding(records, record, scratchRepos.wall) : []
        if (state !== 'applied') ended.push(id)
        if (state === 'staging') {
          await records.remove(record)
          continue
        }
        const paths = left.map(path => ({ path: shownName(path), reason: 'workspace' as const }))
        // Files that were changed while the daemon was down are kept; the next landing compares them again.
        const ending =
          paths.length > 0 ? { repos: [], conflicts: [{ repo: outcome.repo, paths, clean: 0 }] } : { repos: [outcome] }
        await host
          .call('agent.landed', { id: conversation, ...ending })
          .catch(error => (Refusal.from(error).reason === 'not-found' ? undefined : Promise.reject(error)))
        await records.remove(record)
        host.log.warn('completed an interrupted landing', { conversation, repo: outcome.repo, left: left.length })
      } catch (error) {
        host.log.error('recovering an interrupted landing failed', {
          conversation,
          repo: outcome.repo,
          error: String(error),
        })
      }
    }
    if (ended.length > 0) await sweepWaiting(workspace, ended)
  }

  async #land(
    { id, span, mode, expect, sees }: LandOrder,
    wishes: Wishes | undefined,
    { state: { conversation, live }, repos: before }: HeldConversation,
    signal: AbortSignal,
  ): Promise<LandResult> {
    const { host } = this.#deps
    const branch = requireBranch(conversation, 'its work is in the shared tree already')
    for (const repo of before) this.#checkFree(repo)
    const attached = before.some(({ copy }) => copy !== undefined)
    const { tips, repos: now } = attached
      ? await host.call('checkouts.commitRest', { id })
      : { tips: [], repos: before }
    const out = tips.find(tip => tip.out !== undefined)?.out
    if (out !== undefined) refuse('conflict', `${out}, then land again`)
    const repos = now.map(takenOver)
    const tipOfRepo = new Map(tips.map(({ repo, tip }) => [repo, tip]))
    if (expect) {
      const found = repos.flatMap(repo => {
        const tip = this.#startTip(repo, branch, tipOfRepo.get(repo.repo))
        return (tip === undefined ? undefined : lookAt(this.#deps.refs, repo, branch, tip)) ?? []
      })
      await this.#assertExpected({ id, expect, verb: 'land', ...(sees && { sees }) }, found, signal)
    }
    const submodules = await submodulesAmong(this.#deps.refs, repos)
    const order = { conversation: id, branch, span, mode, signal, submodules, ...(wishes && { choose: wishes.choose }) }
    if (wishes) wishes.check(await this.#plans(order, repos, [...wishes.named.keys()]))
    const done: RepoLanding[] = []
    let failure: unknown
    for (const repo of repos) {
      try {
        const tip = this.#startTip(repo, branch, tipOfRepo.get(repo.repo))
        if (tip === undefined) continue
        const landed = await landRepo(this.#deps, order, repo, tip)
        if (landed) done.push(landed)
      } catch (error) {
        failure = asRefusal(error)
        break
      }
    }
    const settled = live === undefined ? conversation.lastRun : undefined
    const landing = {
      id,
      branch,
      title: conversation.title,
      place: conversation,
      settled,
      had: conversation.conflicts ?? [],
      requested: conversation.landRequested !== undefined,
      mode,
    }
    const result = await this.#report(landing, repos, done, failure)
    await this.#deps.landed?.(conversation, branch, repos, done)
    if (failure !== undefined) throw failure
    const large = tips.flatMap(({ repo, large = [] }) =>
      large.map(({ path, size }) => ({ repo, path, size, reason: tooLarge(path, size) })),
    )
    return { ...result, ...(large.length > 0 && { tooLarge: large }) }
  }

  /** Refuses work that is other than a caller saw: another tip, or outstanding work of a repository not named. */
  async #assertExpected(
    {
      id,
      expect,
      sees = () => true,
      verb,
    }: { id: string; expect: ExpectedTips; sees?: SeesFile; verb: 'land' | 'discard' },
    found: readonly Repository[],
    signal: AbortSignal,
  ): Promise<void> {
    const { scratchRepos } = this.#deps
    const known = new Set(found.map(({ checkout }) => checkout.repo))
    const moved: MovedRepo[] = Object.keys(expect).flatMap(repo => (known.has(repo) ? [] : [{ repo, paths: [] }]))
    for (const repository of found) {
      const { repo } = repository.checkout
      const expected = expectedOf(expect, repo)
      const differs = await scratchRepos
        .with(
          repository,
          async scratch => {
            const { committed } = await spanOf(scratch, repository)
            const tip = await shownTip(scratch, repository.tip, committed)
            if (expected === undefined ? tip === repository.checkout.base : await isExpected(scratch, expected, tip))
              return undefined
            const from = await forkPoint(scratch, branchOf(repository))
            return { tip, paths: await pathsMoved(scratch, repo, expected, tip, from) }
          },
          signal,
        )
        .catch(error => Promise.reject(asRefusal(error)))
      if (!differs || (expected === undefined && differs.paths.length === 0)) continue
      moved.push({ repo, tip: differs.tip, paths: differs.paths.filter(path => sees(repo, path)) })
    }
    if (moved.length > 0) refuseUnseen(id, expect, moved, verb)
  }

  /** The plans of the repositories in which a person named paths. */
  async #plans(
    order: LandingSpan,
    repos: readonly CheckoutRepo[],
    named: readonly string[],
  ): Promise<Map<string, Plan>> {
    const { refs, scratchRepos, workspace } = this.#deps
    const plans = new Map<string, Plan>()
    for (const checkout of repos) {
      const here = named.includes(checkout.repo) ? lookAt(refs, checkout, order.branch) : undefined
      if (!here) continue
      const { plan } = await scratchRepos
        .with(here, scratch => planOf(scratch, workspace, here, { ...order, mode: 'check' }), order.signal)
        .catch(error => Promise.reject(asRefusal(error)))
      plans.set(checkout.repo, plan)
    }
    return plans
  }

  /** The tip at the start of the call; refuses a copy on another branch, whose work a landing would not find. */
  #startTip(
    { repo, main, base, tip: left, module }: CheckoutRepo,
    branch: string,
    committed: string | undefined,
  ): string | undefined {
    const folders = gitFoldersOf({ repo, ...(module !== undefined && { module }) }, main)
    if (!folders) return base
    const tip = tipOf(this.#deps.refs, folders, branch)
    if (tip !== undefined && left !== undefined && tip !== left) {
      refuse(
        'conflict',
        `${branch} of ${repo} was moved in the repository by something other than its conversation (expected `
          + `${left.slice(0, 12)}, found ${tip.slice(0, 12)}): put it back, then land again`,
      )
    }
    if (tip === undefined || committed === undefined || committed === tip) return tip
    return refuse(
      'conflict',
      `the private copy of ${repo} does not stand on its branch ${branch} (expected `
        + `${tip.slice(0, 12)}, found ${committed.slice(0, 12)}): have the agent go back to it, then land again`,
    )
  }

  #checkFree(repo: CheckoutRepo): void {
    const folders = repo.main === undefined ? undefined : gitFolders(repo.main)
    if (folders) checkFree(repo, folders)
  }

  /** Records and announces the results of the repositories. */
  async #report(
    { id, branch, title, place, settled, had, requested, mode }: Reported,
    repos: readonly CheckoutRepo[],
    done: readonly RepoLanding[],
    failure: unknown,
  ): Promise<LandResult> {
    const { host, notes, records, statuses } = this.#deps
    const outcomes: CopyRepo[] = done.flatMap(({ outcome }) => (outcome ? [outcome] : []))
    const reached = new Set(failure === undefined ? repos.map(({ repo }) => repo) : done.map(({ repo }) => repo))
    const held = done.some(landing => landing.held)
    const known = new Set(had.map(({ repo }) => repo))
    // In mode `measure`, only conflicts that were already known are reported.
    const refused = done.flatMap(({ conflict, repo }) =>
      conflict && (mode !== 'measure' || known.has(repo)) ? [conflict] : [],
    )
    const still = had.filter(({ repo }) => !reached.has(repo) && repos.some(each => each.repo === repo))
    const conflicts = [...still, ...refused]
    const landed = conflicts.length === 0 && !held
    const listed = conflicts.length > 0 && { conflicts }
    if (outcomes.length > 0 || refused.length > 0 || had.length > 0) {
      const frame = { kind: 'landed' as const, landed, ...listed, ...(held && { held }) }
      const whole = failure === undefined && settled !== undefined && { settled }
      await host.call('agent.landed', { id, repos: outcomes, ...listed, frame, ...whole })
    } else if (requested && landed && failure === undefined) {
      // All work is already in the tree, which settles the request for a landing.
      await host.call('agent.landed', { id, repos: [] })
    }
    failpoint('agents.landing.told')
    for (const { record } of done) if (record) await records.remove(record)
    failpoint('agents.landing.over')
    const [left, resolving, ignored] = [paths(done, 'left'), paths(done, 'resolving'), paths(done, 'ignored')]
    const uncommitted = paths(done, 'written')
    const moved = done.flatMap(({ repo, commit }) => (commit === undefined ? [] : [{ repo, commit }]))
    if (outcomes.length > 0) {
      statuses.forget(id)
      if (landed && left.length === 0 && settled !== undefined) await notes.noteLanded(id, settled)
      const within = await placesOfConversation(new WorkspacePaths(this.#deps.workspace), place)
      await host.call('kernel.events.publish', { domain: 'landings', key: id, ...(within && { within }) })
      host.emit('agent.landed', {
        agentId: id,
        ...(title !== undefined && { title }),
        branch,
        outcome: 'landed',
        repos: done.flatMap(({ outcome, from, repo }) =>
          outcome ? [{ repo, from, dir: repo === 'root' ? '.' : repo }] : [],
        ),
      })
    }
    if (refused.length > 0 && mode !== 'measure')
      host.emit('agent.conflict', { agentId: id, repos: refused.map(({ repo }) => repo) })
    return {
      landed,
      ...(held ? { held } : listed),
      ...(uncommitted.length > 0 && { uncommitted }),
      ...(left.length > 0 && { left }),
      ...(resolving.length > 0 && { resolving }),
      ...(ignored.length > 0 && { ignored }),
      ...(moved.length > 0 && { moved }),
    }
  }
}
