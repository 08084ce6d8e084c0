import type { tags } from 'typia'
import type { Ok } from '../../../sdk/types.js'

/** What the workspace suggests connecting. */
export interface RecommendationCalls {
  /**
   * Stop suggesting a card on the present evidence; other evidence brings it back.
   *
   * - 404: the card is not suggested now
   * - 422: the file of dismissed suggestions cannot be used
   * - 424: that file could not be written
   */
  'DELETE /capabilities/recommendations/{card}'(input: { card: string & tags.MinLength<1> & tags.MaxLength<60> }): Ok
}
