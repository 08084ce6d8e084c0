import { accessTo } from '../../reach.js'
import type { AccessView } from './access-view.js'
import { accessToConversation, type ConversationPlace } from './conversation-reach.js'

/**
 * The fields of a card that depend on access: where its conversation works, its account, and figures over whole
 * repositories.
 */
export interface CardFigures extends ConversationPlace {
  account?: string
  diff?: object
  landedPresence?: object
}

/**
 * A card for a caller: without its account for a token, and without figures over whole repositories if the caller is
 * limited to areas.
 */
export const cardFor = <Card extends CardFigures>(seen: AccessView, card: Card): Card => {
  const isLimited = accessTo(seen.reach, '.') === undefined
  if (!isLimited && !seen.isToken) return card
  const shown = { ...card }
  const figures: CardFigures = shown
  if (seen.isToken) delete figures.account
  if (isLimited) {
    delete figures.diff
    delete figures.landedPresence
  }
  return shown
}

/** The cards that a caller may see. */
export const cardsFor = async <Card extends CardFigures>(seen: AccessView, cards: readonly Card[]): Promise<Card[]> => {
  if (!seen.reach) return cards.map(card => cardFor(seen, card))
  const found = await Promise.all(cards.map(card => accessToConversation(seen, card)))
  return cards.filter((_, at) => found[at] !== undefined).map(card => cardFor(seen, card))
}
