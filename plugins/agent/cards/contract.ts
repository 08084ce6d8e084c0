import type { Millis, Ok } from '../../../sdk/types.js'
import type { ConversationId, RunId } from '../turn/frames/frames.js'
import type { Card, CardReply } from './card.js'

/** An open card. */
export interface WaitingCard {
  conversationId: ConversationId
  run: RunId
  raisedAt: Millis
  /** The card, as its frame shows it. */
  card: Card
}

/** The cards of turns. */
export interface CardCalls {
  /**
   * List every open card with its whole body, oldest first, so that an inbox or a script can answer without following
   * each run.
   *
   * An `editor` token gets those of conversations it opened, a person limited to areas those of conversations there.
   *
   * - 403: an `editor` token names a conversation it did not open
   * - 404: no such conversation
   */
  'GET /agent/cards'(input: { conversationId?: ConversationId }): { cards: WaitingCard[] }

  /**
   * Answer a card; the turn continues where it stopped.
   *
   * The first answer wins: repeating it succeeds, a different one is refused. `cancelled` ends the turn as stopped; the
   * call returns after its end. `always` on a card without `alwaysLabel` counts as `once`. Offers need at least a
   * maintainer, and tokens cannot answer the two that move money.
   *
   * - 403: an offer by a caller below maintainer, one that moves money by a token, a card of another conversation by an
   *   editor token, or a card of a turn that may write in folders that the caller may only read
   * - 404: no card with that `requestId`
   * - 409: the card has a different answer, its turn ended, or its program shares a home folder with work that lands by
   *   itself and the caller may not land
   * - 422: the card is of another kind, or an answer names a question that was not asked
   */
  'POST /agent/reply'(input: CardReply): Ok
}
