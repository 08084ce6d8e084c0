import { refuse, type Host } from '../../../sdk/index.js'
import type { CurrentMasker } from '../../../sdk/node/access/value-masker.js'
import { jobsOfCheck } from '../checks/view.js'
import type { StoredCheck } from '../checks/stored.js'
import type { PipelineJob, PipelinePowers } from '../contract.js'
import { statusOfRefusal } from '../forges/client.js'
import type { ForgeJob } from '../forges/forge.js'
import type { MappedRepo } from '../forges/mapped-repos.js'
import type { StoredPipelineRun } from '../results/stored.js'
import type { FoundRun } from '../run-finder.js'
import { declaredNeeds, type DeclaredNeeds } from './definitions.js'
import { LogCache } from './log-cache.js'
import { plainLog } from './log-text.js'

const GONE = new Set([404, 410])
const MOST_EXPIRED = 1_000
const TAIL_LINES = 1_000
/** Where a workflow's file is, of forges that name only the file. */
const FOLDERS = ['.forgejo/workflows', '.gitea/workflows', '.github/workflows']

export interface JobsDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly secrets: CurrentMasker
}

/** Reads the jobs of runs and what they wrote. */
export class Jobs {
  readonly #deps: JobsDeps
  readonly #cache = new LogCache()
  /** Jobs whose logs the forge does not have any more. */
  readonly #expired = new Set<string>()

  constructor(deps: JobsDeps) {
    this.#deps = deps
  }

  /** The jobs of a run, in the order they started. */
  async list(found: FoundRun): Promise<PipelineJob[]> {
    if (found.kind === 'check') return jobsOfCheck(found.check)
    const { mapped, run } = found
    const powers = await this.#powers(mapped)
    const jobs = await mapped.dialect.jobs(mapped.client(), mapped.project, run.runId)
    const needs = jobs.some(job => job.needs) ? undefined : await this.#needs(mapped, run)
    return jobs
      .toSorted((one, other) => (one.startedAt ?? Infinity) - (other.startedAt ?? Infinity) || 0)
      .map(job => {
        const declared = job.needs ?? needsOf(job.name, needs)
        return { ...job, ...(declared && { needs: [...declared] }), log: this.#logOf(mapped, powers, job) }
      })
  }

  /** The whole log of a job as plain text. */
  async log(found: FoundRun, job: string): Promise<string> {
    const { masker } = await this.#deps.secrets.now()
    if (found.kind === 'check') return plainLog(await this.#outputOf(found.check, job), masker)
    const { mapped, run } = found
    const powers = await this.#powers(mapped)
    if (!powers.log) refuse('unprocessable', `this version of ${mapped.host} gives no logs`)
    const client = mapped.client()
    const key = logKey(mapped, job)
    const kept = this.#cache.get(key)
    if (kept !== undefined) return plainLog(kept, masker)
    const jobs = await mapped.dialect.jobs(client, mapped.project, run.runId)
    const { status, startedAt } =
      jobs.find(({ id }) => id === job) ?? refuse('not-found', `there is no job ${JSON.stringify(job)}`)
    if (status === 'running' && startedAt === undefined) refuse('conflict', `the job ${job} has not started`)
    try {
      const text = await mapped.dialect.log(client, mapped.project, job)
      if (status !== 'running') this.#cache.keep(key, text)
      return plainLog(text, masker)
    } catch (error) {
      if (!GONE.has(statusOfRefusal(error) ?? 0)) throw error
      if (this.#expired.size >= MOST_EXPIRED) this.#expired.clear()
      this.#expired.add(key)
      return refuse('dependency', `${mapped.site.host} does not have the log of job ${job} any more`)
    }
  }

  /** The logs of the jobs that failed; a job whose log cannot be read has none. */
  async failedLogs(found: FoundRun, most: number): Promise<{ name: string; text: string }[]> {
    const jobs = await this.list(found).catch(() => [])
    const failed = jobs.filter(({ status }) => status === 'failed').slice(0, most)
    return Promise.all(failed.map(async ({ id, name }) => ({ name, text: await this.log(found, id).catch(() => '') })))
  }

  /** What the rule of a check wrote, as people see it. */
  async output(check: StoredCheck, rule: string | undefined): Promise<string> {
    if (rule === undefined) return ''
    const { masker } = await this.#deps.secrets.now()
    return plainLog(await this.#outputOf(check, rule), masker)
  }

  async #outputOf({ rules }: StoredCheck, job: string): Promise<string> {
    const { host } = this.#deps
    const { startedAt, finishedAt, session, output } =
      rules.find(({ id }) => id === job) ?? refuse('not-found', `there is no job ${JSON.stringify(job)}`)
    if (startedAt === undefined) return refuse('conflict', `the job ${job} has not started`)
    if (finishedAt !== undefined || session === undefined || !(await host.serves('terminals.tail'))) return output ?? ''
    return (await host.call('terminals.tail', { name: session, lines: TAIL_LINES })).text
  }

  async #powers({ dialect, client, host }: MappedRepo): Promise<PipelinePowers> {
    const powers = await dialect.powers(client())
    if (!powers.jobs) refuse('unprocessable', `this version of ${host} lists no jobs`)
    return powers
  }

  #logOf(mapped: MappedRepo, powers: PipelinePowers, job: ForgeJob): PipelineJob['log'] {
    if (!powers.log) return 'unsupported'
    if (this.#expired.has(logKey(mapped, job.id))) return 'expired'
    return job.startedAt === undefined ? 'pending' : 'available'
  }

  /** What the definition at the run's commit says; undefined: it cannot be read here. */
  async #needs(mapped: MappedRepo, run: StoredPipelineRun): Promise<DeclaredNeeds | undefined> {
    const { host } = this.#deps
    if (!(await host.serves('GET /git/{repo}/file'))) return undefined
    const { definition = run.workflow ?? '', sha } = run
    if (definition === '' || sha === '') return undefined
    const paths =
      definition.includes('/') || mapped.host === 'gitlab' ? [definition] : FOLDERS.map(at => `${at}/${definition}`)
    for (const path of paths) {
      const file = await host.call('GET /git/{repo}/file', { repo: mapped.repo, path, ref: sha }).catch(() => undefined)
      if (file) return declaredNeeds(file.content, mapped.host === 'gitlab')
    }
    return undefined
  }
}

const logKey = ({ site, project }: MappedRepo, job: string): string => JSON.stringify([site.href, project, job])

/** The declared needs of a job; those of a matrix show the values behind the name. */
const needsOf = (name: string, needs: DeclaredNeeds | undefined): readonly string[] | undefined =>
  needs?.get(name) ?? needs?.get(name.replace(/ \([^()]*\)$/, '').replace(/ \d+\/\d+$/, ''))
