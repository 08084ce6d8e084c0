import { spawn, type ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { addressKind } from './addresses.js'
import { lowerPriority } from '../programs/priority.js'
import { ownEnv, ownProgram } from '../programs/run.js'
import type { NetworkNamespace } from './namespace.js'
import { ignored } from '../../ignored.js'

/** Networks kept for examples (RFC 5737): hardly a machine has one, and nothing is hidden behind them. */
const NETWORKS = ['192.0.2', '198.51.100', '203.0.113']
const READY_MS = 10_000

/** The addresses of this machine that are public, which no program of a conversation reaches by itself. */
const ownPublic = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap(all => all ?? [])
    .filter(({ family, address }) => family === 'IPv4' && addressKind(address) === 'public')
    .map(({ address }) => address)

/** The first of the networks in which the machine has no address of its own. */
const unused = (own: readonly string[]): string | undefined =>
  NETWORKS.find(network => !own.some(address => address.startsWith(`${network}.`)))

/**
 * The way out for programs that ignore proxies: `slirp4netns` carries what they send to public addresses.
 *
 * The routes of the network refuse all others before it is asked, and nothing in the network can change a route.
 */
export class Slirp {
  readonly #child: ChildProcess
  readonly #namespace: NetworkNamespace
  /** Where names are looked up. */
  readonly resolver: string
  #closed: string
  #over = false

  private constructor(child: ChildProcess, namespace: NetworkNamespace, closed: readonly string[], resolver: string) {
    this.#child = child
    this.#namespace = namespace
    this.resolver = resolver
    this.#closed = closed.join(' ')
    child.once('exit', () => (this.#over = true))
  }

  /** Starts it; undefined where it is not installed or does not start. */
  static async start(namespace: NetworkNamespace): Promise<Slirp | undefined> {
    const program = await ownProgram('slirp4netns')
    const closed = ownPublic()
    const network = unused(closed)
    if (program === undefined || network === undefined) return undefined
    if (closed.length) await namespace.prohibit(closed)
    const { net, user } = namespace.paths
    const child = spawn(
      program,
      [
        '--configure',
        '--mtu=65520',
        `--cidr=${network}.0/24`,
        '--disable-host-loopback',
        '--enable-sandbox',
        '--enable-seccomp',
        '--exit-fd=3',
        '--ready-fd=4',
        '--netns-type=path',
        ...(user === undefined ? [] : [`--userns-path=${user}`]),
        net,
        'tap0',
      ],
      { cwd: '/', env: await ownEnv(), stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true },
    )
    if (child.pid !== undefined) lowerPriority(child.pid)
    const slirp = new Slirp(child, namespace, closed, `${network}.3`)
    const ready = await new Promise<boolean>(resolve => {
      const late = setTimeout(() => resolve(false), READY_MS)
      const is = (up: boolean) => () => {
        clearTimeout(late)
        resolve(up)
      }
      ;(child.stdio[4] as Socket).once('data', is(true))
      child.once('error', is(false)).once('exit', is(false))
    })
    if (!ready) slirp.end()
    child.unref()
    // It ends with this process: the other end of this pipe is then gone.
    for (const pipe of [child.stdio[3], child.stdio[4]] as Socket[])
      pipe.on('error', ignored('its exit follows')).unref()
    return ready ? slirp : undefined
  }

  get over(): boolean {
    return this.#over
  }

  /** The machine's process. */
  get pid(): number | undefined {
    return this.#over ? undefined : this.#child.pid
  }

  /** Refuses the public addresses that the machine has got since. */
  async keep(): Promise<void> {
    const now = ownPublic()
    if (now.join(' ') === this.#closed) return
    try {
      if (now.length) await this.#namespace.prohibit(now)
      this.#closed = now.join(' ')
    } catch (error) {
      this.end()
      throw error
    }
  }

  /** Ends it: nothing leaves the network by this way any more. */
  end(): void {
    if (!this.#over) this.#child.kill('SIGKILL')
  }
}
