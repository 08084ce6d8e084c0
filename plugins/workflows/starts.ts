import { refuse, Refusal, type Host } from '../../sdk/index.js'
import { valueMasker } from '../../sdk/node/access/value-masker.js'
import type { BaseCommit, Workflow } from './contract.js'
import type { Designs } from './designs/designs.js'
import { assertFaultless } from './designs/faults.js'

const MOST_REPOS = 50

type StartsHost = Pick<Host, 'call' | 'serves'>

/** What a run that is possible begins with. */
export interface RunBeginning {
  /** The commits that its steps start from. */
  readonly repos: BaseCommit[]
  /** The request without values of stored secrets. */
  readonly request?: string
}

/** Refuses a run that is not possible. */
export const assertStarts = async (
  host: StartsHost,
  designs: Pick<Designs, 'assertAccepted'>,
  workflow: Workflow,
  request: string | undefined,
): Promise<RunBeginning> => {
  assertFaultless(workflow)
  assertRequest(workflow, request)
  await designs.assertAccepted(workflow)
  for (const [at, step] of workflow.steps.entries()) await assertChoice(host, step, at)
  const { repos } = await host.call('checkouts.snapshot')
  if (repos.length === 0)
    refuse(
      'conflict',
      'no repository of the workspace has a commit to start from: make one with git init and git commit',
    )
  const masked = request === undefined ? undefined : (await valueMasker(host)).mask(request)
  return { repos: repos.slice(0, MOST_REPOS), ...(masked !== undefined && { request: masked }) }
}

const assertRequest = ({ steps }: Workflow, request: string | undefined): void => {
  if (request !== undefined) return
  const lacking = steps.find(({ goal, prompt }) => goal === undefined || prompt === undefined)
  if (!lacking) return
  const what = lacking.prompt === undefined ? 'prompt' : 'goal'
  refuse('unprocessable', `request: expected a text, found none: step ${lacking.id} has no ${what} of its own`, {
    errors: [{ path: 'request', expected: 'a text' }],
  })
}

const assertChoice = async (
  host: StartsHost,
  { id, agent, harness, model, account }: Workflow['steps'][number],
  at: number,
): Promise<void> => {
  try {
    await host.call('agent.assertChoice', {
      ...(agent !== undefined && { agent }),
      ...(harness && { harness }),
      ...(model !== undefined && { model }),
      ...(account !== undefined && { account }),
    })
  } catch (error) {
    const { reason, message } = Refusal.from(error)
    if (reason === 'failed') throw error
    refuse(reason, `steps[${at}]: step ${id}: ${message}`)
  }
}
