import type { QueuedMessage, RunId } from '../turn/frames.js'
import type { Started, TurnInput } from '../turn/input.js'

/** The messages that wait, in the order they will start. */
export interface WaitingMessages {
  messages: QueuedMessage[]
  paused: boolean
}

/** Messages: said, kept in order, and started when the conversation is free. */
export interface QueueCalls {
  /**
   * Say something to an agent; answers at once, and the work never depends on this connection.
   *
   * Starts a turn, says the words into the running turn, or queues them; words of a caller who may only read where the
   * running turn may write are queued. A conversation that does not exist is opened; without `conversationId` a new one
   * is minted. Sending a known `messageId` again returns what happened the first
   * time and does nothing twice. `startIn`, `isolated`, `worktreeBase` and `forkOf` count on a
   * first turn only; a fork of files of then, and pinned commits, give a private copy even without `isolated`.
   *
   * - 400: neither prompt nor attachment, `isolated` without `conversationId`, an `origin`, or an attachment that
   *   leads out of the workspace
   * - 403: `autoLand` by a caller who may not land, a conversation that an editor token did not open, or one in an
   *   area held for reading
   * - 404: no such conversation for this caller in `conversationId`, `forkOf` or `sessionId`, or `startIn` is outside
   *   the caller's areas
   * - 409: `messageId` was used in another conversation, or `forkOf` on a conversation that has messages or names
   *   files that are gone
   * - 422: unknown provider, harness, model, account, runner, repository, commit or file, no repository for a private
   *   copy, or a reserved `conversationId`
   * - 429: 50 messages wait in this conversation already
   * - 501: a program that the turn needs is not installed; the message names it
   */
  'POST /agent'(input: TurnInput): Started

  /** The messages that wait, and the live run. */
  'agent.queue'(input: { id: string }): WaitingMessages & { running?: RunId }

  /** Takes a waiting message back: its run never starts. */
  'agent.unqueue'(input: { id: string; messageId: string }): { removed: QueuedMessage; messages: QueuedMessage[] }

  /** Puts all that waits in this order; `start` lifts the pause and starts the first when the conversation is free. */
  'agent.orderQueue'(input: { id: string; messageIds: string[]; start?: boolean }): WaitingMessages & { run?: RunId }
}
