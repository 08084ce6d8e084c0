import { refuse, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { record } from '../../sdk/node/record/record.js'
import type { Checks } from './checks/checks.js'
import { currentRule, IDLE, stateOfCheck } from './checks/view.js'
import type { PipelinePowers, PipelinesCalls } from './contract.js'
import type { PipelineFixes } from './fix/fixes.js'
import type { Reports } from './hooks/reports.js'
import type { Jobs } from './logs/jobs.js'
import { logWindow } from './logs/log-text.js'
import type { CiNews } from './news.js'
import type { Results } from './results/results.js'
import type { Watching } from './results/watching.js'
import type { FoundRun, RunFinder } from './run-finder.js'

const WINDOW = 65_536

export interface PipelineCallDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place' | 'log'>
  readonly checks: Checks
  readonly results: Results
  readonly watching: Watching
  readonly runs: RunFinder
  readonly jobs: Jobs
  readonly fixes: PipelineFixes
  readonly reports: Reports
  readonly news: CiNews
}

const WORDS: { readonly [power in 'rerun' | 'rerunFailed' | 'cancel']: string } = {
  rerun: 'runs nothing again as a whole; what failed can be with failedOnly where `can` says so',
  rerunFailed: 'does not run again only what failed',
  cancel: 'stops no runs',
}

const assertCan = (powers: PipelinePowers, power: keyof typeof WORDS, what: string): void => {
  if (!powers[power]) refuse('unprocessable', `${what} ${WORDS[power]}`)
}

/** Serves the calls of the group. */
export const pipelineCalls = (deps: PipelineCallDeps): Handlers<PipelinesCalls> => {
  const { host, checks, results, watching, runs, jobs, fixes, reports, news } = deps

  /** Records what was asked of a run, and shows it soon. */
  const asked = async (type: string, found: FoundRun, runId: number, context: Context) => {
    const repo = found.kind === 'check' ? found.check.repo : found.mapped.repo
    news.run(repo, runId)
    if (found.kind === 'forge') watching.again(found.mapped)
    await record(host, { type, extra: { repo, runId, host: hostOf(found) } }, context)
  }

  return {
    ...reports.handlers(),
    'GET /ci/runs': (input, { caller }) => runs.list(input, caller),
    'POST /ci/runs/jobs': async (input, { caller }) => ({ jobs: await jobs.list(await runs.find(input, caller)) }),
    'POST /ci/runs/log': async ({ job, bytes = WINDOW, offset, find, ...input }, { caller }) => {
      const log = await jobs.log(await runs.find(input, caller), job)
      const window = { bytes, ...(offset !== undefined && { offset }), ...(find && { find }) }
      return { job, ...logWindow(log, window) }
    },
    'POST /ci/runs/rerun': async ({ failedOnly = false, ...input }, context) => {
      const found = await runs.find(input, context.caller)
      if (found.kind === 'check') {
        if (found.check.status === 'running') refuse('conflict', 'the check is running')
        if (failedOnly) refuse('unprocessable', `a check before a push ${WORDS.rerunFailed}`)
        await checks.again(found.check)
      } else {
        const { mapped, run } = found
        if (run.status === 'running') refuse('conflict', `the run ${run.runId} is running`)
        const client = mapped.client()
        assertCan(await mapped.dialect.powers(client), failedOnly ? 'rerunFailed' : 'rerun', mapped.host)
        await mapped.dialect.rerun(client, mapped.project, run.runId, failedOnly)
      }
      await asked('ci.rerun', found, input.runId, context)
      return { ok: true }
    },
    'POST /ci/runs/cancel': async (input, context) => {
      const found = await runs.find(input, context.caller)
      if (found.kind === 'check') {
        if (found.check.status !== 'running') refuse('conflict', `the check has ended: it is ${found.check.status}`)
        await checks.cancel()
      } else {
        const { mapped, run } = found
        if (run.status !== 'running') refuse('conflict', `the run ${run.runId} has ended: it is ${run.status}`)
        const client = mapped.client()
        assertCan(await mapped.dialect.powers(client), 'cancel', mapped.host)
        await mapped.dialect.cancel(client, mapped.project, run.runId)
      }
      await asked('ci.cancel', found, input.runId, context)
      return { ok: true }
    },
    'POST /ci/fix': async (input, context) => {
      const found = await runs.find(input, context.caller, true)
      const { conversationId, run, isFirst } = await fixes.start(found, input, context)
      if (isFirst) {
        const extra = { repo: input.repo, runId: input.runId, host: hostOf(found) }
        await record(host, { type: 'ci.fix', audience: 'viewer', conversationId, extra }, context)
      }
      return { conversationId, run }
    },
    'POST /ci/seen': async () => {
      const seenAt = await results.see(Date.now())
      news.published('ci', 'seen')
      return { seenAt }
    },
    'GET /prepush/state': async (_input, { caller }) => {
      const { latest } = checks
      const isShown = latest && (latest.status === 'running' || (await runs.rulesStand()))
      if (!isShown || !(await runs.seesCheck(latest, await accessViewFor(host, caller)))) return IDLE
      return stateOfCheck(latest, await jobs.output(latest, currentRule(latest)?.id))
    },
    'POST /prepush/run': async () => {
      await checks.start()
      return { ok: true }
    },
    'POST /prepush/cancel': async (_input, context) => {
      const { latest } = checks
      if (latest?.status !== 'running') return { ok: true }
      await checks.cancel()
      await record(host, { type: 'ci.cancel', extra: { repo: latest.repo, host: 'local' } }, context)
      return { ok: true }
    },
    'ci.waiting': () => results.waiting(),
  }
}

const hostOf = (found: FoundRun): string => (found.kind === 'check' ? 'local' : found.mapped.host)
