import { isDeepStrictEqual } from 'node:util'
import type { TurnIo, TurnRequest, UserMessage } from '../adapter.js'
import type { Frame } from '../../turn/frames/frames.js'
import type { CallIntent } from './calls.js'
import { commandCalled } from '../../instructions/workspace-commands.js'
import { keptIn } from './kept.js'
import { askedToCompact, doneElsewhere, historyEntries, openingWords } from './opening.js'
import {
  NO_TOKENS,
  sumTokens,
  type CallPart,
  type NativeSessions,
  type NewEntry,
  type SessionEntry,
  type TokenCount,
} from './session.js'

/** Tokens, and the number of answers that they are of. */
export interface Counted {
  readonly usage: TokenCount
  readonly answers: number
}

const NOTHING: Counted = { usage: NO_TOKENS, answers: 0 }

/** The state that a turn saves: its position in its session, which holds everything else. */
interface NativeState {
  readonly version: 1
  readonly kind: 'native'
  readonly run: string
  /** The newest entry. */
  readonly n: number
  readonly round: number
  readonly usage: TokenCount
  readonly answers?: number
  /** What frames of the run contain of `usage` and `answers`. */
  readonly told?: Counted
  readonly intent?: CallIntent
  /** The model takes no pictures. */
  readonly blind?: boolean
}

const isNativeState = (state: unknown): state is NativeState =>
  typeof state === 'object'
  && state !== null
  && (state as Partial<NativeState>).version === 1
  && (state as Partial<NativeState>).kind === 'native'

/** The session of a running turn: every entry is stored before anything else happens. */
export class LiveSession {
  readonly #id: string
  readonly #sessions: NativeSessions
  readonly #io: TurnIo
  readonly #request: TurnRequest
  #entries: SessionEntry[] = []
  /** Messages from before a restart that the adapter had not taken. */
  #unheard: readonly UserMessage[] = []
  #compactFor: string | undefined
  /** Messages without an id that are in the session but not in the saved state yet. */
  #nameless: string[] = []
  /** Tokens of this run. */
  usage: TokenCount = NO_TOKENS
  round = 0
  /** Answers of this run, summaries included. */
  answers = 0
  /** What frames of the run contain of these. */
  told = NOTHING
  blind = false
  intent: CallIntent | undefined

  constructor(id: string, sessions: NativeSessions, request: TurnRequest, io: TurnIo) {
    this.#id = id
    this.#sessions = sessions
    this.#request = request
    this.#io = io
  }

  get entries(): readonly SessionEntry[] {
    return this.#entries
  }

  /** Opens the session; `cutOff`: a restart interrupted an answer, whose beginning is in the log. */
  async open(): Promise<{ readonly cutOff: boolean }> {
    const { state, sessionId, run, resume, round } = this.#request
    const saved = isNativeState(state) ? state : undefined
    const known = saved || sessionId === this.#id ? await this.#sessions.read(this.#id) : undefined
    if (known) this.#entries = known
    if (saved && known) return this.#resume(saved)
    const opening = openingWords(this.#request)
    const isOpening = (entry: SessionEntry) =>
      entry.kind === 'words'
      && entry.run === run
      && (round === undefined || isDeepStrictEqual({ ...opening, n: entry.n }, entry))
    const begun = known?.some(isOpening) && resume !== undefined
    if (!begun) {
      const before = known ? [] : historyEntries(this.#request)
      // A command is no task: it is not among the messages.
      const words = askedToCompact(this.#request) === undefined ? [opening] : []
      const fresh = [...before, ...words, ...(resume ? doneElsewhere(this.#request) : [])]
      if (known) await this.keep(...fresh)
      else await this.replace(fresh.map((entry, n) => ({ ...entry, n: n + 1 })))
    }
    await this.save()
    return { cutOff: false }
  }

  #resume(saved: NativeState): { readonly cutOff: boolean } {
    const { run, since = [] } = this.#request
    const later = this.#entries.filter(({ n }) => n > saved.n)
    const answers = later.filter(entry => entry.kind === 'answer')
    this.round = saved.round + answers.length
    this.blind = saved.blind ?? false
    this.intent = saved.intent
    // After an outage the message has a new run; its earlier usage was reported in the old one.
    const own = saved.run === run
    this.usage = [own ? saved.usage : NO_TOKENS, ...answers.map(({ usage }) => usage)].reduce(sumTokens)
    const counted = this.#entries.filter(entry => entry.kind === 'answer' && entry.run === run).length
    this.answers = own && saved.answers !== undefined ? saved.answers + answers.length : counted
    if (own) this.told = since.reduce(withFrame, saved.told ?? NOTHING)
    this.#nameless = later.flatMap(entry => (entry.kind === 'words' && !entry.messageId ? [entry.text] : []))
    this.#unheard = since.flatMap(frame => (frame.kind === 'steer' ? [{ attachments: [], ...frame }] : []))
    return { cutOff: answers.length === 0 }
  }

  /** Adds entries. */
  async keep(...entries: readonly NewEntry[]): Promise<void> {
    let n = this.#last
    const numbered = entries.map(entry => ({ ...entry, n: ++n }) as SessionEntry)
    this.#entries.push(...numbered)
    await this.#sessions.add(this.#id, numbered)
  }

  /** Replaces all entries. */
  async replace(entries: readonly SessionEntry[]): Promise<void> {
    this.#entries = [...entries]
    await this.#sessions.write(this.#id, entries)
  }

  /** Saves the position of the turn. */
  async save(): Promise<void> {
    const { round, usage, answers, told, intent, blind } = this
    const state: NativeState = {
      version: 1,
      kind: 'native',
      run: this.#request.run,
      n: this.#last,
      round,
      usage,
      answers,
      told,
      ...(intent && { intent }),
      ...(blind && { blind }),
    }
    await this.#io.state(state)
  }

  /** Stores the intent of a call before it is made. */
  async intend(intent: CallIntent): Promise<void> {
    this.intent = intent
    await this.save()
  }

  /** Whether it holds words of this run, besides commands. */
  get hasTask(): boolean {
    return keptIn(this.#entries).words.some(({ run }) => run === this.#request.run)
  }

  /** What a person who asked to make it shorter wants kept, once; undefined: nobody asked. */
  takeCompact(): string | undefined {
    const keep = this.#compactFor
    this.#compactFor = undefined
    return keep
  }

  /** Adds messages since the last call; returns whether there were any. */
  async hear(): Promise<boolean> {
    const known = new Set(this.#entries.flatMap(entry => (entry.kind === 'words' ? (entry.messageId ?? []) : [])))
    const said = [...this.#unheard, ...this.#io.takeWords()]
    this.#unheard = []
    const fresh: NewEntry[] = []
    for (const { messageId, text: words, attachments } of said) {
      const keep = askedToCompact({ words })
      if (keep !== undefined) {
        this.#compactFor = keep
        continue
      }
      const asked = commandCalled(words, this.#request.commands ?? []) ?? words
      const text = [asked, ...attachments.map(path => `Attached: ${path}`)].join('\n')
      const nameless = messageId === undefined ? this.#nameless.indexOf(text) : -1
      if (nameless >= 0) this.#nameless.splice(nameless, 1)
      if (nameless >= 0 || (messageId !== undefined && known.has(messageId))) continue
      if (messageId !== undefined) known.add(messageId)
      fresh.push({ kind: 'words', run: this.#request.run, text, ...(messageId !== undefined && { messageId }) })
    }
    if (fresh.length === 0) return false
    await this.keep(...fresh)
    await this.save()
    return true
  }

  /** The calls of the newest answer that have no result yet. */
  get openCalls(): readonly CallPart[] {
    const at = this.#entries.findLastIndex(({ kind }) => kind !== 'result')
    const answer = this.#entries[at]
    if (answer?.kind !== 'answer') return []
    const known = new Set(this.#entries.slice(at + 1).map(entry => entry.kind === 'result' && entry.frame))
    return answer.parts.filter(part => part.kind === 'call').filter(({ frame }) => !known.has(frame))
  }

  /** Whether the newest answer is complete and calls no tools. */
  get answered(): boolean {
    return this.#entries.at(-1)?.kind === 'answer'
  }

  get #last(): number {
    return this.#entries.at(-1)?.n ?? 0
  }
}

/** What is counted, with the usage that a frame contains. */
const withFrame = (counted: Counted, frame: Frame): Counted => {
  if (frame.kind !== 'usage') return counted
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheCreationTokens = 0, numTurns = 1 } = frame
  const usage = {
    input: inputTokens,
    output: outputTokens,
    cacheRead: cacheReadTokens,
    cacheWrite: cacheCreationTokens,
  }
  return { usage: sumTokens(counted.usage, usage), answers: counted.answers + numTurns }
}
