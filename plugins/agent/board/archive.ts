import { Refusal, refuse, type Log } from '../../../sdk/index.js'
import type { Conversation, Failure } from '../contract.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from '../turn/engine.js'
import type { Board } from './board.js'

/** The dependencies of archiving several conversations. */
export interface ConversationArchiveDeps {
  readonly board: Pick<Board, 'archive' | 'unarchive' | 'purge'>
  readonly conversations: Conversations
  readonly engine: Pick<Engine, 'state'>
  readonly log: Pick<Log, 'error'>
  readonly signal: AbortSignal
}

/** The conversations that were moved, and those that could not be. */
export interface MoveResult {
  readonly done: string[]
  readonly failed?: Failure[]
}

/** Archives, restores and purges several conversations, one after another. */
export class ConversationArchive {
  readonly #deps: ConversationArchiveDeps

  constructor(deps: ConversationArchiveDeps) {
    this.#deps = deps
  }

  /** Refuses unless all of these exist and none has a turn. */
  assertIdle(ids: readonly string[]): void {
    const { engine } = this.#deps
    const states = this.#named(ids).map(conversation => engine.state(conversation))
    for (const { conversation, live } of states) {
      const { id } = conversation
      if (live) refuse('conflict', `a turn of ${id} is ${live.state}: stop it, then archive (nothing was moved)`)
    }
  }

  /** Archives these conversations; one that fails stays on the board. */
  put(ids: readonly string[]): Promise<MoveResult> {
    return this.#each(ids, id => this.#deps.board.archive(id))
  }

  /** Restores these to the board; refuses all if one is unknown. */
  async takeBack(ids: readonly string[]): Promise<string[]> {
    const all = this.#named(ids).map(({ id }) => id)
    for (const id of all) await this.#deps.board.unarchive(id)
    return all
  }

  /** Deletes these, or the whole archive, for good; refuses all if a named one is not archived. */
  purge(ids: readonly string[] | undefined): Promise<MoveResult> {
    const { board, conversations } = this.#deps
    const chosen = ids ? this.#named(ids) : conversations.all.filter(({ archivedAt }) => archivedAt !== undefined)
    for (const { id, archivedAt } of chosen)
      if (archivedAt === undefined)
        refuse('conflict', `${id} is not archived: archive it, then purge (nothing was removed)`)
    return this.#each(
      chosen.map(({ id }) => id),
      id => board.purge(id),
    )
  }

  /** The named conversations, each once; refuses all if one is unknown. */
  #named(ids: readonly string[]): Conversation[] {
    return [...new Set(ids)].map(id => this.#deps.conversations.get(id))
  }

  async #each(ids: readonly string[], work: (id: string) => Promise<void>): Promise<MoveResult> {
    const { log, signal } = this.#deps
    const done: string[] = []
    const failed: Failure[] = []
    for (const id of new Set(ids)) {
      if (signal.aborted) break
      try {
        await work(id)
        done.push(id)
      } catch (error) {
        const { message, reason } = Refusal.from(error)
        if (reason === 'failed')
          log.error('a conversation could not be moved', { conversation: id, error: String(error) })
        failed.push({ id, message })
      }
    }
    return { done, ...(failed.length > 0 && { failed }) }
  }
}
