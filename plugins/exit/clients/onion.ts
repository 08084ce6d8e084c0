import { readFile, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ignored, refuse } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import type { Dial } from '../../../sdk/node/network/policy.js'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { missingParts, type MissingPart, type TunnelMachine } from '../../../sdk/node/tunnels/machine.js'
import { endProcesses } from '../../../sdk/node/tunnels/processes.js'
import { startLasting } from '../../../sdk/node/tunnels/programs.js'
import type { ExitCatalogues } from '../catalogue/catalogues.js'
import { builtIn, supplyOf } from '../catalogue/countries.js'
import type { RangeFile } from '../catalogue/ranges.js'
import type { ExitCountries } from '../contract.js'
import { dialOnion } from '../proxy/dial-onion.js'
import type { OnionSettings } from '../settings/settings.js'
import type { ClientFacts, ExitClient, ExitTask, Rotation, StandingExit } from './client.js'
import { CONTROL, SOCKS, TorControl, torProcess, type ChosenExits } from './tor-control.js'

const TORRC = 'torrc'
const READY_MS = 120_000
const CONNECT_MS = 10_000
const CHANGE_MS = 10_000
/** Failures of a relay rather than of a target, and how many follow each other before it is given up. */
const RELAY_FAILS: ReadonlySet<string> = new Set(['EHOSTUNREACH', 'ETIMEDOUT'])
const MOST_FAILURES = 3
const COUNTRIES = 'DE US NL FR SE AT CH RO GB PL FI CA LU NO'

export interface OnionDeps {
  readonly machine: TunnelMachine
  readonly catalogues: Pick<ExitCatalogues, 'relays'>
  readonly ranges: RangeFile
  /** Lines that the deployment adds to the configuration. */
  readonly torrc: readonly string[]
  readonly readyMs?: number
  readonly changeMs?: number
}

/** The configuration of a `tor` that is a client alone, whose sockets are in its own folder. */
const torrcText = (folder: string, country: string | undefined, ranges: string, more: readonly string[]): string =>
  [
    ...[`DataDirectory ${JSON.stringify(folder)}`, 'ClientOnly 1', 'RunAsDaemon 0', 'AvoidDiskWrites 1'],
    // The path of a socket has to be short: it is one of the folder in which it runs.
    ...[`SocksPort unix:/proc/self/cwd/./${SOCKS}`, `ControlPort unix:/proc/self/cwd/./${CONTROL}`],
    ...['CookieAuthentication 1', 'Log notice file /proc/self/cwd/tor.log', `GeoIPFile ${JSON.stringify(ranges)}`],
    ...(country === undefined ? [] : [`ExitNodes {${country.toLowerCase()}}`, 'StrictNodes 1']),
    ...more,
    '',
  ].join('\n')

/** Exits through the onion network: one `tor` for each. */
export class OnionClient implements ExitClient<OnionSettings> {
  readonly #deps: OnionDeps
  /** When an exit got other relays last. */
  readonly #changed = new Map<string, number>()

  constructor(deps: OnionDeps) {
    this.#deps = deps
  }

  missing(): Promise<MissingPart[]> {
    return missingParts({ programs: ['tor'] }, this.#deps.machine)
  }

  /** The exit relays of the consensus, of one that is up. */
  async #relays(folder: string) {
    const [relays, ranges] = await Promise.all([
      TorControl.with(folder, control => control.relays()),
      this.#deps.ranges.ranges(),
    ])
    return relays.flatMap(relay => {
      const country = relay.isExit ? ranges.countryOf(relay.ip) : undefined
      return country === undefined ? [] : [{ ...relay, country, weight: relay.bandwidth }]
    })
  }

  async countries(standing: StandingExit | undefined): Promise<ExitCountries> {
    const listed = await this.#deps.catalogues.relays.list().catch(() => undefined)
    if (listed?.live) return { countries: supplyOf(listed.items), live: true }
    const relays = standing ? await this.#relays(standing.folder).catch(() => []) : []
    if (relays.length > 0) return { countries: supplyOf(relays), live: true }
    return { countries: listed ? supplyOf(listed.items) : builtIn(COUNTRIES), live: false }
  }

  async known(standing: StandingExit | undefined): Promise<readonly string[] | undefined> {
    if (standing) {
      const relays = await this.#relays(standing.folder).catch(() => [])
      if (relays.length > 0) return supplyOf(relays).map(({ country }) => country)
    }
    const listed = await this.#deps.catalogues.relays.fresh()
    return listed && supplyOf(listed.items).map(({ country }) => country)
  }

  async start({ folder, country, put, log, signal, started }: ExitTask<OnionSettings>): Promise<ClientFacts> {
    const { ranges, torrc, readyMs = READY_MS } = this.#deps
    put({ kind: 'step', step: 'dial' })
    for (const name of [CONTROL, SOCKS]) await rm(join(folder, name), { force: true })
    await writeAtomic(join(folder, TORRC), torrcText(folder, country, ranges.path, torrc))
    // Settings of the machine's own tor are none of this one.
    const files = ['-f', TORRC, '--defaults-torrc', '/nonexistent', '--ignore-missing-torrc']
    const pid = await startLasting(await needProgram('tor'), files, folder)
    await started({ pid })
    log(`tor is process ${pid}`)
    const control = await this.#connect(folder, pid, signal, log)
    try {
      await control.send('SETEVENTS NOTICE WARN ERR')
      for (const end = Date.now() + readyMs; (await control.progress()) < 100;) {
        if (Date.now() >= end) {
          const known = supplyOf(await this.#relays(folder).catch(() => []))
          assertSupplied(
            country,
            known.map(each => each.country),
          )
          refuse('dependency', `the onion network was not reached within ${readyMs / 1000} s`)
        }
        signal.throwIfAborted()
        await new Promise(resolve => setTimeout(resolve, 200))
      }
    } finally {
      control.end()
    }
    assertSupplied(
      country,
      supplyOf(await this.#relays(folder)).map(each => each.country),
    )
    return { pid }
  }

  /** Connects to one that has just been started. */
  async #connect(folder: string, pid: number, signal: AbortSignal, log: (line: string) => void): Promise<TorControl> {
    for (const end = Date.now() + CONNECT_MS; ;) {
      signal.throwIfAborted()
      try {
        return await TorControl.connect(folder, log)
      } catch (error) {
        if (Date.now() < end && (await isRunning(pid, folder))) {
          await new Promise(resolve => setTimeout(resolve, 50))
          continue
        }
        const said = await readFile(join(folder, 'tor.log'), 'utf8').catch(() => '')
        const words =
          said
            .split('\n')
            .filter(line => /\[(?:err|warn)\]/.test(line))
            .at(-1)
            ?.replace(/^.*\] /, '') ?? ''
        return refuse('dependency', `tor ended before it could be spoken to: ${words.slice(0, 200)}`, { cause: error })
      }
    }
  }

  async move(
    { id, folder, country, put, begins }: ExitTask<OnionSettings>,
    standing: StandingExit,
  ): Promise<ClientFacts> {
    put({ kind: 'step', step: 'dial' })
    await begins()
    await TorControl.with(folder, control => control.leaveThrough({ country }))
    this.#changed.set(id, Date.now())
    return facts(standing)
  }

  async assertRotates({ folder, country }: Pick<ExitTask, 'folder' | 'country'>): Promise<void> {
    const relays = await this.#relays(folder)
    const there = relays.filter(relay => country === undefined || relay.country === country)
    if (there.length < 2)
      refuse('unprocessable', `the onion network has only ${there.length} exit in ${country ?? 'all countries'} now`)
  }

  async rotate(
    { id, folder, country, put, log, signal, begins }: ExitTask<OnionSettings>,
    standing: StandingExit,
    seen: string | undefined,
  ): Promise<Rotation> {
    const { changeMs = CHANGE_MS } = this.#deps
    const waits = (this.#changed.get(id) ?? -Infinity) + changeMs - Date.now()
    if (waits > 0) {
      log(`it changed less than ${changeMs / 1000} s ago: waiting`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, waits)
        signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
      })
      signal.throwIfAborted()
    }
    put({ kind: 'step', step: 'dial' })
    const change = async (exits: ChosenExits, without: readonly string[]): Promise<void> => {
      await TorControl.with(folder, control => control.leaveThrough(exits, without))
      this.#changed.set(id, Date.now())
    }
    const present = await TorControl.with(folder, async control => {
      const own = (await control.relays()).filter(({ ip, isExit }) => isExit && ip === seen)
      if (own.length > 0) return own.map(({ fingerprint }) => fingerprint)
      // Its address is another one outside: then it is the last relay of a circuit that stands.
      const open = (await control.circuits()).filter(({ leaves, state, last }) => leaves && state === 'BUILT' && last)
      return [...new Set(open.map(({ last }) => last))]
    })
    await begins()
    await change({ country }, present)
    return { facts: facts(standing), takeBack: () => change({ country, relays: present }, []) }
  }

  async stop({ id, folder, pid }: StandingExit): Promise<void> {
    this.#changed.delete(id)
    await endProcesses(async each => (each === pid || pid === undefined) && isRunning(each, folder))
    if (pid !== undefined && (await isRunning(pid, folder)))
      refuse('failed', `tor is still there after it was killed (process ${pid})`)
    for (const name of [CONTROL, SOCKS, TORRC]) await rm(join(folder, name), { force: true })
  }

  async lost({ folder, pid }: StandingExit): Promise<string | undefined> {
    if (pid === undefined || !(await isRunning(pid, folder))) return 'its client tor has ended'
    return torProcess(folder).then(
      found => (found === pid ? undefined : 'another tor answers in its place'),
      () => 'its client tor does not answer',
    )
  }

  async leak(): Promise<undefined> {
    return undefined
  }

  async resume(): Promise<void> {}

  /** Keeps to the relay that was seen, if it is known by its address. */
  async settle(standing: StandingExit, seen: string): Promise<ClientFacts> {
    const { folder } = standing
    const relay = (await this.#relays(folder)).find(({ ip }) => ip === seen)
    if (!relay) return facts(standing)
    await TorControl.with(folder, control => control.pin(relay.fingerprint))
    return { ...facts(standing), server: relay.fingerprint }
  }

  dial({ folder, server, country }: StandingExit): Dial {
    let failures = 0
    return async target => {
      try {
        const socket = await dialOnion(folder, target)
        failures = 0
        return socket
      } catch (error) {
        const isRelay = RELAY_FAILS.has(codeOf(error) ?? '')
        // The relay may be gone: then others of the country take its place.
        if (server !== undefined && isRelay && ++failures === MOST_FAILURES)
          await TorControl.with(folder, control => control.leaveThrough({ country })).catch(
            ignored('the client that dials gets its own failure'),
          )
        throw error
      }
    }
  }
}

const facts = ({ pid }: StandingExit): ClientFacts => ({ ...(pid !== undefined && { pid }) })

/** Refuses a country that a list has no server in. */
export const assertSupplied = (country: string | undefined, known: readonly string[]): void => {
  if (country === undefined || known.includes(country)) return
  const those = known.slice(0, 40).join(', ') || 'none'
  refuse('unprocessable', `there is no server in ${country} now: expected one of ${those}`)
}

/** Whether a process is the `tor` of a folder. */
const isRunning = async (pid: number, folder: string): Promise<boolean> => {
  try {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0')
    return words.includes(TORRC) && (await readlink(`/proc/${pid}/cwd`)) === folder
  } catch (error) {
    // Of a process that ended meanwhile, or of another user, nothing can be read.
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(codeOf(error) ?? '')) return false
    throw error
  }
}
