import { roundMark, type OfferedTool, type SubagentStep, type TurnIo, type TurnRequest } from '../adapter.js'
import { shortText } from '../../outputs/head-and-tail.js'
import type { Frame, ProviderId } from '../../turn/frames/frames.js'
import type { ModelAnswer } from './answer.js'
import { ASK_AGAIN, askModel, type AskAgain } from './ask.js'
import { runCalls, offeredName } from './calls.js'
import {
  CHARACTERS_A_TOKEN,
  COMPACT_AT,
  compacted,
  isShorter,
  measured,
  type Measured,
  type Summarized,
} from './compaction.js'
import { endsInText, followUp, remarkOn, uncutParts } from './endings.js'
import { FastMode } from './fast-mode.js'
import { ServerFault } from './faults.js'
import { INSTRUCTIONS, KEEP_ABOVE_ALL, SUMMARIZE } from './instructions.js'
import { LiveSession } from './live-session.js'
import type { ModelCall, ModelPrompt } from '../../../../sdk/node/models/model-call.js'
import type { ModelShield, ShieldedProvider } from './model-shield.js'
import { HeardLimits } from './heard-limits.js'
import { askedToCompact } from './opening.js'
import { takenTokens, waitForPace, type RequestPace, type RequestPaces } from './pace.js'
import { modelFetch, type AnswerLimits } from './model-fetch.js'
import { failTurn, NativeOver } from './over.js'
import { NO_PICTURES, promptOf, showsPictures } from './prompt.js'
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
  /** What servers allow by the minute; left out: nothing is waited for. */
  readonly paces?: RequestPaces
  readonly again?: AskAgain
  readonly limits?: AnswerLimits
  readonly mostRounds?: number
}

const MOST_ROUNDS = 500
/** The assumed context window of a server that reports none. */
const UNKNOWN_WINDOW = 1_000_000
/** Why a session is compacted: automatically, because the server refused its length, or a person asked for it. */
type CompactTrigger = 'auto' | 'too-long' | 'manual'
/** The least that messages may take, in tokens, whatever the window. */
const LEAST_ROOM = 600
/** How often a request that the server refuses as too long is made shorter. */
const MOST_SHORTER = 3
/** The part of what a window holds that one result may take. */
const RESULT = 0.2
/** The part that the instructions of the code may take. */
const PROJECT = 0.15
/** The part of a request that a server takes which refused it and does not say how much it takes. */
const ASSUMED = 0.7
const TOLD_WINDOW = /\b(?:maximum|max|limit|at most)\b[^\n]{0,60}?\b(\d{4,8})\b/i

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
  readonly #pace: RequestPace | undefined
  readonly #fastMode: FastMode
  /** From so many tokens on the session is compacted. */
  #most = UNKNOWN_WINDOW * COMPACT_AT
  /** How many tokens the server counts where one is estimated. */
  #factor = 1
  /** The estimated tokens of instructions and tools. */
  #overhead = 0

  constructor(provider: ProviderId, target: NativeTarget, deps: NativeDeps, request: TurnRequest, io: TurnIo) {
    this.#provider = provider
    this.#target = target
    this.#deps = deps
    this.#request = request
    this.#io = io
    this.#fastMode = new FastMode(request)
    // The session of a subagent is never continued.
    const sessions = request.depth > 0 ? memorySessions() : deps.sessions
    this.#pace = deps.paces?.of(provider, target.account)
    this.#limits = target.limits ?? new HeardLimits(undefined, this.#pace)
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
    // Small windows get less of what came with the code.
    const { project = '' } = this.#request
    const brought = shortText(project, (wire.window ?? UNKNOWN_WINDOW) * CHARACTERS_A_TOKEN * PROJECT)
    this.#instructions = [instructions, brought, facts].filter(Boolean).join('\n\n')
    this.#wire = this.#shield ? { ...wire, model: this.#shield.over(wire.model) } : wire
    if (wire.pictures === false && showsPictures(this.#session.entries) && !this.#session.blind) {
      this.#session.blind = true
      yield NO_PICTURES
    }
    const { window = UNKNOWN_WINDOW, options } = wire
    this.#most = Math.min(window * COMPACT_AT, window - (options.maxOutputTokens ?? 0))
    this.#overhead = (this.#instructions.length + JSON.stringify(this.#tools).length) / CHARACTERS_A_TOKEN
    const keep = askedToCompact(this.#request)
    // Words that come meanwhile are work; those of a stopped turn are not taken up by a command.
    let commandOnly = keep !== undefined && !this.#session.hasTask
    if (keep !== undefined && commandOnly) yield* this.#compactFor(keep)
    for (;;) {
      const calls = commandOnly ? [] : this.#session.openCalls
      if (calls.length > 0) {
        yield* this.#run(calls)
        continue
      }
      if (!commandOnly && (await this.#io.gap())) throw new NativeOver('moved')
      this.#goOn()
      const heard = await this.#session.hear()
      const asked = this.#session.takeCompact()
      if (asked !== undefined) yield* this.#compact('manual', asked)
      commandOnly &&= !heard
      if (commandOnly || (!heard && this.#session.answered)) return
      yield* this.#round()
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
      most: Math.floor(this.#room * CHARACTERS_A_TOKEN * RESULT),
      ...(intent && { intent }),
    })
    session.intent = undefined
    await session.save()
    this.#goOn()
  }

  /** Asks the model once, and stores its answer. */
  async *#round(): AsyncGenerator<Frame, void> {
    const session = this.#session
    const most = this.#deps.mostRounds ?? MOST_ROUNDS
    if (session.round >= most)
      failTurn(`the model was asked ${most} times in this turn, which is the limit; send a message to continue`)
    if (this.#measured().tokens >= this.#most) yield* this.#compact('auto')
    const answer = yield* this.#answer()
    session.round++
    session.answers++
    session.usage = sumTokens(session.usage, answer.usage)
    // Before the answer is stored: a kill between both loses no tokens.
    yield* this.#usage()
    yield* this.#fastMode.told(answer)
    yield* this.#told()
    const more = followUp(answer, session.entries, this.#request.run)
    await session.keep(
      {
        kind: 'answer',
        run: this.#request.run,
        by: this.#by,
        usage: answer.usage,
        parts: this.#numbered(uncutParts(answer)),
      },
      // In one step with the answer: after a restart it would look like the last one.
      ...(more ? [more] : []),
    )
    this.#spoken = endsInText(answer) ? new Spoken({ text: '', thoughts: '', open: true }) : spokenIn([])
    await session.save()
    yield* this.#meter()
    if (answer.finish === 'refused') failTurn('the model declined to continue')
    const text = more ? undefined : remarkOn(answer)
    if (text !== undefined) yield { kind: 'notice', level: 'warning', text }
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

  /** Asks the model; if the server refuses pictures or the length, asks once more without them, or compacted. */
  async *#answer(): AsyncGenerator<Frame, ModelAnswer> {
    for (let shorter = 0; ;) {
      await this.#admit()
      yield* waitForPace(this.#pace, takenTokens(this.#session.entries), this.#io)
      const prompt = await this.#prompt(this.#session.entries)
      try {
        return yield* this.#ask(prompt, this.#spoken, parts => this.#cut(parts))
      } catch (error) {
        if (!(error instanceof ServerFault)) throw error
        if (error.details.code === 'context-full' && shorter++ < MOST_SHORTER) {
          this.#learn(error.message)
          if (yield* this.#compact('too-long')) continue
        }
        if (!(yield* this.#goesBlind(error, this.#session.entries))) throw error
      }
    }
  }

  /** Leaves pictures out from now on if a server refused them; returns whether it did. */
  *#goesBlind({ message, details }: ServerFault, sent: readonly SessionEntry[]): Generator<Frame, boolean> {
    const refused = (details.status ?? 0) >= 400 && /image|picture|vision|multimodal/i.test(message)
    if (!showsPictures(sent) || !refused || this.#session.blind) return false
    this.#session.blind = true
    yield NO_PICTURES
    return true
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
      pictures: !this.#session.blind && this.#wire?.pictures !== false,
      picturesInResults: this.#target.protocol === 'anthropic',
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

  /** The tokens that messages may take, as they are estimated. */
  get #room(): number {
    return Math.max(LEAST_ROOM, this.#most / this.#factor - this.#overhead)
  }

  #measured(): Measured {
    const now = measured(this.#session.entries, this.#overhead, this.#factor)
    this.#factor = now.factor
    return now
  }

  /** How full the context is, where its size is known. */
  *#meter(): Generator<Frame> {
    const window = this.#wire?.window
    if (window !== undefined) yield { kind: 'context_usage', tokens: this.#measured().tokens, contextWindow: window }
  }

  /** Learns from a refusal how much the server takes. */
  #learn(message: string): void {
    const { tokens } = this.#measured()
    const told = Number(TOLD_WINDOW.exec(message)?.[1] ?? NaN)
    if (told > 0 && told < tokens * 2) {
      this.#most = Math.min(this.#most, told * COMPACT_AT)
      // It counts more tokens than estimated: what it refused has more than it takes.
      if (tokens < told) this.#factor *= told / tokens
    } else this.#most = Math.min(this.#most, tokens * ASSUMED)
  }

  /** Compacts the session because a person asked for it. */
  async *#compactFor(keep: string): AsyncGenerator<Frame, void> {
    const shorter = yield* this.#compact('manual', keep)
    const said = shorter
      ? 'The conversation was made shorter. What was asked and decided is kept as far as there is room.'
      : 'There is nothing to leave out: the conversation is short.'
    yield* this.#spoken.say(said)
    yield* this.#spoken.end()
    this.#spoken = spokenIn([])
  }

  /** Compacts the session; returns whether it became shorter. */
  async *#compact(trigger: CompactTrigger, keep = ''): AsyncGenerator<Frame, boolean> {
    const session = this.#session
    const before = this.#measured().tokens
    const asked = trigger === 'manual'
    const shorter = yield* compacted(session.entries, {
      room: this.#room,
      asked,
      summarize: piece => this.#summary(piece, keep),
    })
    if (!shorter || !isShorter(shorter.entries, session.entries, asked)) return false
    // Earlier counts do not apply to the compacted session.
    await session.replace(
      shorter.entries.map(entry => (entry.kind === 'answer' ? { ...entry, usage: NO_TOKENS } : entry)),
    )
    await session.save()
    const { detail } = shorter
    yield { kind: 'compact', trigger, preTokens: before, postTokens: this.#measured().tokens, detail }
    yield* this.#meter()
    return true
  }

  async *#summary(piece: readonly SessionEntry[], keep: string): AsyncGenerator<Frame, Summarized> {
    await this.#admit()
    const prompt = await this.#prompt(piece)
    const text = keep === '' ? SUMMARIZE : `${SUMMARIZE}\n${KEEP_ABOVE_ALL}${keep}`
    const asking = this.#ask([...prompt, { role: 'user', content: [{ type: 'text', text }] }], spokenIn([]))
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
        const told = value.parts.flatMap(part => (part.kind === 'text' ? [part.text] : [])).join('\n')
        return told.trim() ? { text: told } : { failed: 'the model wrote none', long: false }
      }
    } catch (error) {
      if (!(error instanceof ServerFault)) throw error
      if (yield* this.#goesBlind(error, piece)) return yield* this.#summary(piece, keep)
      const { code } = error.details
      // A key or money is missing: the next request fails too, and what there is to summarize stays for a later one.
      if (code !== undefined && code !== 'context-full') throw error
      return { failed: error.message, long: code === 'context-full' }
    }
  }
}
