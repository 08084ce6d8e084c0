import { stat } from 'node:fs/promises'
import type { TreeCommand } from '../adapter.js'
import { AgentPeer } from './peer.js'
import { PATIENCE, type PeerPatience } from './peer-turn.js'

const KEPT_MS = 600_000
/** Waiting programs: each holds memory of its own, as much as 300 MB, and one that ended starts again in a second. */
const MOST_WAITING = 4

interface Kept {
  readonly peer: AgentPeer
  /** The parameters of its start: another wall or another copy needs another process. */
  readonly made: string
  readonly conversationId: string
  /** Present while it waits for a turn. */
  timer?: NodeJS.Timeout
}

/** How long, and how many programs wait for their next turn. */
export interface WaitingLimits {
  readonly keptMs: number
  readonly most: number
}

/**
 * Agent programs that are kept for the next turn: one per conversation, because each is behind the wall of its copy and
 * in its network. A few wait at once; of more, the one that has waited longest ends.
 */
export class Peers {
  readonly #patience: PeerPatience
  readonly #waiting: WaitingLimits
  readonly #kept = new Map<string, Kept>()
  readonly #ending = new Set<Promise<void>>()
  #closed = false

  constructor(patience: PeerPatience = PATIENCE, waiting: WaitingLimits = { keptMs: KEPT_MS, most: MOST_WAITING }) {
    this.#patience = patience
    this.#waiting = waiting
  }

  /** The number of running and waiting programs. */
  get size(): number {
    return this.#kept.size
  }

  /** The processes of running and waiting programs. */
  get processes(): { pid: number; conversationId: string }[] {
    return [...this.#kept.values()].flatMap(({ peer: { pid }, conversationId }) =>
      pid === undefined ? [] : [{ pid, conversationId }],
    )
  }

  /** The program of a conversation's provider: the waiting one if it has the session, otherwise a new one. */
  async take(
    conversationId: string,
    provider: string,
    command: TreeCommand,
    session: string | undefined,
    signal: AbortSignal,
  ): Promise<AgentPeer> {
    const key = `${conversationId}/${provider}`
    const { program, args, env, root } = command
    const { dev, ino } = await stat(root)
    const made = JSON.stringify([program, args, env, dev, ino])
    const kept = this.#kept.get(key)
    clearTimeout(kept?.timer)
    delete kept?.timer
    if (kept && !kept.peer.over && kept.made === made && session !== undefined && kept.peer.sessionId === session)
      return kept.peer
    if (kept) await this.#drop(key, kept)
    signal.throwIfAborted()
    const peer = await AgentPeer.start(command, this.#patience, signal)
    this.#kept.set(key, { peer, made, conversationId })
    if (this.#closed) await this.close()
    return peer
  }

  /** Called after a turn: keeps the program for the next one, or ends it. */
  async release(conversationId: string, provider: string, again: boolean): Promise<void> {
    const key = `${conversationId}/${provider}`
    const kept = this.#kept.get(key)
    if (!kept) return
    if (!again || kept.peer.over) return this.#drop(key, kept)
    kept.timer = setTimeout(() => void this.#drop(key, kept), this.#waiting.keptMs).unref()
    // In the order in which they began to wait.
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    const waiting = [...this.#kept].filter(([, { timer }]) => timer !== undefined)
    for (const [other, longest] of waiting.slice(0, -this.#waiting.most)) void this.#drop(other, longest)
  }

  /** Ends the waiting program of a conversation. */
  async forget(conversationId: string): Promise<void> {
    await Promise.all(
      [...this.#kept]
        .filter(([, kept]) => kept.conversationId === conversationId)
        .map(([key, kept]) => this.#drop(key, kept)),
    )
  }

  /** Ends all programs when the daemon stops. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#kept].map(([key, kept]) => this.#drop(key, kept)))
    await Promise.all(this.#ending)
  }

  async #drop(key: string, kept: Kept): Promise<void> {
    clearTimeout(kept.timer)
    if (this.#kept.get(key) === kept) this.#kept.delete(key)
    const ended = kept.peer.end().finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
    await ended
  }
}
