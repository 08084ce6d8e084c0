import type { ClientConnection, ClientContext, InitializeResponse } from '@agentclientprotocol/sdk'
import { watchLife } from '../../../../sdk/node/programs/life.js'
import { NotTheProtocol, PipedProcess } from '../../../../sdk/node/programs/piped-process.js'
import type { Walled } from '../../../../sdk/node/wall/wall.js'
import { Crashed, Displaced, Silent } from './crashed.js'
import { Declined } from './declined.js'
import { fieldsOf } from './outside.js'
import { noTurn, PeerSession, type SessionOwner } from './peer-session.js'
import type { PeerPatience, PeerTurn, WaitNews } from './peer-turn.js'
import { wire } from './wire.js'
import { ignored } from '../../../../sdk/index.js'

const IDLE_BYTES = 8 * 1024 * 1024

/** How a program is used. */
export interface PeerUse {
  /** It may serve several conversations. */
  readonly shared: boolean
  /** Called when it has to be ended because of one of its sessions. */
  readonly forced?: () => void
  /** It reads and writes files itself. */
  readonly ownFiles?: boolean
  /** Called while its start takes long, with how it is. */
  readonly waits?: WaitNews
}

/** One agent program, its connection and its sessions. */
export class AgentPeer implements SessionOwner {
  readonly patience: PeerPatience
  readonly #process: PipedProcess
  readonly #use: PeerUse
  readonly #lost = Promise.withResolvers<never>()
  readonly #sessions = new Set<PeerSession>()
  readonly #listeners = new Set<(piece: string) => void>()
  #connection: ClientConnection | undefined
  #about: InitializeResponse | undefined
  /** The session because of which it was ended. */
  #cause: PeerSession | undefined
  #idle = 0

  private constructor(command: Walled, patience: PeerPatience, use: PeerUse) {
    this.patience = patience
    this.#use = use
    // Others wait for its start; its turns run at a lower priority.
    this.#process = new PipedProcess(command, 'own')
    this.#process.onErrors = piece => {
      for (const listener of this.#listeners) listener(piece)
    }
    this.#lost.promise.catch(ignored('the caller that awaits it gets the failure'))
    void this.#process.ended.then(how => this.#fail(how, this.#opening))
  }

  /** Starts a program and initializes the protocol. */
  static async start(command: Walled, patience: PeerPatience, signal: AbortSignal, use: PeerUse): Promise<AgentPeer> {
    signal.throwIfAborted()
    const peer = new AgentPeer(command, patience, use)
    const stop = () => void peer.end()
    signal.addEventListener('abort', stop, { once: true })
    try {
      await peer.#initialize()
      peer.#process.lower()
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

  get about(): InitializeResponse | undefined {
    return this.#about
  }

  get shared(): boolean {
    return this.#use.shared
  }

  /** Whether it has ended or is ending. */
  get over(): boolean {
    return this.#process.over || this.#connection?.signal.aborted === true
  }

  get agent(): ClientContext {
    return (this.#connection ?? noTurn()).agent
  }

  /** A session for a conversation, which is not open yet. */
  session(agentFolders?: readonly string[]): PeerSession {
    const session = new PeerSession(this, agentFolders)
    this.#sessions.add(session)
    return session
  }

  /** Its requests and updates are refused from now on. */
  release(session: PeerSession): void {
    session.end()
    this.#sessions.delete(session)
  }

  others(than: PeerSession): boolean {
    return [...this.#sessions].some(session => session !== than)
  }

  prompts(besides: PeerSession): boolean {
    return [...this.#sessions].some(session => session !== besides && session.prompted)
  }

  isTaken(id: string, by: PeerSession): boolean {
    return [...this.#sessions].some(session => session !== by && session.sessionId === id)
  }

  serving(): void {
    this.#idle = 0
  }

  onOutput(listener: (piece: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async ask<T>(request: Promise<T>, by: PeerSession): Promise<T> {
    try {
      return await this.#ask(request)
    } catch (error) {
      if (!(error instanceof Crashed) || this.#cause === undefined || this.#cause === by) throw error
      throw new Displaced(`${error.message}, in the turn of another conversation`)
    }
  }

  fail(how: string, by: PeerSession): void {
    this.#use.forced?.()
    this.#fail(how, by)
  }

  /** A session that is being opened beside others. */
  get #opening(): PeerSession | undefined {
    return this.#sessions.size > 1 ? [...this.#sessions].find(({ opening }) => opening) : undefined
  }

  /** The session that a message is for. */
  #addressed(params: unknown): PeerSession | undefined {
    const { sessionId } = fieldsOf(params)
    return [...this.#sessions].find(session => session.sessionId !== undefined && session.sessionId === sessionId)
  }

  watch(undone: string, by: PeerSession | undefined, waits: WaitNews | undefined): () => void {
    const { slowMs, quietMs } = this.patience
    return watchLife(this.#process, {
      slowMs,
      quietMs,
      waits: waits && (how => waits(`${undone} ${how}`)),
      quiet: how => {
        if (by) this.#use.forced?.()
        this.#fail(`${undone}, and ${how}`, by, Silent)
      },
    })
  }

  async #initialize(): Promise<void> {
    const { client, methods, PROTOCOL_VERSION, RequestError } = await import('@agentclientprotocol/sdk')
    const { fs, terminal, session } = methods.client
    const asked =
      <P, R>(answer: (turn: PeerTurn) => (params: P, signal: AbortSignal) => R) =>
      async ({ params, signal }: { params: P; signal: AbortSignal }): Promise<Awaited<R>> => {
        const session = this.#addressed(params)
        session?.work(1)
        const turn = session?.turn
        try {
          return await answer(turn ?? noTurn())(params, signal)
        } catch (error) {
          if (error instanceof Declined) throw new RequestError(error.code, error.message)
          turn?.bug(error)
          throw new RequestError(-32603, 'the sandbox failed')
        } finally {
          session?.work(-1)
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
          update: params => this.#updated(params),
          room: () => this.#waited(),
        }),
      )
    const { signal, closed } = this.#connection
    void closed.then(() => this.#closed(signal.reason))
    const files = !this.#use.ownFiles
    const seen = this.watch('has not answered', undefined, this.#use.waits)
    try {
      this.#about = await this.#ask(
        this.#connection.agent.request(methods.agent.initialize, {
          protocolVersion: PROTOCOL_VERSION,
          clientCapabilities: { fs: { readTextFile: files, writeTextFile: files }, terminal: true },
          clientInfo: { name: 'sandbox', version: '1' },
        }),
      )
      const { protocolVersion } = this.#about
      if (protocolVersion !== PROTOCOL_VERSION)
        throw new Crashed(
          `speaks version ${protocolVersion} of the Agent Client Protocol, not ${PROTOCOL_VERSION}: `
            + 'install a version of the program that speaks it',
        )
    } finally {
      seen()
    }
  }

  get #serving(): PeerSession[] {
    return [...this.#sessions].filter(({ turn }) => turn !== undefined)
  }

  /**
   * Every byte restarts the timeout for silence of a single turn. A program without a turn may write only a limited
   * number of bytes.
   */
  #heard(bytes: number): void {
    const serving = this.#serving
    if (serving.length === 1) serving[0]!.listen()
    if (serving.length > 0) return
    this.#idle += bytes
    if (this.#about && this.#idle > IDLE_BYTES) this.#fail('wrote too much while no turn of it was running')
  }

  #updated(params: unknown): void {
    const session = this.#addressed(params)
    if (!session?.turn) return
    session.listen()
    session.turn.update(params)
  }

  /** WaitNews until every turn has room for more frames; meanwhile no silence counts. */
  async #waited(): Promise<void> {
    const full = this.#serving.flatMap(session => session.turn?.room() ?? [])
    if (full.length === 0) return
    const waiting = [...this.#sessions]
    for (const session of waiting) session.work(1)
    await Promise.all(full).finally(() => {
      for (const session of waiting) session.work(-1)
    })
  }

  /** The connection closes first when the program ends; its exit then says more. */
  async #closed(reason: unknown): Promise<void> {
    if (reason instanceof NotTheProtocol) return this.#fail(reason.message)
    const how = await Promise.race([
      this.#process.ended,
      new Promise<undefined>(resolve => setTimeout(resolve, 1000, undefined)),
    ])
    this.#fail(how ?? 'closed its output', this.#opening)
  }

  #fail(how: string, by?: PeerSession, Kind = Crashed): void {
    const { errors } = this.#process
    this.#cause ??= by
    this.#lost.reject(new Kind(errors ? `${how}: ${errors}` : how))
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

  /** Ends the program and everything that it started. */
  async end(way?: 'at once'): Promise<void> {
    for (const session of this.#sessions) session.end()
    this.#connection?.close()
    await this.#process.end(way)
  }
}
