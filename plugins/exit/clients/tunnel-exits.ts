import { networkInterfaces } from 'node:os'
import { refuse, Refusal } from '../../../sdk/index.js'
import type { Dial } from '../../../sdk/node/network/policy.js'
import type { Dialled, Standing, TunnelClient } from '../../../sdk/node/tunnels/client.js'
import { interfaceExists } from '../../../sdk/node/tunnels/interfaces.js'
import type { MissingPart, TunnelMachine } from '../../../sdk/node/tunnels/machine.js'
import type { ExitCountries } from '../contract.js'
import { tunnelDial } from '../proxy/dial-tunnel.js'
import { exitInterface, exitTableOf, type ExitSetup } from '../settings/settings.js'
import type { ClientFacts, ExitClient, ExitTask, Rotation, StandingExit } from './client.js'
import { addTable, giveAddress, hasTable, leakOf, removeTable } from './tunnel-table.js'

/** One way out through a tunnel: a server, or a configuration. */
export interface TunnelWay {
  /** Names it among the others. */
  readonly server: string
  /** How it is shown. */
  readonly shown: string
  /** Left out: its country is not known yet. */
  readonly country?: string
}

/** How the tunnels of a provider are dialled. */
export interface TunnelKind<S extends ExitSetup, W extends TunnelWay> {
  missing(machine: TunnelMachine): Promise<MissingPart[]>
  /** The ways out, best first; of a list that is asked where it is old. */
  ways(setup: S, folder: string): Promise<readonly W[]>
  known(setup: S, folder: string): Promise<readonly string[] | undefined>
  countries(setup: S | undefined, folder: string): Promise<ExitCountries>
  /** Dials, and answers the address of this machine where the client does not say it. */
  dial(way: W, task: Pick<ExitTask<S>, 'id' | 'folder' | 'log' | 'signal'>, about: Dialling): Promise<Dialled>
  readonly client: Pick<TunnelClient<never>, 'drop' | 'leave'> & {
    resume?(standing: Standing, settings: () => Promise<undefined>): Promise<void>
  }
  /** Whether the client leaves the interface without an address. */
  readonly bare: boolean
  isAlive(standing: StandingExit): Promise<boolean>
  seen?(standing: StandingExit, country: string): Promise<void>
}
/** What a dial of a tunnel is told. */
export interface Dialling {
  readonly interface: string
  readonly started: (pid: number) => Promise<void>
}

/** A dial of one server takes at most this long. */
const DIAL_MS = 30_000
/** Servers that are tried for one start. */
const MOST_SERVERS = 3

/** Exits through tunnels, each with a route table of its own. */
export class TunnelExits<S extends ExitSetup, W extends TunnelWay> implements ExitClient<S> {
  readonly #kind: TunnelKind<S, W>
  readonly #machine: TunnelMachine

  constructor(kind: TunnelKind<S, W>, machine: TunnelMachine) {
    this.#kind = kind
    this.#machine = machine
  }

  missing(): Promise<MissingPart[]> {
    return this.#kind.missing(this.#machine)
  }

  countries(_: StandingExit | undefined, setup: S | undefined, folder: string): Promise<ExitCountries> {
    return this.#kind.countries(setup, folder)
  }

  known(_: StandingExit | undefined, setup: S, folder: string): Promise<readonly string[] | undefined> {
    return this.#kind.known(setup, folder)
  }

  async start(task: ExitTask<S>): Promise<ClientFacts> {
    task.put({ kind: 'step', step: 'catalogue' })
    return this.#first(task, await this.#waysTo(task))
  }

  async move(task: ExitTask<S>, standing: StandingExit): Promise<ClientFacts> {
    task.put({ kind: 'step', step: 'catalogue' })
    const ways = await this.#waysTo(task)
    await task.begins()
    await this.stop(standing)
    return this.#first(task, ways)
  }

  async assertRotates(task: Pick<ExitTask<S>, 'folder' | 'setup' | 'country'>, standing: StandingExit): Promise<void> {
    const others = (await this.#waysTo(task)).filter(({ server }) => server !== standing.server)
    if (others.length === 0)
      refuse('unprocessable', `there is only one server in ${task.country ?? 'all countries'}: it is the one in use`)
  }

  async rotate(task: ExitTask<S>, standing: StandingExit): Promise<Rotation> {
    task.put({ kind: 'step', step: 'catalogue' })
    const others = (await this.#waysTo(task)).filter(({ server }) => server !== standing.server)
    await task.begins()
    await this.stop(standing)
    return { facts: await this.#first(task, others) }
  }

  /** The ways that come out in the country of a task, those whose country is unknown last. */
  async #waysTo({ setup, folder, country }: Pick<ExitTask<S>, 'setup' | 'folder' | 'country'>): Promise<W[]> {
    const all = await this.#kind.ways(setup, folder)
    const named = all.filter(way => country === undefined || way.country === country)
    const ways = country === undefined ? named : [...named, ...all.filter(way => way.country === undefined)]
    if (ways.length > 0) return ways
    const known = [...new Set(all.flatMap(way => way.country ?? []))].slice(0, 40).join(', ') || 'none'
    return refuse('unprocessable', `there is no server in ${country} now: expected one of ${known}`)
  }

  /** Dials the first way that works. */
  async #first(task: ExitTask<S>, ways: readonly W[]): Promise<ClientFacts> {
    let last: unknown
    for (const way of ways.slice(0, MOST_SERVERS))
      try {
        return await this.#dial(way, task)
      } catch (error) {
        task.signal.throwIfAborted()
        if (!(error instanceof Refusal) && !(error instanceof Error && error.name === 'TimeoutError')) throw error
        last = error
        task.log(`${way.shown}: ${error instanceof Refusal ? error.message : 'it did not answer'}`)
      }
    if (last instanceof Refusal) throw last
    return refuse('dependency', `no server answered within ${DIAL_MS / 1000} s each`)
  }

  async #dial(way: W, task: ExitTask<S>): Promise<ClientFacts> {
    const { id, folder, put, log, started } = task
    const name = exitInterface(id)
    if (await interfaceExists(name))
      refuse('conflict', `this machine has another interface ${name}: give the exit another name`)
    put({ kind: 'step', step: 'dial' })
    log(`dialling ${way.shown}`)
    let facts: ClientFacts = { interface: name, server: way.server }
    await started(facts)
    const signal = AbortSignal.any([task.signal, AbortSignal.timeout(DIAL_MS)])
    try {
      const { dns, address = '' } = await this.#kind.dial(
        way,
        { id, folder, log, signal },
        {
          interface: name,
          started: pid => started((facts = { ...facts, pid })),
        },
      )
      if (address === '') refuse('dependency', 'it is connected, and this machine got no address of IPv4')
      put({ kind: 'step', step: 'tunnel' })
      if (this.#kind.bare) await giveAddress(name, address)
      await addTable({ interface: name, address, table: exitTableOf(id) })
      facts = { ...facts, address, dns }
      await started(facts)
      return facts
    } catch (error) {
      await this.stop({ id, folder, ...facts })
      throw error
    }
  }

  async stop(standing: StandingExit): Promise<void> {
    const name = standing.interface ?? exitInterface(standing.id)
    await this.#kind.client.drop({ ...standing, interface: name })
    await removeTable(exitTableOf(standing.id))
    if (await interfaceExists(name)) refuse('failed', `the operating system still shows the interface ${name}`)
  }

  async lost(standing: StandingExit): Promise<string | undefined> {
    const name = standing.interface ?? ''
    if (!(await this.#kind.isAlive(standing))) return 'its client has ended'
    if (!(await interfaceExists(name))) return `its interface ${name} is gone`
    if (!hasAddress(name, standing.address)) return `its interface ${name} has another address`
    const table = { interface: name, address: standing.address ?? '', table: exitTableOf(standing.id) }
    return (await hasTable(table)) ? undefined : 'its rule or its route is gone'
  }

  leak({ interface: name = '' }: StandingExit): Promise<string | undefined> {
    return leakOf(name)
  }

  async resume(standing: StandingExit): Promise<void> {
    await this.#kind.client.resume?.({ ...standing, interface: standing.interface ?? '' }, async () => undefined)
  }

  dial(standing: StandingExit): Dial {
    const { address = '', dns = [] } = standing
    return tunnelDial(address, dns, async () => hasAddress(standing.interface ?? '', address))
  }

  async seen(standing: StandingExit, country: string): Promise<void> {
    await this.#kind.seen?.(standing, country)
  }

  leave(): void {
    this.#kind.client.leave?.()
  }
}

const hasAddress = (name: string, address: string | undefined): boolean =>
  networkInterfaces()[name]?.some(each => each.address === address) ?? false
