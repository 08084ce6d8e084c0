import { createHash } from 'node:crypto'
import { pathOfRepo, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { StoredPipelineFix } from '../checks/stored.js'
import type { RedBranches } from '../contract.js'
import type { ForgeRun } from '../forges/forge.js'
import type { MappedRepo } from '../forges/mapped-repos.js'
import { applyRuns } from './apply.js'
import type { PendingCiEvent, StoredResults, StoredPipelineRun } from './stored.js'

const KEY = 'results/'
const SEEN = 'seen'

export interface ResultsDeps {
  readonly host: Pick<Host, 'store'>
  /** Called with each run that changed, once that is stored. */
  readonly changed: (repo: string, runId: number) => void
  /** Called when a repository has events that automations have not received. */
  readonly pending: (repo: string) => void
  readonly now?: () => number
}

/** The results of all repositories, as forges gave them; in memory, and in one document a repository. */
export class Results {
  readonly #deps: ResultsDeps
  readonly #turns = new KeyedMutex()
  readonly #all = new Map<string, StoredResults>()
  #seenAt: number | undefined

  constructor(deps: ResultsDeps) {
    this.#deps = deps
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    for (const [key, value] of documents) {
      const results = value as StoredResults
      if (key.startsWith(KEY)) this.#all.set(results.repo, results)
      if (key === SEEN) this.#seenAt = (value as { at: number }).at
    }
  }

  get seenAt(): number | undefined {
    return this.#seenAt
  }

  get all(): readonly StoredResults[] {
    return [...this.#all.values()]
  }

  /** What is known of a repository, if its remote is still the same project. */
  of(mapped: MappedRepo): StoredResults | undefined {
    const found = this.#all.get(mapped.repo)
    return found && isSame(found, mapped) ? found : undefined
  }

  /** Takes in runs; `looked`: the forge was asked for all of them. Returns how many changed. */
  async take(mapped: MappedRepo, runs: readonly ForgeRun[], looked: boolean): Promise<number> {
    const now = this.#deps.now?.() ?? Date.now()
    let changed: ForgeRun[] = []
    const after = await this.#change(mapped, results => {
      changed = applyRuns(results, runs, now)
      const begins = looked && !results.looked
      results.looked ||= looked
      return changed.length > 0 || begins
    })
    for (const { runId } of changed) this.#deps.changed(mapped.repo, runId)
    if (after.pending.length > 0) this.#deps.pending(mapped.repo)
    return changed.length
  }

  /** Notes the webhook of a repository, or why it has none. */
  async noteHook(mapped: MappedRepo, hook: StoredResults['hook'], warning?: string): Promise<void> {
    await this.#change(mapped, results => {
      if (JSON.stringify([results.hook, results.hookWarning]) === JSON.stringify([hook, warning])) return false
      delete results.hook
      delete results.hookWarning
      if (hook) results.hook = hook
      if (warning !== undefined) results.hookWarning = warning
      return true
    })
  }

  /** Notes something about a run. */
  async noteRun(repo: string, runId: number, note: (run: StoredPipelineRun) => void): Promise<void> {
    await this.#turns.with(repo, async () => {
      const before = this.#all.get(repo)
      if (!before?.runs.some(run => run.runId === runId)) return
      const after = structuredClone(before)
      note(after.runs.find(run => run.runId === runId)!)
      await this.#put(after)
    })
    this.#deps.changed(repo, runId)
  }

  /** Notes the fix of a run; undefined: it has none. */
  async noteFix(repo: string, runId: number, fix: StoredPipelineFix | undefined): Promise<void> {
    await this.noteRun(repo, runId, run => {
      if (fix) run.fix = fix
      else delete run.fix
    })
  }

  /** Removes an event that automations have received. */
  async delivered(repo: string, event: PendingCiEvent): Promise<void> {
    await this.#turns.with(repo, async () => {
      const before = this.#all.get(repo)
      if (!before) return
      const text = JSON.stringify(event)
      await this.#put({ ...before, pending: before.pending.filter(each => JSON.stringify(each) !== text) })
    })
  }

  /** Marks every result as seen. */
  async see(now: number): Promise<number> {
    return this.#turns.with(SEEN, async () => {
      const at = Math.max(now, this.#seenAt ?? 0)
      await this.#deps.host.store.set(SEEN, { at })
      this.#seenAt = at
      return at
    })
  }

  /** How many branches failed since they were last seen, by the folder of their repository. */
  waiting(): RedBranches {
    const seenAt = this.#seenAt ?? 0
    return {
      waiting: this.all.flatMap(({ repo, branches }) => {
        const count = Object.values(branches).filter(({ color, at }) => color === 'red' && at > seenAt).length
        return count > 0 ? [{ within: pathOfRepo(repo), count }] : []
      }),
    }
  }

  /** Changes what is known of a repository, durably; `change` returns whether something changed. */
  #change(mapped: MappedRepo, change: (results: StoredResults) => boolean): Promise<StoredResults> {
    return this.#turns.with(mapped.repo, async () => {
      const after = structuredClone(this.of(mapped) ?? emptyResults(mapped))
      if (change(after)) await this.#put(after)
      return after
    })
  }

  async #put(results: StoredResults): Promise<void> {
    await this.#deps.host.store.set(keyOf(results.repo), results)
    this.#all.set(results.repo, results)
  }
}

/** Names of repositories are paths of any length. */
const keyOf = (repo: string): string => KEY + createHash('sha256').update(repo).digest('hex')

const isSame = (results: StoredResults, { host, project, site }: MappedRepo): boolean =>
  results.host === host && results.project === project && results.site === site.href

const emptyResults = ({ repo, host, project, site }: MappedRepo): StoredResults => ({
  ...{ repo, host, project, site: site.href, looked: false },
  ...{ runs: [], branches: {}, announced: [], pending: [] },
})
