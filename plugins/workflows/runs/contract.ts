import type { tags } from 'typia'
import type { Count, Millis, Text } from '../../../sdk/types.js'
import type { BaseCommit, ConversationId, LoopState } from '../../agent/contract.js'
import type { LoopDocument } from '../../loops/contract.js'
import type { Workflow } from '../designs/contract.js'

/** The state of a run. */
export type WorkflowRunState = 'running' | 'done' | 'failed' | 'stopped' | 'overspent' | 'error'
/** The state of a step in a run. */
export type WorkflowStepState = 'pending' | 'running' | 'done' | 'failed' | 'skipped' | 'stopped'

/** A step in a run. */
export interface WorkflowStepRun {
  stepId: string
  state: WorkflowStepState
  /** Exists once the step runs; one that continues another has the same. */
  conversationId: ConversationId
  startedAt?: Millis
  endedAt?: Millis
  /** Its rounds that ended. */
  iterations: Count
  costUsd?: number
  loopState?: LoopState
  /** The open need that its next round waits for. */
  waitingFor?: string
  /** Why it ended as it did. */
  detail?: string
  /** Lists leave out one that is long. */
  document?: LoopDocument
  /** The last thing that its agent said. */
  report?: string
  /** The file of the workspace that it wrote its document to. */
  reportPath?: string
}
/** One run of a design. */
export interface WorkflowRun {
  runId: Text & tags.Pattern<'^[a-z0-9]{1,36}$'>
  /** The design as it was at the start. */
  workflow: Workflow
  /** The commits that its steps start from. */
  repos: BaseCommit[] & tags.MinItems<1> & tags.MaxItems<50>
  request?: string
  /** An e-mail, `token:<label>` or `sandbox:gate`. */
  startedBy: string
  state: WorkflowRunState
  startedAt: Millis
  endedAt?: Millis
  /** How often a restart found it going. */
  resumed: Count
  /** Why it ended as it did. */
  detail?: string
  costUsd: number
  steps: WorkflowStepRun[]
  archivedAt?: Millis
}
