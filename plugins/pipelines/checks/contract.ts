import type { tags } from 'typia'
import type { Count, Millis, Ok } from '../../../sdk/types.js'

/** The checks before a push, as they are now or ended last. */
export interface PrepushRun {
  status: 'idle' | 'running' | 'passed' | 'failed' | 'error' | 'cancelled'
  /** The command of the rule that runs or ran last; empty when idle. */
  command: string
  ruleId?: string
  /** The id of this check in `GET /ci/runs`. */
  runId?: number & tags.Type<'uint64'>
  startedAt?: Millis
  finishedAt?: Millis
  exitCode?: Count
  timedOut?: boolean
  /** The terminal in which it can be watched. */
  session?: string
  /** The end of what it wrote, without control sequences and values of secrets. */
  output: string & tags.MaxLength<24000>
}

/** The checks before a push: the rules at `push.starting`. */
export interface PrepushCalls {
  /**
   * Read the check before a push that runs, or how the last one since the start of the daemon ended.
   *
   * It is `idle` without an enabled rule at `push.starting`. A restart during a check leaves `cancelled`.
   */
  'GET /prepush/state'(): PrepushRun

  /**
   * Start the check before a push in the shared tree; answers once its state is visible.
   *
   * It counts as a push of every repository with what is uncommitted. While one runs, nothing more starts; without a
   * rule that applies, nothing does.
   */
  'POST /prepush/run'(): Ok

  /** Stop the check before a push that runs: its processes end, and the push does not go. */
  'POST /prepush/cancel'(): Ok
}
