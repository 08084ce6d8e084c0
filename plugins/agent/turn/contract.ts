import type { tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type { Count, Millis, Ok, Text } from '../../../sdk/types.js'
import type { ConversationId, Frame, RunEnd, RunId } from './frames/frames.js'
import type { EditorContext, SwitchInput, Switched } from './input.js'

/** The head of a watched run: `seq` is how many frames exist now. */
export interface AttachedEvent {
  kind: 'attached'
  run: RunId
  prompt: string
  startedAt: Millis
  seq: Count
}
/** One frame; `seq` counts from 1 without a gap. */
export interface FrameEvent {
  kind: 'frame'
  seq: Count
  event: Frame
}
/** The run is over; `next` is the run a waiting message starts now. */
export interface EndEvent {
  kind: 'end'
  next?: RunId
}
export type AttachData = AttachedEvent | FrameEvent | EndEvent

/** A program to be run for a conversation. */
export interface ProgramAsked {
  conversationId: ConversationId
  program: string
  args: string[]
  /** Beside the variables that every program of the turn gets. */
  env: { [name: string]: string }
  /** A folder of the tree, from its root; left out: the one the turn starts in. */
  cwd?: string
  /** Folders outside the tree that it needs; it cannot write there. */
  needs?: string[]
  /** The connected program whose home folder it has; left out: that of the conversation. */
  home?: string
}
/** What to start instead, in this folder with exactly this environment. */
export interface ProgramBehindWall {
  program: string
  args: string[]
  env: { [name: string]: string }
  cwd: string
  /** False where this machine has no wall: the program then runs with the rights of the daemon's user. */
  enforced: boolean
}

/** The turn under way: watched, steered, stopped, moved to another provider. */
export interface TurnCalls {
  /**
   * Watch a conversation's newest run: its head, the frames after `after`, then live, then the end.
   *
   * `after` counts for the run named by `run`, or for the newest one. A run reserved for a waiting message is waited
   * for; any other run that is not the newest gets the newest one from its first frame. A stream that closes without
   * `end` was cut: attach again with the last `seq`. Any number may watch, and a slow watcher never slows the turn.
   *
   * - 404: no such conversation, or the log of its runs is not kept any more
   */
  'POST /agent/attach'(input: {
    conversationId: ConversationId
    run?: string
    after?: Count
  }): Stream<AttachData, { run: RunId; reason: RunEnd }>

  /**
   * Slip words into the running turn without stopping it.
   *
   * The `steer` frame is in the log before the answer. A parked turn keeps the words until its card is answered. It
   * never starts a turn and never queues.
   *
   * - 400: neither text nor attachment, or an attachment that leads out of the workspace or is not there
   * - 404: no such conversation
   * - 409: nothing runs, the turn is stopping, it may write in folders that the caller may only read, or its provider
   *   accepts no messages during a turn: use `POST /agent`
   */
  'POST /agent/steer'(input: {
    conversationId: Text
    text: string & tags.MaxLength<20000>
    attachments?: Text[] & tags.MaxItems<20>
    editorContext?: EditorContext
  }): Ok

  /**
   * Stop the turn; answers when it has fully ended, at most 15 s later.
   *
   * Files already written stay written, and nothing lands. A planned resume after an outage is dropped. With nothing
   * running it answers at once.
   *
   * - 404: no such conversation
   */
  'POST /agent/stop'(input: { conversationId: Text }): Ok

  /**
   * Move a conversation to another account, model, provider or harness.
   *
   * A turn under way goes on there at its next gap between tool calls, in the same run; a call in hand is cut short
   * after 30 s. One that waits for an answer moves with the answer. Without a turn, and with `when` "next", it is
   * written down for the next one. A second move replaces one that has not happened. Work, copy and queue are
   * untouched.
   *
   * - 400: nothing to change was given
   * - 404: no such conversation
   * - 409: the turn is stopping
   * - 422: unknown provider, harness, account or model
   * - 501: the harness needs a program that is not installed; the message names it
   */
  'POST /agent/switch-account'(input: SwitchInput): Switched

  /**
   * Give the command that runs a program behind the wall of a conversation whose turn is under way, in its tree and its
   * network, and as long as that lives.
   */
  'agent.walled'(input: ProgramAsked): ProgramBehindWall
}
