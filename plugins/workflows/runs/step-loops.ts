import { Refusal, type Context, type Host } from '../../../sdk/index.js'
import type { Loop, OwnedLoop } from '../../loops/contract.js'
import { handedWords, type HandedResult } from './handed.js'
import { stepOwner, stepOf, type StepBranch, type StepResult, type StoredRun, type StoredStep } from './stored-run.js'

const ROUNDS = 20
const STALL = 3
const MOST_TITLE = 80
const MOST_GOAL = 8000

type StepLoopsHost = Pick<Host, 'call' | 'log'>

/** The loops that carry out steps, one for each. */
export class StepLoops {
  readonly #host: StepLoopsHost

  constructor(host: StepLoopsHost) {
    this.#host = host
  }

  /** Starts the loop of a step, unless it is known already. */
  start(run: StoredRun, { stepId, conversationId }: StoredStep, results: readonly HandedResult[]): Promise<OwnedLoop> {
    const { workflow, request, repos, startedBy } = run
    const step = stepOf(run, stepId)
    const { title, goal, prompt, output, checks, context, agent, harness, account, model, actsAs } = step
    const words = prompt ?? request ?? title
    const handed = handedWords(step, request, results)
    const maxSpendUsd = leftToSpend(run, step.maxSpendUsd)
    return this.#host.call('loops.run', {
      ...{ conversationId, owner: stepOwner(run, stepId), startedBy, isolated: true },
      title: [...`${title} (${workflow.name})`].slice(0, MOST_TITLE).join('').trim(),
      goal: (goal ?? request ?? words).slice(0, MOST_GOAL),
      prompt: words,
      ...(handed !== undefined && { handed }),
      ...{ context, output: structuredClone(output), checks: structuredClone(checks) },
      ...{ maxIterations: ROUNDS, stallLimit: STALL, worktreeBase: structuredClone(repos) },
      ...(maxSpendUsd !== undefined && { maxSpendUsd }),
      ...(agent !== undefined && { agent }),
      ...(harness && { harness }),
      ...(account !== undefined && { account }),
      ...(model !== undefined && { model }),
      ...(actsAs !== undefined && { actsAs }),
    })
  }

  /** The loop of a step as it stands; empty: its conversation was deleted. */
  read(run: StoredRun, { stepId, conversationId }: StoredStep): Promise<OwnedLoop> {
    return this.#host.call('loops.owned', { conversationId, owner: stepOwner(run, stepId) })
  }

  /** Ends the loop of a step with its turn in hand. */
  async stop(step: StoredStep, context?: Context): Promise<void> {
    const conversationId: string = step.conversationId
    await this.#host
      .call('POST /loops/{conversationId}/stop', { conversationId, now: true }, context ? { as: context } : {})
      .catch((error: unknown) => {
        if (Refusal.from(error).reason !== 'not-found') throw error
      })
  }

  /** What a step hands on, after its loop has ended. */
  async result({ conversationId }: StoredStep, { state, iterations }: Loop, report?: string): Promise<StepResult> {
    const document = iterations.at(-1)?.document
    const branches = state === 'done' ? await this.#branches(conversationId) : []
    return { ...(document && { document }), ...(report !== undefined && { report }), branches }
  }

  /** The branches on which a conversation has commits, with what it had not committed. */
  async #branches(conversationId: string): Promise<StepBranch[]> {
    try {
      const { tips, repos, branch } = await this.#host.call('checkouts.commitRest', { id: conversationId })
      if (branch === undefined) return []
      const base = new Map(repos.map(each => [each.repo, each.base]))
      return tips.flatMap(({ repo, tip, out }) =>
        out === undefined && tip !== base.get(repo) ? [{ repo, branch, commit: tip }] : [],
      )
    } catch (error) {
      const { reason, message } = Refusal.from(error)
      if (reason === 'unavailable') throw error
      this.#host.log.warn('reading the work of a step failed', { conversation: conversationId, error: message })
      return []
    }
  }
}

/** What a step may spend: its own limit, or what is left of that of its run. */
const leftToSpend = (
  { workflow: { maxSpendUsd: all }, costUsd }: StoredRun,
  own: number | undefined,
): number | undefined => {
  const left = all === undefined ? undefined : all - costUsd
  if (left === undefined || own === undefined) return left ?? own
  return Math.min(left, own)
}
