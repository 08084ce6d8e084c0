import { stat } from 'node:fs/promises'
import type { SharedProgram, TreeCommand } from '../adapter.js'
import { CannotShare, Crashed, Silent } from './crashed.js'
import { AgentPeer } from './peer.js'
import type { PeerSession } from './peer-session.js'
import { PATIENCE, type PeerPatience, type WaitNews } from './peer-turn.js'

const KEPT_MS = 600_000
/** Waiting programs: each holds memory of its own, as much as 300 MB, and one that ended starts again in a second. */
const MOST_WAITING = 4

interface Kept {
  readonly peer: AgentPeer
  /** The parameters of its start: another wall or another copy needs another process. */
  readonly made: string
  readonly sessions: Map<string, ConversationSession>
  /** Its turns, running or about to. */
  turns: number
  /** Present while it waits for a turn. */
  timer?: NodeJS.Timeout
}

interface ConversationSession {
  readonly session: PeerSession
  readonly hide?: SharedProgram['hide']
}

/** How long, and how many programs wait for their next turn. */
export interface WaitingLimits {
  readonly keptMs: number
  readonly most: number
}

/** The turn for which a program is used. */
export interface PeerUser {
  readonly conversationId: string
  readonly provider: string
  /** The subagent that runs beside its turn; left out: the turn's own agent. */
  readonly subagent?: string
  readonly signal: AbortSignal
  /** Its program reads and writes files itself. */
  readonly ownFiles?: boolean
  /** Called while the start of the program takes long. */
  readonly waits?: WaitNews
}

/** A process that is to serve several conversations, and the turns that wait for it: without one it is given up. */
interface Starting {
  readonly kept: Promise<Kept>
  readonly users: Set<PeerUser>
  readonly stop: AbortController
}

/**
 * Agent programs that run turns or are kept for the next one.
 *
 * One process serves all conversations that may share it, with a session for each; any other is that of one
 * conversation, behind the wall of its copy and in its network. A subagent has a process of its own, which ends with
 * it. A few wait at once; of more, the one that has waited longest ends.
 */
export class Peers {
  readonly #patience: PeerPatience
  readonly #waiting: WaitingLimits
  readonly #kept = new Map<string, Kept>()
  readonly #starting = new Map<string, Starting>()
  readonly #ending = new Set<Promise<void>>()
  /** Providers whose program gets a process for each conversation. */
  readonly #separate = new Set<string>()
  #closed = false

  constructor(patience: PeerPatience = PATIENCE, waiting: WaitingLimits = { keptMs: KEPT_MS, most: MOST_WAITING }) {
    this.#patience = patience
    this.#waiting = waiting
  }

  /** The number of running and waiting programs. */
  get size(): number {
    return this.#kept.size
  }

  /** The processes of running and waiting programs, with the conversations that they serve. */
  get processes(): { pid: number; conversationId?: string; conversationIds?: string[] }[] {
    return [...this.#kept.values()].flatMap(({ peer: { pid }, sessions }) => {
      const ids = [...sessions.keys()]
      if (pid === undefined) return []
      return [ids.length === 1 ? { pid, conversationId: ids[0]! } : { pid, conversationIds: ids }]
    })
  }

  /** Whether conversations may share a process of this provider's program. */
  shares(provider: string): boolean {
    return !this.#separate.has(provider)
  }

  /** From now on the provider's program gets a process for each conversation. */
  separate(provider: string): void {
    this.#separate.add(provider)
  }

  /** The program of a conversation's provider: the waiting one if it has the session, otherwise a new one. */
  async take(user: PeerUser, command: TreeCommand, session: string | undefined): Promise<PeerSession> {
    const { conversationId, provider, subagent, signal, waits, ownFiles = false } = user
    const key = ownKey(user)
    const { program, args, env, root } = command
    const { dev, ino } = await stat(root)
    const made = JSON.stringify([program, args, env, dev, ino])
    const kept = this.#kept.get(key)
    const waiting = kept?.sessions.get(conversationId)?.session
    if (kept) hold(kept)
    if (
      kept
      && waiting
      && !kept.peer.over
      && kept.made === made
      && session !== undefined
      && waiting.sessionId === session
    )
      return waiting
    if (kept) await this.#drop(key, kept)
    // Another process goes on with the session of the turn's own agent.
    if (subagent === undefined) await this.#leave(conversationId, provider)
    signal.throwIfAborted()
    const peer = await AgentPeer.start(command, this.#patience, signal, {
      shared: false,
      ownFiles,
      ...(waits && { waits }),
    })
    const opened = peer.session(command.agentFolders)
    this.#kept.set(key, { peer, made, sessions: new Map([[conversationId, { session: opened }]]), turns: 1 })
    if (this.#closed) await this.close()
    return opened
  }

  /**
   * The session of a conversation in a process that serves several, which sees its tree.
   *
   * @throws CannotShare if the program does not start that way, or the tree cannot be shown to it.
   */
  async join(user: PeerUser, program: SharedProgram): Promise<PeerSession> {
    const { conversationId, provider } = user
    const key = sharedKey(provider, program)
    const kept = await this.#shared(key, user, program)
    const { peer, sessions } = kept
    hold(kept)
    try {
      const before = sessions.get(conversationId)?.session
      const { pid } = peer
      if (pid === undefined) throw new Crashed('ended before the turn began')
      const shown = await program.show(pid, before?.shown).catch((error: unknown) => {
        throw new CannotShare(`cannot see the tree: ${String(error)}`, { cause: error })
      })
      if (shown === undefined) throw new CannotShare('cannot see the tree')
      // The waiting process of the conversation has the same session.
      const own = ownKey(user)
      const alone = this.#kept.get(own)
      if (alone) await this.#drop(own, alone)
      const session = before ?? peer.session(program.tree.agentFolders)
      session.shown = shown
      sessions.set(conversationId, { session, hide: pid => program.hide(pid) })
      return session
    } catch (error) {
      this.#rest(key, kept)
      throw error
    }
  }

  /** Called after a turn: keeps the program for the next one; otherwise ends it, or the session if it has others. */
  async release(session: PeerSession, again: boolean): Promise<void> {
    for (const [key, kept] of this.#kept) {
      const [conversationId, { hide } = {}] = [...kept.sessions].find(([, each]) => each.session === session) ?? []
      if (conversationId === undefined) continue
      if (!kept.peer.over && (again || hide)) {
        if (!again) await this.#removeSession(kept, conversationId)
        return this.#rest(key, kept)
      }
      kept.turns--
      return this.#drop(key, kept)
    }
  }

  /** Ends the waiting program of a conversation; one that others share loses its session and its tree. */
  async dropConversation(conversationId: string): Promise<void> {
    await Promise.all(
      [...this.#kept].map(async ([key, kept]) => {
        if (!kept.sessions.has(conversationId)) return
        if (kept.peer.shared) await this.#removeSession(kept, conversationId)
        if (!kept.peer.shared || (kept.sessions.size === 0 && kept.turns === 0)) await this.#drop(key, kept)
      }),
    )
  }

  /** Takes a conversation out of every process that serves several: they see its tree no more. */
  async leaveShared(conversationId: string): Promise<void> {
    for (const kept of this.#kept.values()) if (kept.peer.shared) await this.#removeSession(kept, conversationId)
  }

  /** Ends all programs when the daemon stops. */
  async close(): Promise<void> {
    this.#closed = true
    for (const { stop } of this.#starting.values()) stop.abort()
    await Promise.all([...this.#kept].map(([key, kept]) => this.#drop(key, kept)))
    await Promise.all(this.#ending)
  }

  /** The running process of this key. If there is none, one starts, and all callers wait for it. */
  async #shared(key: string, user: PeerUser, program: SharedProgram): Promise<Kept> {
    const running = this.#kept.get(key)
    if (running && !running.peer.over) return running
    const starting = this.#starting.get(key) ?? this.#starts(key, user, program, running)
    const { kept, users, stop } = starting
    users.add(user)
    try {
      return await started(kept, user.signal)
    } finally {
      users.delete(user)
      if (users.size === 0) stop.abort()
    }
  }

  #starts(key: string, user: PeerUser, program: SharedProgram, before: Kept | undefined): Starting {
    const [users, stop] = [new Set<PeerUser>(), new AbortController()]
    const waits: WaitNews = how => users.forEach(user => user.waits?.(how))
    const kept = this.#start(key, user, program, before, stop.signal, waits)
    const starting = { kept, users, stop }
    this.#starting.set(key, starting)
    const over = () => void (this.#starting.get(key) === starting && this.#starting.delete(key))
    const settled: Promise<void> = kept.then(over, over).finally(() => this.#ending.delete(settled))
    this.#ending.add(settled)
    // A turn that comes now starts another one.
    stop.signal.addEventListener('abort', over, { once: true })
    return starting
  }

  async #start(
    key: string,
    { provider, ownFiles = false }: PeerUser,
    program: SharedProgram,
    before: Kept | undefined,
    stop: AbortSignal,
    waits: WaitNews,
  ): Promise<Kept> {
    if (before) await this.#drop(key, before)
    const forced = () => this.separate(provider)
    const use = { shared: true, ownFiles, forced, waits }
    const peer = await AgentPeer.start(await program.command(), this.#patience, stop, use)
    const kept: Kept = { peer, made: key, sessions: new Map(), turns: 0 }
    this.#kept.set(key, kept)
    if (this.#closed) await this.#drop(key, kept)
    else this.#wait(key, kept)
    return kept
  }

  /** A turn has left: without another one the process waits. */
  #rest(key: string, kept: Kept): void {
    kept.turns--
    if (kept.turns === 0 && this.#kept.get(key) === kept) this.#wait(key, kept)
  }

  #wait(key: string, kept: Kept): void {
    kept.timer = setTimeout(() => void this.#drop(key, kept), this.#waiting.keptMs).unref()
    // In the order in which they began to wait.
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    const waiting = [...this.#kept].filter(([, { timer }]) => timer !== undefined)
    for (const [other, longest] of waiting.slice(0, -this.#waiting.most)) void this.#drop(other, longest)
  }

  /** Removes a conversation from the processes of a provider that serve several. */
  async #leave(conversationId: string, provider: string): Promise<void> {
    for (const [key, kept] of this.#kept)
      if (key.startsWith(`${SHARED}${provider}/`)) await this.#removeSession(kept, conversationId)
  }

  async #removeSession({ peer, sessions }: Kept, conversationId: string): Promise<void> {
    const found = sessions.get(conversationId)
    if (!found) return
    sessions.delete(conversationId)
    peer.release(found.session)
    const { pid } = peer
    // A process that has ended sees nothing any more.
    if (pid !== undefined) await found.hide?.(pid).catch(error => peer.pid !== undefined && Promise.reject(error))
  }

  async #drop(key: string, kept: Kept): Promise<void> {
    clearTimeout(kept.timer)
    if (this.#kept.get(key) === kept) this.#kept.delete(key)
    const ended = kept.peer.end().finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
    await ended
  }
}

/** No conversation id begins so. */
const SHARED = './'

const sharedKey = (provider: string, { key }: SharedProgram): string => `${SHARED}${provider}/${key}`

/** The process of one user alone. */
const ownKey = ({ conversationId, provider, subagent }: PeerUser): string =>
  [conversationId, provider, ...(subagent === undefined ? [] : [subagent])].join('/')

/** A turn has come: the process does not wait. */
const hold = (kept: Kept): void => {
  kept.turns++
  clearTimeout(kept.timer)
  delete kept.timer
}

/** The started process, unless the turn is stopped first. */
const started = async (kept: Promise<Kept>, signal: AbortSignal): Promise<Kept> => {
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(signal.reason)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([kept, stopped.promise])
  } catch (error) {
    if (error instanceof Crashed && !(error instanceof Silent)) throw new CannotShare(error.message, { cause: error })
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
