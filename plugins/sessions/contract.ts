import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Ok } from '../../sdk/types.js'
import type { SessionState, PastSession, SessionRow } from '../agent/contract.js'

/** One page of past sessions, newest first. */
export interface SessionPage {
  sessions: SessionRow[]
  /** `before` of the page that follows; left out on the last one. It stays valid while sessions are added. */
  next?: string
  /** The index of what was said is still being built: the answer can grow. */
  indexing: boolean
}

/** Every conversation that was ever recorded, on the board, archived or discarded. */
export interface SessionCalls {
  /**
   * List every conversation that was ever recorded, newest first, or with `query` those whose title or spoken words
   * contain it.
   *
   * The query is looked for as typed, without the blanks around it; an empty one lists. Thinking, tool output and notes
   * of the sandbox are not searched. The snippet is the person's own oldest line that matches, else the agent's. An
   * `editor` token gets only conversations it opened, a person limited to areas only those of their areas.
   *
   * - 400: `before` is not the `next` of a page
   */
  'GET /sessions'(input: {
    query?: string & tags.MaxLength<200>
    caseSensitive?: boolean
    state?: SessionState
    /** 50 when left out. */
    limit?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<500>
    before?: string & tags.MaxLength<100>
  }): SessionPage

  /**
   * Give one record in full, oldest row first; with `limit` the last rows before index `before`.
   *
   * `checkpointId` appears only while that state can still be restored. A row that cannot be read any more is left out
   * and counted in `total`.
   *
   * - 403: an `editor` token, and a conversation it did not open
   * - 404: no record with that id
   */
  'GET /sessions/{id}'(input: {
    id: string
    limit?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<1000>
    before?: Count
  }): PastSession

  /**
   * Delete one record for good: what was said, its words in the index, the logs of its commands and its attachments.
   *
   * It is for conversations that are no longer on the board. What a fork took along stays with the fork, and so does
   * an attachment that another record refers to.
   *
   * - 404: no record with that id
   * - 409: the conversation is on the board, or archived
   */
  'DELETE /sessions/{id}'(input: { id: string }): Ok
}

export const sessionsContract: Contract<SessionCalls> = {
  schema: () => typia.json.application<SessionCalls>(),
  request: typia.misc.createValidatePrune<Requests<SessionCalls>>(),
  reply: () => typia.createValidate<Replies<SessionCalls>>(),
}
