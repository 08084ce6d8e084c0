import { mkdir } from 'node:fs/promises'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import type { Listener } from '../../../sdk/node/network/addresses.js'
import { sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import type { Limiter } from '../../../sdk/node/limits/limiter.js'
import { allowedOf } from '../../../sdk/node/network/allow.js'
import { Networks } from '../../../sdk/node/network/networks.js'
import { written, type NetworkReach, type NetworkRules, type Target } from '../../../sdk/node/network/policy.js'
import { record } from '../../../sdk/node/record/record.js'
import { wallKind, type WallNetwork } from '../../../sdk/node/wall/wall.js'
import type { Settings } from '../../settings/contract.js'
import type { Turn } from './turn.js'

/** What the networks of conversations are made with. */
export interface ConversationNetworksDeps {
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
  /** What it really has, as the frame `worktree` says. */
  kind(): Promise<'own' | 'shared'>
  /** Which addresses the daemon asks for it. */
  reach(): Promise<NetworkReach>
  /** Lets its programs reach a server of the daemon; answers the address they use. */
  serve(server: Server): Promise<string>
}

const MOST_TOLD = 50
const NONE =
  'this machine can give no conversation a network of its own, so this turn has that of the machine: install '
  + 'iproute2 and util-linux'

/**
 * The networks of conversations: what they reach is settled for each connection anew, and each refusal is reported once
 * a turn.
 */
export class ConversationNetworks {
  readonly #deps: ConversationNetworksDeps
  readonly #networks: Networks
  readonly #told = new WeakMap<Turn, Set<string>>()
  readonly #resolvers = new Map<string, Promise<string>>()

  constructor(deps: ConversationNetworksDeps) {
    this.#deps = deps
    this.#networks = new Networks({
      log: deps.host.log,
      busy: id => !deps.limiter.idle(id),
      owner: id => ({
        rules: () => this.#rules(),
        refused: (target, sentence) => this.#refused(id, target, sentence),
        taken: port => this.#taken(id, port),
        resolver: address => this.#resolver(address),
      }),
    })
  }

  /** The network of a turn that begins; nobody waits for it before it is needed. */
  async of(id: string): Promise<TurnNetwork> {
    const { settings, listeners } = this.#deps
    const shared = async () => ({ near: true, listeners: await listeners() })
    if ((await settings())?.network === 'shared' || (await wallKind()) === 'none')
      return { kind: async () => 'shared', reach: shared, serve: onLoopback }
    const possible = this.#networks.possible()
    return {
      kind: async () => ((await possible) ? 'own' : 'shared'),
      serve: async server =>
        (await possible)
          ? this.#networks.serve(id, socket => void server.emit('connection', socket.resume()))
          : onLoopback(server),
      wall: {
        enter: async () => {
          if (await possible) return this.#networks.enter(id)
          this.#tell(id, 'missing', NONE)
          return undefined
        },
      },
      reach: async () => {
        if (!(await possible)) return shared()
        const rules = await this.#rules()
        return {
          near: true,
          listeners: rules.listeners,
          own: {
            rules,
            dial: port => this.dial(id, port),
            refused: (target, sentence) => this.#refused(id, target, sentence),
          },
        }
      },
    }
  }

  /**
   * The network of whatever the daemon runs for a conversation outside of its turns, by the settings of that moment.
   */
  wall(id: string): WallNetwork {
    return { enter: async () => (await this.of(id)).wall?.enter() }
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
    const [settings, listeners] = await Promise.all([this.#deps.settings(), this.#deps.listeners()])
    const { networkAllow = [], networkOnly = false } = settings ?? {}
    return { allow: allowedOf(networkAllow), only: networkOnly, listeners }
  }

  #refused(id: string, target: Target, sentence: string): void {
    if (!this.#tell(id, target.host, sentence)) return
    const { host, live } = this.#deps
    void record(host, {
      type: 'network.refused',
      conversationId: id,
      turnId: live(id)!.run,
      outcome: 'error',
      content: sentence,
      extra: { target: written(target) },
    })
  }

  #taken(id: string, port: number): void {
    this.#tell(
      id,
      `port ${port}`,
      `a program of this conversation listens on port ${port}, so localhost:${port} of networkAllow is not there `
        + 'for it',
    )
  }

  /** Writes a notice into the live turn once and answers whether it did; without a turn it writes none. */
  #tell(id: string, what: string, text: string): boolean {
    const turn = this.#deps.live(id)
    if (!turn || turn.leaving) return false
    const told = this.#told.get(turn) ?? new Set()
    this.#told.set(turn, told)
    if (told.has(what) || told.size >= MOST_TOLD) return false
    told.add(what)
    turn.log.push({ kind: 'notice', level: 'warning', text, source: 'network' })
    return true
  }

  /** Removes what a killed daemon left half-written. */
  sweep(): Promise<void> {
    return sweepTemporary(join(this.#deps.folder, 'network'))
  }

  #resolver(address: string): Promise<string> {
    const written =
      this.#resolvers.get(address)
      ?? (async () => {
        const folder = join(this.#deps.folder, 'network')
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

const listening = new WeakMap<Server, Promise<unknown>>()

/** Has a server listen on the machine's loopback, where programs have the network of the machine. */
const onLoopback = async (server: Server): Promise<string> => {
  if (!listening.has(server)) listening.set(server, once(server.listen(0, '127.0.0.1').unref(), 'listening'))
  await listening.get(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
