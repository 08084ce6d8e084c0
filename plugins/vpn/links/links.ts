import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, Refusal, type Context } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { TunnelDial, Standing, TunnelClient } from '../../../sdk/node/tunnels/client.js'
import { overlapping } from '../../../sdk/node/tunnels/networks.js'
import { interfaceOf, vpnSettingsOf, type VpnSettings } from '../settings/settings.js'
import { interfaceExists, interfacesNow, routesNow } from '../../../sdk/node/tunnels/interfaces.js'
import { missingSentence } from '../../../sdk/node/tunnels/machine.js'
import { missingFor } from '../system/machine.js'
import type { LinksDeps } from './deps.js'
import { DialLog, hideSecrets } from '../../../sdk/node/tunnels/dial-log.js'
import { WorkSteps } from '../../../sdk/node/tunnels/work-steps.js'
import type { VpnEntry } from './entries.js'
import type { StandingRecord } from './standing-file.js'
import { LinkViews } from './views.js'
import type { VpnLine, VpnLink } from '../contract.js'

const DIAL_MS = 60_000

type DialSteps = WorkSteps<VpnLine, { link: VpnLink }>

/** What is being done with a tunnel at this moment. */
interface Work {
  readonly kind: 'dialling' | 'dropping'
  readonly stop: AbortController
  over: Promise<unknown>
}

/** The tunnels: dials and drops them, one thing at a time for each. */
export class Links {
  readonly views: LinkViews
  readonly #deps: LinksDeps
  readonly #work = new Map<string, Work>()
  /** Why the last dial of a tunnel failed. */
  readonly #failed = new Map<string, string>()
  /** Tunnels that are dialled once the store of secrets is open. */
  readonly #waiting = new Set<string>()

  constructor(deps: LinksDeps) {
    this.#deps = deps
    this.views = new LinkViews(deps, {
      workOf: id => this.#work.get(id)?.kind,
      failureOf: id => this.#failed.get(id),
    })
  }

  /** Dials a tunnel from what is stored of it; the steps go on without their reader. */
  async connect(id: string, otp: string | undefined, context?: Context): Promise<DialSteps> {
    const entry = await this.#deps.entries.open(id)
    const settings = vpnSettingsOf(entry)
    const link = await this.views.link(await this.#deps.entries.get(id))
    if (link.state === 'connected') {
      const steps = new WorkSteps<VpnLine, { link: VpnLink }>()
      steps.put({ kind: 'log', message: `${id} is connected already` })
      steps.finish({ kind: 'result', ok: true, link }, { link })
      return steps
    }
    return this.dial(id, settings, { ...(otp !== undefined && { otp }), ...(context && { context }) })
  }

  /** Dials with settings that may not be stored yet; refuses what cannot begin. */
  async dial(
    id: string,
    settings: VpnSettings,
    { otp, context }: { otp?: string; context?: Context } = {},
  ): Promise<DialSteps> {
    const finished = this.#take(id, 'dialling')
    try {
      await this.#assertCanDial(id, settings)
    } catch (error) {
      finished()
      throw error
    }
    const steps = new WorkSteps<VpnLine, { link: VpnLink }>()
    const work = this.#work.get(id)!
    work.over = this.#dial(id, settings, otp, steps, work.stop.signal)
      .finally(finished)
      .then(
        async () => {
          const link = await this.views.link(await this.#entryFor(id, settings))
          this.#deps.host.emit('vpn.connected', { id })
          await this.#tell('vpn.connected', id, { address: link.address ?? '', routes: link.routes.join(' ') }, context)
          steps.finish({ kind: 'result', ok: true, link }, { link })
        },
        async error => {
          const stopped = work.stop.signal.aborted
          const said = error instanceof Refusal ? error.message : `dialling failed: ${String(error)}`
          // A gateway may repeat what it was given.
          const message = hideSecrets(said, secretsOf(settings, otp))
          if (!stopped) this.#failed.set(id, message)
          if (!stopped) await this.#tell('vpn.failed', id, {}, context, message)
          const reason = error instanceof Refusal ? error.reason : 'dependency'
          steps.fail(new Refusal(reason, stopped ? `the dial of ${id} was stopped` : message, { cause: error }))
        },
      )
      .finally(() => this.views.changed(id))
    return steps
  }

  /** The entry of a tunnel; while it is being added, that of its settings. */
  async #entryFor(id: string, { provider, autoConnect }: VpnSettings): Promise<VpnEntry> {
    return (await this.#deps.entries.find(id)) ?? { id, provider, autoConnect }
  }

  async #assertCanDial(id: string, settings: VpnSettings): Promise<void> {
    const missing = await missingFor(settings.provider, settings, this.#deps.machine)
    if (missing.length > 0) refuse('missing-program', missingSentence(missing))
    const name = interfaceOf(id)
    const standing = await this.#deps.folders.standing(id)
    if (await interfaceExists(name))
      refuse(
        'conflict',
        standing
          ? `${id} is up and has no connection to its gateway: disconnect it first`
          : `this machine has another interface ${name}: rename the tunnel`,
      )
    const all = await routesNow()
    for (const other of await this.#deps.folders.ids()) {
      const up = other === id ? undefined : await this.#deps.folders.standing(other)
      const both = up && overlapping(settings.networks, all.get(up.interface)?.routes ?? [])
      if (both)
        refuse('conflict', `${both.one} overlaps ${both.other}, which goes through ${other}: disconnect that first`)
    }
  }

  async #dial(
    id: string,
    settings: VpnSettings,
    otp: string | undefined,
    steps: DialSteps,
    stop: AbortSignal,
  ): Promise<void> {
    const { folders, host } = this.#deps
    const client = this.#deps.clients[settings.provider] as TunnelClient<VpnSettings>
    const folder = folders.of(id)
    const about: StandingRecord = { interface: interfaceOf(id), provider: settings.provider }
    const log = new DialLog(join(folder, 'dial.log'), secretsOf(settings, otp))
    const told = (line: string): void => steps.put({ kind: 'log', message: log.add(line) })
    this.#failed.delete(id)
    steps.put({ kind: 'state', state: 'connecting' })
    this.views.changed(id)
    let standing: StandingRecord = about
    const dial: TunnelDial<VpnSettings> = {
      ...{ id, interface: about.interface, folder, settings, log: told },
      ...(otp !== undefined && { otp }),
      signal: AbortSignal.any([stop, host.signal, AbortSignal.timeout(DIAL_MS)]),
      started: async pid => folders.write(id, (standing = { ...about, pid })),
    }
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await folders.write(id, about)
      told(`dialling ${settings.gateway ?? 'without a gateway'}`)
      const { dns } = await client.dial(dial)
      if ((await routesNow()).get(about.interface)?.address === undefined)
        refuse('dependency', 'it is connected, and this machine got no address')
      await folders.write(id, { ...standing, dns, since: Date.now() })
      steps.put({ kind: 'state', state: 'connected' })
    } catch (error) {
      told(error instanceof Error ? error.message : String(error))
      // The daemon stops: what it began is removed by the next one.
      if (!host.signal.aborted) await this.#takeDown(id, { id, folder, ...standing })
      throw failureOf(error)
    } finally {
      await log.write()
    }
  }

  async #takeDown(id: string, standing: Standing & StandingRecord): Promise<void> {
    await this.#deps.clients[standing.provider].drop(standing)
    await this.#deps.folders.clear(id)
  }

  /** Takes a tunnel down; a dial in progress ends. */
  async drop(id: string, context?: Context): Promise<void> {
    const { folders } = this.#deps
    for (let work = this.#work.get(id); work; work = this.#work.get(id)) {
      work.stop.abort()
      await work.over.catch(() => undefined)
    }
    this.#failed.delete(id)
    this.#waiting.delete(id)
    const standing = await folders.standing(id)
    if (!standing) return this.views.changed(id)
    const finished = this.#take(id, 'dropping')
    try {
      await this.#takeDown(id, { id, folder: folders.of(id), ...standing })
      if (await interfaceExists(standing.interface))
        refuse('failed', `the operating system still shows the interface ${standing.interface} of ${id}`)
    } finally {
      finished()
      this.views.changed(id)
    }
    await this.#tell('vpn.disconnected', id, {}, context)
  }

  /** Whether it is dialled or up. */
  async isUp(id: string): Promise<boolean> {
    return this.#work.has(id) || (await this.#deps.folders.standing(id))?.since !== undefined
  }

  /** Goes on with what a daemon before this one left, then dials what is to be up. */
  async recover(): Promise<void> {
    const { folders, entries, clients, host } = this.#deps
    await folders.sweep()
    const known = new Map((await entries.all()).map(entry => [entry.id, entry]))
    for (const id of await folders.ids()) {
      const standing = await folders.standing(id)
      const there = known.has(id)
      try {
        const isThere = standing !== undefined && (await interfaceExists(standing.interface))
        if (standing && (!there || !isThere || standing.since === undefined))
          await this.#takeDown(id, { id, folder: folders.of(id), ...standing })
        else if (standing)
          await clients[standing.provider].resume?.({ id, folder: folders.of(id), ...standing }, () =>
            this.#storedSettings(id),
          )
        if (!there) await folders.remove(id)
      } catch (error) {
        host.log.warn('going on with a tunnel failed', { id, error: String(error) })
      }
    }
    await Promise.all([...known.values()].filter(({ autoConnect }) => autoConnect).map(({ id }) => this.#redial(id)))
  }

  async #storedSettings(id: string): Promise<never> {
    return vpnSettingsOf(await this.#deps.entries.open(id)) as never
  }

  /** Dials one that is not up, in the background. */
  async #redial(id: string): Promise<void> {
    this.#waiting.delete(id)
    try {
      const { state } = await this.views.link(await this.#deps.entries.get(id))
      if (state === 'disconnected') await this.connect(id, undefined)
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'not-found') return
      if (error instanceof Refusal && error.reason === 'unavailable') {
        this.#waiting.add(id)
        return
      }
      this.#failed.set(id, error instanceof Refusal ? error.message : 'dialling it failed; the log says why')
      this.#deps.host.log.warn('dialling a tunnel failed', { id, error: String(error) })
    }
  }

  /** Notices tunnels that changed without this daemon. */
  async watch(): Promise<void> {
    const { folders, clients } = this.#deps
    for (const id of [...this.#waiting]) await this.#redial(id)
    const interfaces = await interfacesNow()
    let up = 0
    for (const id of await folders.ids()) {
      const standing = await folders.standing(id)
      if (standing?.since === undefined || this.#work.has(id)) continue
      up++
      const client: TunnelClient<never> = clients[standing.provider]
      const there = interfaces.has(standing.interface)
      if (there && !(await client.isOver?.({ id, folder: folders.of(id), ...standing }))) continue
      // Somebody may have dropped it meanwhile, and dialled it again.
      if ((await folders.standing(id))?.since !== standing.since || this.#work.has(id)) continue
      const finished = this.#take(id, 'dropping')
      try {
        // Its client may go on without its interface.
        await client.drop({ id, folder: folders.of(id), ...standing })
        await folders.clear(id)
      } finally {
        finished()
        this.views.changed(id)
      }
      await this.#tell('vpn.disconnected', id, {})
    }
    if (up > 0) await this.views.compare()
  }

  /** Dials what is stored again, such as after a change of it failed. */
  again(id: string): void {
    void this.#redial(id)
  }

  #take(id: string, kind: Work['kind']): () => void {
    const held = this.#work.get(id)
    if (held)
      refuse('conflict', `${id} is ${held.kind === 'dialling' ? 'being dialled' : 'being dropped'}: wait for it`)
    const work: Work = { kind, stop: new AbortController(), over: Promise.resolve() }
    this.#work.set(id, work)
    const { promise, resolve } = Promise.withResolvers<void>()
    work.over = promise
    return () => {
      if (this.#work.get(id) === work) this.#work.delete(id)
      resolve()
    }
  }

  async #tell(
    type: 'vpn.connected' | 'vpn.disconnected' | 'vpn.failed',
    id: string,
    extra: { [field: string]: string },
    context?: Context,
    error?: string,
  ): Promise<void> {
    const outcome = error === undefined ? ({ outcome: 'ok' } as const) : ({ outcome: 'error', error } as const)
    await record(this.#deps.host, { type, ...outcome, extra: { id, ...extra } }, context)
  }
}

const secretsOf = ({ secrets }: VpnSettings, otp: string | undefined): readonly string[] =>
  otp === undefined ? secrets : [...secrets, otp]

const failureOf = (error: unknown): unknown =>
  error instanceof Error && error.name === 'TimeoutError'
    ? new Refusal('dependency', 'the gateway did not answer within 60 s', { cause: error })
    : error
