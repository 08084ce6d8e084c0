import type { Millis } from '../../../sdk/types.js'
import type { Sum } from '../../usage/contract.js'

/** What one cleaner left out. */
export interface CleanerSavings {
  id: string
  commands: Sum
  savedTokens: Sum
}
/** A command with long outputs of which little is left out. */
export interface OutputGap {
  command: string
  commands: Sum
  tokens: Sum
}
/** The outputs of commands in one arm: their number, and the tokens that models read of them. */
export interface OutputArm {
  commands: Sum
  tokens: Sum
  /** The sum of the squares of these tokens. */
  squares: number
}
/** What was left out of the outputs of commands, with tokens estimated as 3.5 characters each. */
export interface OutputSavings {
  updatedAt?: Millis
  /** Commands whose output was shortened, or would have been, had there been something to leave out. */
  commands: Sum
  rawTokens: Sum
  emittedTokens: Sum
  /** The most savings first. */
  perCleaner: CleanerSavings[]
  /** The commands that were shortened, and those that were drawn to stay as they are. */
  cleaned: OutputArm
  heldOut: OutputArm
  /** The longest first, at most 10. */
  gaps: OutputGap[]
}

export interface OutputCalls {
  /** Sums what was left out of the outputs of commands, on days in UTC, both included; left out: on all. */
  'agent.savings'(input: { from?: string; to?: string }): OutputSavings
}
