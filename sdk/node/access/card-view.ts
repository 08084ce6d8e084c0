import { accessTo } from '../../reach.js'
import type { AccessView } from './access-view.js'
import { accessToConversation, type ConversationPlace } from './conversation-reach.js'

/** The fields of a card that depend on access: where its conversation works, and figures over whole repositories. */
export interface CardFigures extends ConversationPlace {
  diff?: object
  landedPresence?: object
}

/** A card for a caller: without figures over whole repositories if the caller is limited to areas. */
export const cardFor = <Card extends CardFigures>(seen: AccessView, card: Card): Card => {
  if (accessTo(seen.reach, '.') !== undefined) return card
  const shown = { ...card }
  const figures: CardFigures = shown
  delete figures.diff
  delete figures.landedPresence
  return shown
}

/** The cards that a caller may see. */
export const cardsFor = async <Card extends CardFigures>(seen: AccessView, cards: readonly Card[]): Promise<Card[]> => {
  if (!seen.reach) return [...cards]
  const found = await Promise.all(cards.map(card => accessToConversation(seen, card)))
  return cards.filter((_, at) => found[at] !== undefined).map(card => cardFor(seen, card))
}
