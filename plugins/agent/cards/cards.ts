import { isDeepStrictEqual } from 'node:util'
import { refuse } from '../../../sdk/index.js'
import type { CardReply } from '../contract.js'
import type { Card } from '../turn/frames/frames.js'

/** Who answers a card, and whether they may land what comes of it. */
export interface Answerer {
  readonly by: string
  readonly lands: boolean
}

/** A card that waits for its answer, and how the answer reaches the turn. */
export interface RaisedCard {
  readonly card: Card
  readonly conversationId: string
  /** Carries the answer to the turn; resolves when it is in the log and, for `cancelled`, the turn has ended. */
  readonly answer: (reply: CardReply, from: Answerer) => Promise<void>
}

interface Answered {
  readonly conversationId: string
  readonly reply?: CardReply
  readonly done: Promise<void>
}

const REMEMBERED = 5_000

/** The cards that are up in the whole sandbox, and the answers given lately. */
export class OpenCards {
  readonly #open = new Map<string, RaisedCard>()
  readonly #answered = new Map<string, Answered>()

  /** Puts a card up. One id is one card: a second one under it could never be answered. */
  raise(card: RaisedCard): void {
    const { requestId } = card.card
    if (this.#open.has(requestId) || this.#answered.has(requestId))
      throw new Error(`a card ${requestId} was put up before: expected an id of its own`)
    this.#open.set(requestId, card)
  }

  /** The conversation a card belongs to. */
  conversationOf(requestId: string): string | undefined {
    return (this.#open.get(requestId) ?? this.#answered.get(requestId))?.conversationId
  }

  /** A card that waits for its answer. */
  open(requestId: string): Card | undefined {
    return this.#open.get(requestId)?.card
  }

  /** Whether a card waits for its answer. */
  isOpen(requestId: string): boolean {
    return this.#open.has(requestId)
  }

  /** The kind of a card that is up or was answered. */
  kindOf(requestId: string): Card['kind'] | undefined {
    return this.#open.get(requestId)?.card.kind ?? this.#answered.get(requestId)?.reply?.kind
  }

  /** Answers a card. The first answer wins; the very same one again is as good. */
  async reply(reply: CardReply, from: Answerer): Promise<void> {
    const { requestId } = reply
    const before = this.#answered.get(requestId)
    if (before) {
      if (!before.reply) refuse('conflict', 'the turn ended before this card was answered')
      if (!isDeepStrictEqual(before.reply, reply))
        refuse('conflict', 'this card was already answered otherwise; the first answer counts')
      return before.done
    }
    const open =
      this.#open.get(requestId) ?? refuse('not-found', `there is no card ${JSON.stringify(requestId.slice(0, 80))}`)
    check(open.card, reply)
    this.#open.delete(requestId)
    const done = open.answer(counted(open.card, reply), from)
    this.#remember(requestId, { conversationId: open.conversationId, reply, done })
    await done.catch(error => {
      // Not in the log, so nobody saw an answer: the card is up again.
      this.#answered.delete(requestId)
      this.#open.set(requestId, open)
      throw error
    })
  }

  /** Remembers how a card ended that nobody answered here: its turn ended, or a restart found the answer. */
  settle(requestId: string, conversationId: string, reply?: CardReply): void {
    this.#open.delete(requestId)
    this.#remember(requestId, { conversationId, done: Promise.resolve(), ...(reply && { reply }) })
  }

  #remember(requestId: string, answered: Answered): void {
    this.#answered.set(requestId, answered)
    if (this.#answered.size > REMEMBERED) this.#answered.delete(this.#answered.keys().next().value!)
  }
}

/** An answer must be of the card's kind and about what was asked. */
const check = (card: Card, reply: CardReply): void => {
  if (card.kind !== reply.kind)
    refuse('unprocessable', `this card is a ${card.kind}: expected a reply of kind ${card.kind}, found ${reply.kind}`)
  if (card.kind !== 'question' || reply.kind !== 'question') return
  const asked = new Set(card.questions.map(({ question }) => question))
  const foreign = Object.keys(reply.answers ?? {}).find(question => !asked.has(question))
  if (foreign !== undefined)
    refuse(
      'unprocessable',
      `the question ${JSON.stringify(foreign.slice(0, 200))} was not asked; expected one of the card's questions`,
    )
}

/** The answer as it counts: what cannot be remembered is allowed once. */
const counted = (card: Card, reply: CardReply): CardReply =>
  card.kind === 'permission' && reply.kind === 'permission' && reply.decision === 'always' && !card.alwaysLabel
    ? { ...reply, decision: 'once' }
    : reply
