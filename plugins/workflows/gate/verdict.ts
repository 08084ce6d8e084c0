import type { GateVerdict } from '../contract.js'
import { isUnended, type StepResult, type StoredRun } from '../runs/stored-run.js'

/** Whether the step of a run's gate has ended. */
export const isJudged = (run: StoredRun): boolean => {
  const step = gateStep(run)
  return step === undefined || !isUnended(step)
}

/** What a gate says once its step has ended. */
export const gateVerdict = (run: StoredRun, result: StepResult | undefined): GateVerdict => {
  const { runId, workflow } = run
  const step = gateStep(run)
  const blocked = (reason: string) => ({ outcome: 'blocked', step: 'failed', runId, reason }) as const
  if (step?.state !== 'done') return blocked(step?.detail ?? `its step ended as ${step?.state}`)
  const { document } = result ?? {}
  const found = document?.data?.[workflow.gate!.field]
  if (!document || found === undefined) return blocked(`its document has no ${workflow.gate!.field}`)
  const value = String(found)
  const outcome = workflow.gate!.pass.includes(value) ? ('pass' as const) : ('fail' as const)
  return { outcome, step: 'completed', runId, value, reason: document.reason }
}

/** What a gate says when its time is over. */
export const lateVerdict = (run: StoredRun, seconds: number): GateVerdict => {
  const { runId } = run
  const need = gateStep(run)?.waitingFor
  if (need !== undefined)
    return { outcome: 'blocked', step: 'parked', runId, reason: `its step waits for a person (need ${need})` }
  return { outcome: 'blocked', step: 'timeout', runId, reason: `its step had not ended after ${seconds} s` }
}

const gateStep = ({ workflow, steps }: StoredRun) => steps.find(({ stepId }) => stepId === workflow.gate?.step)
