import type { AgentContext } from '@agentclientprotocol/sdk'
import type { Card, CardReply, Frame } from '../../../../plugins/agent/contract.js'
import type { Client } from '../../../client.js'
import { ignored } from '../../../ignored.js'
import { choices } from '../../follow/cards.js'
import { askEditor, cardMarkdown } from './ask-editor.js'
import { cardCall, cardEnd } from './run-end.js'
import { agentWords, noticeUpdates, type RunUpdates, type SessionChange, type Shows } from './updates.js'

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

/** A card, and the call of the editor's view that it belongs to. */
interface WaitingForEditor {
  readonly card: Card
  readonly toolCallId: string
}

/** An editor that cancels a turn says so before or after it answers what it was asked. */
const CANCEL_MS = 300

/** The cards of a session that wait for the person in the editor. */
export class EditorCards {
  readonly #deps: CardDeps
  readonly #asked = new Map<string, AbortController>()
  /** What is not answered and not asked yet. */
  readonly #waiting = new Map<string, WaitingForEditor>()
  /** The cards that are calls of their own in the editor's view. */
  readonly #ownCalls = new Set<string>()
  /** What the editor could not show; the first one has been said, the others follow when it is answered. */
  #unanswered: readonly Card[] = []

  constructor(deps: CardDeps) {
    this.#deps = deps
  }

  /** The card that the next message answers. */
  get unanswered(): Card | undefined {
    return this.#unanswered[0]
  }

  /** Adds a card of a run; returns what the editor shows, beside the call that the card is about. */
  opened(card: Card, updates: RunUpdates): SessionChange[] {
    const call = card.kind === 'permission' ? updates.openCall(card.toolName) : undefined
    const toolCallId = call ?? updates.idOf(card.requestId)
    this.#waiting.set(card.requestId, { card, toolCallId })
    if (call !== undefined) return []
    this.#ownCalls.add(card.requestId)
    return [cardCall(card, toolCallId)]
  }

  /** The card was answered, here or elsewhere; returns the end of its own call. */
  resolved(frame: Extract<Frame, { kind: 'resolved' }>, updates: RunUpdates): SessionChange[] {
    const { requestId } = frame
    this.#waiting.delete(requestId)
    this.#asked.get(requestId)?.abort()
    const [first] = this.#unanswered
    this.#unanswered = this.#unanswered.filter(card => card.requestId !== requestId)
    if (first !== this.unanswered) this.#sayUnanswered().catch(ignored('the editor has gone'))
    return this.#ownCalls.delete(requestId) ? [cardEnd(frame, updates.idOf(requestId))] : []
  }

  /** The run is over, or the editor does not show it any more: nothing is asked. */
  drop(): void {
    this.#waiting.clear()
    for (const stop of this.#asked.values()) stop.abort()
    this.#unanswered = []
  }

  /** Asks the person what waits. */
  raise(client: Client): void {
    for (const waiting of this.#waiting.values()) this.#ask(client, waiting)
    this.#waiting.clear()
  }

  #ask(client: Client, { card, toolCallId }: WaitingForEditor): void {
    const stop = new AbortController()
    this.#asked.set(card.requestId, stop)
    const { editor, abilities, sessionId } = this.#deps
    askEditor(editor, { card, sessionId, toolCallId, forms: abilities.forms, signal: stop.signal })
      // What an editor cannot show is answered by the next message.
      .catch(() => undefined)
      .then(reply => this.#answered(client, card, reply, stop.signal))
      .catch(error => this.#unheard(error, stop.signal))
      .finally(() => this.#asked.delete(card.requestId))
  }

  async #answered(client: Client, card: Card, reply: CardReply | undefined, over: AbortSignal): Promise<void> {
    if (over.aborted || this.#deps.signal.aborted) return
    if (reply) return void (await client.call('POST /agent/reply', reply))
    await new Promise(resolve => setTimeout(resolve, CANCEL_MS))
    if (over.aborted || this.#deps.cancelling()) return
    this.#unanswered = [...this.#unanswered, card]
    if (this.unanswered === card) await this.#sayUnanswered()
  }

  async #sayUnanswered(): Promise<void> {
    const card = this.unanswered
    if (!card) return
    await this.#deps.show(agentWords(`\n\n${cardMarkdown(card)}\n\nAnswer with your next message: ${choices(card)}.`))
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
