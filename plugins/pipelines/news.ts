import { pathOfRepo, Refusal, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import type { CatalogSource } from '../automations/contract.js'
import type { MappedRepo, MappedRepos } from './forges/mapped-repos.js'
import type { Results } from './results/results.js'
import type { CiEventType, PendingCiEvent, StoredResults } from './results/stored.js'

const PROVIDER = 'ci'
const SOON_MS = 250
const MOST_NAMES = 50

const LABELS: { readonly [type in CiEventType]: string } = {
  pipeline_failed: 'A run failed',
  pipeline_broken: 'A branch that passed fails now',
  pipeline_succeeded: 'A run passed',
  pipeline_fixed: 'A branch that failed passes again',
}
const WORDS: { readonly [type in CiEventType]: string } = {
  pipeline_failed: 'failed',
  pipeline_broken: 'failed, and the one before passed',
  pipeline_succeeded: 'passed',
  pipeline_fixed: 'passed, and the one before failed',
}

/** What automations can listen to. */
export const CI_SOURCE: CatalogSource = {
  ...{ provider: PROVIDER, label: 'Pipelines', requires: [], enabled: true },
  events: Object.entries(LABELS).map(([value, label]) => ({ value, label })),
  channel: { label: 'Repository', placeholder: 'root', hint: 'The folder of a repository; empty for all' },
  branchField: { label: 'Branch', placeholder: 'main', hint: 'Empty for all' },
  starterPrompt: 'Find out why this run failed, and say how it could be fixed.',
}

export interface CiNewsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'emit' | 'log' | 'signal'>
  readonly results: () => Results
  readonly mapped: MappedRepos
}

/** Notifies watchers and automations of results. */
export class CiNews {
  readonly #deps: CiNewsDeps
  readonly #turns = new KeyedMutex()
  #isReady = false
  #soon: NodeJS.Timeout | undefined

  constructor(deps: CiNewsDeps) {
    this.#deps = deps
  }

  /** The daemon is ready: automations receive what they have not received before. */
  begin(): void {
    this.#isReady = true
    for (const { repo, pending } of this.#deps.results().all) if (pending.length > 0) this.pending(repo)
  }

  stop(): void {
    clearTimeout(this.#soon)
  }

  /** A run of a repository changed. */
  run(repo: string, runId: number): void {
    this.published('ci', `${repo}#${runId}`, repo)
  }

  /** Notifies watchers of what changed, and soon of how many branches wait. */
  published(domain: 'ci' | 'prepush', key: string, repo?: string): void {
    const { host, results } = this.#deps
    void host
      .call('kernel.events.publish', { domain, key, ...(repo !== undefined && { within: [pathOfRepo(repo)] }) })
      .catch(error => this.#failed('publishing a change', error))
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      host.emit('ci.waiting', results().waiting())
    }, SOON_MS).unref()
  }

  /** A repository has events that automations have not received. */
  pending(repo: string): void {
    if (!this.#isReady) return
    void this.#turns
      .with(repo, () => this.#deliverAll(repo))
      .catch(error => this.#failed('delivering events of pipelines', error))
  }

  async #deliverAll(repo: string): Promise<void> {
    const { results } = this.#deps
    for (;;) {
      const found = results().all.find(each => each.repo === repo)
      const event = found?.pending[0]
      if (!found || !event) return
      await this.#deliver(found, event)
      failpoint('pipelines.event.delivered')
      await results().delivered(repo, event)
    }
  }

  async #deliver(of: StoredResults, { type, run }: PendingCiEvent): Promise<void> {
    const { host } = this.#deps
    const { repo, host: forge, project } = of
    const { runId, branch, sha, status, url, attempt = 1, durationSeconds, title = '', authorName = '' } = run
    const failedJobs = status === 'failed' ? await this.#failedJobs(of, runId) : undefined
    if (!(await host.serves('automations.dispatch'))) return
    const name = `${project} ${branch}${run.number === undefined ? '' : ` #${run.number}`}`
    const jobs = failedJobs?.length ? `: ${failedJobs.join(', ')}` : ''
    await host.call('automations.dispatch', {
      ...{ provider: PROVIDER, type, id: `${forge}-${runId}-${attempt}-${status}-${type}`, channelId: repo },
      author: { id: authorName || forge, name: authorName || forge },
      content: `The run ${name} ${WORDS[type]}${jobs}.${title && `\n${title}`}`,
      branch: branch.slice(0, 300),
      timestamp: new Date(run.finishedAt ?? run.updatedAt).toISOString(),
      extra: {
        ...{ threadId: branch, host: forge, project, runId, sha, status, url },
        ...(failedJobs && { failedJobs }),
        ...(durationSeconds !== undefined && { durationSeconds }),
      },
    })
  }

  /** The names of the jobs that failed, as far as the forge tells them. */
  async #failedJobs({ repo }: StoredResults, runId: number): Promise<string[] | undefined> {
    const { mapped, results, host } = this.#deps
    const known = results()
      .all.find(each => each.repo === repo)
      ?.runs.find(run => run.runId === runId)
    if (known?.failedJobs) return known.failedJobs
    try {
      const found = (await mapped.all()).find(each => each.repo === repo)
      const names = found && (await failedJobNames(found, runId))
      if (names) await results().noteRun(repo, runId, run => void (run.failedJobs = names))
      return names
    } catch (error) {
      if (!(error instanceof Refusal)) host.log.warn('reading the jobs of a run failed', { error: String(error) })
      return undefined
    }
  }

  #failed(what: string, error: unknown): void {
    const { host } = this.#deps
    if (!host.signal.aborted) host.log.error(`${what} failed`, { error: String(error) })
  }
}

/** The names of the jobs of a run that failed; undefined: the forge lists no jobs. */
const failedJobNames = async ({ dialect, client, project }: MappedRepo, runId: number) => {
  const asked = client()
  if (!(await dialect.powers(asked)).jobs) return undefined
  const jobs = await dialect.jobs(asked, project, runId)
  return jobs
    .filter(({ status }) => status === 'failed')
    .map(({ name }) => name)
    .slice(0, MOST_NAMES)
}
