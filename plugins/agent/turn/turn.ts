import type { Host } from '../../../sdk/index.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { CardDraft } from '../providers/adapter.js'
import { CARD_KINDS, isCard } from '../cards/kinds.js'
import type { CardReply, LiveTurn } from '../contract.js'
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
import { liveTurn } from './live-turn.js'
import { RunRecord } from './run-record.js'
import { MessageInbox } from './message-inbox.js'
import { isLostCard, TurnCards, type CardHost } from './turn-cards.js'
import { ignored, refuse } from '../../../sdk/index.js'

const NOT_SHARED =
  'the program of this turn shares its home folder with work that lands by itself, so it takes words and answers only '
  + 'of people who may land: wait until the turn has ended, or have one of them answer'
const AS_APPROVED =
  'this turn publishes what was approved, word for word, so it takes no words: stop it, change the item and approve it '
  + 'again'
const NO_VALUES = new Masker([])

/** The parts of the host that a turn uses. */
export type TurnHost = CardHost
  & Pick<Host, 'journal'> & {
    /** The current masker of stored values; left out: there are none. */
    readonly masker?: () => Masker
    /** Called when a subagent of a run has started, changed or ended. */
    readonly helped: (helper: string) => void
  }

/** Callbacks of a turn to the engine. */
export interface TurnHooks {
  /** Called between an answer and the continuation of the turn. */
  readonly afterAnswer: (turn: Turn, card: Card) => Promise<void>
  /** Stops the turn and resolves when it has ended. */
  readonly cancel: (turn: Turn) => Promise<void>
}

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

/** The state of a turn after a restart; cards of subagents are not opened again. */
const foundIn = ({ parked, ending, stopping = false }: EntryFields, record: RunRecord): TurnState => {
  const cards = parked.filter(each => each.helper === undefined && !isLostCard(each, record))
  return foundAs(cards.length, { stopAsked: stopping, ending: (record.done ?? ending) !== undefined })
}

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
  readonly #ended = Promise.withResolvers<void>()
  readonly #cards: TurnCards
  readonly #listeners = new Set<(frame: Frame) => void>()
  #state: TurnState
  /** Rules are asked about what its adapter did: words wait for the next turn. */
  checking = false
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
    this.#cards = new TurnCards(
      host,
      this,
      {
        raised: () => void this.#enter('card-raised'),
        lowered: () => void this.#enter('card-lowered'),
        answered: card => hooks.afterAnswer(this, card),
        cancelled: () => hooks.cancel(this),
      },
      before.filter(isCard).length,
    )
    for (const frame of before) this.#note(frame)
    this.entry = new RunEntry(host.journal, fields, past?.lines)
    this.begun = past ? Promise.resolve() : this.entry.open().then(() => failpoint('agent.turn.entered'))
    this.begun.catch(ignored('the caller that awaits it gets the failure'))
    this.log = new FrameLog(host.journal, run, {
      seq: before.length,
      after: this.begun,
      mask: new FrameMask(() => this.masker),
      onFrame: frame => {
        this.record.add(frame)
        this.#note(frame)
        for (const listener of this.#listeners) listener(frame)
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
    return this.checking || isWorked(this.#state)
  }

  /** Whether somebody who may not land, or an outside source, sent a message, answer or content. */
  get byOutsiders(): boolean {
    const { lands, input } = this.message
    return lands !== true || this.entry.fields.outsiders === true || input.outsideWake !== undefined
  }

  /** Whether a control token sent a message or an answer, whatever its scope. */
  get byTokens(): boolean {
    return this.message.from === 'token' || this.entry.fields.tokens === true
  }

  /**
   * Its program shares a home folder with work that lands by itself. Until the turn has ended, the program gets no
   * words from people who may not land.
   */
  sharesHome = false

  /**
   * Why it takes neither words nor answers from somebody: its program would share those of people who may not land
   * with work that lands, or it publishes what was approved. Undefined: it takes them.
   */
  refuses(lands: boolean | undefined): string | undefined {
    if (this.message.input.runRole === 'approval-queue') return AS_APPROVED
    return !lands && this.sharesHome ? NOT_SHARED : undefined
  }

  /** Refuses words and answers that it does not take. */
  assertTakes(lands: boolean | undefined): void {
    const why = this.refuses(lands)
    if (why !== undefined) refuse('conflict', why)
  }

  /** The content from outside that it has taken in; undefined: none. */
  get outside(): string | undefined {
    return this.entry.fields.outside ?? this.message.input.outsideWake
  }

  /** Whether it took in content from outside, or words of somebody who may not land. */
  get heardOthers(): boolean {
    return this.byOutsiders || this.outside !== undefined
  }

  /** Notes that it takes in content from outside; durable when it returns. */
  async markOutside(source: string): Promise<void> {
    if (this.outside === undefined) await this.entry.change({ outside: source })
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

  /** Finds stored values in what the turn says and sees. */
  get masker(): Masker {
    return this.#host.masker?.() ?? NO_VALUES
  }

  /** The daemon ends: what the turn does from here on is not recorded. */
  get frozen(): boolean {
    return this.#state.phase === 'frozen'
  }

  /** Resolves when the turn has ended and the conversation is free. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** The live turn as the fleet shows it. */
  get live(): LiveTurn {
    return liveTurn(
      { run: this.run, state: this.state, startedAt: this.entry.fields.startedAt },
      this.record,
      this.#cards.open,
    )
  }

  /** Calls the listener with each new frame, until the returned function is called. */
  onFrame(listener: (frame: Frame) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
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
    byToken,
  }: Omit<SaidWords, 'run' | 'messageId'> & { messageId?: string }): Promise<void> {
    this.assertTakes(lands)
    if (!lands || byToken)
      await this.entry.change({ ...(!lands && { outsiders: true }), ...(byToken && { tokens: true }) })
    const known = attachments.length ? { attachments: [...attachments] } : {}
    this.log.push({ kind: 'steer', text, sentAt: at, by, ...(messageId && { messageId }), ...known })
    this.words.put({ text: note + text, attachments, ...(messageId && { messageId }) })
    await this.log.settled()
  }

  /**
   * Opens a card and waits for its answer; undefined: nobody answered, or nobody can.
   *
   * `holds` identifies the waiting call. After a restart the answer goes to the first call with the same digest; with
   * `kept` also if the call has gone on with it, until `forgetAnswer`.
   */
  async raise(
    draft: CardDraft,
    { holds, helper, kept = false }: Pick<ParkedCard, 'holds' | 'helper'> & { kept?: boolean } = {},
  ): Promise<CardReply | undefined> {
    if (!this.message.attended || !mayAsk(this.#state)) return undefined
    const card = { ...draft, requestId: this.#cards.nextId(helper) } as Card
    const { reply: answer } = await this.put({
      card,
      at: Date.now(),
      ...(holds && { holds }),
      ...(helper !== undefined && { helper }),
    })
    const reply = await answer
    if (reply && holds && !kept && !this.frozen) await this.forgetAnswer(card.requestId)
    return reply
  }

  /** The stored answer to a call with this digest, which stays stored. */
  keptAnswer(holds: string): CardReply | undefined {
    return this.entry.fields.answered?.find(answered => answered.holds === holds)?.reply
  }

  /** Drops the stored answer to a card. */
  async forgetAnswer(requestId: string): Promise<void> {
    await this.#cards.take(({ card }) => card.requestId === requestId)
  }

  /** Takes the answer to a call with this digest that a restart found. */
  async takeAnswer(holds: string): Promise<CardReply | undefined> {
    return this.#cards.take(answered => answered.holds === holds)
  }

  /** Opens a card with an id, possibly a restored one; resolves once it can be answered. */
  put(parked: ParkedCard): Promise<{ readonly reply: Promise<CardReply | undefined> }> {
    return this.#cards.put(parked)
  }

  /** Withdraws every unanswered card, or some of them. */
  withdrawCards(of?: (parked: ParkedCard) => boolean): void {
    this.#cards.withdraw(of)
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
        await this.entry.change({ stopping: true }).catch(ignored('the turn is stopped all the same'))
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
