import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Text } from '../../sdk/types.js'
import type { BaseCommit, CardWorkflow, ConversationId } from '../agent/contract.js'
import type { Workflow } from './designs/contract.js'
import type { GateCalls } from './gate/contract.js'
import type { WorkflowRun, WorkflowRunState } from './runs/contract.js'

export type * from './designs/contract.js'
export type * from './gate/contract.js'
export type * from './runs/contract.js'
export type { BaseCommit, CardWorkflow }

/** A saved design with its newest runs. */
export interface WorkflowRow extends Workflow {
  /** Newest first, at most 20, with reports of at most 2,000 characters. */
  runs: WorkflowRun[]
  /** When the token of its gate was made. */
  gateTokenAt?: Millis
}
/** An entry of the file of designs that is none. */
export interface WorkflowProblem {
  id?: string
  message: string
}

/** Designs of conversations that run in order, and their runs. */
export interface WorkflowsCalls extends GateCalls {
  /**
   * List the saved designs by name, each with its newest runs.
   *
   * Entries of the file that are no designs are named in `problems` and kept in the file.
   */
  'GET /workflows'(): { workflows: WorkflowRow[]; problems: WorkflowProblem[] }

  /**
   * Save a design whole: with `create` a new one, without it a known one.
   *
   * A design that gains a gate gets a token, one that loses its gate loses the token. Runs keep the design they started
   * with.
   *
   * - 404: the design to change is gone
   * - 409: `create` with the id of another one
   * - 413: the file of designs would become too large, or the disk is full
   * - 422: the design has faults, each named in `errors`; the id `runs`; or the file cannot be read
   * - 424: the file of designs could not be written; the message says why
   */
  'POST /workflows'(input: { workflow: Workflow; create: boolean }): WorkflowRow

  /**
   * Remove a design and the token of its gate; its runs stay, also those that are going.
   *
   * - 404: no such design
   * - 413: the disk is full
   * - 422: the file of designs cannot be read
   * - 424: the file of designs could not be written; the message says why
   */
  'DELETE /workflows/{id}'(input: { id: Text }): Ok

  /**
   * Start a run of a design; answers at once.
   *
   * Its steps start from the commits that are checked out now, each in a conversation of its own. At most four runs go
   * on at once; a further one waits. The same `messageId` gets the same run for 30 days.
   *
   * - 403: the caller is limited to areas, and a run works in the whole workspace
   * - 404: no such design
   * - 409: no repository has a commit to start from; a design with a gate or commands that no maintainer saved; or the
   *   run of this `messageId` was forgotten
   * - 422: the design has faults; no request, which a step needs; or an unknown provider, harness, model or account
   * - 424: the account of a step needs a sign-in
   */
  'POST /workflows/{id}/run'(input: {
    id: Text
    request?: string & tags.MinLength<1> & tags.MaxLength<20000>
    messageId?: string & tags.MinLength<1> & tags.MaxLength<128>
  }): WorkflowRun

  /**
   * List the runs, newest first, with reports of at most 2,000 characters.
   *
   * `before` is the `startedAt` of the last run that the caller has. Of runs that ended the newest 200 are kept.
   */
  'GET /workflows/runs'(input: {
    workflow?: string
    state?: WorkflowRunState
    archived?: boolean
    limit?: Count & tags.Minimum<1> & tags.Maximum<200>
    before?: Millis
  }): { runs: WorkflowRun[] }

  /**
   * Read one run with the whole reports and documents of its steps.
   *
   * - 404: no such run
   */
  'GET /workflows/runs/{runId}'(input: { runId: Text }): WorkflowRun

  /**
   * Stop a run: its turns in hand end where they stand, and steps that wait never start; answers when all have ended.
   *
   * One that has ended is fine.
   *
   * - 404: no such run
   */
  'POST /workflows/runs/{runId}/stop'(input: { runId: Text }): Ok

  /**
   * Archive a run that has ended, together with the conversations of its steps.
   *
   * - 404: no such run
   * - 409: it is going, or a turn of one of its conversations runs
   */
  'POST /workflows/runs/{runId}/archive'(input: { runId: Text }): Ok

  /**
   * Bring an archived run and its conversations back.
   *
   * - 404: no such run
   * - 409: conversations of it were deleted for good
   */
  'POST /workflows/runs/{runId}/unarchive'(input: { runId: Text }): Ok

  /** The runs that some conversations belong to, as cards of the board show them. */
  'workflows.cards'(input: { ids: ConversationId[] }): { workflows: { [conversationId: string]: CardWorkflow } }
}

/** Events of the group. */
export interface WorkflowsEvents {
  'workflow.settled': { runId: string; state: WorkflowRunState }
}

export const workflowsContract: Contract<WorkflowsCalls> = {
  schema: () => typia.json.application<WorkflowsCalls>(),
  request: typia.misc.createValidatePrune<Requests<WorkflowsCalls>>(),
  reply: () => typia.createValidate<Replies<WorkflowsCalls>>(),
}
