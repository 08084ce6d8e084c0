import { refuse, Refusal, type Host } from '../../../sdk/index.js'
import type { KindEntry } from '../../capabilities/contract.js'
import { autoConnectOf, dialledProvider, vpnSettingsOf, type VpnSettings } from '../settings/settings.js'

/** A tunnel that is set up. */
export interface VpnEntry {
  readonly id: string
  readonly provider: VpnSettings['provider']
  readonly autoConnect: boolean
}
/** What is known of a tunnel without dialling it, or why it cannot be read. */
export interface VpnFacts {
  readonly settings?: Pick<VpnSettings, 'gateway' | 'secrets'> & { readonly whole: VpnSettings }
  readonly problem?: string
}

export const VPN_KIND = 'vpn'

/** The tunnels that are set up, as group capabilities keeps them. */
export class VpnEntries {
  readonly #host: Pick<Host, 'call' | 'serves'>
  readonly #facts = new Map<string, Promise<VpnFacts>>()

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  async all(): Promise<VpnEntry[]> {
    if (!(await this.#host.serves('capabilities.records'))) return []
    const { capabilities } = await this.#host.call('capabilities.records', { kind: VPN_KIND })
    return capabilities.flatMap(({ id, config }) => {
      const provider = dialledProvider(config)
      return provider ? [{ id, provider, autoConnect: autoConnectOf(config) }] : []
    })
  }

  /** The ids of all connections, of every kind. */
  async taken(): Promise<ReadonlySet<string>> {
    if (!(await this.#host.serves('capabilities.records'))) return new Set()
    return new Set((await this.#host.call('capabilities.records', {})).capabilities.map(({ id }) => id))
  }

  async find(id: string): Promise<VpnEntry | undefined> {
    return (await this.all()).find(entry => entry.id === id)
  }

  /** 404: there is none. */
  async get(id: string): Promise<VpnEntry> {
    return (await this.find(id)) ?? refuse('not-found', `there is no tunnel ${id}: GET /vpn lists them`)
  }

  /** A tunnel with its secrets. 404: there is none; 422: it cannot be used; 503: the secrets are locked. */
  async open(id: string): Promise<KindEntry> {
    await this.get(id)
    return this.#host.call('capabilities.entry', { id, kind: VPN_KIND })
  }

  /** What is known of a tunnel; asked once until it changes. */
  async facts(id: string): Promise<VpnFacts> {
    const known = this.#facts.get(id)
    if (known) return known
    const asked = this.#read(id)
    this.#facts.set(id, asked)
    const found = await asked.catch((): VpnFacts => ({}))
    // What could not be read may be readable later: the store of secrets is opened.
    if (!found.settings) this.#facts.delete(id)
    return found
  }

  forget(id: string): void {
    this.#facts.delete(id)
  }

  async #read(id: string): Promise<VpnFacts> {
    try {
      const whole = vpnSettingsOf(await this.open(id))
      const { gateway, secrets } = whole
      return { settings: { whole, secrets, ...(gateway !== undefined && { gateway }) } }
    } catch (error) {
      if (error instanceof Refusal) return { problem: error.message }
      throw error
    }
  }
}
