import type { Journals } from '../../../sdk/index.js'
import type { SafetyOutcome, SafetyVerdict, VerdictReview } from '../contract.js'
import { ignored } from '../../../sdk/index.js'

/** An entry with what a replay needs to know of its judge. */
export interface StoredVerdict extends SafetyVerdict {
  /** A digest of what the judge was asked by; absent: it was not asked. */
  readonly judgedBy?: string
}

interface Line {
  readonly entry?: StoredVerdict
  readonly id?: string
  readonly outcome?: SafetyOutcome
  readonly answeredBy?: string
  readonly review?: VerdictReview
}

const JOURNAL = 'safety'
const MOST = 20_000
const SLACK = 5_000
const DAYS_90 = 90 * 24 * 60 * 60_000
const PLACES = 9

/** What was held, denied, judged or excepted: a journal of entries, outcomes and reviews. */
export class VerdictLog {
  readonly #journal: Pick<Journals, 'append' | 'read' | 'rewrite'>
  readonly #most: number
  readonly #now: () => number
  #entries: StoredVerdict[] = []
  readonly #byId = new Map<string, StoredVerdict>()
  #lines = 0
  #last = { at: 0, n: 0 }
  #work: Promise<void> = Promise.resolve()

  constructor(journal: Pick<Journals, 'append' | 'read' | 'rewrite'>, { most = MOST, now = Date.now } = {}) {
    this.#journal = journal
    this.#most = most
    this.#now = now
  }

  /** Reads the journal. */
  async load(): Promise<void> {
    const lines = await this.#journal.read<Line>(JOURNAL, 0, { damaged: {} })
    this.#lines = lines.length
    for (const line of lines) this.#apply(line)
    this.#trim()
  }

  /** Every entry, oldest first. */
  get entries(): readonly StoredVerdict[] {
    return this.#entries
  }

  find(id: string): StoredVerdict | undefined {
    return this.#byId.get(id)
  }

  /** Those that wait for an answer. */
  get pending(): StoredVerdict[] {
    return this.#entries.filter(({ outcome }) => outcome === 'pending')
  }

  /** Adds an entry; it survives `kill -9` when this returns. */
  async add(entry: Omit<StoredVerdict, 'id' | 'at'>): Promise<StoredVerdict> {
    const at = this.#now()
    const whole = { ...entry, id: this.#nextId(at), at }
    await this.#write({ entry: whole })
    return whole
  }

  /** Notes what became of an entry. */
  async settle(id: string, outcome: SafetyOutcome, answeredBy?: string): Promise<void> {
    if (!this.#byId.has(id)) return
    await this.#write({ id, outcome, ...(answeredBy !== undefined && { answeredBy }) })
  }

  /** Notes a review; the newest stands. */
  async review(id: string, review: VerdictReview): Promise<void> {
    await this.#write({ id, review })
  }

  #write(line: Line): Promise<void> {
    const work = this.#work.then(async () => {
      await this.#journal.append(JOURNAL, [line])
      this.#lines++
      this.#apply(line)
      if (this.#lines > this.#most + SLACK && this.#lines > this.#entries.length * 2) await this.#compact()
    })
    this.#work = work.catch(ignored('the step before told its own caller'))
    return work
  }

  /** Writes the journal with one line an entry. */
  async #compact(): Promise<void> {
    this.#trim()
    await this.#journal.rewrite(
      JOURNAL,
      this.#entries.map(entry => ({ entry })),
    )
    this.#lines = this.#entries.length
  }

  #apply({ entry, id, outcome, answeredBy, review }: Line): void {
    if (entry) {
      this.#entries.push(entry)
      this.#byId.set(entry.id, entry)
      if (this.#entries.length > this.#most + SLACK) this.#trim()
      return
    }
    const known = id === undefined ? undefined : this.#byId.get(id)
    if (!known) return
    if (outcome) known.outcome = outcome
    if (answeredBy !== undefined) known.answeredBy = answeredBy
    if (review) known.review = review
  }

  #trim(): void {
    const oldest = this.#now() - DAYS_90
    const over = this.#entries.length - this.#most
    const from = this.#entries.findIndex(({ at }, index) => at >= oldest && index >= over)
    const gone = this.#entries.splice(0, from < 0 ? this.#entries.length : from)
    for (const { id } of gone) this.#byId.delete(id)
  }

  /** An id that sorts by its time. */
  #nextId(at: number): string {
    const { at: last, n } = this.#last
    const time = Math.max(at, last || timeOf(this.#entries.at(-1)?.id) + 1)
    this.#last = { at: time, n: time === last ? n + 1 : 0 }
    return `v-${time.toString(36).padStart(PLACES, '0')}-${this.#last.n.toString(36).padStart(4, '0')}`
  }
}

const ID = /^v-([0-9a-z]{9})-[0-9a-z]{4,}$/

/** Whether a text could be the id of an entry. */
export const isVerdictId = (id: string): boolean => ID.test(id)

const timeOf = (id: string | undefined): number => {
  const time = id === undefined ? undefined : ID.exec(id)?.[1]
  return time === undefined ? 0 : parseInt(time, 36)
}
