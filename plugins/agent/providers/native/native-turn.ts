import { roundMark, type OfferedTool, type SubagentStep, type TurnIo, type TurnRequest } from '../adapter.js'
import type { FastModeFrame, Frame, ProviderId } from '../../turn/frames/frames.js'
import type { ModelAnswer } from './answer.js'
import { ASK_AGAIN, askModel, type AskAgain } from './ask.js'
import { runCalls, offeredName } from './calls.js'
import { COMPACT_AT, inBrief, splitFor, summaryOf, tokensOf, withoutOldResults, type Split } from './compaction.js'
import { ServerFault } from './faults.js'
import { INSTRUCTIONS, SUMMARIZE } from './instructions.js'
import { LiveSession } from './live-session.js'
import type { ModelCall, ModelPrompt } from './model.js'
import type { ModelShield, ShieldedProvider } from './model-shield.js'
import { HeardLimits } from './heard-limits.js'
import { modelFetch, type AnswerLimits } from './model-fetch.js'
import { failTurn, NativeOver } from './over.js'
import { promptOf } from './prompt.js'
import {
  nativeSessionOf,
  NO_TOKENS,
  memorySessions,
  sumTokens,
  tokensBeyond,
  type NativeSessions,
  type SessionEntry,
  type TokenCount,
} from './session.js'
import { Spoken, spokenIn } from './spoken.js'
import type { NativeTarget } from './target.js'
import { modelWire, type ModelWire } from './wire.js'

/** A request to a model that is about to be made. */
export interface ModelStep {
  readonly conversationId: string
  readonly run: string
  readonly provider: ProviderId
  readonly model: string
  /** Left out: the turn's own agent. */
  readonly subagent?: SubagentStep
  /** The usage that no frame of the turn contains yet. */
  readonly usage: TokenCount
}

/** The dependencies of turns over model servers. */
export interface NativeDeps {
  readonly sessions: NativeSessions
  /** Called before each request to a model; a refusal ends the turn with its message. */
  readonly admit?: (step: ModelStep) => Promise<{ ok: true } | { ok: false; message: string }>
  /** The system prompt, the same in every request of a conversation; left out: the sandbox's own. */
  readonly instructions?: (request: TurnRequest) => Promise<string>
  /** What stands between the turn and its model; left out: nothing does. */
  readonly shield?: (provider: ShieldedProvider) => ModelShield
  readonly again?: AskAgain
  readonly limits?: AnswerLimits
  readonly mostRounds?: number
}

const MOST_ROUNDS = 500
/** The assumed context window of a server that reports none. */
const UNKNOWN_WINDOW = 1_000_000
/** Why a session is compacted: automatically, or because the server refused its length. */
type CompactTrigger = 'auto' | 'too-long'
const NO_SUMMARY = 'Earlier messages were left out: they did not fit.'

/** One turn of a model: sends requests, runs the tools that it calls and returns their results, until it calls none. */
export class NativeTurn {
  readonly #provider: ProviderId
  readonly #target: NativeTarget
  readonly #deps: NativeDeps
  readonly #request: TurnRequest
  readonly #io: TurnIo
  readonly #session: LiveSession
  readonly #album = new Map<string, string>()
  /** When the newest usage frame was made. */
  #toldAt = performance.now()
  #spoken = spokenIn([])
  #offered: readonly OfferedTool[] = []
  #tools: ModelCall['tools']
  #instructions = INSTRUCTIONS
  #wire: ModelWire | undefined
  readonly #shield: ModelShield | undefined
  readonly #limits: HeardLimits
  #fastMode: FastModeFrame['state'] | undefined

  constructor(provider: ProviderId, target: NativeTarget, deps: NativeDeps, request: TurnRequest, io: TurnIo) {
    this.#provider = provider
    this.#target = target
    this.#deps = deps
    this.#request = request
    this.#io = io
    // The session of a subagent is never continued.
    const sessions = request.depth > 0 ? memorySessions() : deps.sessions
    this.#limits = target.limits ?? new HeardLimits()
    const { conversationId } = request
    this.#shield = deps.shield?.({ conversationId, provider, account: target.account, local: target.local })
    this.#session = new LiveSession(nativeSessionOf(request.conversationId), sessions, request, io)
  }

  /** Runs the turn until the model calls no more tools. */
  async *work(): AsyncGenerator<Frame, void> {
    const { effort, thinking, fast, since = [] } = this.#request
    const settings = {
      ...(effort !== undefined && { effort }),
      ...(thinking !== undefined && { thinking }),
      ...(fast !== undefined && { fast }),
    }
    const [{ cutOff }, offered, wire, instructions] = await Promise.all([
      this.#session.open(),
      this.#io.offered(),
      modelWire(this.#target, this.#model, settings, this.#deps.limits, this.#target.send ?? this.#send()),
      this.#request.instructions ?? this.#deps.instructions?.(this.#request) ?? INSTRUCTIONS,
    ])
    if (cutOff) this.#spoken = spokenIn(since)
    this.#offered = offered
    this.#tools = offered.map(({ name, description, input }) => ({
      type: 'function',
      name,
      description,
      inputSchema: input,
    }))
    // A prompt of a person's is the whole one.
    const facts = this.#request.instructions === undefined ? this.#request.facts : undefined
    this.#instructions = facts === undefined ? instructions : `${instructions}\n\n${facts}`
    this.#wire = this.#shield ? { ...wire, model: this.#shield.over(wire.model) } : wire
    for (;;) {
      const calls = this.#session.openCalls
      if (calls.length > 0) {
        yield* this.#run(calls)
        continue
      }
      if (await this.#io.gap()) throw new NativeOver('moved')
      this.#goOn()
      if (!(await this.#session.hear()) && this.#session.answered) return
      yield* this.#round(wire)
    }
  }

  /** The frames at the end of a turn, however it ends. */
  *end(): Generator<Frame> {
    yield* this.#spoken.close()
    yield* this.#usage()
    yield* this.#told()
    yield* this.#shield?.notice() ?? []
  }

  /** What the answers of a turn's own agent said of limits. */
  *#told(): Generator<Frame> {
    if (this.#request.depth === 0) yield* this.#limits.frames()
  }

  #send(): typeof fetch {
    const { headers } = this.#target
    return modelFetch(headers, this.#deps.limits, (said, status) => this.#limits.hear(said, status))
  }

  /** Whether the answer came in the fast mode that was asked for. */
  *#speed({ fast }: ModelAnswer): Generator<Frame> {
    if (!this.#request.fast || this.#request.depth > 0) return
    const state = fast ? 'on' : 'off'
    if (state === this.#fastMode) return
    this.#fastMode = state
    const reason =
      fast === undefined ? 'the server does not say that it answered faster' : 'it answered at its usual speed'
    yield { kind: 'fast_mode', state, ...(state === 'off' && { reason }) }
  }

  /** The usage that no frame contains yet. */
  *#usage(): Generator<Frame> {
    const { usage, answers, told } = this.#session
    // A request that a kill made necessary once more is counted once.
    if (answers <= told.answers) return
    const { input, output, cacheRead, cacheWrite } = tokensBeyond(usage, told.usage)
    const durationMs = Math.round(performance.now() - this.#toldAt)
    this.#session.told = { usage, answers }
    this.#toldAt += durationMs
    yield {
      kind: 'usage',
      inputTokens: input,
      outputTokens: output,
      cacheReadTokens: cacheRead,
      cacheCreationTokens: cacheWrite,
      numTurns: answers - told.answers,
      durationMs,
    }
  }

  get #model(): string {
    return this.#request.model || this.#target.default
  }

  get #by(): string {
    return `${this.#target.protocol}:${this.#model}`
  }

  #goOn(): void {
    if (this.#io.signal.aborted) throw new NativeOver('stopped')
  }

  async *#run(calls: LiveSession['openCalls']): AsyncGenerator<Frame, void> {
    const session = this.#session
    const { intent } = session
    yield* runCalls(calls, {
      io: this.#io,
      request: this.#request,
      offered: this.#offered,
      keep: entry => session.keep(entry),
      intend: intended => session.intend(intended),
      ...(intent && { intent }),
    })
    session.intent = undefined
    await session.save()
    this.#goOn()
  }

  /** Asks the model once, and stores its answer. */
  async *#round(wire: ModelWire): AsyncGenerator<Frame, void> {
    const session = this.#session
    const most = this.#deps.mostRounds ?? MOST_ROUNDS
    if (session.round >= most)
      failTurn(`the model was asked ${most} times in this turn, which is the limit; send a message to continue`)
    if (session.tokens >= this.#window * COMPACT_AT) yield* this.#compact('auto', this.#window)
    const answer = yield* this.#answer()
    session.round++
    session.answers++
    session.usage = sumTokens(session.usage, answer.usage)
    // Before the answer is stored: a kill between both loses no tokens.
    yield* this.#usage()
    yield* this.#speed(answer)
    yield* this.#told()
    await session.keep({
      kind: 'answer',
      run: this.#request.run,
      by: this.#by,
      usage: answer.usage,
      parts: this.#numbered(answer.parts),
    })
    this.#spoken = spokenIn([])
    await session.save()
    if (wire.window !== undefined) yield { kind: 'context_usage', tokens: session.tokens, contextWindow: wire.window }
    yield* this.#remark(answer)
  }

  /** Gives every call an id that no other call of the run has. */
  #numbered(parts: ModelAnswer['parts']): Extract<SessionEntry, { kind: 'answer' }>['parts'] {
    let nth = 0
    const mark = roundMark(this.#request)
    return parts.map(part =>
      part.kind === 'call'
        ? { ...part, name: offeredName(this.#offered, part.name), frame: `${mark}n${this.#session.round}.${++nth}` }
        : part,
    )
  }

  *#remark({ finish, parts }: ModelAnswer): Generator<Frame> {
    if (finish === 'refused') failTurn('the model declined to continue')
    if (parts.some(({ kind }) => kind === 'call')) return
    const text =
      finish === 'length'
        ? 'the answer ends here because the model reached its limit of tokens for one answer'
        : parts.some(({ kind }) => kind === 'text')
          ? undefined
          : 'the model sent an empty answer'
    if (text) yield { kind: 'notice', level: 'warning', text }
  }

  /** Asks the model; if the server refuses pictures or the length, asks once more without them, or compacted. */
  async *#answer(): AsyncGenerator<Frame, ModelAnswer> {
    for (let shortened = false; ;) {
      await this.#admit()
      const prompt = await this.#prompt(this.#session.entries)
      try {
        return yield* this.#ask(prompt, this.#spoken, parts => this.#cut(parts))
      } catch (error) {
        if (!(error instanceof ServerFault)) throw error
        const { code, status = 0 } = error.details
        if (code === 'context-full' && !shortened) {
          shortened = yield* this.#compact('too-long', Math.min(this.#window, this.#session.tokens))
          if (shortened) continue
        }
        const shown = this.#session.entries.some(entry => entry.kind === 'words' && entry.pictures)
        if (!shown || this.#session.blind || status < 400 || !/image|picture|vision|multimodal/i.test(error.message))
          throw error
        this.#session.blind = true
        yield { kind: 'notice', level: 'warning', text: 'the model accepts no pictures: they are left out' }
      }
    }
  }

  #ask(
    prompt: ModelPrompt,
    spoken: Spoken,
    cut?: (parts: ModelAnswer['parts']) => Promise<void>,
  ): AsyncGenerator<Frame, ModelAnswer> {
    const { model, options } = this.#wire!
    const call: ModelCall = { ...options, prompt, ...(this.#tools?.length && { tools: this.#tools }) }
    const again = this.#deps.again ?? ASK_AGAIN
    return askModel({ model, call, io: this.#io, spoken, again, ...(cut && { cut }) })
  }

  #prompt(entries: readonly SessionEntry[]): Promise<ModelPrompt> {
    return promptOf(entries, {
      instructions: this.#instructions,
      by: this.#by,
      pictures: !this.#session.blind,
      marksCache: this.#wire!.marksCache,
      album: this.#album,
    })
  }

  async #admit(): Promise<void> {
    const { conversationId, run, subagent } = this.#request
    const { usage, told } = this.#session
    const verdict = await this.#deps.admit?.({
      conversationId,
      run,
      provider: this.#provider,
      model: this.#model,
      ...(subagent && { subagent }),
      usage: tokensBeyond(usage, told.usage),
    })
    if (verdict?.ok === false) failTurn(verdict.message)
    this.#goOn()
  }

  /** Stores an answer that a stop cut off, so that the next turn has it. */
  async #cut(parts: ModelAnswer['parts']): Promise<void> {
    const said = parts.filter(part => part.kind !== 'call').filter(({ kind }) => kind === 'text')
    if (said.length === 0) return
    const { run } = this.#request
    await this.#session.keep({ kind: 'answer', run, by: this.#by, usage: NO_TOKENS, parts: said, cut: true })
  }

  get #window(): number {
    return this.#wire?.window ?? UNKNOWN_WINDOW
  }

  /** Compacts the session; returns whether it became shorter. */
  async *#compact(trigger: CompactTrigger, window: number): AsyncGenerator<Frame, boolean> {
    const session = this.#session
    const before = session.tokens
    const estimate = tokensOf(session.entries)
    // Servers count tokens differently: estimates are scaled by the server's last count.
    const room = (window * estimate) / Math.max(1, before)
    const dropped = withoutOldResults(session.entries, room)
    const split = dropped ? undefined : splitFor(session.entries, room)
    const shorter = dropped ?? (split && [summaryOf(split, yield* this.#summary(split, trigger)), ...split.tail])
    if (!shorter || tokensOf(shorter) > estimate * 0.9) return false
    // Earlier counts do not apply to the compacted session.
    await session.replace(shorter.map(entry => (entry.kind === 'answer' ? { ...entry, usage: NO_TOKENS } : entry)))
    await session.save()
    yield { kind: 'compact', trigger, preTokens: before, postTokens: session.tokens }
    return true
  }

  async *#summary({ head }: Split, trigger: CompactTrigger): AsyncGenerator<Frame, string> {
    await this.#admit()
    const prompt = await this.#prompt(trigger === 'too-long' ? inBrief(head) : head)
    const asking = this.#ask([...prompt, { role: 'user', content: [{ type: 'text', text: SUMMARIZE }] }], spokenIn([]))
    try {
      for (;;) {
        const { value, done } = await asking.next()
        if (!done) {
          if (value.kind === 'provider_retry') yield value
          continue
        }
        this.#session.usage = sumTokens(this.#session.usage, value.usage)
        this.#session.answers++
        yield* this.#usage()
        await this.#session.save()
        const text = value.parts.flatMap(part => (part.kind === 'text' ? [part.text] : [])).join('\n')
        return text.trim() || NO_SUMMARY
      }
    } catch (error) {
      if (error instanceof ServerFault) return NO_SUMMARY
      throw error
    }
  }
}
