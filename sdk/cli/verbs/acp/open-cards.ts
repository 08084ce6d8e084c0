import type { AgentContext } from '@agentclientprotocol/sdk'
import type { Card, CardReply } from '../../../../plugins/agent/contract.js'
import type { Client } from '../../../client.js'
import { ignored } from '../../../ignored.js'
import { askEditor, cardText } from './ask-editor.js'
import { agentWords, noticeUpdates, type SessionChange, type Shows } from './updates.js'

/** What an editor can do, as it said when it connected. */
export interface EditorAbilities {
  readonly shows: Shows
  readonly forms: boolean
}

/** What the cards of a session need. */
export interface CardDeps {
  readonly sessionId: string
  readonly editor: AgentContext
  readonly abilities: EditorAbilities
  /** Aborted when the editor has gone. */
  readonly signal: AbortSignal
  show(...changes: SessionChange[]): Promise<void>
  /** Whether a turn is being cancelled. */
  cancelling(): boolean
  /** A card waits that the editor cannot show. */
  onLeft(): void
}

/** An editor that cancels a turn says so before or after it answers what it was asked. */
const CANCEL_MS = 300

/** The cards of a session that wait for the person in the editor. */
export class EditorCards {
  readonly #deps: CardDeps
  readonly #asked = new Map<string, AbortController>()
  #unanswered: Card | undefined

  constructor(deps: CardDeps) {
    this.#deps = deps
  }

  /** The card that the next message answers. */
  get unanswered(): Card | undefined {
    return this.#unanswered
  }

  /** The card was answered, here or elsewhere. */
  resolved(requestId: string): void {
    this.#asked.get(requestId)?.abort()
    if (this.#unanswered?.requestId === requestId) this.#unanswered = undefined
  }

  /** The run is over, or the editor does not show it any more: nothing is asked. */
  drop(): void {
    for (const stop of this.#asked.values()) stop.abort()
    this.#unanswered = undefined
  }

  /** Asks the person. */
  raise(client: Client, card: Card, toolCallId: string): void {
    const stop = new AbortController()
    this.#asked.set(card.requestId, stop)
    const { editor, abilities, sessionId } = this.#deps
    askEditor(editor, { card, sessionId, toolCallId, forms: abilities.forms, signal: stop.signal })
      .then(reply => this.#answered(client, card, reply, stop.signal))
      .catch(error => this.#unheard(error, stop.signal))
      .finally(() => this.#asked.delete(card.requestId))
  }

  async #answered(client: Client, card: Card, reply: CardReply | undefined, over: AbortSignal): Promise<void> {
    if (over.aborted) return
    if (reply) return void (await client.call('POST /agent/reply', reply))
    await new Promise(resolve => setTimeout(resolve, CANCEL_MS))
    if (over.aborted || this.#deps.cancelling()) return
    this.#unanswered = card
    await this.#deps.show(agentWords(`\n\n${cardText(card)}\n\nAnswer with your next message.`))
    this.#deps.onLeft()
  }

  async #unheard(error: unknown, over: AbortSignal): Promise<void> {
    const { signal, abilities, show } = this.#deps
    if (over.aborted || signal.aborted) return
    const message = error instanceof Error ? error.message : String(error)
    await show(...noticeUpdates(abilities.shows, 'warning', `The answer was not accepted: ${message}`)).catch(
      ignored('the editor has gone'),
    )
  }
}
