import { randomUUID } from 'node:crypto'
import { pathOfRepo, Refusal, refuse, type Context, type Host, type Input } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Checks } from '../checks/checks.js'
import type { StoredPipelineFix } from '../checks/stored.js'
import { runOfCheck } from '../checks/view.js'
import type { PipelinesCalls } from '../contract.js'
import type { Jobs } from '../logs/jobs.js'
import type { Results } from '../results/results.js'
import type { FoundRun } from '../run-finder.js'
import { NUDGE, pipelineFixPrompt, saysElsewhere, type FixedRun } from './prompt.js'

type Asked = Input<PipelinesCalls, 'POST /ci/fix'>

const AGAIN_MS = 10_000
const MOST_TITLE = 80
const MOST_JOBS = 10
const OUTSIDE = 'the log of a failed run'
const FIX = /^((?:ci|push|land)-fix)-([0-9a-f]{20})$/

type FixErrand = 'ci-fix' | 'push-fix' | 'land-fix'

/** How a turn ended. */
export interface SettledFix {
  readonly conversationId: string
  readonly run: string
  readonly end: string
  readonly report?: string
}

export interface PipelineFixesDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly checks: Checks
  readonly results: Results
  readonly jobs: Jobs
}

const fixedRun = (found: FoundRun): FixedRun & { runId: number; fix?: StoredPipelineFix } => {
  if (found.kind === 'check') {
    const { fix, repo } = found.check
    return { ...runOfCheck(found.check), where: `the checks before a push of ${repo}`, fix: fix! }
  }
  const { mapped, run } = found
  return { ...run, repo: mapped.repo, where: `${mapped.project} at ${mapped.site.host}` }
}

/** Starts agents on failed runs, one at a time for each. */
export class PipelineFixes {
  readonly #deps: PipelineFixesDeps
  readonly #turns = new KeyedMutex()

  constructor(deps: PipelineFixesDeps) {
    this.#deps = deps
  }

  /** Starts a turn, or returns that of a call just before; `isFirst`: it began now. */
  start(found: FoundRun, asked: Asked, context: Context) {
    return this.#turns.with(`${asked.repo}#${asked.runId}`, async () => {
      const run = fixedRun(found)
      if (run.status !== 'failed') refuse('conflict', `the run ${asked.runId} did not fail: it is ${run.status}`)
      const { fix: before } = run
      const now = Date.now()
      if (before && now - before.at < AGAIN_MS && (await this.#isThere(before.conversationId)))
        return { conversationId: before.conversationId, run: before.run, isFirst: false }
      await this.#assertCommit(run.repo, run.sha)
      const landed = found.kind === 'check' ? await this.#landed(run.repo, context) : undefined
      const errand = found.kind !== 'check' ? 'ci-fix' : landed ? 'land-fix' : 'push-fix'
      const id = randomUUID().replaceAll('-', '').slice(0, 20)
      const fix = { conversationId: `${errand}-${id}`, messageId: `${errand}-${id}`, run: `r-${id}`, at: now }
      await this.#note(found, fix)
      failpoint('pipelines.fix.noted')
      try {
        await this.#begin(found, landed ? { ...run, landed } : run, { ...fix, errand }, asked, context)
      } catch (error) {
        await this.#note(found, before)
        throw error
      }
      return { conversationId: fix.conversationId, run: fix.run, isFirst: true }
    })
  }

  /**
   * Asks an agent once more that ended its first turn on a failed run without a change, and without saying that the
   * fault is elsewhere.
   */
  async nudge({ conversationId, run, end, report = '' }: SettledFix): Promise<void> {
    const { host } = this.#deps
    const [, errand, id] = FIX.exec(conversationId) ?? []
    if (end !== 'completed' || run !== `r-${id}` || saysElsewhere(report)) return
    if (!(await host.serves('GET /agents/{id}'))) return
    const { status, waiting } = await host.call('GET /agents/{id}', { id: conversationId })
    if (status !== 'idle' || waiting) return
    await host.call('agent.start', {
      ...{ conversationId, messageId: `${conversationId}-nudge`, run: `${run}-nudge`, prompt: NUDGE },
      ...{ errand: `${errand as FixErrand}-nudge`, outsideWake: OUTSIDE },
    })
  }

  /** What a conversation that the caller sees landed in a repository and nobody has committed, as its commit. */
  async #landed(repo: string, context: Context): Promise<FixedRun['landed']> {
    const { host } = this.#deps
    if (!(await host.serves('GET /git/changes'))) return undefined
    const { repos } = await host.call('GET /git/changes', { repo }, { as: context })
    for (const id of new Set(
      repos.flatMap(({ origins = {} }) => Object.values(origins).flatMap(ids => ids[0] ?? [])),
    )) {
      const { conversation } = await host.call('agent.conversation', { id })
      const tip = conversation.repos.find(one => one.repo === repo)?.landedTip
      if (tip !== undefined) return { tip, by: conversation.title ?? id }
    }
    return undefined
  }

  /** Forgets fixes whose conversation does not exist: the daemon ended before it began, or it was deleted. */
  async forgetUnstarted(): Promise<void> {
    const { checks, results } = this.#deps
    for (const check of checks.all)
      if (check.fix && !(await this.#isThere(check.fix.conversationId))) await checks.noteFix(check, undefined)
    for (const { repo, runs } of results.all)
      for (const { runId, fix } of runs)
        if (fix && !(await this.#isThere(fix.conversationId))) await results.noteFix(repo, runId, undefined)
  }

  #note(found: FoundRun, fix: StoredPipelineFix | undefined): Promise<void> {
    const { checks, results } = this.#deps
    if (found.kind === 'check') return checks.noteFix(found.check, fix)
    return results.noteFix(found.mapped.repo, found.run.runId, fix)
  }

  async #begin(
    found: FoundRun,
    run: FixedRun,
    fix: StoredPipelineFix & { readonly errand: FixErrand },
    { pick, note }: Asked,
    context: Context,
  ) {
    const { host, jobs } = this.#deps
    const prompt = pipelineFixPrompt(run, await jobs.failedLogs(found, MOST_JOBS), note)
    const folder = pathOfRepo(run.repo)
    await host.call(
      'agent.start',
      {
        ...{ conversationId: fix.conversationId, messageId: fix.messageId, run: fix.run, prompt },
        ...{ isolated: true, worktreeBase: [{ repo: run.repo, base: run.landed?.tip ?? run.sha }] },
        errand: fix.errand,
        title: `Fix: ${run.title ?? run.workflow ?? run.branch}`.slice(0, MOST_TITLE).toWellFormed(),
        ...{ runRole: 'pipeline-fix', outsideWake: OUTSIDE },
        ...(folder !== '.' && folder.length <= 200 && { startIn: folder }),
        ...pick,
      },
      { as: context },
    )
  }

  /** Refuses a commit that the repository does not have, also after it was updated from its remote. */
  async #assertCommit(repo: string, sha: string): Promise<void> {
    const { host } = this.#deps
    const lacks = (why: string) => refuse('unprocessable', `the commit ${sha.slice(0, 64)} of the run ${why}`)
    if (!/^[0-9a-f]{4,64}$/.test(sha)) lacks('is not known')
    if (!(await host.serves('GET /git/{repo}/log'))) lacks('cannot be found: this sandbox runs without the group git')
    const has = () =>
      host.call('GET /git/{repo}/log', { repo, ref: sha, limit: 1 }).then(
        ({ commits }) => commits.length > 0,
        error => {
          if (error instanceof Refusal) return false
          throw error
        },
      )
    if (await has()) return
    const { ok, reason = '' } = await host.call('POST /git/{repo}/fetch', { repo }).catch((error: unknown) => {
      if (error instanceof Refusal) return { ok: false, reason: error.message }
      throw error
    })
    if (ok && (await has())) return
    lacks(`is not in ${repo} and cannot be fetched${reason && `: ${reason.slice(0, 300)}`}`)
  }

  async #isThere(id: string): Promise<boolean> {
    const { host } = this.#deps
    if (!(await host.serves('agent.conversation'))) return true
    return host.call('agent.conversation', { id }).then(
      () => true,
      (error: unknown) => {
        if (Refusal.from(error).reason === 'not-found') return false
        throw error
      },
    )
  }
}
