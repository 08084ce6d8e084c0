import type { tags } from 'typia'
import type { Text } from '../../../sdk/types.js'
import type { QueuedMessage, RunId } from '../turn/frames.js'
import type { MessageId, Started, TurnInput } from '../turn/input.js'

/** The messages that wait, in the order they will start. */
export interface WaitingMessages {
  messages: QueuedMessage[]
  paused: boolean
}

/** The messages that wait, and the live run. */
export interface ConversationQueue extends WaitingMessages {
  running?: RunId
}
/** The messages that wait in their new order, and the run that the first of them started. */
export interface OrderedQueue extends WaitingMessages {
  run?: RunId
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

  /**
   * List the messages that wait, in the order they will start, and the live run.
   *
   * - 404: no such conversation
   */
  'GET /agents/{id}/queue'(input: { id: Text }): ConversationQueue

  /**
   * Take a waiting message back, for the composer; its `messageId` stays used and its run never starts.
   *
   * - 404: no such conversation, or no such message waits
   * - 409: the message was delivered meanwhile
   */
  'DELETE /agents/{id}/queue/{messageId}'(input: { id: Text; messageId: Text }): {
    removed: QueuedMessage
    messages: QueuedMessage[]
  }

  /**
   * Put the queue in this order in one step: all ids that wait, each once.
   *
   * `start` lifts the pause and, when the conversation is free, starts the first, whose `run` is answered.
   *
   * - 404: no such conversation
   * - 409: the list is not exactly what waits
   * - 422: `start` with an empty queue
   * - 429: `start`, and a budget refuses the first
   */
  'POST /agents/{id}/queue/order'(input: {
    id: Text
    messageIds: MessageId[] & tags.MaxItems<50>
    start?: boolean
  }): OrderedQueue
}
