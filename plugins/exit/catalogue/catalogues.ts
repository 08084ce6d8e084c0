import { mkdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'
import { poolServers, type PoolServer } from './pool-list.js'

const POOL = 'https://www.vpngate.net/api/iphone/'
const RELAYS = 'https://onionoo.torproject.org/details?search=flag:exit&fields=country,exit_probability'
const POOL_MS = 30 * 60_000
const RELAYS_MS = 6 * 60 * 60_000
const ASK_MS = 20_000
const MOST_BYTES = 16 * 1024 * 1024

/** What a catalogue holds, and whether it is the provider's own and fresh. */
export interface Held<T> {
  readonly items: readonly T[]
  readonly live: boolean
}
/** A relay of the onion network through which traffic leaves. */
export interface ExitRelay {
  readonly country: string
  readonly weight: number
}

/** The relays of an answer; what is none is left out. */
export const exitRelays = (text: string): ExitRelay[] => {
  const { relays } = JSON.parse(text) as { relays?: unknown }
  if (!Array.isArray(relays)) throw new Error('expected relays')
  return relays.flatMap((relay: unknown): ExitRelay[] => {
    const { country, exit_probability: weight } = (relay ?? {}) as { country?: unknown; exit_probability?: unknown }
    if (typeof country !== 'string' || !/^[A-Za-z]{2}$/.test(country)) return []
    return typeof weight === 'number' && weight >= 0 && weight <= 1 ? [{ country: country.toUpperCase(), weight }] : []
  })
}

/** A list of a provider: asked when it is old, kept for when the provider does not answer. */
class Catalogue<T> {
  readonly #host: Pick<Host, 'call' | 'signal'>
  readonly #url: string
  readonly #file: string
  readonly #freshMs: number
  readonly #read: (text: string) => T[]
  #asking: Promise<Held<T>> | undefined

  constructor(
    host: Pick<Host, 'call' | 'signal'>,
    about: { url: string; file: string; freshMs: number; read: (text: string) => T[] },
  ) {
    this.#host = host
    this.#url = about.url
    this.#file = about.file
    this.#freshMs = about.freshMs
    this.#read = about.read
  }

  /** What is stored and fresh. */
  async fresh(): Promise<Held<T> | undefined> {
    const at = (await stat(this.#file).catch(() => undefined))?.mtimeMs
    return at !== undefined && Math.abs(Date.now() - at) < this.#freshMs ? this.#stored(true) : undefined
  }

  /** The list; 424: the provider does not answer, and nothing is stored. */
  async list(): Promise<Held<T>> {
    const fresh = await this.fresh()
    if (fresh) return fresh
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined))
    return this.#asking
  }

  async #ask(): Promise<Held<T>> {
    try {
      const { listeners } = await this.#host.call('kernel.listeners')
      const { status, body, truncated } = await askOutside({
        ...{ url: this.#url, reach: { near: true, listeners }, timeoutMs: ASK_MS, maxBytes: MOST_BYTES },
        signal: this.#host.signal,
      })
      if (status !== 200 || truncated) refuse('dependency', `it answered ${status}${truncated ? ', without end' : ''}`)
      const text = body.toString('latin1')
      const items = this.#read(text)
      if (items.length === 0) refuse('dependency', 'its list has nothing that can be used')
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
      await writeAtomic(this.#file, text)
      return { items, live: true }
    } catch (error) {
      const stored = await this.#stored(false)
      if (stored) return stored
      const why = error instanceof Error ? error.message : String(error)
      return refuse('dependency', `the list of ${new URL(this.#url).host} could not be read: ${why}`, { cause: error })
    }
  }

  async #stored(live: boolean): Promise<Held<T> | undefined> {
    const text = await readFile(this.#file, 'latin1').catch(() => undefined)
    if (text === undefined) return undefined
    try {
      return { items: this.#read(text), live }
    } catch {
      return undefined
    }
  }
}

/** The lists of providers. */
export class ExitCatalogues {
  readonly pool: Catalogue<PoolServer>
  readonly relays: Catalogue<ExitRelay>

  constructor(host: Pick<Host, 'call' | 'signal' | 'place'>) {
    const { place } = host
    const at = (name: string) => join(place.folder, 'catalogues', name)
    const { pool = POOL, relays = RELAYS } = place.exit ?? {}
    this.pool = new Catalogue(host, { url: pool, file: at('pool.csv'), freshMs: POOL_MS, read: poolServers })
    this.relays = new Catalogue(host, { url: relays, file: at('relays.json'), freshMs: RELAYS_MS, read: exitRelays })
  }
}
