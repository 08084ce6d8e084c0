import type { CardDraft } from '../../adapter.js'
import type { CardReply, Frame } from '../../../turn/frames/frames.js'
import { malformed, parts, whole } from '../argument.js'
import type { ScriptContext, ScriptFrames } from '../context.js'
import { type Argument, type ScriptVerb, verb } from '../verb.js'
import { unasked } from './asking.js'

type Offer =
  | { readonly offer: 'service'; readonly slug: string; readonly credits: number }
  | { readonly offer: 'capability'; readonly card: string }
  | { readonly offer: 'payment'; readonly url: string; readonly amount: string }

const FORM = 'offer service SLUG CREDITS, offer capability CARD or offer payment URL AMOUNT'
const MOST_CREDITS = 1_000_000_000
const WHY = 'A script shows how an offer works: nothing is bought, connected or paid.'

const read = ({ text }: Argument): Offer => {
  const [offer, what = '', price] = parts(FORM, text, 3)
  const named = what !== '' && what.length <= 2000
  if (offer === 'service' && named) return { offer, slug: what, credits: whole(FORM, price, MOST_CREDITS) }
  if (offer === 'capability' && named && price === undefined) return { offer, card: what }
  if (offer === 'payment' && named && price !== undefined && /^\d{1,9}(\.\d{1,6})?$/.test(price)) {
    return { offer, url: what, amount: price }
  }
  return malformed(FORM, text)
}

const draftOf = (offer: Offer, script: ScriptContext): CardDraft => {
  switch (offer.offer) {
    case 'service': {
      const slug = script.text(offer.slug)
      return {
        kind: 'service_offer',
        offer: {
          slug,
          name: slug,
          publisher: 'script',
          description: 'A simulated service: it runs nothing and costs nothing.',
          creditsPerRun: offer.credits,
          request: 'One simulated run.',
          why: WHY,
        },
      }
    }
    case 'capability': {
      const card = script.text(offer.card)
      return { kind: 'capability_offer', offer: { card, name: card, why: WHY } }
    }
    case 'payment':
      return {
        kind: 'payment_offer',
        offer: {
          url: script.text(offer.url),
          payTo: 'script',
          network: 'simulated',
          asset: 'simulated',
          assetName: 'simulated dollars',
          amountUsd: offer.amount,
          spentTodayUsd: '0',
          dailyCapUsd: offer.amount,
          why: WHY,
        },
      }
  }
}

const agreed = (reply: CardReply): boolean =>
  reply.kind === 'capability_offer'
    ? reply.connect
    : (reply.kind === 'service_offer' || reply.kind === 'payment_offer') && reply.approve

/** What a yes leads to. */
const outcomeOf = (offer: Offer, script: ScriptContext, requestId: string): Frame[] => {
  switch (offer.offer) {
    case 'service':
      return [
        { kind: 'service_event', requestId, event: { event: 'status', text: 'the simulated service runs' } },
        {
          kind: 'service_event',
          requestId,
          event: { event: 'result', data: { service: script.text(offer.slug), simulated: true } },
        },
        { kind: 'service_receipt', requestId, outcome: 'ok', credits: offer.credits, simulated: true },
      ]
    case 'capability':
      return [{ kind: 'capability_outcome', requestId, outcome: 'connected', id: script.text(offer.card) }]
    case 'payment':
      return [
        {
          kind: 'payment_receipt',
          requestId,
          outcome: 'paid',
          amountUsd: offer.amount,
          network: 'simulated',
          simulated: true,
        },
      ]
  }
}

/** Services, capabilities and payments as an agent would offer them: the cards are real, what follows is simulated. */
export const offers: { readonly [name: string]: ScriptVerb } = {
  offer: verb<Offer>({
    form: FORM,
    help: 'puts up an offer; $answer is yes or no, what follows a yes is simulated',
    lineless: true,
    native: true,
    read,
    run: async function* (offer, script): ScriptFrames {
      if (!script.request.attended) return yield* unasked(script, 'Offer')
      const reply = await script.raise(draftOf(offer, script))
      const yes = reply !== undefined && agreed(reply)
      script.note({ answer: yes ? 'yes' : 'no' })
      if (yes) yield* script.once(...outcomeOf(offer, script, reply.requestId))
    },
  }),
}
