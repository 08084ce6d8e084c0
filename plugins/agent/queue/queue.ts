import type { Journals } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Conversation, Delivery, Started } from '../contract.js'
import type { QueuedMessage } from '../turn/frames/frames.js'
import { AnswerLedger } from './answer-ledger.js'
import type { Acceptance, EndedLine, LedgerRow, Line, SaidWords, WaitingMessage } from './lines.js'
import type { Resumable, RunMessage } from '../turn/run-entry.js'
import { ignored } from '../../../sdk/index.js'

interface Waiting {
  /** The message whose turn is running, or starts first. */
  current?: RunMessage
  messages: WaitingMessage[]
  said: SaidWords[]
  paused: boolean
  /** Set until the next turn if an outage ended the newest one, which can be resumed. */
  resumable?: Resumable
}

const JOURNAL = 'queue'
/** What a start reads in vain at most. */
const DEAD_LINES = 4_000
const DEAD_BYTES = 4 * 1024 * 1024
/** The most messages that may wait in one conversation. */
export const MOST_WAITING = 50

const isWaiting = (message: RunMessage | WaitingMessage): message is WaitingMessage => 'why' in message
const size = ({ message, said }: Pick<Acceptance, 'message' | 'said'>): number =>
  (message?.input.prompt.length ?? 0) + (said?.text.length ?? 0) + (JSON.stringify(message?.resumed)?.length ?? 0)

/** The waiting messages and the ledger of accepted ones: one journal, so that accepting is one durable step. */
export class Queue {
  readonly #journals: Pick<Journals, 'append' | 'read' | 'rewrite'>
  /** Resolves when every conversation that a line carries is in the store too. */
  readonly #stored: () => Promise<unknown>
  readonly #ledger = new AnswerLedger()
  readonly #conversations = new Map<string, Waiting>()
  readonly #acceptances = new Map<string, Acceptance>()
  #dead = 0
  #deadBytes = 0
  #appending = new Set<Promise<unknown>>()
  #compacting: Promise<void> | undefined

  constructor(journals: Pick<Journals, 'append' | 'read' | 'rewrite'>, stored: () => Promise<unknown>) {
    this.#journals = journals
    this.#stored = stored
  }

  /** Reads the journal; returns the conversations that its lines opened and did not delete. */
  async load(): Promise<Conversation[]> {
    const opened = new Map<string, Conversation>()
    for (const line of await this.#journals.read<Line>(JOURNAL)) {
      if (line.line === 'accept' && line.opened) opened.set(line.opened.id, line.opened)
      if (line.line === 'dropped') opened.delete(line.conversationId)
      this.#apply(line)
    }
    return [...opened.values()]
  }

  /** The first answer a message got. */
  known(messageId: string): LedgerRow | undefined {
    return this.#ledger.get(messageId)
  }

  /** The waiting messages, in order. */
  waiting(conversationId: string): readonly WaitingMessage[] {
    return this.#conversations.get(conversationId)?.messages ?? []
  }

  paused(conversationId: string): boolean {
    return this.#conversations.get(conversationId)?.paused ?? false
  }

  /** The message whose turn was running, or about to start, when the journal was last written. */
  current(conversationId: string): RunMessage | undefined {
    return this.#conversations.get(conversationId)?.current
  }

  /** The message of a run that has not ended. */
  message(run: string): RunMessage | undefined {
    for (const { current, messages } of this.#conversations.values()) {
      const message = current?.run === run ? current : messages.find(other => other.run === run)
      if (message) return message
    }
    return undefined
  }

  /** Messages that were accepted into a run that has not ended. */
  said(conversationId: string, run: string): readonly SaidWords[] {
    return this.#conversations.get(conversationId)?.said.filter(words => words.run === run) ?? []
  }

  /** Every conversation with a waiting message or a turn that has not ended. */
  get busy(): readonly string[] {
    return [...this.#conversations].filter(([, { current, messages }]) => current ?? messages.length).map(([id]) => id)
  }

  /** Accepts a message: when it returns, the message and its answer survive anything. */
  async accept(acceptance: Acceptance): Promise<void> {
    await this.#append({ line: 'accept', ...acceptance }, true)
    failpoint('agent.queue.accepted')
  }

  /** Takes the head of the queue for the turn that starts now. */
  take(conversationId: string): WaitingMessage | undefined {
    const waiting = this.#conversations.get(conversationId)
    const next = waiting?.messages.shift()
    if (waiting && next) this.#begin(waiting, next)
    return next
  }

  /** Records the message whose turn a restart found running. */
  adopt(conversationId: string, run: string): void {
    const waiting = this.#of(conversationId)
    const message = waiting.messages.find(other => other.run === run)
    if (!message) return
    waiting.messages = waiting.messages.filter(other => other !== message)
    this.#begin(waiting, message)
  }

  /** Records the end of a run; `paused` holds back the waiting messages, `resumable` is set after an outage. */
  async ended(
    conversationId: string,
    run: string,
    { paused, ...more }: Pick<EndedLine, 'paused' | 'resumable' | 'unaffordable'>,
  ): Promise<void> {
    await this.#append({ line: 'ended', conversationId, run, paused, ...more }, true)
    failpoint('agent.queue.ended')
  }

  /** The run that an outage ended, until another one follows. */
  resumable(conversationId: string): Resumable | undefined {
    return this.#conversations.get(conversationId)?.resumable
  }

  /** Every conversation whose newest run an outage ended. */
  get resumables(): readonly (readonly [conversationId: string, resumable: Resumable])[] {
    return [...this.#conversations].flatMap(([id, { resumable }]) => (resumable ? [[id, resumable] as const] : []))
  }

  /** Changes the resume of a run that an outage ended; without a value it is not resumed. */
  async resume(conversationId: string, resumable?: Resumable): Promise<void> {
    if (!resumable && !this.resumable(conversationId)) return
    await this.#append({ line: 'resumable', conversationId, ...(resumable && { resumable }) }, true)
  }

  /** Removes a waiting message; its id stays used. */
  async withdraw(conversationId: string, messageId: string): Promise<void> {
    await this.#append({ line: 'withdrawn', conversationId, messageId }, true)
  }

  /** Reorders the queue; `paused` holds it back. */
  async order(conversationId: string, messageIds: readonly string[], paused: boolean): Promise<void> {
    await this.#append({ line: 'ordered', conversationId, messageIds, paused }, true)
    failpoint('agent.queue.ordered')
  }

  /** Holds back the waiting messages until a new one arrives. */
  async pause(conversationId: string): Promise<void> {
    if (this.waiting(conversationId).length && !this.paused(conversationId))
      await this.#append({ line: 'paused', conversationId }, true)
  }

  /** Deletes the queue of a conversation. The ledger keeps its answers. */
  async drop(conversationId: string): Promise<void> {
    await this.#append({ line: 'dropped', conversationId }, true)
    failpoint('agent.queue.dropped')
  }

  async #append(line: Line, flush: boolean): Promise<void> {
    while (this.#compacting) await this.#compacting
    const written = this.#journals.append(JOURNAL, [line], { flush }).then(() => this.#apply(line))
    const settled = written
      .catch(ignored('the caller that awaits it gets the failure'))
      .finally(() => this.#appending.delete(settled))
    this.#appending.add(settled)
    await written
    if (this.#dead > DEAD_LINES || this.#deadBytes > DEAD_BYTES) this.#compact()
  }

  #apply(line: Line): void {
    switch (line.line) {
      case 'accept': {
        const { row, message, said } = line
        this.#ledger.set(row)
        const waiting = this.#of(row.conversationId)
        if (said) waiting.said.push(said)
        if (message && isWaiting(message)) waiting.messages.push(message)
        if (message && !isWaiting(message)) {
          this.#begin(waiting, message)
          waiting.paused = false
        }
        const { line: _line, ...acceptance } = line
        this.#acceptances.set(row.messageId, acceptance)
        return
      }
      case 'ended': {
        const waiting = this.#of(line.conversationId)
        for (const words of waiting.said.filter(({ run }) => run === line.run)) this.#bury(words.messageId)
        waiting.said = waiting.said.filter(({ run }) => run !== line.run)
        const message =
          waiting.current?.run === line.run ? waiting.current : waiting.messages.find(({ run }) => run === line.run)
        if (message) this.#bury(message.messageId)
        if (waiting.current?.run === line.run) delete waiting.current
        waiting.messages = waiting.messages.filter(({ run }) => run !== line.run)
        waiting.paused = line.paused && waiting.messages.length > 0
        if (line.unaffordable) this.#hold(waiting)
        this.#resumes(waiting, line.resumable)
        this.#tidy(line.conversationId)
        return
      }
      case 'resumable':
        this.#resumes(this.#of(line.conversationId), line.resumable)
        return this.#tidy(line.conversationId)
      case 'withdrawn': {
        const waiting = this.#of(line.conversationId)
        const row = this.#ledger.get(line.messageId)
        if (row) this.#ledger.set({ ...row, withdrawn: true })
        this.#bury(line.messageId)
        waiting.messages = waiting.messages.filter(({ messageId }) => messageId !== line.messageId)
        waiting.paused &&= waiting.messages.length > 0
        this.#tidy(line.conversationId)
        return
      }
      case 'ordered': {
        const waiting = this.#of(line.conversationId)
        const place = new Map(line.messageIds.map((messageId, index) => [messageId, index]))
        waiting.messages.sort(
          (one, other) => (place.get(one.messageId) ?? Infinity) - (place.get(other.messageId) ?? Infinity),
        )
        waiting.paused = line.paused && waiting.messages.length > 0
        this.#dead += 1
        this.#tidy(line.conversationId)
        return
      }
      case 'dropped': {
        const { current, messages, said } = this.#of(line.conversationId)
        for (const { messageId } of [...messages, ...said, ...(current ? [current] : [])]) this.#bury(messageId)
        this.#conversations.delete(line.conversationId)
        return
      }
      case 'row':
        return this.#ledger.set(line.row)
      case 'ledger':
        return this.#ledger.load(line.rows)
      case 'paused':
        this.#of(line.conversationId).paused = true
    }
  }

  /** The first message waits for a budget. */
  #hold({ messages }: Waiting): void {
    const [first] = messages
    if (!first) return
    messages[0] = { ...first, why: 'budget' }
    const acceptance = this.#acceptances.get(first.messageId)
    if (acceptance) this.#acceptances.set(first.messageId, { ...acceptance, message: messages[0] })
  }

  #of(conversationId: string): Waiting {
    const known = this.#conversations.get(conversationId)
    if (known) return known
    const fresh: Waiting = { messages: [], said: [], paused: false }
    this.#conversations.set(conversationId, fresh)
    return fresh
  }

  #tidy(conversationId: string): void {
    const { current, messages, said, resumable } = this.#of(conversationId)
    if (!current && !messages.length && !said.length && !resumable) this.#conversations.delete(conversationId)
  }

  /** A turn begins: an earlier run is not resumed. */
  #begin(waiting: Waiting, message: RunMessage): void {
    waiting.current = message
    this.#resumes(waiting, undefined)
  }

  #resumes(waiting: Waiting, resumable: Resumable | undefined): void {
    if (waiting.resumable) {
      this.#dead += 1
      this.#deadBytes += size(waiting.resumable)
    }
    delete waiting.resumable
    if (resumable) waiting.resumable = resumable
  }

  #bury(messageId: string): void {
    const acceptance = this.#acceptances.get(messageId)
    if (!acceptance) return
    this.#acceptances.delete(messageId)
    this.#dead += 2
    this.#deadBytes += size(acceptance)
  }

  #compact(): void {
    this.#compacting ??= this.#rewrite()
      .catch(ignored('a rewrite that failed leaves the queue as it was'))
      .finally(() => (this.#compacting = undefined))
  }

  async #rewrite(): Promise<void> {
    // Reset first, so that a failed rewrite is not repeated with every message.
    this.#dead = 0
    this.#deadBytes = 0
    await this.#stored()
    await Promise.all(this.#appending)
    const lines: Line[] = []
    const { blocks, rest } = this.#ledger.text(messageId => !this.#acceptances.has(messageId))
    for (const rows of blocks) lines.push({ line: 'ledger', rows })
    for (const row of rest) lines.push({ line: 'row', row })
    for (const { opened: _stored, ...acceptance } of this.#ordered()) lines.push({ line: 'accept', ...acceptance })
    for (const [conversationId, { paused }] of this.#conversations)
      if (paused) lines.push({ line: 'paused', conversationId })
    for (const [conversationId, resumable] of this.resumables)
      lines.push({ line: 'resumable', conversationId, resumable })
    await this.#journals.rewrite(JOURNAL, lines)
  }

  /** The pending messages, each conversation's running one first. */
  *#ordered(): Iterable<Acceptance> {
    for (const { current, messages, said } of this.#conversations.values()) {
      const [first, ...more] = [...(current ? [current] : []), ...said, ...messages]
        .map(({ messageId }) => this.#acceptances.get(messageId))
        .filter(acceptance => acceptance !== undefined)
      if (!first) continue
      yield current && first.message ? { ...first, message: current } : first
      yield* more
    }
  }
}

/** The queue as people see it. */
export const shownMessages = (waiting: readonly WaitingMessage[]): QueuedMessage[] =>
  waiting.map(({ messageId, run, input, by, at, why }) => {
    const {
      prompt,
      attachments = [],
      mentions = [],
      errand,
      messageId: _id,
      conversationId: _conversation,
      ...options
    } = input
    return {
      messageId,
      run,
      text: prompt,
      attachments,
      mentions,
      by,
      at,
      why,
      options: { ...options },
      ...(errand && { errand }),
    }
  })

/** The answer to a message, from its ledger row. */
export const answerOf = ({ run, conversationId, messageId, delivery }: LedgerRow): Started => ({
  run,
  conversationId,
  messageId,
  delivery: delivery satisfies Delivery,
})
