import type { Host, Log } from '../../../sdk/index.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { CardDraft } from '../providers/adapter.js'
import { CARD_KINDS, isCard, isOffer, titleOf } from '../cards/kinds.js'
import type { Answerer, OpenCards } from '../cards/cards.js'
import type { CardReply, LiveTurn, OpenCard } from '../contract.js'
import { FrameMask } from '../secrets/frame-mask.js'
import { FrameLog } from './frames/frame-log.js'
import type { Card, Frame, RunEnd } from './frames/frames.js'
import { RunEntry, type EntryFields, type RunMessage, type Moving, type ParkedCard } from './run-entry.js'
import type { SaidWords } from '../queue/lines.js'
import {
  after,
  NEW_TURN,
  endOf,
  foundAs,
  isLeaving,
  isSettling,
  isWorked,
  mayAsk,
  shownAs,
  type Effect,
  type RestartEvent,
  type TurnEvent,
  type TurnState,
} from './phase.js'
import { RunRecord } from './run-record.js'
import { MessageInbox } from './message-inbox.js'

const NO_VALUES = new Masker([])

/** The parts of the host that a turn uses. */
export type TurnHost = Pick<Host, 'journal' | 'emit'> & {
  readonly log: Log
  readonly cards: OpenCards
  /** The current masker of stored values; left out: there are none. */
  readonly masker?: () => Masker
  /** Called when a conversation, its turn or its queue has changed. */
  readonly changed: (conversationId: string) => void
  /** Called when a subagent of a run has started, changed or ended. */
  readonly helped: (helper: string) => void
}

interface UpCard extends ParkedCard {
  readonly answered: (reply: CardReply | undefined) => void
}

/** Callbacks of a turn to the engine. */
export interface TurnHooks {
  /** Called between an answer and the continuation of the turn. */
  readonly afterAnswer: (turn: Turn, card: Card) => Promise<void>
  /** Stops the turn and resolves when it has ended. */
  readonly cancel: (turn: Turn) => Promise<void>
}

const TITLE = 120
/** Frames that change what the board shows. */
const SHOWN = new Set<Frame['kind']>([
  'tool_call',
  'tool_call_update',
  'subagent',
  'subagent_update',
  'todos',
  ...CARD_KINDS,
  'resolved',
  'queue',
])

/** Whether a card is an unanswered offer, whose service ended with the last daemon. */
export const isLostOffer = ({ card }: ParkedCard, record: RunRecord): boolean =>
  isOffer(card) && !record.card(card.requestId)?.resolved?.reply

/** The state of a turn after a restart; cards of subagents are not opened again. */
const foundIn = ({ parked, ending, stopping = false }: EntryFields, record: RunRecord): TurnState => {
  const cards = parked.filter(each => each.helper === undefined && !isLostOffer(each, record))
  return foundAs(cards.length, { stopAsked: stopping, ending: (record.done ?? ending) !== undefined })
}

const lineOf = (card: Card): string => (titleOf(card).trim().split('\n', 1)[0] ?? '').slice(0, TITLE)

/** One live turn: its frames, its cards, the messages sent into it, and its phase. */
export class Turn {
  readonly message: RunMessage
  readonly log: FrameLog
  readonly record: RunRecord
  readonly entry: RunEntry
  readonly words = new MessageInbox()
  /** The position of this turn's message in the record. */
  index = 0
  /** Its current adapter run; undefined before the first and between two. */
  adapterRun: { move(): void } | undefined
  readonly #host: TurnHost
  readonly #stop = new AbortController()
  readonly #up = new Map<string, UpCard>()
  readonly #ended = Promise.withResolvers<void>()
  #sequence: number
  #state: TurnState
  readonly #hooks: TurnHooks
  /** All its work in its private copy is imported into the repository. */
  taken = false

  /** Resolves when the turn is stored, so that a restart finds it. */
  readonly begun: Promise<void>

  /** A new turn, or with `past` one that a restart found. */
  constructor(
    host: TurnHost,
    hooks: TurnHooks,
    fields: EntryFields,
    past?: { readonly frames: readonly Frame[]; readonly lines: number },
  ) {
    const { message } = fields
    const { run, input, messageId, by, at } = message
    this.#host = host
    this.message = message
    this.#hooks = hooks
    this.record = new RunRecord({
      run,
      text: input.prompt,
      sentAt: at,
      by,
      messageId,
      ...(input.errand && { errand: input.errand }),
      ...(input.attachments && { attachments: input.attachments }),
      ...(message.resumed && { known: true }),
    })
    const before = past?.frames ?? []
    for (const frame of before) this.record.add(frame, fields.startedAt)
    this.#state = past ? foundIn(fields, this.record) : NEW_TURN
    for (const frame of before) this.#note(frame)
    this.#sequence = before.filter(isCard).length
    this.entry = new RunEntry(host.journal, fields, past?.lines)
    this.begun = past ? Promise.resolve() : this.entry.open().then(() => failpoint('agent.turn.entered'))
    this.begun.catch(() => {})
    this.log = new FrameLog(host.journal, run, {
      seq: before.length,
      after: this.begun,
      mask: new FrameMask(() => this.masker),
      onFrame: frame => {
        this.record.add(frame)
        this.#note(frame)
        if (SHOWN.has(frame.kind)) host.changed(message.conversationId)
        if (frame.kind === 'subagent' || frame.kind === 'subagent_update') host.helped(`${run}:${frame.id}`)
      },
      onBroken: error => {
        host.log.error('the frame log of a run cannot be written: the turn stops', { run, error: String(error) })
        void this.#enter('broken')
      },
    })
  }

  get run(): string {
    return this.message.run
  }

  get conversationId(): string {
    return this.message.conversationId
  }

  /** Aborted when the turn must stop. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  get state(): 'running' | 'parked' | 'stopping' {
    return shownAs(this.#state)
  }

  /** Whether a stop was requested: the next message then does not start automatically, however the turn ends. */
  get stopping(): boolean {
    return this.#state.stopAsked
  }

  /** Whether its adapter has finished, so that the turn cannot move. */
  get worked(): boolean {
    return isWorked(this.#state)
  }

  /** Whether somebody who may not land, or an outside source, sent a message, answer or content. */
  get byOutsiders(): boolean {
    const { lands, input } = this.message
    return lands !== true || this.entry.fields.outsiders === true || input.outsideWake !== undefined
  }

  /** How it ends, unless its end is stored already. */
  get end(): RunEnd {
    return endOf(this.#state)
  }

  /** Outcome decided; shown as idle while the last writes finish. */
  get leaving(): boolean {
    return isLeaving(this.#state)
  }

  /** Its end is being written, which cannot be interrupted. */
  get settling(): boolean {
    return isSettling(this.#state)
  }

  /** The daemon ends: what the turn does from here on is not recorded. */
  /** Finds stored values in what the turn says and sees. */
  get masker(): Masker {
    return this.#host.masker?.() ?? NO_VALUES
  }

  get frozen(): boolean {
    return this.#state.phase === 'frozen'
  }

  /** Resolves when the turn has ended and the conversation is free. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** The live turn as the fleet shows it. */
  get live(): LiveTurn {
    const { tool, todo, helpers, unenforced } = this.record
    const cards = [...this.#up.values()]
      .filter(({ card }) => this.#host.cards.isOpen(card.requestId))
      .map(({ card, at }): OpenCard => ({
        requestId: card.requestId,
        kind: card.kind,
        title: lineOf(card),
        raisedAt: at,
      }))
    // A card that is still being written cannot be answered yet, so the turn is not shown as parked.
    const waitsForNobody = this.state === 'parked' && cards.length === 0
    return {
      run: this.run,
      state: waitsForNobody ? 'running' : this.state,
      startedAt: this.entry.fields.startedAt,
      cards,
      ...(unenforced && { unenforced: [...unenforced] }),
      ...(helpers.all.length > 0 && { helpers: { running: helpers.open.length, total: helpers.all.length } }),
      ...(tool && { tool: tool.name }),
      ...(tool?.target && { target: tool.target }),
      ...(todo && { todo }),
    }
  }

  /** Sends a message into the turn; it is in the log when this returns. */
  async say({
    messageId,
    text,
    note = '',
    attachments,
    by,
    at,
    lands,
  }: Omit<SaidWords, 'run' | 'messageId'> & { messageId?: string }): Promise<void> {
    if (!lands) await this.entry.change({ outsiders: true })
    const known = attachments.length ? { attachments: [...attachments] } : {}
    this.log.push({ kind: 'steer', text, sentAt: at, by, ...(messageId && { messageId }), ...known })
    this.words.put({ text: note + text, attachments, ...(messageId && { messageId }) })
    await this.log.settled()
  }

  /**
   * Opens a card and waits for its answer; undefined: nobody answered, or nobody can.
   *
   * `holds` identifies the waiting call. After a restart the answer goes to the first call with the same digest.
   */
  async raise(
    draft: CardDraft,
    { holds, helper }: Pick<ParkedCard, 'holds' | 'helper'> = {},
  ): Promise<CardReply | undefined> {
    if (!this.message.attended || !mayAsk(this.#state)) return undefined
    const card = { ...draft, requestId: `${this.run}.${helper === undefined ? '' : 'h'}${++this.#sequence}` } as Card
    const reply = await this.park({
      card,
      at: Date.now(),
      ...(holds && { holds }),
      ...(helper !== undefined && { helper }),
    })
    if (reply && holds && !this.frozen) await this.#spend(({ card: { requestId } }) => requestId === card.requestId)
    return reply
  }

  /** Takes the answer to a call with this digest that a restart found. */
  async takeAnswer(holds: string): Promise<CardReply | undefined> {
    return (await this.#spend(answered => answered.holds === holds))?.reply
  }

  async #spend(
    fits: (answered: NonNullable<EntryFields['answered']>[number]) => boolean,
  ): Promise<{ reply: CardReply } | undefined> {
    const answered = this.entry.fields.answered ?? []
    const mine = answered.find(fits)
    if (mine) await this.entry.change({ answered: answered.filter(other => other !== mine) })
    return mine
  }

  /** Opens a card with an id, and waits for its answer. */
  async park(parked: ParkedCard): Promise<CardReply | undefined> {
    return (await this.put(parked)).reply
  }

  /** Opens a card with an id, possibly a restored one; resolves once it can be answered. */
  async put(parked: ParkedCard): Promise<{ readonly reply: Promise<CardReply | undefined> }> {
    const { card } = parked
    const { requestId, kind } = card
    // A restart can find a card without its frame: the next card needs another number.
    this.#sequence = Math.max(this.#sequence, Number(/\d+$/.exec(requestId)?.[0] ?? 0))
    const { promise, resolve } = Promise.withResolvers<CardReply | undefined>()
    if (!this.#up.has(requestId)) void this.#enter('card-raised')
    this.#up.set(requestId, { ...parked, answered: resolve })
    // With this entry, an answer in the log is enough for the next start to deliver it to the turn.
    await this.entry.change({ parked: this.#parked }, { flush: true })
    failpoint('agent.card.parked')
    // The card was withdrawn before its frame was written.
    if (!this.#up.has(requestId)) return { reply: promise }
    this.#host.cards.raise({
      card,
      conversationId: this.conversationId,
      answer: (reply, from) => this.#answer(requestId, reply, from),
    })
    if (this.record.card(requestId)) this.#host.changed(this.conversationId)
    else this.log.push(card)
    this.#host.emit('card.raised', { conversationId: this.conversationId, run: this.run, requestId, kind })
    return { reply: promise }
  }

  get #parked(): ParkedCard[] {
    return [...this.#up.values()].map(({ answered: _answered, ...parked }) => parked)
  }

  async #answer(requestId: string, reply: CardReply, { by, lands }: Answerer): Promise<void> {
    const up = this.#up.get(requestId)
    if (!up) return
    const resolved = this.log.write({ kind: 'resolved', requestId, reply, by })
    await Promise.all([resolved, ...(lands ? [] : [this.entry.change({ outsiders: true })])])
    if (this.log.broken) throw new Error('the answer could not be written')
    failpoint('agent.card.resolved')
    const { card, holds, helper } = up
    // A subagent is not resumed after a restart, so its answers are not stored.
    const mine = helper === undefined ? [{ card, reply, ...(holds && { holds }) }] : []
    const answered = [...(this.entry.fields.answered ?? []), ...mine]
    this.#takeDown(requestId)
    await this.entry.change({ parked: this.#parked, answered })
    failpoint('agent.card.answered')
    this.#host.emit('card.resolved', { conversationId: this.conversationId, run: this.run, requestId, kind: card.kind })
    this.#host.changed(this.conversationId)
    if (reply.kind === 'question' && reply.cancelled) return this.#hooks.cancel(this)
    // The person's call returns now; the turn is prepared for continuing in the background.
    void this.#hooks
      .afterAnswer(this, card)
      .catch(error =>
        this.#host.log.error('updating a turn after an answer failed', {
          run: this.run,
          error: String(error),
        }),
      )
      .then(() => up.answered(this.stopping ? undefined : reply))
  }

  #takeDown(requestId: string): void {
    if (this.#up.delete(requestId)) void this.#enter('card-lowered')
  }

  #withdraw(requestId: string): undefined {
    const { conversationId, run } = this
    const up = this.#up.get(requestId)
    const shown = this.record.card(requestId)
    // An answer that is being written to the log is kept, whatever happens to the turn.
    if (shown?.resolved?.reply) return up?.answered(undefined) as undefined
    this.#takeDown(requestId)
    this.#host.cards.settle(requestId, this.conversationId)
    if (shown && !shown.resolved) this.log.push({ kind: 'resolved', requestId })
    if (up) this.#host.emit('card.resolved', { conversationId, run, requestId, kind: up.card.kind })
    up?.answered(undefined)
  }

  /** Withdraws every unanswered card, or those of a subagent. */
  withdrawCards(of?: (helper: string | undefined) => boolean): void {
    const down = [...this.#up].filter(([, { helper }]) => !of || of(helper))
    for (const [requestId] of down) this.#withdraw(requestId)
    // The turn continues, so a restart must not restore them.
    if (of && down.length) void this.entry.change({ parked: this.#parked }).catch(() => {})
    if (of) return
    for (const { requestId } of this.record.openCards) {
      this.#host.cards.settle(requestId, this.conversationId)
      this.log.push({ kind: 'resolved', requestId })
    }
  }

  /**
   * Stops the turn: withdraws its cards and aborts its signal, unless its end is being written. No message follows
   * automatically.
   */
  stop(): Promise<void> {
    return this.#enter('stop')
  }

  /**
   * Ends the turn as failed with a message: withdraws its cards and aborts its signal, unless its end is being written.
   */
  fail(message: string): void {
    if (!mayAsk(this.#state) || this.signal.aborted) return
    this.log.push({ kind: 'error', message })
    void this.#enter('fail')
  }

  /** Its tree is ready. */
  prepared(): void {
    void this.#enter('prepared')
  }

  /** Called when it moves to another provider, account or model. */
  switching(): void {
    void this.#enter('switch')
  }

  /** Called when it has moved. */
  switched(): void {
    void this.#enter('switched')
  }

  /** Its adapter is done. */
  adapterDone(): void {
    void this.#enter('worked')
  }

  /**
   * Runs the effects of an event, in order. Only a stop is stored first; all other effects are done when this returns.
   */
  async #enter(event: TurnEvent): Promise<void> {
    for (const effect of this.#effectsOf(event)) {
      if (effect === 'show') this.#host.changed(this.conversationId)
      else if (effect === 'lower-cards') this.withdrawCards()
      else if (effect === 'abort') this.#stop.abort()
      else {
        await this.entry.change({ stopping: true }).catch(() => {})
        failpoint('agent.turn.stopping')
      }
    }
  }

  #effectsOf(event: TurnEvent): readonly Effect[] {
    const [state, effects] = after(this.#state, event)
    this.#state = state
    return effects
  }

  /** Applies a frame of the log to the outcome of the turn. */
  #note(frame: Frame): void {
    if (frame.kind !== 'error') return
    void this.#enter(frame.code === 'provider-outage' && frame.autoResume ? 'outage' : 'error')
  }

  /** The effects with which a restart recovers the turn, in this order. */
  restart(event: RestartEvent): readonly Effect[] {
    return this.#effectsOf(event)
  }

  /** Moves at the next gap, unless another move replaces this one; durable when it returns. */
  async move(to: Omit<Moving, 'nth'>): Promise<void> {
    await this.entry.change({ moving: { ...to, nth: this.record.switches + 1 } })
    failpoint('agent.move.told')
    this.adapterRun?.move()
  }

  /** From here on the turn only ends. */
  settle(): void {
    void this.#enter('settle')
  }

  /** Shows the turn as ended while its end is written; returns the effects to store with it. */
  leave(): readonly Effect[] {
    return this.#effectsOf('leave')
  }

  /** The turn is over and the conversation free. */
  close(): void {
    void this.#enter('end')
    this.#ended.resolve()
  }

  /** Freezes the turn for the next start of the daemon, and ends its programs. */
  async freeze(): Promise<void> {
    void this.#enter('freeze')
    await this.log.freeze()
    this.#stop.abort()
  }

  /** Closes a call that cannot finish. */
  closeTool(id: string, text: string): void {
    this.log.push({ kind: 'tool_call_update', id, status: 'failed', content: [{ type: 'text', text }] })
  }
}
