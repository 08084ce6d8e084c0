import type { UsageTurn } from '../../usage/contract.js'

/** What judging turns was worth: what a savings report says of it. */
export interface TierSavings {
  /** Turns that were judged. */
  judged: number
  /** Those of them that were easy. */
  fast: number
  /** What the easy turns cost that ran on their chosen model: more cannot be saved. */
  atStakeUsd: number
  /** Turns that began on a fast model, and what they cost there. */
  routed: number
  routedUsd: number
  /** Those of them that went on with the chosen model. */
  escalated: number
  /** Easy turns for which no fast model could be used. */
  denied: number
}

/** A line of the ledger, with its cost. */
export type TierLine = Pick<
  UsageTurn,
  'costUsd' | 'tierScore' | 'tierFast' | 'tierRouted' | 'tierEscalated' | 'tierDenied'
> & {
  /** How many lines alike it stands for, with their cost together; left out: itself. */
  readonly alike?: number
}

/** Billionths of a dollar, so that sums are exact. */
const NANOS = 1_000_000_000

/** Sums the lines of judged turns. */
export const tierSavings = (lines: Iterable<TierLine>): TierSavings => {
  const sums = { judged: 0, fast: 0, atStake: 0, routed: 0, routedCost: 0, escalated: 0, denied: 0 }
  for (const { costUsd = 0, tierScore, tierFast, tierRouted, tierEscalated, tierDenied, alike = 1 } of lines) {
    if (tierScore === undefined) continue
    const cost = Math.round(costUsd * NANOS)
    sums.judged += alike
    if (tierFast) sums.fast += alike
    if (tierFast && !tierRouted) sums.atStake += cost
    if (tierRouted) sums.routed += alike
    if (tierRouted) sums.routedCost += cost
    if (tierEscalated) sums.escalated += alike
    if (tierDenied) sums.denied += alike
  }
  const { atStake, routedCost, ...counts } = sums
  return { ...counts, atStakeUsd: atStake / NANOS, routedUsd: routedCost / NANOS }
}
