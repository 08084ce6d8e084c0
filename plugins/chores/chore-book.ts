import { failpoint } from '../../sdk/node/failpoint.js'
import { Kept, type KeptFiles } from '../../sdk/node/files/kept.js'
import type { ChoreLedgerEntry, ProbeFacts, ProbeId, ProbeResult, ProbeTarget, TrendPoint } from './contract.js'

/** How one measurement ended. */
export type ProbeOutcome =
  | { readonly state: 'ok'; readonly facts: ProbeFacts; readonly reason?: string }
  | { readonly state: 'unavailable' | 'failed'; readonly reason: string }

/** A measurement that somebody asked for. */
export interface AskedProbe extends ProbeTarget {
  readonly askedAt: number
}

/** When a measurement ran. */
export interface ProbeTime {
  readonly ranAt: number
  readonly tookMs: number
}

interface StoredResult extends ProbeResult {
  /** The failures that the activity record has since the last success. */
  recorded?: string[]
}
interface ResultBook {
  /** By repository and measurement. */
  readonly results: { readonly [repo: string]: { readonly [id in ProbeId]?: StoredResult } }
  readonly asked: readonly AskedProbe[]
}
interface LedgerBook {
  readonly entries: readonly ChoreLedgerEntry[]
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FRESH_MS: { readonly [id in ProbeId]: number } = {
  outdated: DAY_MS,
  audit: DAY_MS,
  ui: DAY_MS,
  bundle: DAY_MS,
  knip: 7 * DAY_MS,
  jscpd: 7 * DAY_MS,
}
const MOST_TREND = 52
const MOST_RECORDED = 20
const MOST_ENTRIES = 2_000

/** The headline figure of a measurement. */
const figureOf = (facts: ProbeFacts): number => {
  switch (facts.id) {
    case 'outdated':
      return facts.packages.length
    case 'audit':
      return facts.advisories.length
    case 'knip': {
      const { sample: _sample, ...counts } = facts.deadCode
      return Object.values(counts).reduce((sum, count) => sum + count, 0)
    }
    case 'jscpd':
      return facts.duplication.percentage
    case 'ui':
      return facts.scan.bypasses.reduce((sum, { count }) => sum + count, 0)
    case 'bundle':
      return facts.bundle.totalGzip
  }
}

/** How long a result counts: a failure is tried again after an hour, what is missing is looked for after a day. */
const freshFor = (id: ProbeId, { state }: ProbeOutcome): number =>
  state === 'failed' ? HOUR_MS : state === 'unavailable' ? DAY_MS : FRESH_MS[id]

const trendOf = (before: readonly TrendPoint[], at: number, outcome: ProbeOutcome): TrendPoint[] =>
  (outcome.state === 'ok' ? [...before, { at, value: figureOf(outcome.facts) }] : [...before]).slice(-MOST_TREND)

/** Whether two name the same measurement of the same repository. */
export const isSameProbe = (one: ProbeTarget, other: ProbeTarget): boolean =>
  one.repo === other.repo && one.id === other.id

/** The results of measurements with those that were asked for, and the conclusions: two small files. */
export class ChoreBook {
  readonly #results: Kept<ResultBook>
  readonly #ledger: Kept<LedgerBook>

  private constructor(results: Kept<ResultBook>, ledger: Kept<LedgerBook>) {
    this.#results = results
    this.#ledger = ledger
  }

  static async open(files: KeptFiles): Promise<ChoreBook> {
    const [results, ledger] = await Promise.all([
      Kept.open<ResultBook>(files, 'results', { results: {}, asked: [] }),
      Kept.open<LedgerBook>(files, 'ledger', { entries: [] }),
    ])
    return new ChoreBook(results, ledger)
  }

  /** What was asked for and has no result yet, the earliest first. */
  get asked(): readonly AskedProbe[] {
    return this.#results.value.asked
  }

  get ledger(): readonly ChoreLedgerEntry[] {
    return this.#ledger.value.entries
  }

  /** The results of a repository. */
  resultsOf(repo: string): ProbeResult[] {
    return Object.values(this.#results.value.results[repo] ?? {}).map(({ recorded: _recorded, ...result }) => result)
  }

  /** Whether a measurement was never taken, or is too old. */
  isStale(repo: string, id: ProbeId, now: number): boolean {
    const staleAt = this.#results.value.results[repo]?.[id]?.staleAt
    return staleAt === undefined || staleAt <= now
  }

  /** Stores that a measurement was asked for; answers false if it was before. */
  async ask(asked: AskedProbe): Promise<boolean> {
    let fresh = false
    await this.#results.change(book => {
      fresh = !book.asked.some(each => isSameProbe(each, asked))
      return fresh ? { ...book, asked: [...book.asked, asked] } : book
    })
    if (fresh) failpoint('chores.asked')
    return fresh
  }

  /** Forgets that a measurement was asked for. */
  withdraw(target: ProbeTarget): Promise<void> {
    return this.#results.change(book =>
      book.asked.some(each => isSameProbe(each, target))
        ? { ...book, asked: book.asked.filter(each => !isSameProbe(each, target)) }
        : book,
    )
  }

  /** Stores the result of a measurement; answers whether it is a failure that is not recorded yet. */
  async settle(repo: string, id: ProbeId, outcome: ProbeOutcome, { ranAt, tookMs }: ProbeTime): Promise<boolean> {
    let isNews = false
    await this.#results.change(book => {
      const before = book.results[repo]?.[id]
      const told = before?.recorded ?? []
      isNews = outcome.state === 'failed' && !told.includes(outcome.reason)
      const recorded = isNews ? [...told, outcome.reason!].slice(-MOST_RECORDED) : outcome.state === 'ok' ? [] : told
      const { state, reason } = outcome
      const result: StoredResult = {
        ...{ id, state, ranAt, tookMs },
        ...(outcome.state === 'ok' && { facts: outcome.facts }),
        ...(reason !== undefined && { reason }),
        staleAt: ranAt + tookMs + freshFor(id, outcome),
        trend: trendOf(before?.trend ?? [], ranAt, outcome),
        ...(recorded.length > 0 && { recorded }),
      }
      return {
        results: { ...book.results, [repo]: { ...book.results[repo], [id]: result } },
        asked: book.asked.filter(each => !isSameProbe(each, { repo, id })),
      }
    })
    failpoint('chores.measured')
    return isNews
  }

  /** Removes the results of repositories that are gone. */
  keepOnly(repos: readonly string[]): Promise<void> {
    const kept = new Set(repos)
    return this.#results.change(book =>
      Object.keys(book.results).every(repo => kept.has(repo))
        ? book
        : { ...book, results: Object.fromEntries(Object.entries(book.results).filter(([repo]) => kept.has(repo))) },
    )
  }

  /** Stores a conclusion; answers false if there is a newer one about this chore. */
  async conclude(entry: ChoreLedgerEntry): Promise<boolean> {
    let isNewest = false
    await this.#ledger.change(book => {
      const { entries } = book
      const isRival = ({ repo, chore }: ChoreLedgerEntry) => repo === entry.repo && chore === entry.chore
      isNewest = !entries.some(each => isRival(each) && each.ranAt > entry.ranAt)
      if (!isNewest) return book
      const all = [...entries.filter(each => !isRival(each)), entry]
      return { entries: all.sort((one, other) => one.ranAt - other.ranAt).slice(-MOST_ENTRIES) }
    })
    if (isNewest) failpoint('chores.concluded')
    return isNewest
  }
}
