import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Journals, Store } from '../../../sdk/index.js'
import { digest } from '../../../sdk/node/access/first-answers.js'
import type { VisitorEnd, VisitorFrame } from './contract.js'
import { ThreadReaders, type ThreadReader } from './thread-readers.js'

/** A visitor's thread as it is stored, without its token. */
export interface VisitorThread {
  readonly automationId: string
  /** The visitor's own id of it. */
  readonly id: string
  readonly journal: string
  /** The SHA-256 of its token, and of the puzzle that opened it. */
  readonly token: string
  readonly proof?: string
  /** The id of the message that opened it. */
  readonly first: string
  /** A digest of the identity that it is bound to. */
  readonly subject?: string
  readonly name?: string
  /** The conversation in which it is answered, and how many turns it has had. */
  readonly conversationId?: string
  readonly turns: number
  readonly lastAt: number
}

/** A visitor's message. */
export interface VisitorLine {
  readonly from: 'visitor'
  readonly text: string
  readonly at: number
  readonly messageId: string
  /** What its turn gets, and who it says it is from. */
  readonly payload: string
  readonly by: string
  readonly page: string
}
/** An answer, or a sentence in its place; `answers` is the position of the message. */
export interface AgentLine {
  readonly from: 'agent'
  readonly text: string
  readonly at: number
  readonly answers: number
}
/** The answer waits for a person. */
export interface PendingLine {
  readonly from: 'sandbox'
  readonly text: string
  readonly at: number
  readonly answers: number
}
export type ThreadLine = VisitorLine | AgentLine | PendingLine

const THREAD_KEY = 'visit/'
const TOKEN_BYTES = 32

/** The dependencies of threads. */
export interface ThreadsDeps {
  readonly now: () => number
  readonly store: Pick<Store, 'set' | 'delete'>
  readonly journal: Pick<Journals, 'append' | 'read' | 'remove'>
}

/** The threads of visitors: what was said in each, and who may read it. */
export class VisitorThreads {
  readonly #deps: ThreadsDeps
  readonly #threads = new Map<string, VisitorThread>()
  readonly #readers = new ThreadReaders()

  constructor(deps: ThreadsDeps) {
    this.#deps = deps
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(THREAD_KEY))
    for (const [key, value] of found) this.#threads.set(key.slice(THREAD_KEY.length), value as VisitorThread)
  }

  get all(): readonly VisitorThread[] {
    return [...this.#threads.values()]
  }

  get(automationId: string, id: string): VisitorThread | undefined {
    return this.#threads.get(keyOf({ automationId, id }))
  }

  /** Opens a thread; returns its token, of which only the hash is kept. */
  async open(
    given: Pick<VisitorThread, 'automationId' | 'id' | 'first'> & Partial<VisitorThread>,
  ): Promise<{ thread: VisitorThread; token: string }> {
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    const name = randomBytes(6).toString('hex')
    const journal = `visits/${digest(given.automationId, given.id)}-${name}`
    const thread = { ...given, token: hash('sha256', token), journal, turns: 0, lastAt: this.#deps.now() }
    try {
      await this.#keep(thread)
    } catch (error) {
      this.#threads.delete(keyOf(thread))
      throw error
    }
    return { thread, token }
  }

  /** Gives an open thread another token. */
  async renew(thread: VisitorThread): Promise<{ thread: VisitorThread; token: string }> {
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    return { thread: await this.change(thread, { token: hash('sha256', token) }), token }
  }

  /** Compares in a time that depends neither on the token nor on whether there is a thread. */
  holds(thread: VisitorThread | undefined, token: string): thread is VisitorThread {
    const known = Buffer.from(thread?.token ?? hash('sha256', ''), 'hex')
    return timingSafeEqual(known, hash('sha256', token, 'buffer')) && thread !== undefined
  }

  /** Changes a thread unless it was closed meanwhile; it is durable when this returns. */
  async change(thread: VisitorThread, change: Partial<VisitorThread>): Promise<VisitorThread> {
    const now = this.#threads.get(keyOf(thread))
    return now?.journal === thread.journal ? this.#keep({ ...now, ...change }) : thread
  }

  async #keep(thread: VisitorThread): Promise<VisitorThread> {
    // First, since another change may begin before this one is written.
    this.#threads.set(keyOf(thread), thread)
    await this.#deps.store.set(THREAD_KEY + keyOf(thread), thread)
    return thread
  }

  /** What was said in a thread, in order. */
  lines(thread: VisitorThread, after = 0): Promise<ThreadLine[]> {
    return this.#deps.journal.read<ThreadLine>(thread.journal, after)
  }

  /** Adds a line and returns its position; it is durable when this returns. */
  async add({ automationId, id }: VisitorThread, line: ThreadLine): Promise<number> {
    const thread = this.get(automationId, id)
    if (!thread) return 0
    const seq = await this.#deps.journal.append(thread.journal, [line])
    if (line.from === 'agent') this.#readers.whole(thread.journal)
    await this.change(thread, { lastAt: line.at })
    this.#readers.wake(thread.journal)
    return seq
  }

  /** More of the answer to a message, for those who read the thread now. */
  say({ journal }: VisitorThread, seq: number, text: string): void {
    this.#readers.say(journal, seq, text)
  }

  /** What was said of an answer that is not whole is void. */
  unsay({ journal }: VisitorThread): void {
    this.#readers.whole(journal)
  }

  /** How many streams of a thread are open. */
  reading({ journal }: VisitorThread): number {
    return this.#readers.count(journal)
  }

  /** The lines of a thread after a position, what is being said, then what comes; ends after the line that `ends`. */
  async *follow(
    { journal }: VisitorThread,
    after: number,
    { signal, ends = () => false }: { signal: AbortSignal; ends?: (line: ThreadLine) => boolean },
  ): AsyncGenerator<VisitorFrame, VisitorEnd> {
    const reader: ThreadReader = this.#readers.enter(journal)
    const wake = () => reader.wake()
    signal.addEventListener('abort', wake, { once: true })
    let seq = after
    try {
      while (!signal.aborted) {
        const woken = reader.woken()
        for (const line of await this.#deps.journal.read<ThreadLine>(journal, seq)) {
          seq += 1
          yield frameOf(line, seq)
          if (ends(line)) return { seq }
        }
        if (reader.gone) break
        for (const piece of reader.take()) yield { kind: 'delta', ...piece }
        await woken
      }
      return { seq }
    } finally {
      signal.removeEventListener('abort', wake)
      this.#readers.leave(journal, reader)
    }
  }

  /** Closes a thread: its token and what was said are gone. */
  async close(thread: VisitorThread): Promise<void> {
    const key = keyOf(thread)
    this.#threads.delete(key)
    // What was said goes first: after a kill in between, the thread is found and closed again.
    await this.#deps.journal.remove(thread.journal)
    // Its visitor may have opened another meanwhile.
    if (!this.#threads.has(key)) await this.#deps.store.delete(THREAD_KEY + key)
    this.#readers.end(thread.journal)
  }

  async forget(automationId: string): Promise<void> {
    for (const thread of this.all) if (thread.automationId === automationId) await this.close(thread)
  }
}

const keyOf = ({ automationId, id }: Pick<VisitorThread, 'automationId' | 'id'>): string => `${automationId}/${id}`

const frameOf = ({ from, text, at }: ThreadLine, seq: number): VisitorFrame =>
  from === 'sandbox' ? { kind: 'pending', seq, text } : { kind: 'message', seq, from, text, at }

/** Whether a message has its answer. */
export const isAnswered = (lines: readonly ThreadLine[], seq: number): boolean =>
  lines.some(line => line.from === 'agent' && line.answers === seq)
