import type { Host } from '../../../sdk/index.js'
import { ownEnv } from '../../../sdk/node/programs/run.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import type { JobOrder } from './job-child.js'

/** The file of the program that runs a job; tests start it too. */
export const JOB_CHILD = programFile('plugins/cli/jobs/job-child.js')

type TerminalsHost = Pick<Host, 'call' | 'serves'>

/** A job as people see it. */
export interface TerminalJob {
  readonly name: string
  readonly label: string
  /** What tells it from an earlier one in the same terminal. */
  readonly purpose: string
  readonly order: JobOrder
  /** Variables besides those of every program of the daemon's own. */
  readonly env: { readonly [name: string]: string }
}

/** Starts a job in a terminal, in place of one that ended there. */
export const startJob = async (host: TerminalsHost, { name, label, purpose, order, env }: TerminalJob) =>
  host.call('terminals.run', {
    name,
    label,
    purpose,
    command: [process.execPath, JOB_CHILD, JSON.stringify(order)],
    env: Object.entries(await ownEnv(env)).map(([key, value]) => ({ name: key, value: String(value) })),
  })

/** Ends what runs in a terminal of ours, if anything does. */
export const stopJob = async (host: TerminalsHost, name: string): Promise<void> => {
  if (!(await host.serves('terminals.running'))) return
  const { sessions } = await host.call('terminals.running')
  if (sessions.some(each => each.name === name && each.running)) await host.call('terminals.stop', { name })
}

/** Whether a job runs. */
export const jobRuns = async (host: TerminalsHost, name: string, purpose: string): Promise<boolean> => {
  if (!(await host.serves('terminals.running'))) return false
  const { sessions } = await host.call('terminals.running')
  return sessions.some(each => each.name === name && each.purpose === purpose && each.running)
}
