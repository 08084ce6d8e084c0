import type { OccasionFacts } from '../../settings/contract.js'
import type { PipelineFix, PrepushRun } from '../contract.js'

/** One rule of a check, as it is stored. */
export interface CheckedRule {
  readonly id: string
  readonly label: string
  /** Absent: the rule only holds pushes. */
  readonly command?: string
  startedAt?: number
  finishedAt?: number
  exitCode?: number
  timedOut?: boolean
  session?: string
  output?: string
}

/** A fix as it is stored: its message is the same however often it is sent. */
export interface StoredPipelineFix extends PipelineFix {
  messageId: string
  run: string
}

/** One check before a push, as it is stored. */
export interface StoredCheck {
  readonly number: number
  readonly repo: string
  /** Every repository it is about. */
  readonly repos: readonly string[]
  readonly trigger: 'push' | 'manual'
  /** What its rules were compared with; absent: too much to keep. */
  readonly facts?: OccasionFacts
  readonly cwd?: string
  branch: string
  sha: string
  status: Exclude<PrepushRun['status'], 'idle'>
  readonly startedAt: number
  finishedAt?: number
  /** Why it did not pass. */
  reason?: string
  readonly rules: CheckedRule[]
  fix?: StoredPipelineFix
}
