import type { ClientContext, ContentBlock, InitializeResponse, McpServer } from '@agentclientprotocol/sdk'
import type { ToolSession } from '../../tool-server/tool-servers.js'
import { promptUsageOf, sessionOf, sessionOptionsOf, type ProgramSession, type PromptEnd } from './answers.js'
import { CannotShare, Crashed } from './crashed.js'
import { Declined } from './declined.js'
import { fieldsOf, lineField } from './outside.js'
import type { PeerPatience, PeerTurn, WaitNews } from './peer-turn.js'
import { modelOf, pluginsOf, settingPlan, type SettingPlan, type WantedOptions } from './session-options.js'
import { ignored } from '../../../../sdk/index.js'

/** What a session needs of its program. */
export interface SessionOwner {
  readonly patience: PeerPatience
  readonly agent: ClientContext
  readonly about: InitializeResponse | undefined
  readonly over: boolean
  readonly pid: number | undefined
  /** Whether the program may serve several conversations. */
  readonly shared: boolean
  /** Whether it serves other conversations. */
  others(than: PeerSession): boolean
  /** Whether it answers the prompt of another conversation. */
  prompts(besides: PeerSession): boolean
  /** Whether another conversation has the session with this id. */
  isTaken(id: string, by: PeerSession): boolean
  /** The answer to a request, unless the program is lost first. */
  ask<T>(request: Promise<T>, by: PeerSession): Promise<T>
  /** Ends the program because of this session; `how` continues a sentence that begins with its name. */
  fail(how: string, by: PeerSession): void
  /** Ends the program when it shows no sign of life, until the returned function is called; `undone` as for `fail`. */
  watch(undone: string, by: PeerSession, waits: WaitNews | undefined): () => void
  /** Called when the session has begun to serve a turn. */
  serving(): void
  onOutput(listener: (piece: string) => void): () => void
}

/** The session of one conversation in an agent program. */
export class PeerSession {
  readonly #owner: SessionOwner
  readonly #agentFolders: readonly string[]
  #turn: PeerTurn | undefined
  #session: ProgramSession | undefined
  /** The id of a session that is being loaded. */
  #loading: string | undefined
  #tools: ToolSession | undefined
  /** The cost of the session up to the last turn, if the program reports one. */
  costUsd: number | undefined
  /** What the program sees of the conversation's tree, if that was shown to it while it ran. */
  shown: string | undefined
  /** It is being opened. */
  opening = false
  /** Why the program did not load its previous session. */
  unloaded: string | undefined
  /** Open requests of the program, plus one while it handles a request of the daemon. */
  #busy = 0
  #prompted = false
  #silence: NodeJS.Timeout | undefined

  constructor(owner: SessionOwner, agentFolders: readonly string[] = []) {
    this.#owner = owner
    this.#agentFolders = agentFolders
  }

  get sessionId(): string | undefined {
    return this.#session?.id ?? this.#loading
  }

  /** The turn that it serves. */
  get turn(): PeerTurn | undefined {
    return this.#turn
  }

  /** Whether it answers a prompt. */
  get prompted(): boolean {
    return this.#prompted
  }

  get over(): boolean {
    return this.#owner.over
  }

  /** The process of its program. */
  get pid(): number | undefined {
    return this.#owner.pid
  }

  get loadsSessions(): boolean {
    return this.#owner.about?.agentCapabilities?.loadSession === true
  }

  /** Whether the program reaches tool servers over HTTP. */
  get takesHttpServers(): boolean {
    return this.#owner.about?.agentCapabilities?.mcpCapabilities?.http === true
  }

  get takesImages(): boolean {
    return this.#owner.about?.agentCapabilities?.promptCapabilities?.image === true
  }

  /** The session of the daemon's tool server that belongs to it; with `make` it gets one. */
  tools(make: () => ToolSession): ToolSession
  tools(): ToolSession | undefined
  tools(make?: () => ToolSession): ToolSession | undefined {
    this.#tools ??= make?.()
    return this.#tools
  }

  /** The model it runs on, when the program says so. */
  get model(): string | undefined {
    return this.#session && modelOf(this.#session)
  }

  /** The answer to a request, as long as the program shows life; a stop does not wait for it. */
  async #soon<T>(request: Promise<T>, undone: string, signal: AbortSignal, waits?: WaitNews): Promise<T> {
    const { shared } = this.#owner
    const seen = this.#owner.prompts(this) ? this.#limit(undone) : this.#owner.watch(undone, this, waits)
    const stopped = Promise.withResolvers<never>()
    stopped.promise.catch(ignored('the caller that awaits it gets the failure'))
    // A process of other conversations too goes on, without this session.
    const stop = () => (shared ? stopped.reject(new Crashed('was stopped')) : this.#owner.fail('was stopped', this))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await Promise.race([this.#owner.ask(request, this), stopped.promise])
    } finally {
      seen()
      signal.removeEventListener('abort', stop)
    }
  }

  /** What the program does for others looks like life of this session. */
  #limit(undone: string): () => void {
    const { sessionMs } = this.#owner.patience
    const late = setTimeout(() => this.#owner.fail(`${undone} within ${sessionMs / 1000} s`, this), sessionMs)
    return () => clearTimeout(late)
  }

  /** Loads the previous session if possible, otherwise opens a new one; returns whether it was loaded. */
  async open(
    cwd: string,
    before: string | undefined,
    mcpServers: readonly McpServer[],
    signal: AbortSignal,
    waits?: WaitNews,
  ): Promise<boolean> {
    if (this.#session && this.#session.id === before) return true
    this.opening = true
    try {
      return await this.#open(cwd, before, mcpServers, signal, waits)
    } finally {
      this.opening = false
    }
  }

  async #open(
    cwd: string,
    before: string | undefined,
    mcpServers: readonly McpServer[],
    signal: AbortSignal,
    waits?: WaitNews,
  ): Promise<boolean> {
    const { agent, shared } = this.#owner
    const place = { cwd, mcpServers: [...mcpServers], ...pluginsOf(this.#agentFolders) }
    if (before !== undefined && this.loadsSessions && (await this.#load(place, before, signal, waits))) return true
    try {
      const opened = sessionOf(
        await this.#soon(agent.request('session/new', place), 'has not opened a session', signal, waits),
      )
      this.#session = this.#alone(opened)
    } catch (error) {
      if (shared && !signal.aborted && this.#owner.others(this)) throw new CannotShare(String(error), { cause: error })
      throw error
    }
    return false
  }

  /** Refuses a session that another conversation has. */
  #alone(session: ProgramSession): ProgramSession {
    if (!this.#owner.isTaken(session.id, this)) return session
    throw new CannotShare(`has one session, ${session.id}, for two conversations`)
  }

  async #load(
    place: { cwd: string; mcpServers: McpServer[] },
    sessionId: string,
    signal: AbortSignal,
    waits: WaitNews | undefined,
  ): Promise<boolean> {
    if (this.#owner.isTaken(sessionId, this)) return false
    this.#loading = sessionId
    try {
      const { agent } = this.#owner
      const answer = await this.#soon(
        agent.request('session/load', { ...place, sessionId }),
        'has not loaded its session',
        signal,
        waits,
      )
      this.#session = { id: sessionId, ...sessionOptionsOf(answer) }
      return true
    } catch (error) {
      if (error instanceof Crashed) throw error
      this.unloaded = reasonOf(error)
      return false
    } finally {
      this.#loading = undefined
    }
  }

  /** Applies the options of a turn to the session, as far as the program supports them. */
  async configure(wanted: WantedOptions, signal: AbortSignal): Promise<SettingPlan> {
    const session = this.#opened
    const plan = settingPlan(session, wanted)
    const missing = new Set(plan.missing)
    for (const { what, option, value } of plan.set) {
      const set =
        option === undefined
          ? this.#owner.agent.request('session/set_mode', { sessionId: session.id, modeId: value })
          : this.#owner.agent.request('session/set_config_option', { sessionId: session.id, configId: option, value })
      try {
        this.#changed(option, value, await this.#soon(set, `has not set the ${what}`, signal))
      } catch (error) {
        if (error instanceof Crashed) throw error
        missing.add(what)
      }
    }
    return { ...plan, missing: [...missing] }
  }

  #changed(option: string | undefined, value: string, answer: unknown): void {
    const session = this.#opened
    const { modes } = session
    if (option === undefined) {
      this.#session = { ...session, ...(modes && { modes: { ...modes, currentModeId: value } }) }
      return
    }
    const { options } = sessionOptionsOf(answer)
    if (options.length > 0) this.#session = { ...session, options }
  }

  /** Connects a turn: its methods serve the program's requests until the returned function is called. */
  serve(turn: PeerTurn): () => void {
    this.#turn = turn
    this.#owner.serving()
    return () => {
      if (this.#turn === turn) this.#turn = undefined
    }
  }

  /** Passes the program's standard error to a listener until the returned function is called. */
  onOutput(listener: (piece: string) => void): () => void {
    return this.#owner.onOutput(listener)
  }

  /** The timeout for silence is off while the program waits for the daemon. */
  work(by: 1 | -1): void {
    this.#busy += by
    this.listen()
  }

  /** Restarts the timeout for silence. */
  listen(): void {
    clearTimeout(this.#silence)
    if (!this.#prompted || this.#busy > 0) return
    const { silenceMs } = this.#owner.patience
    this.#silence = setTimeout(() => this.#owner.fail(`was silent for ${silenceMs / 1000} s`, this), silenceMs)
  }

  /** Sends a prompt and returns why it stopped; on the signal cancels it, and ends a program that does not stop. */
  async prompt(
    prompt: ContentBlock[],
    meta: { readonly [name: string]: unknown },
    signal: AbortSignal,
  ): Promise<PromptEnd> {
    const { agent, patience } = this.#owner
    const { id: sessionId } = this.#opened
    let killer: NodeJS.Timeout | undefined
    const cancel = () => {
      void agent.notify('session/cancel', { sessionId }).catch(ignored('a program that does not answer is ended'))
      killer = setTimeout(() => this.#owner.fail('did not stop when it was asked to', this), patience.cancelMs)
    }
    this.#prompted = true
    this.listen()
    const answer = this.#owner.ask(agent.request('session/prompt', { sessionId, prompt, _meta: meta }), this)
    if (signal.aborted) cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const { stopReason: reason, ...rest } = await answer
      const usage = promptUsageOf(fieldsOf(rest).usage)
      return { reason, ...(usage && { usage }) }
    } finally {
      this.#prompted = false
      clearTimeout(this.#silence)
      clearTimeout(killer)
      signal.removeEventListener('abort', cancel)
    }
  }

  /** Ends what belongs to it in the daemon. */
  end(): void {
    clearTimeout(this.#silence)
    this.#tools?.end()
    this.#tools = undefined
  }

  get #opened(): ProgramSession {
    return this.#session ?? noTurn()
  }
}

const MOST_REASON = 300

/** What a program says of a request that it refused. */
const reasonOf = (error: unknown): string => {
  const { message, data } = fieldsOf(error)
  const { details } = fieldsOf(data)
  return (lineField(details, MOST_REASON) ?? lineField(message, MOST_REASON)) || 'it does not say why'
}

/** Refuses a request of a program outside of its turns. */
export const noTurn = (): never => {
  throw new Declined('made a request while no turn of it was running')
}
