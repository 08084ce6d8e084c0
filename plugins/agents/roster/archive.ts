import { Refusal, type Host } from '../../../sdk/index.js'
import { cardsFor } from '../../../sdk/node/access/card-view.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import type { ConversationState, Failure } from '../../agent/contract.js'
import type { AgentCard, Roster } from '../contract.js'
import type { RosterBook } from './roster.js'
import { within } from './access-view.js'

/** The dependencies of the archive. */
export interface ArchiveDeps {
  readonly host: Pick<Host, 'call' | 'log' | 'signal'>
  readonly roster: RosterBook
  /** Those that are archived or not. */
  readonly conversations: (archived: boolean) => Promise<ConversationState[]>
}

const MOST = 500

/** Whether a conversation is landed or idle and waits for nothing. */
const isFinished = ({ status, waiting }: AgentCard): boolean =>
  (status === 'landed' || status === 'idle') && waiting === undefined

/** Lists archived conversations, and decides which ones are finished. */
export class Archive {
  readonly #deps: ArchiveDeps

  constructor(deps: ArchiveDeps) {
    this.#deps = deps
  }

  /**
   * The archived conversations that the caller may see, newest first; with `limit`, the newest archived before
   * `before`.
   */
  async list(seen: AccessView, limit: number | undefined, before = Infinity): Promise<Roster> {
    const { conversations, roster } = this.#deps
    const archived = await conversations(true)
    const all = (await within(seen, archived))
      .filter(({ conversation: { archivedAt = 0 } }) => archivedAt < before)
      .sort((one, other) => (other.conversation.archivedAt ?? 0) - (one.conversation.archivedAt ?? 0))
    const agents = await roster.cards(limit === undefined ? all : all.slice(0, Math.min(limit, MOST)))
    return { agents: await cardsFor(seen, agents), rev: roster.rev, held: [] }
  }

  /** The finished conversations on the board. */
  async finished(): Promise<string[]> {
    return (await this.#deps.roster.read()).agents.filter(isFinished).map(({ id }) => id)
  }

  /**
   * Archives the finished conversations without activity since a moment, one at a time, unless they changed meanwhile;
   * returns the failures.
   */
  async putOlder(moment: number): Promise<Failure[]> {
    const { conversations, host, roster } = this.#deps
    const isOld = ({ conversation: { archivedAt, updatedAt }, live }: ConversationState) =>
      archivedAt === undefined && !live && updatedAt < moment
    const failed: Failure[] = []
    for (const { conversation } of (await conversations(false)).filter(isOld)) {
      const { id } = conversation
      if (host.signal.aborted) break
      try {
        const state = await host.call('agent.conversation', { id })
        if (isOld(state) && isFinished(await roster.card(state))) await host.call('agent.archive', { id })
      } catch (error) {
        const { message, reason } = Refusal.from(error)
        if (reason === 'failed')
          host.log.error('archiving a conversation failed', { conversation: id, error: String(error) })
        failed.push({ id, message })
      }
    }
    return failed
  }
}
