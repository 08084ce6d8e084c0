import { Refusal, type Host, ignored } from '../../../sdk/index.js'
import type { OpenEntry } from '../records/kinds.js'
import { openConnection, ServerFailure, type ServerConnection, type ServerConnectionDeps } from './connection.js'
import { Crashes, pausedSentence } from './crashes.js'
import type { AskingCall, Elicitations } from './elicitations.js'

/** How long the servers of a conversation stay when no turn of it runs. */
const IDLE_MS = 600_000

export interface ServerSessionsDeps {
  readonly host: Pick<Host, 'place' | 'call' | 'serves' | 'log' | 'signal'>
  readonly elicitations: Elicitations
  readonly tokens: ServerConnectionDeps['tokens']
  /** A server ended by itself; `paused`: too often. */
  readonly crashed: (id: string, detail: string, paused: boolean) => void
  readonly toolsChanged: (id: string, connection: ServerConnection) => void
  readonly idleMs?: number
}

interface Session {
  readonly opened: Promise<ServerConnection>
  /** The calls that run on it, newest last. */
  readonly calls: AskingCall[]
}

/** The servers of each conversation: started at first use, kept while turns of it run, and ended after a while. */
export class ServerSessions {
  readonly crashes = new Crashes()
  readonly #deps: ServerSessionsDeps
  readonly #open = new Map<string, Map<string, Session>>()
  /** The turns that are known to run, by conversation. */
  readonly #runs = new Map<string, Set<string>>()
  readonly #idle = new Map<string, NodeJS.Timeout>()

  constructor(deps: ServerSessionsDeps) {
    this.#deps = deps
    deps.host.signal.addEventListener('abort', () => this.#stop(), { once: true })
  }

  /** The connection of a conversation to a server. */
  async get(conversationId: string, entry: OpenEntry): Promise<ServerConnection> {
    const { id } = entry
    if (this.crashes.paused(id)) throw new ServerFailure('crashed', pausedSentence(id))
    const found = this.#open.get(conversationId)?.get(id)
    if (found) {
      const connection = await found.opened
      if (!connection.closed) return connection
      this.#forget(conversationId, id, found)
    }
    return this.#start(conversationId, entry).opened
  }

  /** Whether a conversation has a connection to a server, which may have ended just now. */
  holds(conversationId: string, id: string): boolean {
    return this.#open.get(conversationId)?.has(id) ?? false
  }

  /** A call runs on the connection until the answered function is called: what its server asks is asked of it. */
  calling(conversationId: string, id: string, call: AskingCall): () => void {
    const calls = this.#open.get(conversationId)?.get(id)?.calls ?? []
    calls.push(call)
    return () => void (calls.includes(call) && calls.splice(calls.indexOf(call), 1))
  }

  /** Whether a call of any conversation runs on a server. */
  busy(id: string): boolean {
    return [...this.#open.values()].some(sessions => (sessions.get(id)?.calls.length ?? 0) > 0)
  }

  /** The newest connection to a server that is open. */
  async live(id: string): Promise<ServerConnection | undefined> {
    const found = [...this.#open.values()].flatMap(sessions => sessions.get(id) ?? []).at(-1)
    const connection = await found?.opened.catch(() => undefined)
    return connection?.closed ? undefined : connection
  }

  /** A turn began: the servers of its conversation stay. */
  begun(conversationId: string, run: string): void {
    clearTimeout(this.#idle.get(conversationId))
    this.#idle.delete(conversationId)
    this.#runs.set(conversationId, (this.#runs.get(conversationId) ?? new Set()).add(run))
  }

  /** A turn ended: without another one its servers end after a while. */
  ended(conversationId: string, run: string): void {
    const runs = this.#runs.get(conversationId)
    runs?.delete(run)
    if (!runs || runs.size > 0) return
    this.#runs.delete(conversationId)
    clearTimeout(this.#idle.get(conversationId))
    const release = () => void this.release(conversationId).catch(ignored('it may have ended already'))
    this.#idle.set(conversationId, setTimeout(release, this.#deps.idleMs ?? IDLE_MS).unref())
  }

  /** Ends the servers of a conversation. */
  async release(conversationId: string): Promise<void> {
    clearTimeout(this.#idle.get(conversationId))
    this.#idle.delete(conversationId)
    this.#runs.delete(conversationId)
    const sessions = this.#open.get(conversationId)
    this.#open.delete(conversationId)
    await close(sessions?.values())
  }

  /** Ends a connection that failed: the next use opens another one. */
  async drop(conversationId: string, id: string, connection: ServerConnection): Promise<void> {
    const session = this.#open.get(conversationId)?.get(id)
    if ((await session?.opened.catch(() => undefined)) === connection) this.#forget(conversationId, id, session!)
    await connection.close().catch(ignored('it may have ended already'))
  }

  /** Ends every connection to a server, such as when its config changed. */
  async endAll(id: string): Promise<void> {
    this.crashes.clear(id)
    const found: Session[] = []
    for (const [conversationId, sessions] of this.#open) {
      const session = sessions.get(id)
      if (!session) continue
      found.push(session)
      this.#forget(conversationId, id, session)
    }
    await close(found)
  }

  #start(conversationId: string, entry: OpenEntry): Session {
    const { host, elicitations, tokens, toolsChanged } = this.#deps
    const { id } = entry
    const calls: AskingCall[] = []
    const opened = openConnection({
      host,
      entry,
      tokens,
      conversationId,
      signal: host.signal,
      // A question comes while a call runs; of several, the newest is the likeliest to have caused it.
      elicit: async (params, signal) => {
        const call = calls.at(-1)
        return call ? elicitations.ask(call, params, signal) : { action: 'decline' }
      },
      toolsChanged: () =>
        void opened
          .then(connection => toolsChanged(id, connection))
          .catch(ignored('a server that never opened has no tools')),
    })
    const session: Session = { opened, calls }
    const sessions = this.#open.get(conversationId) ?? new Map<string, Session>()
    this.#open.set(conversationId, sessions.set(id, session))
    opened.then(
      connection => void this.#watch(conversationId, connection, session),
      error => {
        this.#forget(conversationId, id, session)
        if (error instanceof ServerFailure && error.code === 'crashed') this.#crashed(id, error.message)
      },
    )
    return session
  }

  async #watch(conversationId: string, connection: ServerConnection, session: Session): Promise<void> {
    const { id } = connection.entry
    await connection.over
    this.#forget(conversationId, id, session)
    const how = await connection.crash()
    if (how !== undefined && !this.#deps.host.signal.aborted)
      this.#crashed(id, (await connection.failure(new Refusal('dependency', how))).message)
  }

  #crashed(id: string, detail: string): void {
    this.#deps.crashed(id, detail, this.crashes.add(id))
  }

  #forget(conversationId: string, id: string, session: Session): void {
    const sessions = this.#open.get(conversationId)
    if (sessions?.get(id) !== session) return
    sessions.delete(id)
    if (sessions.size === 0) this.#open.delete(conversationId)
  }

  #stop(): void {
    for (const timer of this.#idle.values()) clearTimeout(timer)
    for (const sessions of this.#open.values()) void close(sessions.values())
    this.#open.clear()
  }
}

const close = async (sessions: Iterable<Session> = []): Promise<void> => {
  await Promise.all(
    [...sessions].map(({ opened }) =>
      opened.then(connection => connection.close()).catch(ignored('it may have ended already')),
    ),
  )
}
