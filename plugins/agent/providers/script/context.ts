import { setTimeout as delay } from 'node:timers/promises'
import { roundMark, type CardDraft, type TurnFailure, type TurnIo, type TurnRequest } from '../adapter.js'
import type { CardReply, Frame, PermissionMode } from '../../turn/frames/frames.js'
import { INTERRUPTED, Replay, unsaid } from './replay.js'
import { type Saved, savedOf } from './saved.js'
import { exitOf, kept, wordPieces } from './texts.js'
import type { ToolUse } from './use.js'
import { expand, type Variables } from './variables.js'

/** What became of a tool call. */
export interface Outcome {
  readonly ok: boolean
  readonly text: string
  readonly exit?: number
}

/** Frames that the script itself writes. */
export type ScriptFrames = AsyncGenerator<Frame, void>

/** Thrown where the turn is to stop: nothing more is done. */
export const STOPPED = Symbol('stopped')
/** Thrown where the turn goes on elsewhere: somebody else says the rest. */
export const MOVED = Symbol('moved')
const QUIET_REPEATS = 64

/** Thrown where the script ends before its last line; with a failure the turn fails. */
export class End {
  readonly failure?: TurnFailure
  constructor(failure?: TurnFailure) {
    if (failure) this.failure = failure
  }
}

/** What the context knows of a command: where it stands, how often it is repeated, and how it is saved. */
export interface CommandPlace {
  readonly line: number
  readonly times?: number
  readonly verb: { readonly quiet?: true }
}

/** What a command works with: the turn, what the script knows, and what was done before a restart. */
export class ScriptContext {
  readonly request: TurnRequest
  readonly io: TurnIo
  readonly #commands: readonly CommandPlace[]
  readonly #known = new Set<string>()
  #replay: Replay
  #replies: NonNullable<NonNullable<TurnRequest['resume']>['replies']>
  #saved: Saved

  constructor(commands: readonly CommandPlace[], request: TurnRequest, io: TurnIo) {
    this.#commands = commands
    this.request = request
    this.io = io
    this.#replay = new Replay(request.since ?? [])
    this.#replies = request.resume?.replies ?? []
    this.#saved = savedOf(request)
    this.hear(this.#replay.heard)
  }

  /** What the script knows. */
  get saved(): Saved {
    return this.#saved
  }

  /** What the log says of the command in hand, when it was in hand before a restart. */
  get replay(): Replay {
    return this.#replay
  }

  /** The index of the command in hand; behind the last one, their number. */
  get at(): number {
    return this.#saved.at
  }

  // What the script knows ---------------------------------------------------------------------------------------------

  /** Changes what the script knows; durable with the next `save`. */
  note(change: Partial<Saved>): void {
    this.#saved = { ...this.#saved, ...change }
  }

  /** Changes what the script knows, so that a restart finds it. */
  async save(change: Partial<Saved>): Promise<void> {
    this.note(change)
    await this.until(this.io.state(this.#saved))
  }

  /** A text with its variables replaced. */
  text(text: string): string {
    const { answer, exit, out, words, done } = this.#saved
    const variables: Variables = {
      answer,
      exit,
      out,
      words,
      n: String(done + 1),
      run: this.request.run,
      conversation: this.request.conversationId,
    }
    return (
      expand(text, variables)
      ?? this.fail(`line ${this.#commands[this.at]!.line}: the text is too long once its variables are replaced`)
    )
  }

  /** Takes in words said into the turn. */
  hear(messages: readonly { messageId?: string; text: string }[]): void {
    const fresh = messages.filter(({ messageId }) => messageId === undefined || !this.#known.has(messageId))
    if (fresh.length === 0) return
    for (const { messageId } of fresh) if (messageId !== undefined) this.#known.add(messageId)
    const heard = [...this.#saved.heard, ...fresh.map(({ text }) => text)].slice(-100)
    this.note({ heard, words: kept(fresh.map(({ text }) => text).join('\n')) })
  }

  /** Waits for words said into the turn; without `ms` for ever. */
  async words(ms?: number): Promise<void> {
    const { heard } = this.#saved
    if (heard.length > 0) return this.note({ words: kept(heard.join('\n')), heard: [] })
    const left = ms === undefined ? undefined : await this.left(ms)
    const words = left === 0 ? undefined : await this.until(this.io.waitWords(left))
    this.goOn()
    if (words?.messageId !== undefined) this.#known.add(words.messageId)
    this.note({ words: kept(words?.text ?? ''), heard: [] })
  }

  /** Counts the command as done; saved at once, but a quiet one only now and then. */
  async settle({ verb, times = 1 }: CommandPlace): Promise<void> {
    const { until, intent, ...known } = this.#saved
    const done = known.done + 1
    const over = done >= times
    this.#saved = { ...known, at: over ? known.at + 1 : known.at, done: over ? 0 : done }
    if (!over && verb.quiet && done % QUIET_REPEATS !== 0) return
    await this.save({})
    this.#replay = new Replay([])
    this.#replies = []
  }

  // Going on and ending -----------------------------------------------------------------------------------------------

  /** Throws when the turn is to stop. */
  goOn(): void {
    if (this.io.signal.aborted) throw STOPPED
  }

  /** Waits where nothing is in hand; throws when the turn goes on elsewhere, or is to stop. */
  async gap(ms?: number): Promise<void> {
    if (await this.until(this.io.gap(ms))) throw MOVED
    this.goOn()
  }

  /** Waits for work, but never past a stop. */
  until<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.io
    return new Promise((resolve, reject) => {
      const stop = () => reject(STOPPED)
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
    })
  }

  /** Waits so long, also across a restart. */
  async wait(ms: number): Promise<void> {
    const left = await this.left(ms)
    if (left > 0) await this.gap(left)
  }

  /** Waits so long, but never past a stop. */
  async sleep(ms: number): Promise<void> {
    if (ms > 0) await this.until(delay(ms, undefined, { signal: this.io.signal }))
  }

  /** What is left of a wait, also after a restart in the middle of it. */
  async left(ms: number): Promise<number> {
    if (this.#saved.until === undefined && ms > 0) await this.save({ until: Date.now() + ms })
    return Math.min(ms, Math.max(0, (this.#saved.until ?? 0) - Date.now()))
  }

  /** Ends the turn as failed. */
  fail(message: string, code?: TurnFailure['code']): never {
    throw new End({ message, ...(code && { code }) })
  }

  // Frames, calls and cards
  // ---------------------------------------------------------------------------------------------

  /** Frames that are in the log once each, whatever restarts come between. */
  *once(...frames: readonly Frame[]): Generator<Frame, void> {
    const passed = new Map<string, number>()
    for (const frame of frames) {
      const before = passed.get(frame.kind) ?? 0
      passed.set(frame.kind, before + 1)
      if (this.#replay.count(frame.kind) <= before) yield frame
    }
  }

  /** Says a text, word by word. */
  async *say(text: string): ScriptFrames {
    const past = this.#replay.prose()
    this.note({ spoken: this.#saved.spoken + text.length })
    if (past.ended) return
    for (const piece of wordPieces(unsaid(text, past.text))) {
      this.goOn()
      yield { kind: 'delta', text: piece }
    }
    yield { kind: 'text_end' }
  }

  /** The permission mode from here on. */
  mode(mode: PermissionMode): void {
    this.note({ mode })
    this.io.mode(mode)
  }

  /** Makes a tool call, unless the log or the tree tells that it was made before a restart. */
  async *call(use: ToolUse): AsyncGenerator<Frame, Outcome> {
    return exitOf(yield* this.#called(use))
  }

  async *#called(use: ToolUse): AsyncGenerator<Frame, Outcome> {
    const id = this.callId
    const past = this.#replay.call(id)
    if (past?.state === 'finished') return past
    const held = past?.state === 'held' || this.#replies.some(({ card }) => card.kind === 'permission')
    const intent = this.#saved.intent?.id === id && !held ? this.#saved.intent : undefined
    const stampOf = async (path: string) => (await this.until(this.io.stamp(path))) ?? ''
    const stamps = use.changes && (await Promise.all(use.changes.map(stampOf)))
    if (intent && use.once) return yield* this.close(id, use, past !== undefined, false, INTERRUPTED)
    if (intent && stamps?.some((stamp, at) => stamp !== intent.stamps[at])) {
      return yield* this.close(id, use, past !== undefined, true, 'made before the restart')
    }
    if (!intent && (use.once || stamps)) await this.save({ intent: { id, stamps: stamps ?? [] } })
    return this.until(this.io.tool(use.name, use.input, id))
  }

  /** Closes a call that the engine does not make, and opens it when the log does not know it. */
  async *close(id: string, use: ToolUse, known: boolean, ok: boolean, text: string): AsyncGenerator<Frame, Outcome> {
    const { name, category, target } = use
    if (!known) yield { kind: 'tool_call', id, name, category, status: 'in_progress', target: target.slice(0, 200) }
    yield { kind: 'tool_call_update', id, status: ok ? 'completed' : 'failed', content: [{ type: 'text', text }] }
    return { ok, text }
  }

  /** A call that cannot be made here: it fails with its sentence and the script goes on. */
  async *without(use: ToolUse, sentence: string): ScriptFrames {
    const id = this.callId
    const past = this.#replay.call(id)
    if (past?.state !== 'finished') yield* this.close(id, use, past !== undefined, false, sentence)
    this.note({ out: sentence })
  }

  /** The id of the call that the command in hand makes: the same after a restart. */
  get callId(): string {
    const { at, done } = this.#saved
    return `${roundMark(this.request)}c${at + 1}${this.#commands[at]!.times === undefined ? '' : `.${done + 1}`}`
  }

  /** Puts a card up and gives its answer, or the one it had before a restart. */
  async raise(draft: CardDraft): Promise<CardReply | undefined> {
    const past = this.#replay.card(draft.kind) ?? this.#replies.find(({ card }) => card.kind === draft.kind)
    if (past) return past.reply
    const reply = await this.until(this.io.raise(draft))
    this.goOn()
    return reply
  }
}
