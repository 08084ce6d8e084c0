import type { tags } from 'typia'
import type { Text } from '../../../sdk/types.js'
import type { ConversationId, QueuedMessage, RunEnd, RunId } from '../turn/frames/frames.js'
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
/** The waiting messages in their new order, and the run that the first one started. */
export interface OrderedQueue extends WaitingMessages {
  run?: RunId
}

/** The path of a document that a turn is asked to write. */
export type DocumentPath = string & tags.Pattern<'^\\.sandbox/records/[a-z]+/[^/]+/[^/]+$'>

/** A turn that the sandbox starts by itself: its ids are chosen before it is accepted, so that a crash loses none. */
export interface OwnTurnInput extends TurnInput {
  conversationId: ConversationId
  messageId: MessageId
  run: RunId
  /** A person approved it: a budget that asks first lets it go on. */
  approved?: boolean
  /** The person it is for may land, so its work may land by itself. */
  lands?: boolean
  /** Some of its words are of a person who may not land, even if another person sent it. */
  byOthers?: boolean
  /** Its model gets neither the session nor the record of earlier turns. */
  fresh?: boolean
  /** The file below the sandbox's records that it is asked to write, by its path; the turn may write in its folder. */
  document?: DocumentPath
}

/** What became of a message. */
export interface MessageFate {
  /** Left out: the message was never accepted. */
  started?: Started
  /** Its run waits or is running. */
  open: boolean
  /** How its run ended; `interrupted` also if that is not known any more. */
  end?: RunEnd
  failure?: string
}

/** The messages of conversations, which wait in order until the conversation is free. */
export interface QueueCalls {
  /**
   * Send a message to an agent; answers at once, and the work does not depend on this connection.
   *
   * Starts a turn, sends the message into the running turn, or queues it; a message of a caller who may only read where
   * the running turn may write is queued. Opens a conversation that does not exist; without `conversationId` mints a
   * new one. Sending a known `messageId` again returns the first answer and has no effect. `startIn`, `isolated`,
   * `worktreeBase` and `forkOf` apply to a first turn only; a fork with earlier files, and pinned commits, use a
   * private copy even without `isolated`.
   *
   * - 400: neither prompt nor attachment, `isolated` without `conversationId`, an `origin`, or an attachment that leads
   *   out of the workspace
   * - 403: `autoLand` by a caller who may not land, a conversation that an editor token did not open, or one in an area
   *   held for reading
   * - 404: no such conversation for this caller in `conversationId`, `forkOf` or `sessionId`, or `startIn` is outside
   *   the caller's areas
   * - 409: `messageId` was used in another conversation, or `forkOf` on a conversation that has messages or names files
   *   that no longer exist
   * - 422: unknown provider, harness, model, account, runner, repository, commit or file, no repository for a private
   *   copy, or a reserved `conversationId`
   * - 429: 50 messages already wait in this conversation
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
   * Remove a waiting message and return it, for the composer; its `messageId` stays used and its run never starts.
   *
   * - 404: no such conversation, or no such message waits
   * - 409: the message was delivered meanwhile
   */
  'DELETE /agents/{id}/queue/{messageId}'(input: { id: Text; messageId: Text }): {
    removed: QueuedMessage
    messages: QueuedMessage[]
  }

  /**
   * Reorder the queue atomically: all waiting ids, each once.
   *
   * `start` ends the pause and, if the conversation is free, starts the first message, whose `run` is returned.
   *
   * - 404: no such conversation
   * - 409: the list does not have exactly the waiting ids
   * - 422: `start` with an empty queue
   * - 429: `start`, and a budget refuses the first
   */
  'POST /agents/{id}/queue/order'(input: {
    id: Text
    messageIds: MessageId[] & tags.MaxItems<50>
    start?: boolean
  }): OrderedQueue

  /**
   * Start a turn that nobody watches, in a run of its own; `origin` says what started it. A repeated `messageId` gets
   * the first answer.
   */
  'agent.start'(input: OwnTurnInput): Started

  /** What became of a message, by its id. */
  'agent.fate'(input: { messageId: MessageId }): MessageFate
}
