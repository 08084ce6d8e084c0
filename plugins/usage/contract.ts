import type { Count, Millis, Ok } from '../../sdk/types.js'

/** What one settled turn cost: one line of the ledger. */
export interface UsageTurn {
  at: Millis
  provider: string
  account?: string
  model?: string
  harness: string
  conversationId?: string
  persona?: string
  /** The run; a second line of one run and attempt is not written. */
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
  costUsd?: number
  durationMs: Count
  unattended: boolean
  outcome: 'ok' | 'error' | 'stopped'
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
  turns: Count
  inputTokens: Count
  outputTokens: Count
  costUsd: number
}

/** What the ledger is for other groups. */
export interface UsageServices {
  /** Writes what a settled turn cost, durably and once for each run and part. */
  'usage.record'(input: UsageTurn): Ok
  /** Asks whether a turn may start, or go on with its next step. */
  'usage.admit'(input: AdmissionAsked): Admission
  /** Sums what an account has used. */
  'usage.totals'(input: { provider: string; account?: string }): AccountTotals
}
