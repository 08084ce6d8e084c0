import type { Test } from 'tap'
import type { Workflow, WorkflowRun, WorkflowStep } from '../../../plugins/workflows/contract.js'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'
import { readUntil } from '../../support/changes.js'

const GROUPS = [
  'workflows',
  'loops',
  'agent',
  'agents',
  'activity',
  'settings',
  'safety',
  'system',
  'usage',
  'needs',
  'secrets',
]

/** A daemon with workflows and what they use. */
export const workflowsDaemon = (t: Test, options: SupportOptions = {}, more: string[] = []): Promise<Support> =>
  daemonWith(t, [...GROUPS, ...more], options)

/** A step whose turn alone says that it is done, unless a test says more about it. */
export const stepOf = (id: string, prompt: string, more: Partial<WorkflowStep> = {}): WorkflowStep => ({
  ...{ id, title: `Step ${id}`, goal: `${id} is done.`, prompt, needs: [], handoff: 'fresh' },
  ...{ output: { kind: 'none' }, checks: [], context: 'continue', agent: 'script' },
  ...more,
})

/** A design of these steps. */
export const workflowOf = (id: string, steps: WorkflowStep[], more: Partial<Workflow> = {}): Workflow => ({
  ...{ id, name: `Workflow ${id}`, steps, maxParallel: 2 },
  ...more,
})

/** A step that judges, with the field `verdict`. */
export const judgeOf = (id: string, prompt: string, more: Partial<WorkflowStep> = {}): WorkflowStep =>
  stepOf(id, prompt, {
    output: { kind: 'json', fields: [{ name: 'verdict', type: 'string', description: 'go or stop', required: true }] },
    ...more,
  })

type Daemon = Pick<Support, 'client'>

/** The run as it stands once something holds of it; looks again at every event of workflows. */
export const runUntil = (
  { client }: Daemon,
  runId: string,
  holds: (run: WorkflowRun) => boolean,
): Promise<WorkflowRun> =>
  readUntil(client, 'workflows', () => client.call('GET /workflows/runs/{runId}', { runId }), holds)

/** Waits until a run has ended. */
export const runEnd = (daemon: Daemon, runId: string): Promise<WorkflowRun> =>
  runUntil(daemon, runId, ({ state }) => state !== 'running')

/** Saves a design and starts it. */
export const startRun = async ({ client }: Daemon, workflow: Workflow, request?: string): Promise<WorkflowRun> => {
  await client.call('POST /workflows', { workflow, create: true })
  return client.call('POST /workflows/{id}/run', { id: workflow.id, ...(request !== undefined && { request }) })
}

/** Saves a design and runs it to its end. */
export const runWorkflow = async (daemon: Daemon, workflow: Workflow, request?: string): Promise<WorkflowRun> =>
  runEnd(daemon, (await startRun(daemon, workflow, request)).runId)

/** A step of a run. */
export const stepIn = ({ steps }: WorkflowRun, id: string) => steps.find(({ stepId }) => stepId === id)!

/** The status with which a call is refused; 0: it was not. */
export const refusal = (done: Promise<unknown>): Promise<number> =>
  done.then(
    () => 0,
    (error: { status: number }) => error.status,
  )
