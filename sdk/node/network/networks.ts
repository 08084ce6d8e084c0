import type { Socket } from 'node:net'
import { refuse } from '../../refusal.js'
import { Semaphore } from '../concurrency/semaphore.js'
import type { EnteredNetwork } from '../wall/spec.js'
import { OwnNetwork, type NetworkOwner } from './own-network.js'
import type { ListeningSocket, Loopback } from './socket-table.js'
import { ignored } from '../../ignored.js'

const LOOK_MS = 2_500
/** A command that was made for a network starts within this time. */
const STARTS_MS = 10_000
const AGAIN_MS = 60_000
/** The next network is made this long after one was used: the program that uses that one starts first. */
const NEXT_MS = 1_000
/** Networks made at once: many more at a time would keep the processors from everything else. */
const MADE_AT_ONCE = 3

/** Whether this machine has made one for this process. */
let could = false

interface Kept {
  readonly network: Promise<OwnNetwork>
  usedAt: number
}

/** What the networks of conversations stand on. */
export interface NetworksOptions {
  readonly owner: (id: string) => NetworkOwner
  /** Whether anything runs for a conversation, or is about to. */
  readonly busy: (id: string) => boolean
  readonly log: { warn(message: string, fields?: object): void }
}

/**
 * One network for each conversation: made with the first program that runs for it, kept while anything does. One is
 * kept ready, so that no program waits for the next.
 */
export class Networks {
  readonly #options: NetworksOptions
  readonly #kept = new Map<string, Kept>()
  readonly #making = new Semaphore(MADE_AT_ONCE)
  #ready: Promise<OwnNetwork> | undefined
  #failedAt = -Infinity
  #timer: NodeJS.Timeout | undefined
  #next: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: NetworksOptions) {
    this.#options = options
  }

  /**
   * Whether this machine can make them. One that could once can: where it fails for the moment, a program is refused
   * rather than given the machine's network.
   */
  async possible(): Promise<boolean> {
    if (process.platform !== 'linux' || this.#closed) return false
    if (could) return true
    if (!this.#ready && performance.now() - this.#failedAt < AGAIN_MS) return false
    return this.#prepare().then(
      () => true,
      () => false,
    )
  }

  /** Enters the network of a conversation. */
  async enter(id: string): Promise<EnteredNetwork> {
    const entered = await (await this.#of(id)).enter()
    this.#use(id)
    return entered
  }

  /** Hands connections from a conversation's programs to the daemon; answers the address they use. */
  async serve(id: string, take: (socket: Socket) => void, port?: number): Promise<string> {
    const address = await (await this.#of(id)).serve(take, port)
    this.#use(id)
    return address
  }

  /** Takes away what was handed to the daemon at a port. */
  async withdraw(id: string, port: number): Promise<void> {
    const network = await this.#kept.get(id)?.network
    network?.withdraw(port)
  }

  /** The sockets on which the programs of each conversation listen, in its network. */
  async listening(): Promise<{ readonly id: string; readonly sockets: readonly ListeningSocket[] }[]> {
    const networks = [...this.#kept].map(async ([id, { network }]) => ({ id, sockets: (await network).listening() }))
    return (await Promise.allSettled(networks)).flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  }

  /** A connection to a port of a conversation's loopback; refused when nothing runs for it. */
  async dial(id: string, port: number, host?: Loopback): Promise<Socket> {
    const kept =
      this.#kept.get(id)
      ?? refuse('dependency', `nothing is listening on port ${port} in the network of the conversation`)
    this.#use(id)
    return (await kept.network).dial(port, host)
  }

  /** Every network follows the rules as they are now. */
  async update(): Promise<void> {
    await Promise.all(
      [...this.#kept.values()].map(async ({ network }) =>
        (await network).update().catch(ignored('a network that could not be made has no rules to follow')),
      ),
    )
  }

  /** Closes the network of a deleted conversation. */
  forget(id: string): void {
    const kept = this.#kept.get(id)
    this.#kept.delete(id)
    void kept?.network.then(
      network => network.close(),
      () => {},
    )
  }

  /** Lets go of all. */
  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
    clearTimeout(this.#next)
    for (const id of this.#kept.keys()) this.forget(id)
    void this.#ready?.then(
      network => network.close(),
      () => {},
    )
    this.#ready = undefined
  }

  #use(id: string): void {
    const kept = this.#kept.get(id)
    if (kept) kept.usedAt = performance.now()
  }

  async #of(id: string): Promise<OwnNetwork> {
    const known = this.#kept.get(id)
    if (known) return known.network
    if (this.#closed) refuse('unavailable', 'the sandbox is stopping')
    const network = (async () => {
      const made = await this.#prepare()
      await this.#making.run(() => made.own(this.#options.owner(id)))
      return made
    })()
    this.#ready = undefined
    this.#kept.set(id, { network, usedAt: performance.now() })
    this.#timer ??= setInterval(() => this.#sweep(), LOOK_MS).unref()
    try {
      await network
    } catch (error) {
      this.#kept.delete(id)
      refuse(
        'dependency',
        `the network of the conversation could not be made: ${error instanceof Error ? error.message : String(error)}`,
        { cause: error },
      )
    }
    if (!this.#closed) this.#next ??= setTimeout(() => this.#prepareNext(), NEXT_MS).unref()
    return network
  }

  #prepareNext(): void {
    this.#next = undefined
    void this.#prepare().catch(ignored('the next conversation makes its network itself'))
  }

  #prepare(): Promise<OwnNetwork> {
    this.#ready ??= this.#making
      .run(() => OwnNetwork.make())
      .then(
        network => {
          could = true
          return network
        },
        (error: unknown) => {
          this.#ready = undefined
          this.#failedAt = performance.now()
          this.#options.log.warn('a network of its own could not be made for a conversation', { error: String(error) })
          throw error
        },
      )
    return this.#ready
  }

  #sweep(): void {
    const now = performance.now()
    for (const [id, kept] of this.#kept) {
      if (this.#options.busy(id)) kept.usedAt = now
      else if (now - kept.usedAt > STARTS_MS) this.forget(id)
    }
  }
}
