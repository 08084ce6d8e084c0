import { refuse } from '../../../sdk/index.js'
import type { Host } from '../../../sdk/index.js'
import type { Admission, AdmissionAsked } from '../../usage/contract.js'
import type { Turn } from '../turn/turn.js'

/** Whether the next step of a turn may cost something, and if not why. */
export type StepAdmitted = { readonly ok: true } | { readonly ok: false; readonly message: string }

/** The usage of a turn that its frames do not contain yet. */
export interface SpentMeanwhile {
  readonly input: number
  readonly output: number
  /** As the provider states it; left out: unknown. */
  readonly costUsd?: number
}

/** A subagent of a turn, whose usage counts for budgets of runs with its turn. */
export interface SubagentStep {
  readonly id: string
  readonly provider: string
  readonly model: string
}

/** Asks the budgets of the sandbox, for the turn's own agent or one of its subagents. */
export type AdmitStep = (turn: Turn, used?: SpentMeanwhile, subagent?: SubagentStep) => Promise<StepAdmitted>

const SPENT = 'a budget of this sandbox is used up'
const OK: StepAdmitted = { ok: true }

/** Asks the budgets before a turn and each of its steps; a held step waits for a person. */
export const budgetsOf = (host: Pick<Host, 'call' | 'serves'>): AdmitStep => {
  const warned = new WeakMap<Turn, Set<string>>()
  const allowed = new WeakMap<Turn, Set<string>>()
  const knownOf = (of: WeakMap<Turn, Set<string>>, turn: Turn): Set<string> => {
    const known = of.get(turn) ?? new Set()
    of.set(turn, known)
    return known
  }
  return async (turn, used, subagent) => {
    if (!(await host.serves('usage.admit'))) return OK
    const asked = askedBy(turn, used)
    // The usage of the turn is reported by its own agent.
    const { runningUsd: _usd, runningTokens: _tokens, ...beside } = asked
    const admission = await host.call(
      'usage.admit',
      subagent
        ? { ...beside, provider: subagent.provider, model: subagent.model, run: `${turn.run}:${subagent.id}` }
        : asked,
    )
    const { verdict, budget = '', message = SPENT } = admission
    if (verdict === 'ok') return OK
    if (verdict === 'warn') {
      if (!knownOf(warned, turn).has(budget))
        turn.log.push({ kind: 'notice', level: 'warning', text: message, source: 'usage' })
      knownOf(warned, turn).add(budget)
      return OK
    }
    if (verdict === 'refuse') return { ok: false, message }
    if (knownOf(allowed, turn).has(budget)) return OK
    const decided = await held(turn, admission, message)
    if (decided.ok) knownOf(allowed, turn).add(budget)
    return decided
  }
}

/** Refuses a message whose turn a budget refuses, or holds while nobody can answer. */
export const assertAffordable = async (
  host: Pick<Host, 'call' | 'serves'>,
  asked: Pick<AdmissionAsked, 'provider' | 'model' | 'conversationId' | 'unattended'>,
): Promise<void> => {
  if (!(await host.serves('usage.admit'))) return
  const { verdict, message = SPENT, renewsAt } = await host.call('usage.admit', asked)
  if (verdict !== 'refuse' && !(verdict === 'hold' && asked.unattended)) return
  const retryAfter = renewsAt === undefined ? undefined : Math.max(1, Math.ceil((renewsAt - Date.now()) / 1000))
  refuse('too-many', message, { ...(retryAfter !== undefined && { retryAfter }) })
}

const NONE: SpentMeanwhile = { input: 0, output: 0 }

const askedBy = ({ message, conversationId, run, record, entry: { fields } }: Turn, used = NONE): AdmissionAsked => {
  const { parts } = record.spending
  const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((all, part) => all + of(part), 0)
  return {
    provider: fields.provider,
    model: fields.model,
    conversationId,
    run,
    unattended: !message.attended,
    runningUsd: (used.costUsd ?? 0) + sum(({ costUsd = 0 }) => costUsd),
    runningTokens: {
      input: used.input + sum(({ inputTokens }) => inputTokens),
      output: used.output + sum(({ outputTokens }) => outputTokens),
    },
  }
}

/** Parks the turn on a card; without an answer the step is refused. */
const held = async (turn: Turn, { budget }: Admission, message: string): Promise<StepAdmitted> => {
  const holds = `budget:${budget}`
  const reply =
    (await turn.takeAnswer(holds))
    ?? (await turn.raise(
      {
        kind: 'permission',
        toolName: 'Spend',
        title: 'Go on spending',
        description: message,
        reason: 'a budget of this sandbox asks a person first',
      },
      { holds },
    ))
  if (reply?.kind === 'permission' && reply.decision !== 'deny') return OK
  return { ok: false, message: reply ? `${message}; a person said no` : message }
}
