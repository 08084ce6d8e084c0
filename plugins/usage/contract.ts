import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Text } from '../../sdk/types.js'

/** A day in UTC, such as `2026-03-31`. */
export type Day = string & tags.Pattern<'^[0-9]{4}-[0-9]{2}-[0-9]{2}$'>

/** A number of tokens, requests or milliseconds, summed over any time. */
export type Sum = number & tags.Type<'uint64'>

/** What one settled turn cost: one line of the ledger. */
export interface UsageTurn {
  /** When it ended: it counts on this day in UTC. */
  at: Millis
  provider: Text
  account?: string
  /** The model that ran, not the one asked for. */
  model?: string
  harness: Text
  conversationId?: string
  persona?: string
  /** The run; a second line of one run and part is not written. A subagent's is `<run>:<subagent>`. */
  run?: string
  /** 1, and one more each time the run went on after a restart or elsewhere. */
  part?: Count
  /** Requests as the provider counts them, at least 1. */
  turns: Count
  inputTokens: Count
  outputTokens: Count
  cacheReadTokens: Count
  cacheCreationTokens: Count
  /** As the provider says it; left out: from the price, if there is one. */
  costUsd?: number & tags.Minimum<0>
  durationMs: Count
  unattended: boolean
  outcome: 'ok' | 'error' | 'stopped'
  /** Whether it asked for short answers, in an experiment of this cohort. */
  terse?: boolean
  terseCohort?: string & tags.MaxLength<80>
  /** Characters that its agent said. */
  proseChars?: Count
  /** Whether its conversation was taught to search, in an experiment of this cohort. */
  iqSearchArm?: boolean
  iqSearchCohort?: string & tags.MaxLength<80>
  searchCalls?: Count
  /** Searches before the first change, of the first turn of a conversation. */
  openingSearches?: Count
  /** How hard the turn was judged, from 0 to 1; left out: it was not judged. */
  tierScore?: number & tags.Minimum<0> & tags.Maximum<1>
  /** The signs it was judged by. */
  tierRules?: string[]
  /** It was judged easy. */
  tierFast?: boolean
  /** It began on a fast model. */
  tierRouted?: boolean
  /** It was moved from the fast model to the chosen one. */
  tierEscalated?: boolean
  /** It was easy, and no fast model could be used. */
  tierDenied?: boolean
}
/** A turn, or a step of one, that is about to cost something. */
export interface AdmissionAsked {
  provider: string
  model: string
  account?: string
  persona?: string
  conversationId?: string
  run?: string
  unattended: boolean
  /** What this run has used up to now and is not in the ledger yet. */
  runningUsd?: number
  /** Tokens of this run up to now, where nobody stated a cost. */
  runningTokens?: { input: Count; output: Count }
}
/** Whether it may. */
export interface Admission {
  verdict: 'ok' | 'warn' | 'hold' | 'refuse'
  /** The budget that decided. */
  budget?: string
  /** What to tell the person. */
  message?: string
  renewsAt?: Millis
}
/** What one account has used, over the whole record. */
export interface AccountTotals {
  turns: Sum
  inputTokens: Sum
  outputTokens: Sum
  costUsd: number
}

/** The sums of some turns; a key that the rows are not grouped by is left out. */
export interface UsageRow {
  day?: Day
  provider?: string
  /** Left out too for work on a plain key or a local model. */
  account?: string
  /** The model that ran, not the one asked for. */
  model?: string
  harness?: string
  /** Left out too for work of no conversation. */
  conversationId?: string
  /** The card that the turn wore. */
  persona?: string
  /** Requests as the provider counts them, at least 1 per turn. */
  turns: Sum
  inputTokens: Sum
  outputTokens: Sum
  cacheReadTokens: Sum
  cacheCreationTokens: Sum
  costUsd: number
  durationMs: Sum
  /** Those of `turns` whose cost nobody knows, counted as 0. */
  unpriced: Sum
}
/** What was used, grouped, and all of it together. */
export interface UsageRollup {
  rows: UsageRow[]
  total: UsageRow
  /** The first day of the whole record. */
  firstDay?: Day
}

/** Everything that the sandbox spends. */
export interface WholeScope {
  kind: 'all'
}
export interface ProviderScope {
  kind: 'provider'
  provider: Text & tags.MaxLength<120>
}
export interface AccountScope {
  kind: 'account'
  provider: Text & tags.MaxLength<120>
  account: Text & tags.MaxLength<320>
}
export interface PersonaScope {
  kind: 'persona'
  persona: Text & tags.MaxLength<120>
}
export interface ConversationScope {
  kind: 'conversation'
  conversationId: Text & tags.MaxLength<120>
}
/** Each run by itself, with its subagents and over its restarts; its period is `total`. */
export interface RunScope {
  kind: 'run'
}
/** Turns that nobody watches: schedules, triggers, loops, workflows. */
export interface UnattendedScope {
  kind: 'unattended'
}
/** What a budget holds. `account` and `run` are additions to the written contract. */
export type BudgetScope =
  | WholeScope
  | ProviderScope
  | AccountScope
  | PersonaScope
  | ConversationScope
  | RunScope
  | UnattendedScope

/** A limit on what is spent in a period. */
export interface UsageBudget {
  id: string & tags.MaxLength<40> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
  label?: string & tags.MaxLength<80>
  scope: BudgetScope
  /** By the calendar in UTC; weeks begin on Monday, `total` never renews. */
  period: 'day' | 'week' | 'month' | 'total'
  limitUsd: number & tags.ExclusiveMinimum<0> & tags.Maximum<1000000000>
  /** The part of the limit from which on the budget is `near`; 0.8 when left out. */
  warnAt?: number & tags.Minimum<0> & tags.Maximum<1>
  /** What happens at the limit: turns run with a notice, wait for a person, or do not start. */
  at: 'warn' | 'hold' | 'refuse'
  enabled: boolean
}
/** A budget with what its running period has spent. */
export interface BudgetState extends UsageBudget {
  /** By finished turns; of scope `run` by the run that is going on and has spent most. */
  spentUsd: number
  /** By turns that are still going on, as far as they have reported. */
  runningUsd: number
  state: 'under' | 'near' | 'over' | 'off'
  periodStart: Millis
  /** Left out where it never renews. */
  renewsAt?: Millis
}
/** Every budget, in stored order. */
export interface BudgetList {
  budgets: BudgetState[]
}

/** What experiments measure. */
export type MeasuredMetric = 'proseChars' | 'searchCalls' | 'openingSearches'
/** The units of one arm: how many, the sum of what was measured in each, and the sum of its squares. */
export interface ArmSums {
  units: Sum
  sum: number
  squares: number
}
/** Judged turns with the same outcome, and what they cost together. */
export interface JudgedTurns {
  alike: Sum
  costUsd: number
  tierScore: number
  tierFast: boolean
  tierRouted: boolean
  tierEscalated: boolean
  tierDenied: boolean
}
/** Both arms of an experiment. */
export interface MetricArms {
  on: ArmSums
  off: ArmSums
}

/** What the ledger is for other groups. */
export interface UsageServices {
  /**
   * Writes what a settled turn cost, durably and once for each run and part: among the last 100,000 lines a second one
   * is found and left out.
   */
  'usage.record'(input: UsageTurn): Ok
  /**
   * Says whether a turn may start, or go on with its next step, and remembers what its run has used up to now.
   *
   * Of several budgets at their limit the strictest decides. A turn that was refused its start is in the activity
   * record.
   */
  'usage.admit'(input: AdmissionAsked): Admission
  /**
   * Sums a metric by the arms of one cohort, on days in UTC, both included. Units of `proseChars` are turns, those of
   * the others conversations, each with its sum over these days.
   */
  'usage.arms'(input: { metric: MeasuredMetric; cohort: string; from?: string; to?: string }): MetricArms
  /** Sums the turns that were judged easy or not on some days in UTC, both included, by what came of it. */
  'usage.judged'(input: { from?: string; to?: string }): { turns: JudgedTurns[] }
  /** Sums what an account has used; without an account, what was used without one. */
  'usage.totals'(input: { provider: string; account?: string }): AccountTotals
}

/** What turns cost, and the budgets that hold it. */
export interface UsageCalls extends UsageServices {
  /**
   * Sum what turns used, grouped by day, provider, account, model, harness, conversation and persona, or by some of
   * these.
   *
   * `from` and `to` are days in UTC, both included; without them the whole record, which never shrinks. `by` is a list
   * with commas, by default all seven keys. Oldest day first, then dearest first; `total` is the sum of everything that
   * matched. A turn that began before midnight counts on the day it ended. Work of a subscription costs what the same
   * tokens cost at list price.
   *
   * - 400: a day that is none, `from` after `to`, an unknown key in `by`
   * - 422: more than 100,000 rows; name fewer days, or fewer keys in `by`
   */
  'GET /usage/rollup'(input: {
    from?: Day
    to?: Day
    by?: string & tags.MaxLength<200>
    provider?: Text & tags.MaxLength<120>
    conversation?: Text & tags.MaxLength<120>
    persona?: Text & tags.MaxLength<120>
  }): UsageRollup

  /** List every budget with what its running period has spent. */
  'GET /usage/budget'(): BudgetList

  /**
   * Replace the whole list of budgets.
   *
   * It applies to the next turn that starts, and to the next step of a turn that asks. A limit below what is spent is
   * exceeded at once.
   *
   * - 400: two budgets of one id, a budget of scope `run` with another period than `total`
   * - 422: a scope that names an unknown provider
   */
  'POST /usage/budget'(input: { budgets: UsageBudget[] & tags.MaxItems<50> }): BudgetList
}

export const usageContract: Contract<UsageCalls> = {
  schema: () => typia.json.application<UsageCalls>(),
  request: typia.misc.createValidatePrune<Requests<UsageCalls>>(),
  reply: () => typia.createValidate<Replies<UsageCalls>>(),
}
