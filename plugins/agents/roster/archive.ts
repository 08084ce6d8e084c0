import { Refusal, type Host } from '../../../sdk/index.js'
import { cardsFor } from '../../../sdk/node/access/card-view.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import type { ConversationState, Failure } from '../../agent/contract.js'
import type { AgentCard, Roster } from '../contract.js'
import type { RosterBook } from './roster.js'
import { within } from './access-view.js'

/** What the archive of the board needs of the daemon. */
export interface ArchiveDeps {
  readonly host: Pick<Host, 'call' | 'log' | 'signal'>
  readonly roster: RosterBook
  readonly conversations: () => Promise<ConversationState[]>
}

const MOST = 500

/** Whether nothing more is expected of a conversation. */
const isFinished = ({ status, waiting }: AgentCard): boolean =>
  (status === 'landed' || status === 'idle') && waiting === undefined

/** Lists archived conversations, and decides which ones are finished. */
export class Archive {
  readonly #deps: ArchiveDeps

  constructor(deps: ArchiveDeps) {
    this.#deps = deps
  }

  /** The archived conversations that the caller may see, newest first; with `limit` the newest before a moment. */
  async list(seen: AccessView, limit: number | undefined, before = Infinity): Promise<Roster> {
    const { conversations, roster } = this.#deps
    const archived = (await conversations()).filter(({ conversation }) => conversation.archivedAt !== undefined)
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
   * Archives the finished conversations without activity since a moment, one after another, unless they have changed
   * when their turn comes; answers those that could not be archived.
   */
  async putOlder(moment: number): Promise<Failure[]> {
    const { conversations, host, roster } = this.#deps
    const isOld = ({ conversation: { archivedAt, updatedAt }, live }: ConversationState) =>
      archivedAt === undefined && !live && updatedAt < moment
    const failed: Failure[] = []
    for (const { conversation } of (await conversations()).filter(isOld)) {
      const { id } = conversation
      if (host.signal.aborted) break
      try {
        const state = await host.call('agent.conversation', { id })
        if (isOld(state) && isFinished(await roster.card(state))) await host.call('agent.archive', { id })
      } catch (error) {
        const { message, reason } = Refusal.from(error)
        if (reason === 'failed')
          host.log.error('a conversation could not be archived', { conversation: id, error: String(error) })
        failed.push({ id, message })
      }
    }
    return failed
  }
}
