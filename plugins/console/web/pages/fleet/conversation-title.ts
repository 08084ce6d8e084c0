import { fleet } from '../../data/live.js'
import { visibleName } from '../../ui/format.js'
import { cardTitle } from '../../ui/status.js'

/** The title of a conversation of the board, else its id. */
export const conversationTitle = (id: string): string => {
  const card = fleet.value.cards.get(id)
  return visibleName(card ? cardTitle(card) : id)
}
