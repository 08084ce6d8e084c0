import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'
import type { Day, Sum } from '../../usage/contract.js'
import type { TierSavings } from '../tier/report.js'

/** One side of an experiment. */
export interface ExperimentSide {
  /** How many turns or conversations, as `sampleUnit` says. */
  turns: Sum
  /** The mean of what was measured; 0 without any. */
  mean: number
}
/** What an experiment says about one measure. */
export interface SavingsMetric {
  /**
   * Characters that an agent says in a turn; searches in a conversation; searches of its first turn before the first
   * change.
   */
  metric: 'proseChars' | 'searchCalls' | 'openingSearches'
  /** With the setting. */
  on: ExperimentSide
  /** Held out. */
  off: ExperimentSide
  /** How many more held-out turns or conversations it takes until a difference of a tenth can be told; 0: none. */
  controlTurnsNeeded?: Sum
  /** Half the 95 % interval of the difference of the means (Welch's t), as a percentage of the mean of `off`. */
  marginPct?: number & tags.Minimum<0>
  /** How far the mean of `on` is from that of `off`, as a percentage of it. Within the margin it may be chance. */
  deltaPct?: number
  /** What all turns with the setting saved together; left out while the difference is within the margin. */
  saved?: number
}
/** An experiment; it has no metrics while it does not run. */
export interface SavingsExperiment {
  metrics: SavingsMetric[]
  /** Each side needs so many before anything is said about the difference. */
  minTurns: Sum
  sampleUnit: 'turns' | 'conversations'
  /** What is compared: only turns or conversations of the text and share of now. Empty while it does not run. */
  cohort: string
}
/** What a cleaner of outputs left out. */
export interface SavingsCleaner {
  id: string
  commands: Sum
  savedTokens: Sum
}
/** A command with long outputs of which hardly anything was left out. */
export interface SavingsGap {
  command: string
  commands: Sum
  tokens: Sum
}
/** The commands that were drawn to be shortened, and those that were not. */
export interface SavingsHoldout {
  cleaned: Sum
  heldOut: Sum
  /** How many fewer tokens a shortened output has; left out while the arms do not differ beyond chance. */
  measuredSavedPct?: number
}
/** What models did not have to read of the outputs of commands. */
export interface InputSavings {
  updatedAt?: Millis
  commands: Sum
  rawTokens: Sum
  emittedTokens: Sum
  savedPct: number
  perCleaner: SavingsCleaner[]
  holdout: SavingsHoldout
  gaps: SavingsGap[]
}
/** What each saving of the settings was worth. */
export interface SavingsReport {
  input: InputSavings
  output: SavingsExperiment
  search: SavingsExperiment
  tier: TierSavings
}

export interface SavingsCalls {
  /**
   * Read what each saving mechanism was worth on some days in UTC, both included; left out: on all.
   *
   * `input` compares both sides of the same commands; tokens are estimated from characters. `output` and `search`
   * compare the turns or conversations with the setting to those that were drawn to do without it: the difference of
   * the means with a 95 % interval (Welch's t), given once both sides have `minTurns`. `controlTurnsNeeded` says how
   * many more of those without it are needed, so that a difference of a tenth could be told.
   *
   * - 400: a day that is none, or `from` after `to`
   */
  'GET /settings/savings'(input: { from?: Day; to?: Day }): SavingsReport
}
