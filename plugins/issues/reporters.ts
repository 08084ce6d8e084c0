import { randomBytes } from 'node:crypto'
import { refuse, type Host } from '../../sdk/index.js'
import { hashOf, holds } from '../../sdk/node/access/secret.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { beginDay, dayNumber } from './apply.js'
import type { StoredReporter } from './stored.js'

const MOST_REPORTERS = 200
const DAILY = 20_000
const KEY = 'reporter/'
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/(?:\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::\d{1,5})?$/

/** What a maintainer says about a reporter; what is left out stays. */
export interface ReporterDraft {
  readonly id?: number
  readonly label: string
  readonly repo?: string
  readonly allowedOrigins?: readonly string[]
  readonly enabled?: boolean
  readonly keepUser?: boolean
  readonly dailyMax?: number
  readonly rotate?: boolean
}

/** The programs that report. One that is removed stays known while its issues are. */
export class Reporters {
  readonly #store: Pick<Host['store'], 'set'>
  readonly #all = new Map<number, StoredReporter>()
  readonly #changed = new Set<number>()
  readonly #turns = new KeyedMutex()

  constructor(store: Pick<Host['store'], 'set'>) {
    this.#store = store
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    for (const [key, value] of documents) {
      const reporter = value as StoredReporter
      if (key.startsWith(KEY)) this.#all.set(reporter.id, reporter)
    }
  }

  /** The newest log entries that are part of what is stored. */
  get applied(): number[] {
    return [...this.#all.values()].map(({ applied }) => applied)
  }

  /** Those that report, and those removed whose issues are to go. */
  get all(): readonly StoredReporter[] {
    return [...this.#all.values()].filter(({ removed }) => removed === undefined)
  }

  get purging(): readonly number[] {
    return [...this.#all.values()].flatMap(({ id, removed }) => (removed === 'purge' ? [id] : []))
  }

  /** A reporter, also one that was removed. */
  stored(id: number): StoredReporter | undefined {
    return this.#all.get(id)
  }

  get(id: number): StoredReporter {
    const found = this.#all.get(id)
    return found && found.removed === undefined ? found : refuse('not-found', `there is no reporter ${id}`)
  }

  /** The reporter of a number and a key; undefined: there is none. Takes the same time either way. */
  admitted(id: number, key: string): StoredReporter | undefined {
    const found = this.#all.get(id)
    const known = found && found.removed === undefined ? [hashOf(found.key)] : []
    return holds(known, hashOf(key)) ? found : undefined
  }

  /** Counts what of a reporter is not kept. */
  count(reporter: StoredReporter, what: 'dropped' | 'limited', by: number, now: number): void {
    beginDay(reporter, now)
    reporter.today[what] += by
    this.#changed.add(reporter.id)
  }

  changed(id: number): void {
    this.#changed.add(id)
  }

  /** Those that changed and are not stored. */
  takeChanged(): readonly number[] {
    const ids = [...this.#changed]
    this.#changed.clear()
    return ids
  }

  giveBack(ids: readonly number[]): void {
    for (const id of ids) this.#changed.add(id)
  }

  async store(ids: readonly number[]): Promise<void> {
    for (const id of ids) await this.#turns.with('reporters', () => this.#put(this.#all.get(id)!))
  }

  /** Makes a reporter, or changes the one that is named. */
  async save(draft: ReporterDraft, by: string, now: number): Promise<StoredReporter> {
    for (const [at, origin] of (draft.allowedOrigins ?? []).entries()) assertOrigin(origin, at)
    return this.#turns.with('reporters', async () => {
      const before = draft.id === undefined ? this.#made(by, now) : this.get(draft.id)
      const { label, repo = before.repo, allowedOrigins = before.allowedOrigins } = draft
      const { enabled = before.enabled, keepUser = before.keepUser, dailyMax = before.dailyMax, rotate } = draft
      const after: StoredReporter = {
        ...before,
        ...{ label, allowedOrigins: [...allowedOrigins], enabled, keepUser, dailyMax },
        ...(repo !== undefined && { repo }),
        ...(rotate && { key: newKey() }),
      }
      await this.#put(after)
      // What was counted meanwhile is in the object that others hold.
      const known = this.#all.get(after.id)
      if (known) {
        const { key } = after
        Object.assign(known, { label, allowedOrigins: after.allowedOrigins, enabled, keepUser, dailyMax, key })
        if (repo !== undefined) known.repo = repo
        return known
      }
      this.#all.set(after.id, after)
      return after
    })
  }

  #made(by: string, now: number): StoredReporter {
    if (this.all.length >= MOST_REPORTERS)
      refuse('too-many', `there are ${MOST_REPORTERS} reporters: remove one that is not needed`)
    return {
      ...{ id: Math.max(0, ...this.#all.keys()) + 1, label: '', key: newKey(), allowedOrigins: [] },
      ...{ enabled: true, keepUser: false, dailyMax: DAILY, createdAt: now, createdBy: by },
      ...{ day: dayNumber(now), today: { accepted: 0, dropped: 0, limited: 0 }, releases: [], applied: 0 },
    }
  }

  /** Stops the key of a reporter. */
  async remove(id: number, purge: boolean): Promise<void> {
    await this.#turns.with('reporters', async () => {
      const reporter = this.get(id)
      const removed = purge ? 'purge' : 'kept'
      await this.#put({ ...reporter, removed })
      reporter.removed = removed
    })
  }

  async #put(reporter: StoredReporter): Promise<void> {
    await this.#store.set(KEY + String(reporter.id), structuredClone(reporter))
  }
}

const newKey = (): string => randomBytes(16).toString('hex')

const assertOrigin = (origin: string, at: number): void => {
  if (ORIGIN.test(origin)) return
  const [path, expected] = [`allowedOrigins[${at}]`, 'scheme://host[:port] in lower case']
  refuse('invalid', `${path}: expected ${expected}, found ${JSON.stringify(origin.slice(0, 120))}`, {
    errors: [{ path, expected, value: origin.slice(0, 120) }],
  })
}
