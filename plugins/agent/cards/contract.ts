import type { Ok } from '../../../sdk/types.js'
import type { CardReply } from './card.js'

/** What a turn asks of a person. */
export interface CardCalls {
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
