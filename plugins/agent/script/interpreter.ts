import type { CardDraft, TurnFailure, TurnIo, TurnRequest } from '../adapter.js'
import type { CardReply, Frame, PermissionMode } from '../frames.js'
import { ABSENT, type CardAction, type Command, type PlainAction, type ToolAction } from './command.js'
import { INTERRUPTED, Replay, unsaid } from './replay.js'
import { type Use, useOf } from './use.js'
import { expand, type Variables } from './variables.js'

/** What is saved after every command: enough to go on with the first one that is not finished. */
interface Saved {
  readonly version: 1
  /** The command in hand, and how often it was done. */
  readonly at: number
  readonly done: number
  readonly answer: string
  readonly exit: string
  readonly out: string
  readonly words: string
  /** Words heard that no `wait words` has taken. */
  readonly heard: readonly string[]
  readonly mode: PermissionMode
  /** Characters said and thought. */
  readonly spoken: number
  readonly usage?: { readonly input: number; readonly output: number; readonly costUsd?: number }
  /** When the wait in hand ends. */
  readonly until?: number
  /** The call in hand that must not have its effect twice, and what the paths it changes held before it. */
  readonly intent?: { readonly id: string; readonly stamps: readonly string[] }
}

interface Outcome {
  readonly ok: boolean
  readonly text: string
  readonly exit?: number
}

type Step = AsyncGenerator<Frame, void>

const STOPPED = Symbol('stopped')
const MOVED = Symbol('moved')
const MOST_KEPT = 64 * 1024
const QUIET_REPEATS = 64
const PIECE = 2048

class End {
  readonly failure?: TurnFailure
  constructor(failure?: TurnFailure) {
    if (failure) this.failure = failure
  }
}

/** Whether a state is one that this interpreter saved. */
export const isSaved = (state: unknown): state is Saved =>
  typeof state === 'object' && state !== null && (state as Partial<Saved>).version === 1

/** One run of a script: the place of the model in the tool loop. */
export class Interpreter {
  readonly #commands: readonly Command[]
  readonly #request: TurnRequest
  readonly #io: TurnIo
  readonly #known = new Set<string>()
  #replay: Replay
  #replies: NonNullable<NonNullable<TurnRequest['resume']>['replies']>
  #saved: Saved

  constructor(commands: readonly Command[], request: TurnRequest, io: TurnIo) {
    this.#commands = commands
    this.#request = request
    this.#io = io
    this.#replay = new Replay(request.since ?? [])
    this.#replies = request.resume?.replies ?? []
    this.#saved = isSaved(request.state) ? request.state : {
      version: 1, at: 0, done: 0, spoken: 0, mode: request.permissionMode, heard: [],
      answer: '', exit: '', out: '', words: '',
    }
  }

  /** The frames of the turn, from the first command that is not finished. */
  async *run(): Step {
    let end = new End()
    try {
      yield* this.#commandsLeft()
    } catch (error) {
      if (error === MOVED) return
      if (error instanceof End) end = error
      else if (error !== STOPPED && !this.#io.signal.aborted) throw error
    }
    if (!this.#replay.has('usage')) yield this.#usage()
    if (end.failure && !this.#replay.has('error')) yield { kind: 'error', ...end.failure }
  }

  async *#commandsLeft(): Step {
    if (this.#saved.mode !== this.#request.permissionMode) this.#io.mode(this.#saved.mode)
    this.#hear(this.#replay.heard)
    while (this.#saved.at < this.#commands.length) {
      const command = this.#commands[this.#saved.at]!
      if (this.#saved.done < (command.times ?? 1)) {
        await this.#gap()
        this.#hear(this.#io.takeWords())
        yield* this.#step(command.action)
      }
      await this.#settle(command)
    }
  }

  /** Counts the command as done; saved at once, but repeated words only now and then: the log tells the rest. */
  async #settle({ action, times = 1 }: Command): Promise<void> {
    const { until, intent, ...kept } = this.#saved
    const done = kept.done + 1
    const over = done >= times
    this.#saved = { ...kept, at: over ? kept.at + 1 : kept.at, done: over ? 0 : done }
    if (!over && (action.verb === 'say' || action.verb === 'think') && done % QUIET_REPEATS !== 0) return
    await this.#save({})
    this.#replay = new Replay([])
    this.#replies = []
  }

  async #save(change: Partial<Saved>): Promise<void> {
    this.#saved = { ...this.#saved, ...change }
    await this.#until(this.#io.state(this.#saved))
  }

  #note(change: Partial<Saved>): void {
    this.#saved = { ...this.#saved, ...change }
  }

  /** Waits where nothing is in hand, unless the turn goes on elsewhere. */
  async #gap(ms?: number): Promise<void> {
    if (await this.#until(this.#io.gap(ms))) throw MOVED
    this.#goOn()
  }

  #goOn(): void {
    if (this.#io.signal.aborted) throw STOPPED
  }

  /** Waits for work, but never past a stop. */
  #until<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#io
    return new Promise((resolve, reject) => {
      const stop = () => reject(STOPPED)
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
    })
  }

  #hear(messages: readonly { messageId?: string; text: string }[]): void {
    const fresh = messages.filter(({ messageId }) => messageId === undefined || !this.#known.has(messageId))
    if (fresh.length === 0) return
    for (const { messageId } of fresh) if (messageId !== undefined) this.#known.add(messageId)
    const heard = [...this.#saved.heard, ...fresh.map(({ text }) => text)].slice(-100)
    this.#note({ heard, words: kept(fresh.map(({ text }) => text).join('\n')) })
  }

  #text(text: string): string {
    const { answer, exit, out, words, done, at } = this.#saved
    const variables: Variables = {
      answer, exit, out, words, n: String(done + 1), run: this.#request.run, conversation: this.#request.conversationId,
    }
    return expand(text, variables)
      ?? this.#fail(`line ${this.#commands[at]!.line}: the text is too long once its variables are replaced`)
  }

  #fail(message: string): never {
    throw new End({ message })
  }

  #usage(): Frame {
    const { usage, spoken } = this.#saved
    return {
      kind: 'usage',
      costUsd: usage?.costUsd ?? 0,
      inputTokens: usage?.input ?? Math.ceil(this.#request.prompt.length / 4),
      outputTokens: usage?.output ?? Math.ceil(spoken / 4),
      numTurns: 1,
    }
  }

  #step(action: Command['action']): Step {
    switch (action.verb) {
      case 'ask':
      case 'plan':
      case 'permit':
        return this.#card(action)
      case 'read':
      case 'list':
      case 'image':
      case 'write':
      case 'append':
      case 'edit':
      case 'delete':
      case 'move':
      case 'run':
      case 'todo':
        return this.#act(action)
      default:
        return this.#plain(action)
    }
  }

  async *#plain(action: PlainAction): Step {
    switch (action.verb) {
      case 'say':
        return yield* this.#say(this.#text(action.text))
      case 'think': {
        const text = this.#text(action.text)
        this.#note({ spoken: this.#saved.spoken + text.length })
        if (!this.#replay.thought()) yield { kind: 'thinking', text: kept(text) }
        return
      }
      case 'wait':
        return this.#wait(action.ms)
      case 'wait words':
        return this.#waitWords(action.ms)
      case 'mode':
        return this.#mode(action.mode)
      case 'usage':
        return this.#note({ usage: action })
      case 'expect': {
        const [text, { out }] = [this.#text(action.text), this.#saved]
        if (out.includes(text)) return
        return this.#fail(`expected "${text.slice(0, 200)}" in the output, found "${out.slice(0, 200)}"`)
      }
      case 'fail':
        return this.#fail(this.#text(action.text))
      case 'refuse':
        throw new End({ message: this.#text(action.text), code: action.code })
      case 'outage':
        if (this.#request.attempt > action.times) return
        throw new End({ message: 'the provider is out of service, as the script asked', code: 'provider-outage' })
      case 'stop':
        throw new End()
      case 'absent': {
        const { tool, category, needs } = ABSENT[action.name]
        const lack = `${action.name} is not available in this sandbox yet: it needs ${needs}; the script goes on`
        yield* this.#without({ name: tool, category, target: this.#text(action.text), input: {} }, lack)
      }
    }
  }

  async *#act(action: ToolAction): Step {
    const use = useOf(action, raw => this.#text(raw))
    const { ok, text, exit } = plain(yield* this.#tool(use))
    const tells = action.verb === 'read' || action.verb === 'list' || action.verb === 'run'
    if (tells || !ok) this.#note({ out: kept(chomp(text)) })
    if (action.verb === 'run') this.#note({ exit: String(exit ?? (ok ? 0 : 1)) })
    if (action.verb === 'todo' && ok && !this.#replay.has('todos')) {
      yield { kind: 'todos', items: action.items.map(item => ({ ...item, content: this.#text(item.content) })) }
    }
  }

  async *#say(text: string): Step {
    const past = this.#replay.prose()
    this.#note({ spoken: this.#saved.spoken + text.length })
    if (past.ended) return
    for (const piece of pieces(unsaid(text, past.text))) {
      this.#goOn()
      yield { kind: 'delta', text: piece }
    }
    yield { kind: 'text_end' }
  }

  /** Makes a tool call, unless the log or the tree tells that it was made before a restart. */
  async *#tool(use: Use): AsyncGenerator<Frame, Outcome> {
    const id = this.#callId()
    const past = this.#replay.call(id)
    if (past?.state === 'finished') return past
    const held = past?.state === 'held' || this.#replies.some(({ card }) => card.kind === 'permission')
    const intent = this.#saved.intent?.id === id && !held ? this.#saved.intent : undefined
    const stampOf = async (path: string) => (await this.#until(this.#io.stamp(path))) ?? ''
    const stamps = use.changes && (await Promise.all(use.changes.map(stampOf)))
    if (intent && use.once) return yield* this.#close(id, use, past !== undefined, false, INTERRUPTED)
    if (intent && stamps?.some((stamp, at) => stamp !== intent.stamps[at])) {
      return yield* this.#close(id, use, past !== undefined, true, 'made before the restart')
    }
    if (!intent && (use.once || stamps)) await this.#save({ intent: { id, stamps: stamps ?? [] } })
    return this.#until(this.#io.tool(use.name, use.input, id))
  }

  async *#close(id: string, use: Use, known: boolean, ok: boolean, text: string): AsyncGenerator<Frame, Outcome> {
    const { name, category, target } = use
    if (!known) yield { kind: 'tool_call', id, name, category, status: 'in_progress', target: target.slice(0, 200) }
    yield { kind: 'tool_call_update', id, status: ok ? 'completed' : 'failed', content: [{ type: 'text', text }] }
    return { ok, text }
  }

  async *#without(use: Use, sentence: string): Step {
    const id = this.#callId()
    const past = this.#replay.call(id)
    if (past?.state !== 'finished') yield* this.#close(id, use, past !== undefined, false, sentence)
    this.#note({ out: sentence })
  }

  #callId(): string {
    const { at, done } = this.#saved
    return `c${at + 1}${this.#commands[at]!.times === undefined ? '' : `.${done + 1}`}`
  }

  async *#card(action: CardAction): Step {
    const draft = this.#draft(action)
    if (!this.#request.attended) {
      this.#note({ answer: '' })
      const name = { question: 'Ask', plan: 'Plan', permission: 'Permit' }[draft.kind]
      const lack = 'nobody watches this turn, so no question can be put to anybody'
      return yield* this.#without({ name, category: 'think', target: '', input: {} }, lack)
    }
    const reply = await this.#raise(draft)
    if (draft.kind === 'question') {
      if (reply?.kind === 'question' && reply.cancelled) throw new End()
      return this.#note({ answer: kept(answerOf(reply, draft.questions[0]!.question)) })
    }
    if (draft.kind === 'permission') {
      return this.#note({ answer: reply?.kind === 'permission' ? reply.decision : 'deny' })
    }
    const { mode } = this.#saved
    const plan = reply?.kind === 'plan' ? reply : undefined
    if (plan?.approve) return this.#mode(mode === 'plan' ? 'bypassPermissions' : mode)
    yield* this.#say(plan?.feedback || 'The plan was not approved, so nothing more is done.')
    throw new End()
  }

  #draft(action: CardAction): CardDraft {
    if (action.verb === 'plan') return { kind: 'plan', text: this.#text(action.text) }
    if (action.verb === 'permit') {
      return { kind: 'permission', toolName: this.#text(action.tool), description: this.#text(action.sentence) }
    }
    const options = action.options.map(({ label, description }) => ({
      label: this.#text(label), description: this.#text(description),
    }))
    const question = { question: this.#text(action.question), header: 'Question', multiSelect: action.several, options }
    return { kind: 'question', questions: [question] }
  }

  async #raise(draft: CardDraft): Promise<CardReply | undefined> {
    const past = this.#replay.card(draft.kind) ?? this.#replies.find(({ card }) => card.kind === draft.kind)
    if (past) return past.reply
    const reply = await this.#until(this.#io.raise(draft))
    this.#goOn()
    return reply
  }

  #mode(mode: PermissionMode): void {
    this.#note({ mode })
    this.#io.mode(mode)
  }

  async #wait(ms: number): Promise<void> {
    const left = await this.#left(ms)
    if (left > 0) await this.#gap(left)
  }

  async #waitWords(ms?: number): Promise<void> {
    const { heard } = this.#saved
    if (heard.length > 0) return this.#note({ words: kept(heard.join('\n')), heard: [] })
    const left = ms === undefined ? undefined : await this.#left(ms)
    const words = left === 0 ? undefined : await this.#until(this.#io.waitWords(left))
    this.#goOn()
    if (words?.messageId !== undefined) this.#known.add(words.messageId)
    this.#note({ words: kept(words?.text ?? ''), heard: [] })
  }

  /** What is left of a wait, also after a restart in the middle of it. */
  async #left(ms: number): Promise<number> {
    if (this.#saved.until === undefined && ms > 0) await this.#save({ until: Date.now() + ms })
    return Math.min(ms, Math.max(0, (this.#saved.until ?? 0) - Date.now()))
  }
}

/** The outcome of a call without the note by which a command's result tells its exit. */
const plain = ({ ok, text, exit }: Outcome): Outcome => {
  const note = ok ? undefined : /\n?\[exit (\d{1,3})\]$/.exec(text.slice(-16))
  if (!note) return { ok, text, ...(exit !== undefined && { exit }) }
  return { ok, text: text.slice(0, -note[0].length), exit: Number(note[1]) }
}

const answerOf = (reply: CardReply | undefined, question: string): string => {
  const answers = reply?.kind === 'question' ? reply.answers : undefined
  const answer = answers && Object.hasOwn(answers, question) ? answers[question]! : ''
  return typeof answer === 'string' ? answer : answer.join(', ')
}

/** The text without the line ends behind it, as a shell gives a command's output. */
const chomp = (text: string): string => {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--
  return text.slice(0, end)
}

const kept = (text: string): string => (text.length > MOST_KEPT ? text.slice(0, MOST_KEPT).toWellFormed() : text)

/** Words with the blanks that follow them; one without a blank in it is cut where a frame would grow too large. */
function* pieces(text: string): Generator<string> {
  for (const [word] of text.matchAll(/\S+\s*|\s+/g)) {
    for (let at = 0; at < word.length; ) {
      let end = Math.min(at + PIECE, word.length)
      if (end < word.length && /[\uD800-\uDBFF]/.test(word[end - 1]!)) end--
      yield word.slice(at, end)
      at = end
    }
  }
}
