import type { Host, Log } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Answerer, OpenCards } from '../cards/cards.js'
import { isOffer, titleOf } from '../cards/kinds.js'
import type { CardReply, OpenCard } from '../contract.js'
import { firstLineOf } from '../first-line.js'
import type { FrameLog } from './frames/frame-log.js'
import type { Card } from './frames/frames.js'
import type { EntryFields, ParkedCard, RunEntry } from './run-entry.js'
import type { RunRecord } from './run-record.js'
import { ignored } from '../../../sdk/index.js'

/** The parts of the host that the cards of a turn use. */
export interface CardHost extends Pick<Host, 'emit'> {
  readonly log: Log
  readonly cards: OpenCards
  /** Called when a conversation, its turn or its queue has changed. */
  readonly changed: (conversationId: string) => void
}

/** The turn that raises cards. */
export interface AskingTurn {
  readonly run: string
  readonly conversationId: string
  readonly log: FrameLog
  readonly record: RunRecord
  readonly entry: RunEntry
  readonly stopping: boolean
}

/** What follows for the turn from a change of its cards. */
export interface CardHooks {
  readonly raised: () => void
  readonly lowered: () => void
  /** Called between an answer and the continuation of the turn. */
  readonly answered: (card: Card) => Promise<void>
  /** Called when a person answers a question by cancelling the turn. */
  readonly cancelled: () => Promise<void>
}

interface UpCard extends ParkedCard {
  readonly answered: (reply: CardReply | undefined) => void
}

const TITLE = 120

/** Whether a card is unanswered and what it is about, a service or a browser, ended with the last daemon. */
export const isLostCard = ({ card }: ParkedCard, record: RunRecord): boolean =>
  (isOffer(card) || card.kind === 'browser_help') && !record.card(card.requestId)?.resolved?.reply

const lineOf = (card: Card): string => firstLineOf(titleOf(card), TITLE)

/** The open cards of one turn: raised, stored, answered, withdrawn. */
export class TurnCards {
  readonly #host: CardHost
  readonly #turn: AskingTurn
  readonly #hooks: CardHooks
  readonly #up = new Map<string, UpCard>()
  #sequence: number

  /** `raised` is the number of cards that the turn has raised before. */
  constructor(host: CardHost, turn: AskingTurn, hooks: CardHooks, raised: number) {
    this.#host = host
    this.#turn = turn
    this.#hooks = hooks
    this.#sequence = raised
  }

  /** The cards that can be answered now. */
  get open(): OpenCard[] {
    return [...this.#up.values()]
      .filter(({ card }) => this.#host.cards.isOpen(card.requestId))
      .map(({ card, at }) => ({ requestId: card.requestId, kind: card.kind, title: lineOf(card), raisedAt: at }))
  }

  /** The id of the next card, of the turn itself or of a subagent. */
  nextId(helper: string | undefined): string {
    return `${this.#turn.run}.${helper === undefined ? '' : 'h'}${++this.#sequence}`
  }

  /** Takes one stored answer that fits, which no other call gets then. */
  async take(
    fits: (answered: NonNullable<EntryFields['answered']>[number]) => boolean,
  ): Promise<CardReply | undefined> {
    const { entry } = this.#turn
    const answered = entry.fields.answered ?? []
    const mine = answered.find(fits)
    if (mine) await entry.change({ answered: answered.filter(other => other !== mine) })
    return mine?.reply
  }

  /** Opens a card with an id, possibly a restored one; resolves once it can be answered. */
  async put(parked: ParkedCard): Promise<{ readonly reply: Promise<CardReply | undefined> }> {
    const { conversationId, run, entry, log, record } = this.#turn
    const { card } = parked
    const { requestId, kind } = card
    // A restart can find a card without its frame: the next card needs another number.
    this.#sequence = Math.max(this.#sequence, Number(/\d+$/.exec(requestId)?.[0] ?? 0))
    const { promise, resolve } = Promise.withResolvers<CardReply | undefined>()
    if (!this.#up.has(requestId)) this.#hooks.raised()
    this.#up.set(requestId, { ...parked, answered: resolve })
    // With this entry, an answer in the log is enough for the next start to deliver it to the turn.
    await entry.change({ parked: this.#parked }, { flush: true })
    failpoint('agent.card.parked')
    // The card was withdrawn before its frame was written.
    if (!this.#up.has(requestId)) return { reply: promise }
    this.#host.cards.raise({ card, conversationId, answer: (reply, from) => this.#answer(requestId, reply, from) })
    if (record.card(requestId)) this.#host.changed(conversationId)
    else log.push(card)
    this.#host.emit('card.raised', { conversationId, run, requestId, kind })
    return { reply: promise }
  }

  /** Withdraws every unanswered card, or some while the turn continues. */
  withdraw(of?: (parked: ParkedCard) => boolean): void {
    const { conversationId, entry, log, record } = this.#turn
    const down = [...this.#up].filter(([, parked]) => !of || of(parked))
    for (const [requestId] of down) this.#withdraw(requestId)
    // The turn continues, so a restart must not restore them.
    if (of && down.length) void entry.change({ parked: this.#parked }).catch(ignored('a restart asks them again'))
    if (of) return
    for (const { requestId } of record.openCards) {
      this.#host.cards.settle(requestId, conversationId)
      log.push({ kind: 'resolved', requestId })
    }
  }

  get #parked(): ParkedCard[] {
    return [...this.#up.values()].map(({ answered: _answered, ...parked }) => parked)
  }

  async #answer(requestId: string, reply: CardReply, { by, lands, byToken }: Answerer): Promise<void> {
    const up = this.#up.get(requestId)
    if (!up) return
    const { conversationId, run, entry, log } = this.#turn
    const resolved = log.write({ kind: 'resolved', requestId, reply, by })
    const heard = { ...(!lands && { outsiders: true }), ...(byToken && { tokens: true }) }
    await Promise.all([resolved, ...(lands && !byToken ? [] : [entry.change(heard)])])
    if (log.broken) throw new Error('the answer could not be written')
    failpoint('agent.card.resolved')
    const { card, holds, helper } = up
    // A subagent is not resumed after a restart, so its answers are not stored.
    const mine = helper === undefined ? [{ card, reply, ...(holds && { holds }) }] : []
    const answered = [...(entry.fields.answered ?? []), ...mine]
    this.#takeDown(requestId)
    await entry.change({ parked: this.#parked, answered })
    failpoint('agent.card.answered')
    this.#host.emit('card.resolved', { conversationId, run, requestId, kind: card.kind })
    this.#host.changed(conversationId)
    if (reply.kind === 'question' && reply.cancelled) return this.#hooks.cancelled()
    // The person's call returns now; the turn is prepared for continuing in the background.
    void this.#hooks
      .answered(card)
      .catch(error => this.#host.log.error('updating a turn after an answer failed', { run, error: String(error) }))
      .then(() => up.answered(this.#turn.stopping ? undefined : reply))
  }

  #takeDown(requestId: string): void {
    if (this.#up.delete(requestId)) this.#hooks.lowered()
  }

  #withdraw(requestId: string): void {
    const { conversationId, run, log, record } = this.#turn
    const up = this.#up.get(requestId)
    const shown = record.card(requestId)
    // An answer that is being written to the log is kept, whatever happens to the turn.
    if (shown?.resolved?.reply) return up?.answered(undefined)
    this.#takeDown(requestId)
    this.#host.cards.settle(requestId, conversationId)
    if (shown && !shown.resolved) log.push({ kind: 'resolved', requestId })
    if (up) this.#host.emit('card.resolved', { conversationId, run, requestId, kind: up.card.kind })
    up?.answered(undefined)
  }
}
