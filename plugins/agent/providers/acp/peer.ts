import type { ClientConnection, ContentBlock, InitializeResponse, McpServer } from '@agentclientprotocol/sdk'
import { NotTheProtocol, PipedProcess } from '../../../../sdk/node/programs/piped-process.js'
import type { TreeCommand } from '../adapter.js'
import type { ToolSession } from '../../tool-server/tool-servers.js'
import { promptUsageOf, sessionOf, sessionOptionsOf, type ProgramSession, type PromptEnd } from './answers.js'
import { Crashed } from './crashed.js'
import { Declined } from './declined.js'
import { fieldsOf } from './outside.js'
import type { PeerPatience, PeerTurn } from './peer-turn.js'
import { modelOf, pluginsOf, settingPlan, type SettingPlan, type WantedOptions } from './session-options.js'
import { wire } from './wire.js'

const IDLE_BYTES = 8 * 1024 * 1024

/** One agent program, its connection and its session. */
export class AgentPeer {
  readonly #process: PipedProcess
  readonly #patience: PeerPatience
  readonly #agentFolders: readonly string[]
  readonly #lost = Promise.withResolvers<never>()
  #connection: ClientConnection | undefined
  #about: InitializeResponse | undefined
  #turn: PeerTurn | undefined
  #session: ProgramSession | undefined
  #tools: ToolSession | undefined
  /** The cost of its session up to the last turn, if it reports one. */
  costUsd: number | undefined
  #idle = 0
  /** Open requests of the program, plus one while it handles a request of the daemon. */
  #busy = 0
  #prompted = false
  #silence: NodeJS.Timeout | undefined

  private constructor(command: TreeCommand, patience: PeerPatience) {
    this.#patience = patience
    this.#process = new PipedProcess(command)
    this.#agentFolders = command.agentFolders ?? []
    this.#lost.promise.catch(() => {})
    void this.#process.ended.then(how => this.#lose(how))
  }

  /** Starts a program and initializes the protocol. */
  static async start(command: TreeCommand, patience: PeerPatience, signal: AbortSignal): Promise<AgentPeer> {
    const peer = new AgentPeer(command, patience)
    const stop = () => void peer.end()
    signal.addEventListener('abort', stop, { once: true })
    try {
      await peer.#initialize()
      return peer
    } catch (error) {
      await peer.end()
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** The process, while there is one. */
  get pid(): number | undefined {
    return this.#process.pid
  }

  get sessionId(): string | undefined {
    return this.#session?.id
  }

  /** Whether it has ended or is ending. */
  get over(): boolean {
    return this.#process.over || this.#connection?.signal.aborted === true
  }

  get loadsSessions(): boolean {
    return this.#about?.agentCapabilities?.loadSession === true
  }

  /** Whether it reaches tool servers over HTTP. */
  get takesHttpServers(): boolean {
    return this.#about?.agentCapabilities?.mcpCapabilities?.http === true
  }

  /** The session of the daemon's tool server that this program has; with `make` it gets one. */
  tools(make: () => ToolSession): ToolSession
  tools(): ToolSession | undefined
  tools(make?: () => ToolSession): ToolSession | undefined {
    this.#tools ??= make?.()
    return this.#tools
  }

  /** The model its session runs on, when it says so. */
  get model(): string | undefined {
    return this.#session && modelOf(this.#session)
  }

  get takesImages(): boolean {
    return this.#about?.agentCapabilities?.promptCapabilities?.image === true
  }

  async #initialize(): Promise<void> {
    const { client, methods, PROTOCOL_VERSION, RequestError } = await import('@agentclientprotocol/sdk')
    const { fs, terminal, session } = methods.client
    const asked =
      <P, R>(answer: (turn: PeerTurn) => (params: P, signal: AbortSignal) => R) =>
      async ({ params, signal }: { params: P; signal: AbortSignal }): Promise<Awaited<R>> => {
        this.#work(1)
        const turn = this.#turn
        try {
          return await answer(turn ?? this.#nobody())(params, signal)
        } catch (error) {
          if (error instanceof Declined) throw new RequestError(error.code, error.message)
          turn?.bug(error)
          throw new RequestError(-32603, 'the sandbox failed')
        } finally {
          this.#work(-1)
        }
      }
    this.#connection = client({ name: 'sandbox' })
      .onRequest(
        fs.readTextFile,
        asked(turn => turn.readFile),
      )
      .onRequest(
        fs.writeTextFile,
        asked(turn => turn.writeFile),
      )
      .onRequest(
        session.requestPermission,
        asked(turn => turn.permission),
      )
      .onRequest(
        terminal.create,
        asked(turn => turn.createTerminal),
      )
      .onRequest(
        terminal.output,
        asked(turn => turn.terminalOutput),
      )
      .onRequest(
        terminal.waitForExit,
        asked(turn => turn.waitForTerminal),
      )
      .onRequest(
        terminal.kill,
        asked(turn => turn.killTerminal),
      )
      .onRequest(
        terminal.release,
        asked(turn => turn.releaseTerminal),
      )
      .connect(
        wire(this.#process.output, this.#process.input, {
          heard: bytes => this.#heard(bytes),
          update: params => this.#turn?.update(params),
          room: () => this.#waited(this.#turn?.room()),
        }),
      )
    const { signal, closed } = this.#connection
    void closed.then(() => this.#closed(signal.reason))
    const { startMs } = this.#patience
    const late = setTimeout(() => this.#lose(`did not answer within ${startMs / 1000} s of its start`), startMs)
    try {
      this.#about = await this.#ask(
        this.#connection.agent.request(methods.agent.initialize, {
          protocolVersion: PROTOCOL_VERSION,
          clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
          clientInfo: { name: 'sandbox', version: '1' },
        }),
      )
      const { protocolVersion } = this.#about
      if (protocolVersion !== PROTOCOL_VERSION)
        throw new Crashed(`speaks version ${protocolVersion} of the Agent Client Protocol, not ${PROTOCOL_VERSION}`)
    } finally {
      clearTimeout(late)
    }
  }

  #nobody(): never {
    throw new Declined('made a request while no turn of it was running')
  }

  /** Every byte restarts the timeout for silence. A program without a turn may write only a limited number of bytes. */
  #heard(bytes: number): void {
    if (this.#turn) return this.#listen()
    this.#idle += bytes
    if (this.#about && this.#idle > IDLE_BYTES) this.#lose('wrote too much while no turn of it was running')
  }

  /** The timeout for silence is off while a program waits for the daemon. */
  #work(by: 1 | -1): void {
    this.#busy += by
    this.#listen()
  }

  async #waited(room: Promise<void> | undefined): Promise<void> {
    if (!room) return
    this.#work(1)
    await room.finally(() => this.#work(-1))
  }

  #listen(): void {
    clearTimeout(this.#silence)
    if (!this.#prompted || this.#busy > 0) return
    const { silenceMs } = this.#patience
    this.#silence = setTimeout(() => this.#lose(`was silent for ${silenceMs / 1000} s`), silenceMs)
  }

  /** The connection closes first when the program ends; its exit then says more. */
  async #closed(reason: unknown): Promise<void> {
    if (reason instanceof NotTheProtocol) return this.#lose(reason.message)
    const how = await Promise.race([
      this.#process.ended,
      new Promise<undefined>(resolve => setTimeout(resolve, 1000, undefined)),
    ])
    this.#lose(how ?? 'closed its output')
  }

  #lose(how: string): void {
    const { errors } = this.#process
    this.#lost.reject(new Crashed(errors ? `${how}: ${errors}` : how))
    void this.end('at once')
  }

  /** The answer to a request, unless the program is lost first. */
  #ask<T>(request: Promise<T>): Promise<T> {
    const answer = request.catch(error => {
      // A broken connection is reported by the loss of the program, which has the reason.
      if (this.#connection?.signal.aborted) return this.#lost.promise
      throw error
    })
    return Promise.race([answer, this.#lost.promise])
  }

  get #agent() {
    return (this.#connection ?? this.#nobody()).agent
  }

  /** The answer to a request that should be quick; a stop does not wait for it. */
  async #soon<T>(request: Promise<T>, what: string, signal: AbortSignal): Promise<T> {
    const { sessionMs } = this.#patience
    const late = setTimeout(() => this.#lose(`${what} within ${sessionMs / 1000} s`), sessionMs)
    const stop = () => this.#lose('was stopped')
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await this.#ask(request)
    } finally {
      clearTimeout(late)
      signal.removeEventListener('abort', stop)
    }
  }

  /** Loads the previous session if possible, otherwise opens a new one; returns whether it was loaded. */
  async open(
    cwd: string,
    before: string | undefined,
    mcpServers: readonly McpServer[],
    signal: AbortSignal,
  ): Promise<boolean> {
    if (this.#session && this.#session.id === before) return true
    const place = { cwd, mcpServers: [...mcpServers], ...pluginsOf(this.#agentFolders) }
    if (before !== undefined && this.loadsSessions && (await this.#load(place, before, signal))) return true
    this.#session = sessionOf(await this.#soon(this.#agent.request('session/new', place), 'opened no session', signal))
    return false
  }

  async #load(
    place: { cwd: string; mcpServers: McpServer[] },
    sessionId: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      const answer = await this.#soon(
        this.#agent.request('session/load', { ...place, sessionId }),
        'loaded no session',
        signal,
      )
      this.#session = { id: sessionId, ...sessionOptionsOf(answer) }
      return true
    } catch (error) {
      if (error instanceof Crashed) throw error
      return false
    }
  }

  /** Applies the options of a turn to the session, as far as the program supports them. */
  async configure(wanted: WantedOptions, signal: AbortSignal): Promise<SettingPlan> {
    const session = this.#session ?? this.#nobody()
    const plan = settingPlan(session, wanted)
    const missing = new Set(plan.missing)
    for (const { what, option, value } of plan.set) {
      const set =
        option === undefined
          ? this.#agent.request('session/set_mode', { sessionId: session.id, modeId: value })
          : this.#agent.request('session/set_config_option', { sessionId: session.id, configId: option, value })
      try {
        this.#changed(option, value, await this.#soon(set, `set no ${what}`, signal))
      } catch (error) {
        if (error instanceof Crashed) throw error
        missing.add(what)
      }
    }
    return { ...plan, missing: [...missing] }
  }

  #changed(option: string | undefined, value: string, answer: unknown): void {
    const session = this.#session ?? this.#nobody()
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
    this.#idle = 0
    return () => {
      if (this.#turn === turn) this.#turn = undefined
    }
  }

  /** Passes the program's standard error to a listener until the returned function is called. */
  overhear(listener: (piece: string) => void): () => void {
    this.#process.onErrors = listener
    return () => (this.#process.onErrors = undefined)
  }

  /** Sends a prompt and returns why it stopped; on the signal cancels it, and ends a program that does not stop. */
  async prompt(
    prompt: ContentBlock[],
    meta: { readonly [name: string]: unknown },
    signal: AbortSignal,
  ): Promise<PromptEnd> {
    const sessionId = this.sessionId ?? this.#nobody()
    let killer: NodeJS.Timeout | undefined
    const cancel = () => {
      void this.#agent.notify('session/cancel', { sessionId }).catch(() => {})
      killer = setTimeout(() => this.#lose('did not stop when it was asked to'), this.#patience.cancelMs)
    }
    this.#prompted = true
    this.#listen()
    const answer = this.#ask(this.#agent.request('session/prompt', { sessionId, prompt, _meta: meta }))
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

  /** Ends the program and everything that it started. */
  async end(way?: 'at once'): Promise<void> {
    clearTimeout(this.#silence)
    this.#tools?.end()
    this.#connection?.close()
    await this.#process.end(way)
  }
}
