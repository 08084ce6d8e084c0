import { mkdir } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { Host } from '../../sdk/index.js'
import type { Listener, Reach } from '../../sdk/node/addresses.js'
import { writeAtomic } from '../../sdk/node/files.js'
import type { Limiter } from '../../sdk/node/limits/limiter.js'
import { allowedOf } from '../../sdk/node/network/allow.js'
import { Networks } from '../../sdk/node/network/networks.js'
import { written, type NetworkRules, type Target } from '../../sdk/node/network/policy.js'
import { record } from '../../sdk/node/record.js'
import { wallKind, type WallNetwork } from '../../sdk/node/wall/wall.js'
import type { Settings } from '../settings/contract.js'
import type { Turn } from './turn.js'

/** What the networks of conversations are made with. */
export interface ConversationNetworksParts {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  /** The agent's own folder. */
  readonly folder: string
  readonly limiter: Limiter
  readonly settings: () => Promise<Pick<Settings, 'network' | 'networkAllow' | 'networkOnly'> | undefined>
  readonly listeners: () => Promise<readonly Listener[]>
  /** The live turn of a conversation. */
  readonly live: (id: string) => Turn | undefined
}

/** The network a turn has. */
export interface TurnNetwork {
  /** For the walls of its programs; left out: they have the machine's. */
  readonly wall?: WallNetwork
  /** What the frame `worktree` says. */
  readonly kind: 'own' | 'shared'
  /** This machine cannot make the one it was to have. */
  readonly missing: boolean
  /** Which addresses the daemon asks for it. */
  reach(): Promise<Reach>
}

const MOST_TOLD = 50

/** The networks of conversations: what they reach is settled for each connection anew, and what is refused is told once a turn. */
export class ConversationNetworks {
  readonly #parts: ConversationNetworksParts
  readonly #networks: Networks
  readonly #told = new WeakMap<Turn, Set<string>>()
  readonly #resolvers = new Map<string, Promise<string>>()

  constructor(parts: ConversationNetworksParts) {
    this.#parts = parts
    this.#networks = new Networks({
      log: parts.host.log,
      busy: id => !parts.limiter.idle(id),
      owner: id => ({
        rules: () => this.#rules(),
        refused: (target, sentence) => this.#refused(id, target, sentence),
        taken: port => this.#taken(id, port),
        resolver: address => this.#resolver(address),
      }),
    })
  }

  /** The network of a turn that begins. */
  async of(id: string): Promise<TurnNetwork> {
    const { settings, listeners } = this.#parts
    const wanted = (await settings())?.network !== 'shared'
    const own = wanted && (await wallKind()) !== 'none' && (await this.#networks.possible())
    if (!own) return { kind: 'shared', missing: wanted, reach: async () => ({ near: true, listeners: await listeners() }) }
    return {
      kind: 'own', missing: false,
      wall: { enter: () => this.#networks.enter(id) },
      reach: async () => {
        const rules = await this.#rules()
        return { near: true, listeners: rules.listeners, own: { rules, dial: port => this.dial(id, port), refused: (target, sentence) => this.#refused(id, target, sentence) } }
      },
    }
  }

  /** A connection to a port of a conversation's own loopback, paused; refused when nothing listens there. */
  dial(id: string, port: number): Promise<Socket> {
    return this.#networks.dial(id, port)
  }

  /** The settings changed: what is under way follows them. */
  update(): Promise<void> {
    return this.#networks.update()
  }

  /** Lets go of the network of a conversation that is no more. */
  forget(id: string): void {
    this.#networks.forget(id)
  }

  /** Lets go of all; the daemon goes down. */
  close(): void {
    this.#networks.close()
  }

  async #rules(): Promise<NetworkRules> {
    const [settings, listeners] = await Promise.all([this.#parts.settings(), this.#parts.listeners()])
    const { networkAllow = [], networkOnly = false } = settings ?? {}
    return { allow: allowedOf(networkAllow), only: networkOnly, listeners }
  }

  #refused(id: string, target: Target, sentence: string): void {
    if (!this.#first(id, target.host)) return
    const { host, live } = this.#parts
    const turn = live(id)
    turn?.log.push({ kind: 'notice', level: 'warning', text: sentence, source: 'network' })
    void record(host, {
      type: 'network.refused', conversationId: id, ...(turn && { turnId: turn.run }), outcome: 'error', content: sentence, extra: { target: written(target) },
    })
  }

  /** Whether a host is the first of its name to be told of in the live turn; without one nothing is told. */
  #first(id: string, name: string): boolean {
    const turn = this.#parts.live(id)
    if (!turn || turn.leaving) return false
    const told = this.#told.get(turn) ?? new Set()
    this.#told.set(turn, told)
    if (told.has(name) || told.size >= MOST_TOLD) return false
    told.add(name)
    return true
  }

  #taken(id: string, port: number): void {
    if (!this.#first(id, `port ${port}`)) return
    const text = `a program of this conversation listens on port ${port}, so localhost:${port} of networkAllow is not there for it`
    this.#parts.live(id)?.log.push({ kind: 'notice', level: 'warning', text, source: 'network' })
  }

  #resolver(address: string): Promise<string> {
    const written = this.#resolvers.get(address) ?? (async () => {
      const folder = join(this.#parts.folder, 'network')
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const path = join(folder, `resolv-${address}.conf`)
      await writeAtomic(path, `nameserver ${address}\n`, { mode: 0o644 })
      return path
    })()
    this.#resolvers.set(address, written)
    written.catch(() => this.#resolvers.delete(address))
    return written
  }
}
