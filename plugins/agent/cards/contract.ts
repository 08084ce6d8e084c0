import type { Millis, Ok } from '../../../sdk/types.js'
import type { ConversationId, RunId } from '../turn/frames/frames.js'
import type { Card, CardReply } from './card.js'

/** A card that waits for its answer. */
export interface WaitingCard {
  conversationId: ConversationId
  run: RunId
  raisedAt: Millis
  /** As its frame shows it. */
  card: Card
}

/** What a turn asks of a person. */
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
   * Answer a card; the turn picks up where it stopped.
   *
   * The first answer wins: the very same answer again is fine, a different one is refused. `cancelled` ends the turn as
   * stopped and answers after it has ended. `always` on a card without `alwaysLabel` counts as `once`. An offer takes
   * at least a maintainer, and no token answers the two that move money.
   *
   * - 403: an offer is answered by a maintainer, one that moves money by a person, a card of another conversation by
   *   no editor token, a card of a turn that may write in a folder by nobody who may only read that folder
   * - 404: no card with that `requestId`
   * - 409: the card was answered otherwise, or its turn ended
   * - 422: the card is of another kind, or an answer names a question that was not asked
   */
  'POST /agent/reply'(input: CardReply): Ok
}
