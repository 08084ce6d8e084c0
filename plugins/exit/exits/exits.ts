import { refuse, Refusal, type Context } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { record } from '../../../sdk/node/record/record.js'
import { DialLog, hideSecrets } from '../../../sdk/node/tunnels/dial-log.js'
import { missingSentence } from '../../../sdk/node/tunnels/machine.js'
import { WorkSteps } from '../../../sdk/node/tunnels/work-steps.js'
import type { ClientFacts, ExitClient, ExitTask, StandingExit } from '../clients/client.js'
import { assertSupplied } from '../clients/onion.js'
import type { ExitCountries, ExitLine, ExitLink, ExitObservation } from '../contract.js'
import { observe } from '../proxy/check.js'
import type { ExitProxy } from '../proxy/exit-proxy.js'
import type { ExitSetup } from '../settings/settings.js'
import { CheckLimit } from './check-limit.js'
import type { ExitsDeps } from './deps.js'
import type { ExitEntry } from './entries.js'
import type { ExitStanding } from './folders.js'
import { ExitViews, logFile } from './views.js'

type Work = 'starting' | 'moving' | 'rotating' | 'stopping'
type ExitSteps = WorkSteps<ExitLine, { link: ExitLink }>
/** What is asked of a start. */
interface Asked {
  readonly kind: Exclude<Work, 'stopping'>
  readonly setup: ExitSetup
  readonly country: string | undefined
  /** The country is kept as what a person chose. */
  readonly chosen: boolean
}

/** What is checked, and how often it may stay silent. */
interface Proof {
  readonly proxy: ExitProxy
  readonly folder: string
  readonly country: string | undefined
  readonly steps: ExitSteps
  readonly tries: number
  readonly signal: AbortSignal
}

const TRIES = 3
const PAUSE_MS = 1000
/** A relay that does not answer is given up sooner where the one before still works. */
const ROTATED_TRIES = 2

/** The exits: started, moved, checked and stopped, one thing at a time for each. */
export class Exits {
  readonly views: ExitViews
  readonly #deps: ExitsDeps
  readonly #work = new Map<string, { kind: Work; stop: AbortController; over: Promise<void> }>()
  readonly #failed = new Map<string, string>()
  /** Exits that are started once the store of secrets is open. */
  readonly #waiting = new Set<string>()
  readonly #limit = new CheckLimit()

  constructor(deps: ExitsDeps) {
    this.#deps = deps
    this.views = new ExitViews(deps, {
      isWorking: id => this.#work.has(id),
      failureOf: id => this.#failed.get(id),
    })
  }

  /** Starts an exit at its country; one that is up says so. */
  async start(id: string, context?: Context): Promise<ExitSteps> {
    const entry = await this.#deps.entries.get(id)
    const setup = await this.#deps.entries.setup(id)
    const link = await this.views.link(entry)
    if (link.state === 'up') {
      const steps: ExitSteps = new WorkSteps()
      steps.put({ kind: 'log', message: `${id} is up already` })
      steps.finish({ kind: 'result', ok: true, link }, { link })
      return steps
    }
    return this.begin(entry, { kind: 'starting', setup, country: link.country, chosen: false }, context)
  }

  /** Moves an exit to a country; undefined: where the provider chooses. */
  async use(id: string, country: string | undefined, context?: Context): Promise<ExitSteps> {
    const entry = await this.#deps.entries.get(id)
    const setup = await this.#deps.entries.setup(id)
    const isUp = (await this.views.link(entry)).state === 'up'
    return this.begin(entry, { kind: isUp ? 'moving' : 'starting', setup, country, chosen: true }, context)
  }

  /** Takes another address in the same country. */
  async rotate(id: string, context?: Context): Promise<ExitSteps> {
    const entry = await this.#deps.entries.get(id)
    const setup = await this.#deps.entries.setup(id)
    const { state, country } = await this.views.link(entry)
    if (state !== 'up') refuse('conflict', `${id} is ${state}: start it first`)
    return this.begin(entry, { kind: 'rotating', setup, country, chosen: false }, context)
  }

  /** Begins with settings that may not be stored yet; refuses what cannot begin. */
  async begin(entry: ExitEntry, asked: Asked, context?: Context): Promise<ExitSteps> {
    const { id } = entry
    const work = this.#take(id, asked.kind)
    try {
      const standing = await this.#assertCan(entry, asked)
      const proxy = await this.#deps.proxies.publish(id)
      const steps: ExitSteps = new WorkSteps()
      void this.#carryOut(entry, asked, standing, proxy, steps, work.signal).then(
        async () => {
          work.finish()
          const link = await this.views.link((await this.#deps.entries.find(id)) ?? entry)
          this.views.changed(id)
          await this.#told(asked.kind === 'starting' ? 'exit.up' : 'exit.moved', link, context)
          steps.finish({ kind: 'result', ok: true, link }, { link })
        },
        async (error: unknown) => {
          const stopped = work.signal.aborted
          const said = error instanceof Refusal ? error.message : `it failed: ${String(error)}`
          const message = hideSecrets(said, asked.setup.secrets)
          const stands = (await this.#deps.folders.standing(id))?.since !== undefined
          if (!stopped && !stands) this.#failed.set(id, message)
          work.finish()
          this.views.changed(id)
          if (!stopped) await this.#toldFailure(id, message, context)
          const reason = error instanceof Refusal ? error.reason : 'dependency'
          steps.fail(new Refusal(reason, stopped ? `${id} was stopped meanwhile` : message, { cause: error }))
        },
      )
      return steps
    } catch (error) {
      work.finish()
      throw error
    }
  }

  async #assertCan(entry: ExitEntry, { kind, setup, country }: Asked): Promise<StandingExit | undefined> {
    const { id } = entry
    const { folders } = this.#deps
    const client = this.#clientOf(setup.provider)
    const missing = await client.missing()
    if (missing.length > 0) refuse('missing-program', missingSentence(missing))
    const stored = await folders.standing(id)
    const folder = folders.of(id)
    const standing = stored && { id, folder, ...stored }
    if (kind !== 'starting' && stored?.since === undefined) refuse('conflict', `${id} was stopped meanwhile`)
    if (kind === 'rotating') await client.assertRotates({ id, folder, setup, country }, standing!)
    else {
      const known = await client.known(kind === 'moving' ? standing : undefined, setup, folder)
      if (known) assertSupplied(country, known)
    }
    return standing
  }

  async #carryOut(
    { id }: ExitEntry,
    { kind, setup, country, chosen }: Asked,
    before: StandingExit | undefined,
    proxy: ExitProxy,
    steps: ExitSteps,
    stop: AbortSignal,
  ): Promise<void> {
    const { folders, host, proxies } = this.#deps
    const folder = await folders.make(id)
    const client = this.#clientOf(setup.provider)
    const log = new DialLog(logFile(folder), setup.secrets)
    const told = (line: string): void => steps.put({ kind: 'log', message: log.add(line) })
    const stored = await folders.standing(id)
    const about = { provider: setup.provider, ...(country !== undefined && { country }) }
    let facts: Omit<ExitStanding, 'provider'> = before ? factsOf(before) : {}
    const begins = async (): Promise<void> => {
      proxy.through(undefined)
      await folders.write(id, { ...facts, ...about })
    }
    const task: ExitTask = {
      ...{ id, folder, setup, country, put: steps.put, log: told, begins },
      signal: AbortSignal.any([stop, host.signal]),
      started: async now => {
        await folders.write(id, { ...(facts = now), ...about })
        failpoint('exit.start.noted')
      },
    }
    this.#failed.delete(id)
    this.views.changed(id)
    try {
      // What is left of an exit whose client is gone.
      if (kind === 'starting' && stored) await this.#takeDown(id, { id, folder, ...stored })
      if (kind === 'starting') {
        facts = {}
        await begins()
      }
      const seenBefore = stored?.seen?.ip
      const since = (kind === 'starting' ? undefined : stored?.since) ?? Date.now()
      const prove = async (now: typeof facts, tries = TRIES): Promise<ExitObservation> => {
        facts = now
        steps.put({ kind: 'step', step: 'proxy' })
        proxy.through(client.dial({ id, folder, ...facts, ...about }))
        steps.put({ kind: 'step', step: 'check' })
        return this.#proven({ proxy, folder, country, steps, tries, signal: task.signal })
      }
      const kept = async (seen: ExitObservation): Promise<void> => {
        const { ip, country: found } = seen
        const own = { id, folder, ...facts, ...about }
        if (found !== undefined) await client.seen?.(own, found)
        facts = (await client.settle?.(own, ip)) ?? facts
        if (client.settle) proxy.through(client.dial({ ...own, ...facts }))
        const observed = { ip, at: Date.now(), ...(found !== undefined && { country: found }) }
        if (chosen) await folders.select(id, country === undefined ? {} : { country })
        await folders.write(id, { ...facts, ...about, since, seen: observed })
        failpoint('exit.start.proven')
        proxy.proven()
      }
      if (kind !== 'rotating') {
        const now = kind === 'moving' ? await client.move(task, before!) : await client.start(task)
        return await kept(await prove(now))
      }
      const { facts: now, takeBack } = await client.rotate(task, before!, seenBefore)
      const same = () => refuse('dependency', `its address is still ${seenBefore}: nothing else came out`)
      try {
        const seen = await prove(now, takeBack ? ROTATED_TRIES : TRIES)
        if (seen.ip !== seenBefore || !takeBack) await kept(seen)
        if (seen.ip !== seenBefore) return
        if (!takeBack) return same()
      } catch (error) {
        if (!takeBack || task.signal.aborted) throw error
        told(error instanceof Error ? error.message : String(error))
      }
      // It may still come out where it was.
      await takeBack!()
      await kept(await prove(now))
      return same()
    } catch (error) {
      told(error instanceof Error ? error.message : String(error))
      const stands = (await folders.standing(id))?.since !== undefined
      // The daemon stops: what it began is removed by the next one.
      if (!host.signal.aborted && !stands) {
        await this.#takeDown(id, { id, folder, ...facts, provider: setup.provider })
        await proxies.withdraw(id)
      }
      throw error
    } finally {
      await log.write()
    }
  }

  /** Checks where an exit comes out, until an answer agrees with what was asked for. */
  async #proven({ proxy, folder, country, steps, tries: most, signal }: Proof): Promise<ExitObservation> {
    for (let tries = 1; ; tries++) {
      try {
        const seen = await this.#observe(proxy, folder, signal)
        steps.put({ kind: 'observed', ...seen })
        if (country === undefined || seen.country === country) return seen
        return refuse(
          'dependency',
          `${country} was asked for, and it came out in ${seen.country ?? 'an unknown country'} (${seen.ip}): stopped`,
        )
      } catch (error) {
        const isSilence = error instanceof Refusal && error.message.startsWith('no check address')
        if (!isSilence || tries === most) throw error
        steps.put({ kind: 'log', message: error.message })
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
        signal.throwIfAborted()
      }
    }
  }

  async #observe(proxy: ExitProxy, folder: string, signal: AbortSignal): Promise<ExitObservation> {
    const door = await proxy.door(folder)
    try {
      return await observe(door.path, this.#deps.checks, this.#deps.ranges, signal)
    } finally {
      await door.close()
    }
  }

  /** Asks where an exit that is up comes out. */
  async check(id: string, limited = true): Promise<ExitObservation> {
    const { entries, folders, proxies, host } = this.#deps
    const entry = await entries.get(id)
    const { state } = await this.views.link(entry)
    const proxy = proxies.of(id)
    if (state !== 'up' || !proxy) return refuse('conflict', `${id} is ${state}: start it first`)
    if (limited) this.#limit.count(id)
    const before = await folders.standing(id)
    const seen = await this.#observe(proxy, folders.of(id), host.signal)
    const standing = await folders.standing(id)
    // It may have been moved or stopped meanwhile.
    if (standing?.since === undefined || this.#work.has(id) || standing.since !== before?.since) return seen
    const { ip, country } = seen
    await folders.write(id, { ...standing, seen: { ip, at: Date.now(), ...(country !== undefined && { country }) } })
    if (standing.seen?.ip !== ip || standing.seen.country !== country) this.views.changed(id)
    return seen
  }

  /** Where an exit can come out. */
  async countries(id: string): Promise<ExitCountries> {
    const { entries, folders } = this.#deps
    const { provider } = await entries.get(id)
    const stored = await folders.standing(id)
    const standing = stored?.since === undefined ? undefined : { id, folder: folders.of(id), ...stored }
    // Only the configurations of WireGuard are a list of their own.
    const setup = provider === 'wireguard' ? await entries.setup(id) : undefined
    return this.#clientOf(provider).countries(standing, setup, folders.of(id))
  }

  /** The ports of the exits that are up. */
  async ports(): Promise<number[]> {
    const ids = await this.#deps.folders.ids()
    return ids.flatMap(id => {
      const proxy = this.#deps.proxies.of(id)
      return proxy?.isProven ? [proxy.port] : []
    })
  }

  /** The port of an exit that is proven now. */
  async proxyFor(id: string): Promise<number> {
    const entry = await this.#deps.entries.get(id)
    const link = await this.views.link(entry)
    if (link.state !== 'up') {
      const steps = (await this.start(id))[Symbol.asyncIterator]()
      while (!(await steps.next()).done);
    } else {
      const { country } = await this.check(id, false)
      if (link.country !== undefined && country !== link.country)
        refuse('dependency', `the exit ${id} came out in ${country ?? 'an unknown country'} instead of ${link.country}`)
    }
    return this.#deps.proxies.of(id)?.port ?? refuse('conflict', `the exit ${id} was stopped meanwhile`)
  }

  async #takeDown(id: string, standing: StandingExit & Pick<ExitStanding, 'provider'>): Promise<void> {
    const { proxies, folders } = this.#deps
    proxies.of(id)?.through(undefined)
    await this.#clientOf(standing.provider).stop(standing)
    await folders.clear(id)
  }

  /** Stops an exit; what is in progress ends. */
  async stop(id: string, context?: Context): Promise<void> {
    const { folders, proxies } = this.#deps
    for (let work = this.#work.get(id); work; work = this.#work.get(id)) {
      work.stop.abort()
      await work.over
    }
    this.#failed.delete(id)
    this.#waiting.delete(id)
    const work = this.#take(id, 'stopping')
    const standing = await folders.standing(id)
    try {
      if (standing) await this.#takeDown(id, { id, folder: folders.of(id), ...standing })
      await proxies.withdraw(id)
    } finally {
      work.finish()
      this.views.changed(id)
    }
    if (standing) await record(this.#deps.host, { type: 'exit.down', outcome: 'ok', extra: { id } }, context)
  }

  async isUp(id: string): Promise<boolean> {
    return this.#work.has(id) || (await this.#deps.folders.standing(id))?.since !== undefined
  }

  /** Goes on with what a daemon before this one left, then starts what is to be up. */
  async recover(): Promise<void> {
    const { folders, entries, host, proxies } = this.#deps
    await folders.sweep()
    const known = new Map((await entries.all()).map(entry => [entry.id, entry]))
    for (const id of await folders.ids()) {
      try {
        const standing = await folders.standing(id)
        const own = standing && { id, folder: folders.of(id), ...standing }
        const client = own && this.#clientOf(own.provider)
        const isWhole = own?.since !== undefined && known.has(id) && (await client!.lost(own)) === undefined
        if (own && !isWhole) await this.#takeDown(id, own)
        else if (own) {
          const proxy = await proxies.publish(id)
          await client!.resume(own)
          proxy.through(client!.dial(own))
          proxy.proven()
          this.views.changed(id)
        }
        if (!known.has(id)) await folders.remove(id)
      } catch (error) {
        this.#failed.set(id, error instanceof Refusal ? error.message : 'going on with it failed; the log says why')
        host.log.warn('going on with an exit failed', { id, error: String(error) })
      }
    }
    await Promise.all([...known.values()].filter(({ autoStart }) => autoStart).map(({ id }) => this.again(id)))
  }

  /** Starts one that is down, in the background. */
  async again(id: string): Promise<void> {
    this.#waiting.delete(id)
    try {
      if ((await this.views.link(await this.#deps.entries.get(id))).state === 'down') await this.start(id)
    } catch (error) {
      const reason = error instanceof Refusal ? error.reason : ''
      if (reason === 'not-found' || reason === 'conflict') return
      if (reason === 'unavailable') return void this.#waiting.add(id)
      this.#failed.set(id, error instanceof Refusal ? error.message : 'starting it failed; the log says why')
      this.#deps.host.log.warn('starting an exit failed', { id, error: String(error) })
    }
  }

  /** Notices exits whose clients ended without this daemon. */
  async watch(): Promise<void> {
    for (const id of [...this.#waiting]) await this.again(id)
    await this.views.compare()
  }

  /** Stops exits into which the machine's own traffic could go. */
  async guard(): Promise<void> {
    const { folders, host } = this.#deps
    for (const id of await folders.ids()) {
      const standing = await folders.standing(id)
      if (standing?.since === undefined || this.#work.has(id)) continue
      const leak = await this.#clientOf(standing.provider).leak({ id, folder: folders.of(id), ...standing })
      if (leak === undefined) continue
      await this.stop(id)
      this.#failed.set(id, `${leak}: stopped`)
      this.views.changed(id)
      await this.#toldFailure(id, `${leak}: stopped`)
      host.log.warn('an exit was stopped', { id, leak })
    }
  }

  #clientOf(provider: ExitSetup['provider']): ExitClient {
    return this.#deps.clients[provider]
  }

  #take(id: string, kind: Work): { readonly signal: AbortSignal; finish: () => void } {
    const held = this.#work.get(id)
    if (held) refuse('conflict', `${id} is ${held.kind}: wait for it, or stop it`)
    const { promise, resolve } = Promise.withResolvers<void>()
    const work = { kind, stop: new AbortController(), over: promise }
    this.#work.set(id, work)
    const finish = (): void => {
      if (this.#work.get(id) === work) this.#work.delete(id)
      resolve()
    }
    return { signal: work.stop.signal, finish }
  }

  async #told(type: 'exit.up' | 'exit.moved', link: ExitLink, context?: Context): Promise<void> {
    const { id, country = '', observedCountry = '', ip = '' } = link
    await record(this.#deps.host, { type, outcome: 'ok', extra: { id, country, observedCountry, ip } }, context)
  }

  async #toldFailure(id: string, message: string, context?: Context): Promise<void> {
    const event = { type: 'exit.failed', outcome: 'error', error: message, extra: { id, message } } as const
    await record(this.#deps.host, event, context)
  }
}

const factsOf = ({ pid, interface: name, address, dns, server }: StandingExit): ClientFacts => ({
  ...(pid !== undefined && { pid }),
  ...(name !== undefined && { interface: name }),
  ...(address !== undefined && { address }),
  ...(dns !== undefined && { dns }),
  ...(server !== undefined && { server }),
})
