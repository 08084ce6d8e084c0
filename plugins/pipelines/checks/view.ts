import type { PipelineJob, PipelineRun, PipelineStatus, PrepushRun } from '../contract.js'
import { checkRunId } from './checks.js'
import type { CheckedRule, StoredCheck } from './stored.js'

const MOST_OUTPUT = 24_000

const STATUSES: { readonly [status in StoredCheck['status']]: PipelineStatus } = {
  running: 'running',
  passed: 'success',
  failed: 'failed',
  error: 'failed',
  cancelled: 'canceled',
}

const statusOfRule = (check: StoredCheck, { startedAt, finishedAt, exitCode }: CheckedRule): PipelineStatus => {
  if (startedAt === undefined) return check.status === 'running' ? 'running' : 'skipped'
  if (finishedAt === undefined && check.status === 'running') return 'running'
  if (exitCode === 0) return 'success'
  return check.status === 'cancelled' ? 'canceled' : 'failed'
}

const secondsOf = (from: number | undefined, to: number | undefined): { durationSeconds?: number } =>
  from === undefined || to === undefined ? {} : { durationSeconds: Math.max(0, Math.round((to - from) / 1000)) }

/** The rule that a check is about now: the last one that began. */
export const currentRule = ({ rules }: StoredCheck): CheckedRule | undefined =>
  rules.findLast(({ startedAt }) => startedAt !== undefined)

/** A check as one of the runs. */
export const runOfCheck = (check: StoredCheck): PipelineRun => {
  const { number, repo, branch, sha, status, trigger, startedAt, finishedAt, rules, fix } = check
  const failed = rules.filter(rule => statusOfRule(check, rule) === 'failed').map(({ label }) => label)
  return {
    ...{ repo, host: 'local', project: 'local', runId: checkRunId(check), number, branch, sha, url: '', trigger },
    title: rules.map(({ label }) => label).join(', '),
    workflow: 'Checks before a push',
    status: STATUSES[status],
    createdAt: startedAt,
    ...(finishedAt !== undefined && { finishedAt }),
    ...secondsOf(startedAt, finishedAt),
    ...(failed.length > 0 && { failedJobs: failed }),
    ...(fix && { fix: { conversationId: fix.conversationId, at: fix.at } }),
  }
}

/** The rules of a check as the jobs of its run. */
export const jobsOfCheck = (check: StoredCheck): PipelineJob[] =>
  check.rules.map((rule, at) => {
    const { id, label, startedAt, finishedAt } = rule
    const before = check.rules[at - 1]
    return {
      ...{ id, name: label, status: statusOfRule(check, rule), needs: before ? [before.label] : [] },
      ...(startedAt !== undefined && { startedAt }),
      ...(finishedAt !== undefined && { finishedAt }),
      ...secondsOf(startedAt, finishedAt),
      log: startedAt === undefined ? 'pending' : 'available',
    }
  })

/** What is known without any check. */
export const IDLE: PrepushRun = { status: 'idle', command: '', output: '' }

/** A check as the state of the checks; `output` is what its last rule wrote. */
export const stateOfCheck = (check: StoredCheck, output: string): PrepushRun => {
  const { status, startedAt, finishedAt, reason = '' } = check
  const rule = currentRule(check)
  const { command = '', exitCode, timedOut, session } = rule ?? {}
  return {
    ...{ status, command, runId: checkRunId(check), startedAt },
    ...(rule && { ruleId: rule.id }),
    ...(finishedAt !== undefined && { finishedAt }),
    ...(exitCode !== undefined && { exitCode }),
    ...(timedOut && { timedOut }),
    ...(session !== undefined && { session }),
    output: (rule ? output : reason).slice(-MOST_OUTPUT).toWellFormed(),
  }
}
