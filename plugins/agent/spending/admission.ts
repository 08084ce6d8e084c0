import { refuse } from '../../../sdk/index.js'
import type { Host } from '../../../sdk/index.js'
import type { Admission, AdmissionAsked } from '../../usage/contract.js'
import type { SubagentStep } from '../providers/adapter.js'
import type { Spent } from './spending.js'
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

/** Asks the budgets of the sandbox, for the turn's own agent or one of its subagents. */
export type AdmitStep = (turn: Turn, used?: SpentMeanwhile, subagent?: SubagentStep) => Promise<StepAdmitted>

const SPENT = 'a budget of this sandbox is used up'
const OK: StepAdmitted = { ok: true }

/** Asks the budgets before a turn and each of its steps; a held step waits for a person. */
export const budgetsOf = (
  host: Pick<Host, 'call' | 'serves'>,
  personaOf: (conversationId: string) => string | undefined,
): AdmitStep => {
  const warned = new WeakMap<Turn, Set<string>>()
  const allowed = new WeakMap<Turn, Set<string>>()
  const counted = new WeakMap<Turn, Set<string>>()
  const knownOf = (of: WeakMap<Turn, Set<string>>, turn: Turn): Set<string> => {
    const known = of.get(turn) ?? new Set()
    of.set(turn, known)
    return known
  }
  return async (turn, used, subagent) => {
    if (!(await host.serves('usage.admit'))) return OK
    const persona = personaOf(turn.conversationId)
    const wearing = persona !== undefined && { persona }
    // What other agents of the run used since the last step has to count before this one.
    const known = knownOf(counted, turn)
    for (const part of turn.record.spending.ofSubagents) {
      const { turns, inputTokens, outputTokens, costUsd } = part
      const state = [part.subagent, turns, inputTokens, outputTokens, costUsd].join(' ')
      if (known.has(state) || part.subagent === subagent?.id) continue
      known.add(state)
      const asked = askedBySubagent(turn, { ...part, id: part.subagent }, usedBy([part]))
      await host.call('usage.admit', { ...asked, ...wearing })
    }
    const asked = subagent
      ? askedBySubagent(turn, subagent, usedBy(ofAgent(turn, subagent), used))
      : askedBy(turn, used)
    const admission = await host.call('usage.admit', { ...asked, ...wearing })
    const { verdict, budget = '', message = SPENT } = admission
    if (verdict === 'ok') return OK
    if (verdict === 'warn') {
      if (!knownOf(warned, turn).has(budget))
        turn.log.push({ kind: 'notice', level: 'warning', text: message, source: 'usage' })
      knownOf(warned, turn).add(budget)
      return OK
    }
    if (verdict === 'refuse') return { ok: false, message }
    if (turn.message.approved || knownOf(allowed, turn).has(budget)) return OK
    const decided = await held(turn, admission, message)
    if (decided.ok) knownOf(allowed, turn).add(budget)
    return decided
  }
}

/** Tells the budgets what a turn of the last daemon and its subagents have used, so that it counts for other turns. */
export const reportSpent = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  turn: Turn,
  persona: string | undefined,
): Promise<void> => {
  const wearing = persona !== undefined && { persona }
  try {
    if (!(await host.serves('usage.admit'))) return
    await host.call('usage.admit', { ...askedBy(turn, undefined), ...wearing })
    for (const part of turn.record.spending.ofSubagents)
      await host.call('usage.admit', {
        ...askedBySubagent(turn, { ...part, id: part.subagent }, usedBy([part])),
        ...wearing,
      })
  } catch (error) {
    host.log.error('telling the budgets what a turn has used failed', { run: turn.run, error: String(error) })
  }
}

/** Refuses a message whose turn a budget refuses, or holds while nobody can answer. */
export const assertAffordable = async (
  host: Pick<Host, 'call' | 'serves'>,
  {
    asks,
    ...asked
  }: Pick<AdmissionAsked, 'provider' | 'model' | 'conversationId' | 'persona' | 'unattended'> & {
    readonly asks: boolean
  },
): Promise<void> => {
  if (!(await host.serves('usage.admit'))) return
  const { verdict, budget, message = SPENT, renewsAt } = await host.call('usage.admit', asked)
  const held = verdict === 'hold' && asks
  if (verdict !== 'refuse' && !held) return
  const retryAfter = renewsAt === undefined ? undefined : Math.max(1, Math.ceil((renewsAt - Date.now()) / 1000))
  refuse('too-many', message, {
    ...(retryAfter !== undefined && { retryAfter }),
    ...(held && budget !== undefined && { heldBy: budget }),
  })
}

/** What the frames of a subagent contain. */
const ofAgent = ({ record }: Turn, { id }: SubagentStep): readonly Spent[] =>
  record.spending.ofSubagents.filter(({ subagent }) => subagent === id)

type Used = Pick<AdmissionAsked, 'runningUsd' | 'runningTokens'>

/** What is used up to now: tokens only where no provider states their cost. */
const usedBy = (parts: readonly Spent[], used?: SpentMeanwhile): Used => {
  const all = [
    ...parts.map(({ inputTokens, outputTokens, costUsd }) => ({ input: inputTokens, output: outputTokens, costUsd })),
    ...(used ? [{ ...used, costUsd: used.costUsd }] : []),
  ]
  const unpriced = all.filter(({ costUsd }) => costUsd === undefined)
  return {
    runningUsd: all.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0),
    runningTokens: {
      input: unpriced.reduce((sum, { input }) => sum + input, 0),
      output: unpriced.reduce((sum, { output }) => sum + output, 0),
    },
  }
}

const askedBy = (turn: Turn, used: SpentMeanwhile | undefined): AdmissionAsked => {
  const { message, conversationId, run, record, entry } = turn
  const { provider, model } = entry.fields
  const { parts } = record.spending
  const account = parts.at(-1)?.account
  return {
    provider,
    model,
    ...(account !== undefined && { account }),
    conversationId,
    run,
    unattended: !message.attended,
    ...usedBy(parts, used),
  }
}

const askedBySubagent = (
  { message, conversationId, run }: Turn,
  { id, provider, model }: SubagentStep,
  used: Used,
): AdmissionAsked => ({
  provider,
  model,
  conversationId,
  run: `${run}:${id}`,
  unattended: !message.attended,
  ...used,
})

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
