import { isDeepStrictEqual } from 'node:util'
import { refuse } from '../../../sdk/index.js'
import type { CardReply } from '../contract.js'
import type { Card } from '../turn/frames/frames.js'

/** The caller who answers a card, and whether they may land the resulting work. */
export interface Answerer {
  readonly by: string
  readonly lands: boolean
  /** A control token answers. */
  readonly byToken?: boolean
}

/** An open card, and how its answer is delivered to the turn. */
export interface RaisedCard {
  readonly card: Card
  readonly conversationId: string
  /** Delivers the answer to the turn; resolves when it is in the log and, for `cancelled`, the turn has ended. */
  readonly answer: (reply: CardReply, from: Answerer) => Promise<void>
}

interface Answered {
  readonly conversationId: string
  readonly reply?: CardReply
  readonly done: Promise<void>
}

const REMEMBERED = 5_000

/** The open cards of the sandbox, and recent answers. */
export class OpenCards {
  readonly #open = new Map<string, RaisedCard>()
  readonly #answered = new Map<string, Answered>()

  /** Opens a card. Ids are unique: a second card with the same id could never be answered. */
  raise(card: RaisedCard): void {
    const { requestId } = card.card
    if (this.#open.has(requestId) || this.#answered.has(requestId))
      throw new Error(`expected a card with a new id, found ${requestId}, which was used before`)
    this.#open.set(requestId, card)
  }

  /** The conversation a card belongs to. */
  conversationOf(requestId: string): string | undefined {
    return (this.#open.get(requestId) ?? this.#answered.get(requestId))?.conversationId
  }

  /** An open card. */
  open(requestId: string): Card | undefined {
    return this.#open.get(requestId)?.card
  }

  /** Whether a card is open. */
  isOpen(requestId: string): boolean {
    return this.#open.has(requestId)
  }

  /** The kind of an open or answered card. */
  kindOf(requestId: string): Card['kind'] | undefined {
    return this.#open.get(requestId)?.card.kind ?? this.#answered.get(requestId)?.reply?.kind
  }

  /** Answers a card. The first answer wins; repeating the same answer succeeds. */
  async reply(reply: CardReply, from: Answerer): Promise<void> {
    const { requestId } = reply
    const before = this.#answered.get(requestId)
    if (before) {
      if (!before.reply) refuse('conflict', 'the turn ended before this card was answered')
      if (!isDeepStrictEqual(before.reply, reply))
        refuse('conflict', 'this card already has a different answer, which counts')
      return before.done
    }
    const open =
      this.#open.get(requestId) ?? refuse('not-found', `there is no card ${JSON.stringify(requestId.slice(0, 80))}`)
    check(open.card, reply)
    this.#open.delete(requestId)
    const done = open.answer(counted(open.card, reply), from)
    this.#remember(requestId, { conversationId: open.conversationId, reply, done })
    await done.catch(error => {
      // The answer is not in the log, so nobody saw it: the card is open again.
      this.#answered.delete(requestId)
      this.#open.set(requestId, open)
      throw error
    })
  }

  /** Records the end of a card that was not answered here: its turn ended, or a restart found the answer. */
  settle(requestId: string, conversationId: string, reply?: CardReply): void {
    this.#open.delete(requestId)
    this.#remember(requestId, { conversationId, done: Promise.resolve(), ...(reply && { reply }) })
  }

  #remember(requestId: string, answered: Answered): void {
    this.#answered.set(requestId, answered)
    if (this.#answered.size > REMEMBERED) this.#answered.delete(this.#answered.keys().next().value!)
  }
}

/** Refuses an answer of another kind, or to questions that were not asked. */
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

/** The effective answer: `always` counts as `once` if it cannot be remembered. */
const counted = (card: Card, reply: CardReply): CardReply =>
  card.kind === 'permission' && reply.kind === 'permission' && reply.decision === 'always' && !card.alwaysLabel
    ? { ...reply, decision: 'once' }
    : reply
