import type { UsageTurn } from './contract.js'

/** A line as it is stored: with its day, and with a cost. */
export interface LedgerLine extends UsageTurn {
  day: string
  costUsd: number
  costFrom: 'reported' | 'priced' | 'unknown'
}

/** The day of a moment, in UTC. */
export const utcDayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

const NANOS = 1_000_000_000

/** Billionths of a dollar: whole numbers, so that sums are exact in any order. */
export const nanosOf = (usd: number): number => Math.round(usd * NANOS)

/** Dollars of billionths. */
export const usdOf = (nanos: number): number => nanos / NANOS
