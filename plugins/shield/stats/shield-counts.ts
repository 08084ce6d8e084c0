import type { Journals } from '../../../sdk/index.js'
import type { DetectorId } from '../contract.js'

/** One place where personal data was found, without its value. */
export interface FoundValue {
  readonly detector: DetectorId
  readonly kind: string
  readonly source?: string
  /** False: it was only reported. */
  readonly masked: boolean
  /** A keyed hash. */
  readonly value: string
  /** A keyed hash of the domain of a mail address, and its shape. */
  readonly domain?: string
  readonly hint?: string
}

/** What became of a request. */
export type RequestFate = 'trusted' | 'masked' | 'refused'

/** What is counted of one detector. */
export interface FoundCount {
  readonly detector: DetectorId
  readonly kind: string
  readonly source?: string
  readonly masked: boolean
  count: number
  /** Keyed hashes of different values. */
  values: string[]
}

interface ProviderFates {
  trusted: number
  masked: number
  refused: number
  /** Places that were masked. */
  places: number
}

/** What was counted on one day; an entry of its log is the same, of one request. */
export interface ShieldDayCounts {
  providers: { [provider: string]: ProviderFates }
  found: FoundCount[]
  /** By keyed hash. */
  domains: { [domain: string]: { count: number; hint: string } }
  restored: number
  unrestored: number
  ms: number[]
}

const MOST_VALUES = 10_000
const MOST_TIMES = 1_000
const MOST_DOMAINS = 1_000
const FEW = 1
const DAY_MS = 86_400_000

/** The day of a time in UTC. */
export const countedDay = (at: number): string => new Date(at).toISOString().slice(0, 10)

const nothing = (): ShieldDayCounts => ({ providers: {}, found: [], domains: {}, restored: 0, unrestored: 0, ms: [] })

/** Counts of what the shield did, by day; each day is a log. */
export class ShieldCounts {
  readonly #journal: Pick<Journals, 'append' | 'read' | 'rewrite' | 'list' | 'remove'>
  readonly #failed: (error: unknown) => void
  readonly #changed: () => void
  readonly #days = new Map<string, Promise<ShieldDayCounts>>()
  #writing: Promise<unknown> = Promise.resolve()

  constructor(
    journal: Pick<Journals, 'append' | 'read' | 'rewrite' | 'list' | 'remove'>,
    changed: () => void,
    failed: (error: unknown) => void,
  ) {
    this.#journal = journal
    this.#changed = changed
    this.#failed = failed
  }

  /** Counts a request. */
  request(provider: string, fate: RequestFate, more: { found?: readonly FoundValue[]; ms?: number } = {}): void {
    const { found = [], ms } = more
    const entry = nothing()
    const places = found.filter(({ masked }) => masked).length
    entry.providers[provider] = { trusted: 0, masked: 0, refused: 0, places, [fate]: 1 }
    for (const { detector, kind, source, masked, value, domain, hint = '' } of found) {
      addFound(entry, { detector, kind, masked, count: 1, values: [value], ...(source !== undefined && { source }) })
      if (domain !== undefined) addDomain(entry, domain, { count: 1, hint })
    }
    if (ms !== undefined) entry.ms.push(Math.round(ms * 100) / 100)
    this.#add(entry)
  }

  /** Counts what an answer brought back. */
  answer(restored: number, unrestored: number): void {
    if (restored + unrestored > 0) this.#add({ ...nothing(), restored, unrestored })
  }

  /** What was counted on each day, both ends included. */
  async between(from: string, to: string): Promise<Map<string, ShieldDayCounts>> {
    await this.#writing
    const names = await this.#journal.list('counts/')
    const days = names.map(name => name.slice('counts/'.length)).filter(day => day >= from && day <= to)
    const found = new Map<string, ShieldDayCounts>()
    for (const day of days.sort()) found.set(day, await this.#day(day))
    return found
  }

  /** Waits until everything is written. */
  async idle(): Promise<void> {
    await this.#writing
  }

  /** Removes the logs of days before one. */
  async sweep(before: string): Promise<void> {
    for (const name of await this.#journal.list('counts/'))
      if (name.slice('counts/'.length) < before) await this.#journal.remove(name)
  }

  #add(entry: ShieldDayCounts): void {
    const day = countedDay(Date.now())
    this.#writing = this.#writing
      .then(async () => {
        const counts = await this.#day(day)
        addCounts(counts, entry)
        await this.#journal.append(`counts/${day}`, [entry])
        this.#changed()
      })
      .catch(this.#failed)
  }

  #day(day: string): Promise<ShieldDayCounts> {
    const there = this.#days.get(day)
    if (there) return there
    const loading = this.#load(day)
    this.#days.set(day, loading)
    loading.catch(() => this.#days.delete(day))
    return loading
  }

  async #load(day: string): Promise<ShieldDayCounts> {
    const entries = await this.#journal.read<ShieldDayCounts>(`counts/${day}`)
    const counts = nothing()
    for (const entry of entries) addCounts(counts, entry)
    // Nothing is added to a day that is over.
    if (entries.length > FEW && day < countedDay(Date.now() - DAY_MS))
      await this.#journal.rewrite(`counts/${day}`, [counts])
    return counts
  }
}

/** Adds counts to others. */
export const addCounts = (to: ShieldDayCounts, more: ShieldDayCounts): void => {
  for (const [provider, { trusted, masked, refused, places }] of Object.entries(more.providers)) {
    const there = (to.providers[provider] ??= { trusted: 0, masked: 0, refused: 0, places: 0 })
    there.trusted += trusted
    there.masked += masked
    there.refused += refused
    there.places += places
  }
  for (const found of more.found) addFound(to, found)
  for (const [domain, found] of Object.entries(more.domains)) addDomain(to, domain, found)
  to.restored += more.restored
  to.unrestored += more.unrestored
  to.ms = [...to.ms, ...more.ms].slice(-MOST_TIMES)
}

/** No counts. */
export const noCounts = nothing

const addFound = (to: ShieldDayCounts, found: FoundCount): void => {
  const { detector, kind, source, masked } = found
  const there = to.found.find(
    each => each.detector === detector && each.kind === kind && each.source === source && each.masked === masked,
  )
  if (!there) return void to.found.push({ ...found, values: [...found.values] })
  there.count += found.count
  const known = new Set(there.values)
  for (const value of found.values) if (!known.has(value) && there.values.length < MOST_VALUES) there.values.push(value)
}

const addDomain = (to: ShieldDayCounts, domain: string, { count, hint }: { count: number; hint: string }): void => {
  const there = to.domains[domain]
  if (there) there.count += count
  else if (Object.keys(to.domains).length < MOST_DOMAINS) to.domains[domain] = { count, hint }
}
