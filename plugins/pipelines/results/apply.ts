import type { ForgeRun } from '../forges/forge.js'
import type { PendingCiEvent, StoredResults, StoredPipelineRun } from './stored.js'

const MOST_RUNS = 200
const MOST_ANNOUNCED = 2_000
const MOST_BRANCHES = 1_000
const ANNOUNCED_MS = 30 * 24 * 3_600_000

/** Forges give the same time with more or fewer digits. */
const second = (at: number): number => Math.floor(at / 1000)

/** Whether something newer is known of a run. */
const isOlder = (run: ForgeRun, known: ForgeRun): boolean => {
  const [attempt, before] = [run.attempt ?? 0, known.attempt ?? 0]
  return attempt === before ? second(run.updatedAt) < second(known.updatedAt) : attempt < before
}

const endOf = ({ runId, attempt, status }: ForgeRun): string => `${runId} ${attempt ?? ''} ${status}`

/** Takes runs of a forge into what is known of a repository; returns the runs that changed. */
export const applyRuns = (results: StoredResults, runs: readonly ForgeRun[], now: number): ForgeRun[] => {
  const changed: ForgeRun[] = []
  const inOrder = runs.toSorted(
    (one, other) => (one.finishedAt ?? one.updatedAt) - (other.finishedAt ?? other.updatedAt),
  )
  for (const run of inOrder) {
    const known = results.runs.find(({ runId }) => runId === run.runId)
    if (known && isOlder(run, known)) continue
    const merged = mergedRun(known, run)
    if (!known || JSON.stringify(known) !== JSON.stringify(merged)) changed.push(run)
    results.runs = [merged, ...results.runs.filter(each => each !== known)]
    if (run.status !== 'running') takeEnd(results, run, now)
  }
  results.runs = results.runs.toSorted((one, other) => other.createdAt - one.createdAt).slice(0, MOST_RUNS)
  const since = now - ANNOUNCED_MS
  results.announced = results.announced.filter(([, at]) => at > since).slice(-MOST_ANNOUNCED)
  const branches = Object.entries(results.branches)
  if (branches.length > MOST_BRANCHES)
    results.branches = Object.fromEntries(
      branches.toSorted(([, one], [, other]) => other.at - one.at).slice(0, MOST_BRANCHES),
    )
  return changed
}

/** A run with what a shorter description of it lacks. */
const mergedRun = (known: StoredPipelineRun | undefined, run: ForgeRun): StoredPipelineRun => {
  if (!known) return { ...run }
  const { failedJobs, fix, ...before } = known
  const isSame = before.status === run.status && before.attempt === run.attempt
  return { ...(isSame && before), ...run, ...(isSame && failedJobs && { failedJobs }), ...(fix && { fix }) }
}

/** Takes the end of a run once: the colour of its branch, and the events for automations. */
const takeEnd = (results: StoredResults, run: ForgeRun, now: number): void => {
  const end = endOf(run)
  if (results.announced.some(([known]) => known === end)) return
  results.announced.push([end, now])
  if (run.status !== 'success' && run.status !== 'failed') return
  const color = run.status === 'success' ? 'green' : 'red'
  const before = Object.hasOwn(results.branches, run.branch) ? results.branches[run.branch] : undefined
  // A run that began earlier and ended later says nothing of what is newest on the branch.
  const isNewest = !before || run.createdAt >= before.madeAt
  const notify = (type: PendingCiEvent['type']) => void (results.looked && results.pending.push({ type, run }))
  notify(color === 'red' ? 'pipeline_failed' : 'pipeline_succeeded')
  if (!isNewest) return
  if (before && before.color !== color) notify(color === 'red' ? 'pipeline_broken' : 'pipeline_fixed')
  // What was red before anybody looked is no news.
  const at = before?.color === color ? before.at : results.looked ? now : 0
  Object.defineProperty(results.branches, run.branch, {
    value: { color, at, madeAt: run.createdAt },
    ...{ enumerable: true, configurable: true, writable: true },
  })
}
