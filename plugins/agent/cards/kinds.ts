import type { Card, CardReply, Frame } from '../turn/frames/frames.js'

const KINDS: { readonly [kind in Card['kind']]: true } = {
  plan: true,
  question: true,
  permission: true,
  browser_help: true,
  terminal_help: true,
  service_offer: true,
  capability_offer: true,
  payment_offer: true,
}

/** Every kind of card. */
export const CARD_KINDS = Object.keys(KINDS) as Card['kind'][]

/** Whether a frame is a card. */
export const isCard = (frame: Frame): frame is Card => Object.hasOwn(KINDS, frame.kind)

/** Whether a card asks for something beyond the conversation: a yes spends money or connects a capability. */
export const isOffer = ({ kind }: Pick<Card | CardReply, 'kind'>): boolean =>
  kind === 'service_offer' || kind === 'capability_offer' || kind === 'payment_offer'

/** What a card is about, in one line. */
export const titleOf = (card: Card): string => {
  switch (card.kind) {
    case 'plan':
      return card.text
    case 'question':
      return card.questions[0]?.question ?? ''
    case 'permission':
      return card.title ?? card.toolName
    case 'browser_help':
    case 'terminal_help':
      return card.message
    case 'service_offer':
      return `Run ${card.offer.name} for ${card.offer.creditsPerRun} credits`
    case 'capability_offer':
      return `Connect ${card.offer.name}`
    case 'payment_offer':
      return `Pay $${card.offer.amountUsd} to ${card.offer.payTo}`
  }
}
