import { join } from 'node:path'
import { missingSentence } from '../../../sdk/node/tunnels/machine.js'
import type { ExitLink } from '../contract.js'
import { exitPortOf } from '../settings/settings.js'
import type { ExitEntry } from './entries.js'
import type { ExitsDeps } from './deps.js'

const PROBE_MS = 3000

/** What is happening with exits at this moment. */
export interface ExitHappening {
  isWorking(id: string): boolean
  failureOf(id: string): string | undefined
}

/** Exits as the operating system has them now. */
export class ExitViews {
  readonly #deps: ExitsDeps
  readonly #happening: ExitHappening
  /** Each exit as it was seen last. */
  #seen = new Map<string, string>()

  constructor(deps: ExitsDeps, happening: ExitHappening) {
    this.#deps = deps
    this.#happening = happening
  }

  async list(): Promise<ExitLink[]> {
    return Promise.all((await this.#deps.entries.all()).map(entry => this.link(entry)))
  }

  async link(entry: ExitEntry): Promise<ExitLink> {
    const base = await this.#base(entry)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<ExitLink>(resolve => {
      const detail = `its client did not answer within ${PROBE_MS / 1000} s`
      timer = setTimeout(resolve, PROBE_MS, { ...base, state: 'failed', detail } satisfies ExitLink)
    })
    const asked = this.#asked(entry, base).catch((error: unknown): ExitLink => {
      this.#deps.host.log.warn('asking an exit failed', { id: entry.id, error: String(error) })
      return { ...base, state: 'failed', detail: 'asking its client failed; the log says why' }
    })
    return Promise.race([asked, late]).finally(() => clearTimeout(timer))
  }

  /** The country that is asked for: that of the last use, else that of the entry. */
  async countryOf({ id, country }: Pick<ExitEntry, 'id' | 'country'>): Promise<string | undefined> {
    const selection = await this.#deps.folders.selection(id)
    return selection ? selection.country : country
  }

  /** Publishes that an exit changed. */
  changed(id: string): void {
    const { host } = this.#deps
    host.emit('exit.changed', { id })
    host
      .call('kernel.events.publish', { domain: 'exit', key: id })
      .catch(error => host.signal.aborted || host.log.warn('publishing a change failed', { error: String(error) }))
  }

  /** Publishes which exits are other than they were when they were compared last. */
  async compare(): Promise<void> {
    const links = await this.list()
    const seen = new Map(links.map(({ id, state, detail = '' }) => [id, `${state} ${detail}`]))
    for (const [id, now] of seen) if (this.#seen.has(id) && this.#seen.get(id) !== now) this.changed(id)
    this.#seen = seen
  }

  async #base(entry: ExitEntry): Promise<ExitLink> {
    const { id, provider, autoStart } = entry
    const country = await this.countryOf(entry)
    return {
      ...{ id, provider, state: 'down', proxy: `socks5://127.0.0.1:${exitPortOf(id)}`, autoStart },
      ...(country !== undefined && { country }),
    }
  }

  async #asked({ id, provider }: ExitEntry, base: ExitLink): Promise<ExitLink> {
    const { folders, clients, proxies } = this.#deps
    if (this.#happening.isWorking(id)) return { ...base, state: 'starting' }
    const client = clients[provider]
    const standing = await folders.standing(id)
    if (standing?.since === undefined) {
      const missing = await client.missing()
      if (missing.length > 0) return { ...base, state: 'unavailable', detail: missingSentence(missing) }
      const failure = this.#happening.failureOf(id)
      return failure === undefined ? base : { ...base, state: 'failed', detail: failure }
    }
    const { since, seen, interface: name } = standing
    const own = { ...base, since, ...(name !== undefined && { interface: name }) }
    const lost = await client.lost({ id, folder: folders.of(id), ...standing })
    if (lost !== undefined) return { ...own, state: 'failed', detail: `${lost}: start it again` }
    if (!proxies.of(id))
      return { ...own, state: 'failed', detail: this.#happening.failureOf(id) ?? 'its proxy is not there' }
    const { country: wanted } = base
    const drifted = seen && wanted !== undefined && seen.country !== wanted
    return {
      ...{ ...own, state: 'up' },
      ...(seen && { ip: seen.ip, checkedAt: seen.at }),
      ...(seen?.country !== undefined && { observedCountry: seen.country }),
      ...(drifted && {
        detail: `it drifted: ${wanted} was asked for, and it came out in ${seen.country ?? 'an unknown country'}`,
      }),
    }
  }
}

/** The file with the log of the last start of an exit. */
export const logFile = (folder: string): string => join(folder, 'start.log')
