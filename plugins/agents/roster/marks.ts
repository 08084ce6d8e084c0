import { refuse, type Caller, type Host } from '../../../sdk/index.js'
import type { ConversationState } from '../../agent/contract.js'
import type { AgentCard, Roster } from '../contract.js'
import { withBranch } from './fleet.js'
import type { RosterBook } from './roster.js'
import type { RunNotes } from '../work/run-notes.js'
import type { BranchStatuses } from '../work/branch-status.js'

/** What marking conversations needs of the daemon. */
export interface MarksDeps {
  readonly host: Pick<Host, 'call'>
  readonly roster: RosterBook
  readonly notes: Pick<RunNotes, 'commit' | 'failure'>
  readonly standings: Pick<BranchStatuses, 'of'>
  readonly conversations: () => Promise<ConversationState[]>
  readonly now: () => number
}

/** What people put on a card: its title, that they read it, how its turns end, that they ask for a landing. */
export class Marks {
  readonly #deps: MarksDeps

  constructor(deps: MarksDeps) {
    this.#deps = deps
  }

  async rename(id: string, title: string): Promise<AgentCard> {
    const words = title.trim()
    if (words === '')
      refuse('invalid', 'title: expected words, found blanks only', { errors: [{ path: 'title', expected: 'words' }] })
    await this.#deps.host.call('agent.rename', { id, title: words })
    return this.#card(id)
  }

  async seen(id: string): Promise<AgentCard> {
    await this.#deps.host.call('agent.seen', { ids: [id] })
    return this.#card(id)
  }

  /** Stamps these conversations, or all that are on the board. */
  async seenAll(ids: readonly string[] | undefined): Promise<Roster> {
    const { conversations, host, roster } = this.#deps
    const all = async () => (await conversations()).filter(({ conversation }) => conversation.archivedAt === undefined)
    const named = ids ?? (await all()).map(({ conversation }) => conversation.id)
    await host.call('agent.seen', { ids: [...new Set(named)] })
    return roster.read()
  }

  /** Asks for a landing of what is outstanding; the first who asked stays named. */
  async requestLand(id: string, { actor, email, name }: Caller): Promise<AgentCard> {
    const { host, notes, now, standings } = this.#deps
    const state = await host.call('agent.conversation', { id })
    withBranch(state, 'what it did is in the tree already')
    await notes.commit(state)
    const { work } = await standings.of(state.conversation)
    const failure = notes.failure(id)
    if (failure !== undefined) refuse('dependency', `the work of ${id} is not on its branch yet: ${failure}`)
    if (work !== 'outstanding') refuse('conflict', `nothing of ${id} is outstanding: there is nothing to ask for`)
    await host.call('agent.requestLand', {
      id,
      request: { email: email ?? actor, ...(name !== undefined && { name }), at: now() },
    })
    return this.#card(id)
  }

  /** Chooses whether clean turns land by themselves; null follows the rules. */
  async autoLand(id: string, autoLand: boolean | null): Promise<AgentCard> {
    const { host } = this.#deps
    withBranch(await host.call('agent.conversation', { id }), 'there is nothing to land')
    await host.call('agent.autoLand', { id, ...(autoLand !== null && { autoLand }) })
    return this.#card(id)
  }

  /** Chooses whether an outage is waited out; null follows the setting. */
  async resumeAfterOutage(id: string, resumeAfterOutage: boolean | null): Promise<AgentCard> {
    await this.#deps.host.call('agent.resumeAfterOutage', {
      id,
      ...(resumeAfterOutage !== null && { resumeAfterOutage }),
    })
    return this.#card(id)
  }

  /** The work landed: nobody waits for it any more. */
  async answered(id: string): Promise<void> {
    const { host } = this.#deps
    // It may have been discarded since: then the mark went with it.
    const state = await host.call('agent.conversation', { id }).catch(() => undefined)
    if (state?.conversation.landRequested) await host.call('agent.requestLand', { id })
  }

  async #card(id: string): Promise<AgentCard> {
    const { host, roster } = this.#deps
    return roster.card(await host.call('agent.conversation', { id }))
  }
}
