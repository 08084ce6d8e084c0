import { refuse, type Host } from '../../../sdk/index.js'
import type { KindEntry } from '../../capabilities/contract.js'
import type { ExitProvider } from '../contract.js'
import { autoStartOf, countryOf, exitSettingsOf, exitProviderOf, type ExitSetup } from '../settings/settings.js'

/** An exit that is set up. */
export interface ExitEntry {
  readonly id: string
  readonly provider: ExitProvider
  readonly country?: string
  readonly autoStart: boolean
}

export const EXIT_KIND = 'exit'

/** What the record of an exit says without its secrets. */
export const exitEntryOf = (id: string, config: KindEntry['config']): ExitEntry | undefined => {
  const provider = exitProviderOf(config)
  const country = countryOf(config)
  return provider && { id, provider, autoStart: autoStartOf(config), ...(country !== undefined && { country }) }
}

/** The exits that are set up, as group capabilities keeps them. */
export class ExitEntries {
  readonly #host: Pick<Host, 'call' | 'serves'>

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  async all(): Promise<ExitEntry[]> {
    if (!(await this.#host.serves('capabilities.records'))) return []
    const { capabilities } = await this.#host.call('capabilities.records', { kind: EXIT_KIND })
    return capabilities.flatMap(({ id, config }) => exitEntryOf(id, config) ?? [])
  }

  async find(id: string): Promise<ExitEntry | undefined> {
    return (await this.all()).find(entry => entry.id === id)
  }

  /** 404: there is none. */
  async get(id: string): Promise<ExitEntry> {
    return (await this.find(id)) ?? refuse('not-found', `there is no exit ${id}: GET /exit lists them`)
  }

  /** What an exit is set up with. 404: there is none; 422: it cannot be used; 503: the secrets are locked. */
  async setup(id: string): Promise<ExitSetup> {
    await this.get(id)
    return exitSettingsOf(await this.#host.call('capabilities.entry', { id, kind: EXIT_KIND }))
  }
}
