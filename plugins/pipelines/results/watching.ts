import { Refusal, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { PipelinePowers } from '../contract.js'
import { PAGE } from '../forges/forge.js'
import type { MappedRepo } from '../forges/mapped-repos.js'
import type { Results } from './results.js'

const SOON_MS = 10_000
const STALE_MS = 60_000
const POLL_MS = 110_000
const HOOKED_MS = 600_000
const LONGEST_WAIT_MS = 1_800_000
const PAGES = 2

const NONE: PipelinePowers = { rerun: false, rerunFailed: false, cancel: false, jobs: false, log: false }

/** What is known of asking one repository's forge. */
interface Asked {
  at: number
  polledAt?: number
  error?: string
  /** How often it failed since it last answered. */
  failures: number
  can: PipelinePowers
}

export interface WatchingDeps {
  readonly host: Pick<Host, 'log' | 'signal'>
  readonly results: Pick<Results, 'take' | 'of'>
  /** Called when something but the runs of a repository changed. */
  readonly changed: (repo: string) => void
  readonly now?: () => number
}

/** Asks forges for the runs of repositories, each as often as it needs. */
export class Watching {
  readonly #deps: WatchingDeps
  readonly #turns = new KeyedMutex()
  readonly #asked = new Map<string, Asked>()

  constructor(deps: WatchingDeps) {
    this.#deps = deps
  }

  /** What is known of asking for a repository. */
  of({ repo }: Pick<MappedRepo, 'repo'>): Pick<Asked, 'polledAt' | 'error' | 'can'> {
    return this.#asked.get(repo) ?? { can: NONE }
  }

  /** Asks for a repository unless that was done less than 10 s ago. */
  async fresh(mapped: MappedRepo): Promise<void> {
    await this.#turns.with(mapped.repo, async () => {
      if (this.#age(mapped) >= SOON_MS) await this.#ask(mapped)
    })
  }

  /** Asks in the background for what was not asked for in the last minute. */
  stale(mapped: MappedRepo): void {
    if (this.#age(mapped) >= STALE_MS && this.#mayAsk(mapped)) void this.fresh(mapped)
  }

  /** Asks for what is due: every 2 minutes, or every 10 where the forge reports by itself. */
  async poll(mapped: MappedRepo, isHooked: boolean): Promise<void> {
    if (this.#age(mapped) >= (isHooked ? HOOKED_MS : POLL_MS) && this.#mayAsk(mapped)) await this.fresh(mapped)
  }

  /** Asks in the background for what somebody just changed there. */
  again(mapped: MappedRepo): void {
    void this.#turns.with(mapped.repo, () => this.#ask(mapped))
  }

  #now(): number {
    return this.#deps.now?.() ?? Date.now()
  }

  #age({ repo }: Pick<MappedRepo, 'repo'>): number {
    return this.#now() - (this.#asked.get(repo)?.at ?? -Infinity)
  }

  /** Whether a forge that failed was left alone long enough: twice as long after each failure. */
  #mayAsk(mapped: MappedRepo): boolean {
    const { failures = 0 } = this.#asked.get(mapped.repo) ?? {}
    return failures === 0 || this.#age(mapped) >= Math.min(STALE_MS * 2 ** failures, LONGEST_WAIT_MS)
  }

  async #ask(mapped: MappedRepo): Promise<void> {
    const { host, changed } = this.#deps
    const before = this.#asked.get(mapped.repo)
    const asked: Asked = { failures: 0, can: NONE, ...before, at: this.#now() }
    this.#asked.set(mapped.repo, asked)
    try {
      asked.can = await mapped.dialect.powers(mapped.client())
      await this.#read(mapped)
      asked.failures = 0
      delete asked.error
      asked.polledAt = this.#now()
    } catch (error) {
      if (host.signal.aborted) return
      if (!(error instanceof Refusal)) host.log.error('asking a forge failed', { error: String(error) })
      asked.failures += 1
      asked.error = Refusal.from(error).message
    }
    if (before?.error !== asked.error || JSON.stringify(before?.can) !== JSON.stringify(asked.can)) changed(mapped.repo)
  }

  /** Reads as many pages as have runs that are not known or not final. */
  async #read(mapped: MappedRepo): Promise<void> {
    const { results } = this.#deps
    const known = new Map(results.of(mapped)?.runs.map(run => [run.runId, run.status]))
    const found = []
    for (let page = 1; page <= PAGES; page++) {
      const runs = await mapped.dialect.runs(mapped.client(), mapped.project, page)
      found.push(...runs)
      const oldest = runs.at(-1)
      const wasRead = oldest && (known.get(oldest.runId) ?? 'running') !== 'running'
      if (runs.length < PAGE || wasRead) break
    }
    await results.take(mapped, found, true)
  }
}
