import { join } from 'node:path'
import type { TunnelClient } from '../../../sdk/node/tunnels/client.js'
import type { VpnDetail, VpnLink } from '../contract.js'
import { isEverything } from '../../../sdk/node/tunnels/networks.js'
import {
  interfacesNow,
  routesNow,
  type InterfaceRoutes,
  type NetworkInterface,
} from '../../../sdk/node/tunnels/interfaces.js'
import { missingSentence } from '../../../sdk/node/tunnels/machine.js'
import { missingFor } from '../system/machine.js'
import { dialLogIn, hideSecrets } from '../../../sdk/node/tunnels/dial-log.js'
import type { VpnEntry } from './entries.js'
import type { LinksDeps } from './deps.js'

const PROBE_MS = 3000

/** What is happening with tunnels at this moment. */
export interface Happening {
  workOf(id: string): 'dialling' | 'dropping' | undefined
  failureOf(id: string): string | undefined
}

/** The operating system's side of all tunnels, read once for a list. */
interface Now {
  readonly interfaces: ReadonlyMap<string, NetworkInterface>
  readonly routes: () => Promise<ReadonlyMap<string, InterfaceRoutes>>
}

interface Probed {
  readonly link: VpnLink
  readonly counters?: NetworkInterface
  readonly handshakeAt?: number
}

/** Tunnels as the operating system has them now. */
export class LinkViews {
  readonly #deps: LinksDeps
  readonly #happening: Happening
  /** Each tunnel as it was seen last. */
  #seen = new Map<string, string>()

  constructor(deps: LinksDeps, happening: Happening) {
    this.#deps = deps
    this.#happening = happening
  }

  async list(): Promise<VpnLink[]> {
    const entries = await this.#deps.entries.all()
    const now = entries.length > 0 ? await this.#now() : undefined
    return now ? Promise.all(entries.map(async entry => (await this.#probe(entry, now)).link)) : []
  }

  async link(entry: VpnEntry): Promise<VpnLink> {
    return (await this.#probe(entry, await this.#now())).link
  }

  async detail(entry: VpnEntry): Promise<VpnDetail> {
    const { entries, machine, folders } = this.#deps
    const { settings } = await entries.facts(entry.id)
    const [{ link, counters, handshakeAt }, missing, log] = await Promise.all([
      this.#now().then(now => this.#probe(entry, now)),
      missingFor(entry.provider, settings?.whole, machine),
      dialLogIn(join(folders.of(entry.id), 'dial.log')),
    ])
    return {
      ...link,
      fullTunnel: isEverything(link.routes),
      ...(counters && { rxBytes: counters.rxBytes, txBytes: counters.txBytes }),
      ...(handshakeAt !== undefined && { handshakeAt }),
      missing,
      log: hideSecrets(log?.text ?? '', settings?.secrets ?? []),
      ...(log && { logAt: log.at }),
    }
  }

  /** Publishes that a tunnel changed. */
  changed(id: string): void {
    const { host } = this.#deps
    host
      .call('kernel.events.publish', { domain: 'vpn', key: id })
      .catch(error => host.signal.aborted || host.log.warn('publishing a change failed', { error: String(error) }))
  }

  /** Publishes which tunnels are other than they were when they were compared last. */
  async compare(): Promise<void> {
    const links = await this.list()
    const seen = new Map(links.map(({ id, state, address, routes }) => [id, JSON.stringify([state, address, routes])]))
    for (const [id, now] of seen) if (this.#seen.has(id) && this.#seen.get(id) !== now) this.changed(id)
    this.#seen = seen
  }

  async #now(): Promise<Now> {
    let routes: Promise<ReadonlyMap<string, InterfaceRoutes>> | undefined
    return { interfaces: await interfacesNow(), routes: () => (routes ??= routesNow()) }
  }

  async #probe(entry: VpnEntry, now: Now): Promise<Probed> {
    const base = await this.#base(entry)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Probed>(resolve => {
      const detail = `its client did not answer within ${PROBE_MS / 1000} s`
      timer = setTimeout(resolve, PROBE_MS, { link: { ...base, state: 'failed', detail } } satisfies Probed)
    })
    const asked = this.#asked(entry, base, now).catch((error: unknown): Probed => {
      this.#deps.host.log.warn('asking a tunnel failed', { id: entry.id, error: String(error) })
      return { link: { ...base, state: 'failed', detail: 'asking its client failed; the log says why' } }
    })
    return Promise.race([asked, late]).finally(() => clearTimeout(timer))
  }

  async #base({ id, provider, autoConnect }: VpnEntry): Promise<VpnLink> {
    const { settings } = await this.#deps.entries.facts(id)
    const gateway = settings?.gateway
    return {
      ...{ id, provider, autoConnect, state: 'disconnected', routes: [], dns: [] },
      ...(gateway !== undefined && { gateway }),
    }
  }

  async #asked(entry: VpnEntry, base: VpnLink, now: Now): Promise<Probed> {
    const { id, provider } = entry
    const { folders, clients, machine, entries } = this.#deps
    const standing = await folders.standing(id)
    const counters = standing && now.interfaces.get(standing.interface)
    if (standing?.since === undefined || !counters || this.#happening.workOf(id)) {
      if (this.#happening.workOf(id)) return { link: { ...base, state: 'connecting' } }
      const { settings, problem } = await entries.facts(id)
      const missing = await missingFor(provider, settings?.whole, machine)
      if (missing.length > 0) return { link: { ...base, state: 'unavailable', detail: missingSentence(missing) } }
      const failure = this.#happening.failureOf(id)
      if (failure !== undefined) return { link: { ...base, state: 'failed', detail: failure } }
      return { link: { ...base, ...(problem !== undefined && { detail: problem }) } }
    }
    const client: TunnelClient<never> = clients[provider]
    const [routes, { trying, handshakeAt }] = await Promise.all([
      now.routes(),
      client.health({ id, folder: folders.of(id), ...standing }),
    ])
    const { address, routes: ways = [] } = routes.get(standing.interface) ?? {}
    const up = { ...base, interface: standing.interface, routes: [...ways], ...(address !== undefined && { address }) }
    const link: VpnLink = trying
      ? { ...up, state: 'connecting', detail: 'its gateway does not answer: the client goes on trying' }
      : { ...up, state: 'connected', dns: [...(standing.dns ?? [])], since: standing.since }
    return { link, counters, ...(handshakeAt !== undefined && { handshakeAt }) }
  }
}
