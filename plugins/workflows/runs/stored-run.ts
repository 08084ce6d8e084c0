import { randomUUID } from 'node:crypto'
import type { CardWorkflow } from '../../agent/contract.js'
import type { LoopDocument } from '../../loops/contract.js'
import type { BaseCommit, Workflow, WorkflowRun, WorkflowRunState, WorkflowStep, WorkflowStepRun } from '../contract.js'

/** How much of a report a run keeps beside itself; lists show no more. */
const SHORT = 2000

/** A branch on which a step left commits. */
export interface StepBranch {
  readonly repo: string
  readonly branch: string
  readonly commit: string
}
/** What a step hands on, whole; a document of its own. */
export interface StepResult {
  readonly document?: LoopDocument
  readonly report?: string
  readonly branches: readonly StepBranch[]
}
/** A step as its run is stored: its report is cut, a long document left out. */
export interface StoredStep extends WorkflowStepRun {
  /** Its conversation was deleted. */
  readonly gone?: true
}
/** A run as it is stored. */
export interface StoredRun extends Omit<WorkflowRun, 'steps'> {
  readonly steps: readonly StoredStep[]
  /** The end that it comes to once the steps in hand have ended. */
  readonly ending?: 'stopped' | 'overspent' | 'error'
  /** The keys under which its starter may ask again. */
  readonly messageKey?: string
  readonly gateKey?: string
}

/** What starts a run. */
export interface RunOrder {
  readonly workflow: Workflow
  readonly repos: BaseCommit[]
  readonly request?: string
  readonly startedBy: string
  readonly messageKey?: string
  readonly gateKey?: string
}

/** A run that was just ordered: every step waits. */
export const begunRun = (order: RunOrder, startedAt: number): StoredRun => {
  const runId = randomUUID().replaceAll('-', '').slice(0, 20)
  return {
    ...{ ...order, workflow: structuredClone(order.workflow), runId, state: 'running', startedAt },
    ...{ resumed: 0, costUsd: 0 },
    steps: order.workflow.steps.map(step => ({
      stepId: step.id,
      state: 'pending',
      conversationId: `w-${runId}-${conversationStep(step, order.workflow)}`,
      iterations: 0,
    })),
  }
}

/** The step whose conversation a step works in: its own, or that of the first one that it continues. */
const conversationStep = (step: WorkflowStep, { steps }: Workflow): string => {
  let first = step
  while (first.handoff === 'continue') {
    const [before] = first.needs
    const found = steps.find(({ id }) => id === before)
    if (!found) break
    first = found
  }
  return first.id
}

/** Names a step of a run to the loops. */
export const stepOwner = ({ runId }: Pick<StoredRun, 'runId'>, stepId: string): string => `${runId}/${stepId}`

/** The run that a conversation belongs to, by its id. */
export const runIdOf = (conversationId: string): string | undefined =>
  /^w-([a-z0-9]{1,36})-[a-z0-9-]+$/.exec(conversationId)?.[1]

export const stepOf = ({ workflow }: Pick<StoredRun, 'workflow'>, stepId: string): WorkflowStep =>
  workflow.steps.find(({ id }) => id === stepId)!

export const isUnended = ({ state }: Pick<WorkflowStepRun, 'state'>): boolean =>
  state === 'pending' || state === 'running'

/** A run with another state of one step. */
export const withStep = (run: StoredRun, changed: StoredStep): StoredRun => {
  const steps = run.steps.map(step => (step.stepId === changed.stepId ? changed : step))
  return { ...run, steps, costUsd: steps.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0) }
}

/** The steps that may start now, in the order of the design. */
export const readySteps = ({ workflow, steps }: StoredRun): StoredStep[] => {
  const isDone = (id: string) => steps.find(({ stepId }) => stepId === id)?.state === 'done'
  const free = workflow.maxParallel - steps.filter(({ state }) => state === 'running').length
  return steps
    .filter(step => step.state === 'pending' && stepOf({ workflow }, step.stepId).needs.every(isDone))
    .slice(0, Math.max(0, free))
}

/** A run in which every step is closed that can never start. */
export const withoutBlocked = (run: StoredRun, now: number): StoredRun => {
  let next = run
  for (;;) {
    const closed = next.steps.flatMap(step => {
      const why = step.state === 'pending' ? blockedBy(next, step.stepId) : undefined
      return why === undefined ? [] : [{ ...step, ...why, endedAt: now }]
    })
    if (closed.length === 0) return next
    next = closed.reduce(withStep, next)
  }
}

const blockedBy = (
  { ending, steps, workflow }: StoredRun,
  stepId: string,
): { readonly state: 'skipped' | 'stopped'; readonly detail: string } | undefined => {
  if (ending === 'stopped') return { state: 'stopped', detail: 'the run was stopped' }
  if (ending === 'overspent') return { state: 'skipped', detail: 'the run had spent what it may' }
  if (ending === 'error') return { state: 'skipped', detail: 'the run had ended' }
  const { needs } = stepOf({ workflow }, stepId)
  const broken = steps.find(
    each => needs.some(need => need === each.stepId) && !isUnended(each) && each.state !== 'done',
  )
  return broken && { state: 'skipped', detail: `step ${broken.stepId} ended as ${broken.state}` }
}

/** The end that a run has come to; undefined: it goes on. */
export const runOutcome = ({ steps, ending }: StoredRun): Exclude<WorkflowRunState, 'running'> | undefined => {
  if (steps.some(isUnended)) return undefined
  return ending ?? (steps.every(({ state }) => state === 'done') ? 'done' : 'failed')
}

/** Whether a run has spent what it may while steps are left. */
export const isOverspent = ({ workflow: { maxSpendUsd }, costUsd, steps }: StoredRun): boolean =>
  maxSpendUsd !== undefined && costUsd >= maxSpendUsd && steps.some(isUnended)

/** What a run keeps of a step's result. */
export const shortResult = ({ document, report }: StepResult): Pick<StoredStep, 'document' | 'report'> => ({
  ...(document && JSON.stringify(document).length <= SHORT && { document }),
  ...(report !== undefined && { report: report.slice(0, SHORT) }),
})

/** A run as callers see it; with `results` whole. */
export const shownRun = (run: StoredRun, results: ReadonlyMap<string, StepResult> = new Map()): WorkflowRun => {
  const { ending: _ending, messageKey: _message, gateKey: _gate, ...shown } = run
  const steps = run.steps.map(({ gone: _gone, ...step }) => {
    const { document, report } = results.get(step.stepId) ?? {}
    return { ...step, ...(document && { document }), ...(report !== undefined && { report }) }
  })
  return structuredClone({ ...shown, steps })
}

/** A run as the card of one of its conversations shows it: by its newest step there. */
export const cardWorkflow = (run: StoredRun, conversationId: string): CardWorkflow | undefined => {
  const { runId, workflow, steps } = run
  const there = steps.filter(step => step.conversationId === conversationId)
  const newest = there.findLast(({ startedAt }) => startedAt !== undefined) ?? there[0]
  if (!newest) return undefined
  const at = steps.indexOf(newest)
  const { title } = stepOf({ workflow }, newest.stepId)
  // A design has at most 24 steps.
  const position = { index: (at + 1) as CardWorkflow['index'], total: steps.length as CardWorkflow['total'] }
  return { runId, name: workflow.name, step: title, ...position }
}
