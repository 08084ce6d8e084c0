import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { ignored, type Host } from '../../../../sdk/index.js'
import { deploymentAuthorities, type Authority } from '../../../../sdk/node/network/authority.js'
import type { Listener } from '../../../../sdk/node/network/addresses.js'
import type { Limiter } from '../../../../sdk/node/limits/limiter.js'
import { allowedOf } from '../../../../sdk/node/network/allow.js'
import type { NetworkOwner } from '../../../../sdk/node/network/own-network.js'
import { Networks } from '../../../../sdk/node/network/networks.js'
import type { KnownListener } from '../../../../sdk/node/network/dial-listener.js'
import { written, type Target } from '../../../../sdk/node/network/host-form.js'
import { isNamed, type NetworkReach, type NetworkRules } from '../../../../sdk/node/network/policy.js'
import { record } from '../../../../sdk/node/record/record.js'
import type { EnteredNetwork } from '../../../../sdk/node/wall/spec.js'
import { wallKind, type WallNetwork } from '../../../../sdk/node/wall/wall.js'
import { joinLocal } from '../../../../sdk/node/network/local/join-local.js'
import { Relays } from '../../networks/relays.js'
import type { BoundValues, ReferenceUser } from '../../secrets/bound-values.js'
import { NetworkFiles } from './network-files.js'
import type { Settings } from '../../../settings/contract.js'
import type { Turn } from '../turn.js'

/** The dependencies of the networks of conversations. */
export interface ConversationNetworksDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  /** The agent's own folder. */
  readonly folder: string
  readonly limiter: Limiter
  readonly settings: () => Promise<Pick<Settings, 'network' | 'networkAllow' | 'networkOnly'> | undefined>
  readonly listeners: () => Promise<readonly Listener[]>
  /** The live turns of a network: that of its conversation, or those that its program serves. */
  readonly live: (id: string) => readonly Turn[]
  /** The values to fill into requests. */
  readonly bound: Pick<BoundValues, 'some' | 'traffic'>
}

/** The network a turn has. */
export interface TurnNetwork {
  /** For the walls of its programs; left out: they have the machine's. */
  readonly wall?: WallNetwork
  /** The kind of network it really has, for the frame `worktree`. */
  kind(): Promise<'own' | 'shared'>
  /** The addresses that the daemon may reach for it. */
  reach(): Promise<NetworkReach>
  /** Makes a server of the daemon reachable for its programs, in place of the one at its port; returns the address. */
  serve(server: Server, port?: number): Promise<string>
}

const MOST_TOLD = 50
/** The network of programs that run for no conversation. */
export const WORK = '.work'
const NONE =
  'this machine can give no conversation a network of its own, so this turn has that of the machine: install '
  + 'iproute2 and util-linux'

/**
 * The networks of conversations: every connection is checked against the current settings, and each refused target is
 * reported once a turn.
 */
export class ConversationNetworks {
  readonly #deps: ConversationNetworksDeps
  readonly #networks: Networks
  readonly #told = new WeakMap<Turn, Set<string>>()
  readonly #toldOfWork = new Set<string>()
  /** The proxies of exits that are placed in each network. */
  readonly #exits = new Map<string, Set<number>>()
  readonly #files: NetworkFiles
  readonly #relays: Relays

  constructor(deps: ConversationNetworksDeps) {
    this.#deps = deps
    this.#files = new NetworkFiles(join(deps.folder, 'network'))
    this.#networks = new Networks({
      log: deps.host.log,
      // Programs of this one run longer than what started them is known here.
      busy: id => id === WORK || !deps.limiter.idle(id),
      owner: id => this.#owner(id),
    })
    this.#relays = new Relays({
      folder: join(deps.folder, 'relays'),
      dial: (id, port, host) => this.#networks.dial(id, port, host),
      listening: () => this.#networks.listening(),
    })
  }

  /**
   * The network of a new turn, created without waiting until it is needed.
   *
   * @param exits Its programs find the proxies of the exits that are up.
   */
  async of(id: string, exits: () => boolean = () => false): Promise<TurnNetwork> {
    const { settings, listeners } = this.#deps
    const shared = async () => ({ near: true, listeners: await listeners() })
    if ((await settings())?.network === 'shared' || (await wallKind()) === 'none')
      return { kind: async () => 'shared', reach: shared, serve: onLoopback }
    const possible = this.#networks.possible()
    return {
      kind: async () => ((await possible) ? 'own' : 'shared'),
      serve: async (server, port) =>
        (await possible)
          ? this.#networks.serve(id, socket => void server.emit('connection', socket.resume()), port)
          : onLoopback(server),
      wall: {
        enter: async () => {
          if (await possible) {
            await this.#placeExits(id, exits())
            return this.#networks.enter(id)
          }
          this.#tell(id, 'missing', NONE)
          return undefined
        },
      },
      reach: async () => {
        if (!(await possible)) return shared()
        const rules = await this.#rules()
        const bound = this.#deps.bound.traffic(id)
        return {
          near: true,
          listeners: rules.listeners,
          own: {
            ...(bound && { bound }),
            rules,
            dial: async port => {
              // An allowed port of the machine is in the network once that is made.
              if (rules.allow.some(entry => entry.kind === 'local' && entry.port === port))
                await this.#networks.enter(id)
              return this.dial(id, port)
            },
            refused: (target, sentence) => this.#refused(id, target, sentence),
          },
        }
      },
    }
  }

  /** Places the proxies of the exits that are up where the machine has them, and takes away those that are not. */
  async #placeExits(id: string, wanted: boolean): Promise<void> {
    const { host } = this.#deps
    const before = this.#exits.get(id) ?? new Set()
    const isPlaced = wanted && !(await this.#rules()).only && (await host.serves('exit.proxies'))
    const { ports } = isPlaced ? await host.call('exit.proxies') : { ports: [] }
    for (const port of before) if (!ports.includes(port)) await this.#networks.withdraw(id, port)
    this.#exits.set(id, new Set(ports))
    for (const port of ports)
      // A program of the conversation may have the port: then it has no proxy there.
      await this.#networks
        .serve(id, socket => void this.#joinExit(socket, port), port)
        .catch(ignored('the port of the exit is taken in the network of the conversation'))
  }

  /** Where only named targets are reached, an exit is no way around that. */
  async #joinExit(socket: Socket, port: number): Promise<void> {
    const isShut = await this.#rules().then(
      ({ only }) => only,
      () => true,
    )
    if (isShut) socket.destroy()
    else joinLocal(socket, port)
  }

  /** The network of programs that the daemon runs for a conversation outside of its turns, by the current settings. */
  wall(id: string): WallNetwork {
    return { enter: async () => (await this.of(id)).wall?.enter() }
  }

  /** The network of programs that run for no conversation; undefined: that of the machine. */
  async work(): Promise<EnteredNetwork | undefined> {
    const { serves, call } = this.#deps.host
    if (!(await serves('members.drivers')) || !(await call('members.drivers')).any) return undefined
    return this.wall(WORK).enter()
  }

  /** A connection to a port of a conversation's own loopback, paused; refused when nothing listens there. */
  dial(id: string, port: number): Promise<Socket> {
    return this.#networks.dial(id, port)
  }

  /** The sockets on which the programs of each conversation listen, in its network. */
  listening(): ReturnType<Networks['listening']> {
    return this.#networks.listening()
  }

  /** The path of a local socket that leads to a server in the network of a conversation. */
  relay(id: string, server: KnownListener): Promise<string> {
    return this.#relays.open(id, server)
  }

  /** Applies changed settings to existing networks. */
  update(): Promise<void> {
    return this.#networks.update()
  }

  /** Closes the network of a deleted conversation. */
  async forget(id: string): Promise<void> {
    this.#networks.forget(id)
    this.#exits.delete(id)
    this.#relays.forget(id)
    await this.#files.forget(id)
  }

  /** Closes all networks when the daemon stops. */
  async close(): Promise<void> {
    this.#networks.close()
    await this.#relays.close()
  }

  #owner(id: string): NetworkOwner {
    const { bound } = this.#deps
    let made: Promise<Authority> | undefined
    const authority = () => (made ??= madeAuthority())
    return {
      rules: () => this.#rules(),
      refused: (target, sentence) => this.#refused(id, target, sentence),
      taken: port => this.#taken(id, port),
      resolver: address => this.#files.resolver(address),
      bound: () => bound.traffic(id),
      authority,
      trusting: async () => {
        if (await bound.some()) return this.#files.authorities(id, await authority())
        return deploymentAuthorities() === '' ? undefined : this.#files.deploymentAuthorities()
      },
    }
  }

  async #rules(): Promise<NetworkRules> {
    const [settings, listeners] = await Promise.all([this.#deps.settings(), this.#deps.listeners()])
    const { networkAllow = [], networkOnly = false } = settings ?? {}
    return { allow: allowedOf(networkAllow), only: networkOnly, listeners }
  }

  #refused(id: string, target: Target, sentence: string): void {
    if (id === WORK) return this.#refusedWork(target, sentence)
    for (const { conversationId, run } of this.#tell(id, target.host, sentence))
      void record(this.#deps.host, {
        type: 'network.refused',
        conversationId,
        turnId: run,
        outcome: 'error',
        content: sentence,
        extra: { target: written(target) },
      })
  }

  #refusedWork(target: Target, sentence: string): void {
    if (this.#toldOfWork.has(target.host) || this.#toldOfWork.size >= MOST_TOLD) return
    this.#toldOfWork.add(target.host)
    const extra = { target: written(target) }
    void record(this.#deps.host, { type: 'network.refused', outcome: 'error', content: sentence, extra })
  }

  /** Reports that a placeholder was sent to a host to which its value is not bound. */
  misdirected({ conversationId, run }: ReferenceUser, name: string, target: string, sentence: string): void {
    const { host, live } = this.#deps
    const [turn] = live(conversationId)
    if (turn && !turn.leaving) turn.log.push({ kind: 'notice', level: 'warning', text: sentence, source: 'network' })
    void record(host, {
      type: 'secret.misdirected',
      conversationId,
      turnId: run,
      outcome: 'error',
      content: sentence,
      extra: { key: name, target },
    })
  }

  /** Whether a maintainer named a target in `networkAllow`. */
  async named(target: Target): Promise<boolean> {
    return isNamed((await this.#rules()).allow, target)
  }

  #taken(id: string, port: number): void {
    this.#tell(
      id,
      `port ${port}`,
      `a program of this conversation listens on port ${port}, so localhost:${port} of networkAllow is not there `
        + 'for it',
    )
  }

  /** Writes a notice into each live turn once; returns those that got it. */
  #tell(id: string, what: string, text: string): Turn[] {
    return this.#deps.live(id).filter(turn => {
      if (turn.leaving) return false
      const told = this.#told.get(turn) ?? new Set()
      this.#told.set(turn, told)
      if (told.has(what) || told.size >= MOST_TOLD) return false
      told.add(what)
      turn.log.push({ kind: 'notice', level: 'warning', text, source: 'network' })
      return true
    })
  }

  /** Removes the files of a killed daemon. */
  sweep(): Promise<void> {
    return this.#files.sweep()
  }
}

/** Few sandboxes bind values to hosts, so the certificate library is loaded on demand. */
const madeAuthority = async (): Promise<Authority> =>
  (await import('../../secrets/conversation-authority.js')).ConversationAuthority.make()

const listening = new WeakMap<Server, Promise<unknown>>()

/** Makes a server listen on loopback, for programs in the network of the machine. */
const onLoopback = async (server: Server): Promise<string> => {
  if (!listening.has(server)) listening.set(server, once(server.listen(0, '127.0.0.1').unref(), 'listening'))
  await listening.get(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
