import type { tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type { ReachFolder } from '../../../sdk/reach.js'
import type { Count, Millis, Ok, Text } from '../../../sdk/types.js'
import type { ConversationId, Frame, RunEnd, RunId } from './frames/frames.js'
import type { EditorContext, SwitchInput, Switched } from './input.js'

/** The head of a watched run: `seq` is the number of frames so far. */
export interface AttachedEvent {
  kind: 'attached'
  run: RunId
  prompt: string
  /** Files of the message, as workspace paths. */
  attachments?: string[]
  startedAt: Millis
  seq: Count
}
/** One frame; `seq` counts from 1 without a gap. */
export interface FrameEvent {
  kind: 'frame'
  seq: Count
  event: Frame
}
/** The run has ended; `next` is the run that a waiting message starts now. */
export interface EndEvent {
  kind: 'end'
  next?: RunId
}
export type AttachData = AttachedEvent | FrameEvent | EndEvent

/** A program to run for a conversation. */
export interface ProgramAsked {
  conversationId: ConversationId
  program: string
  args: string[]
  /** Variables in addition to those of every program of the turn. */
  env: { [name: string]: string }
  /** A folder of the tree, from its root; left out: the one the turn starts in. */
  cwd?: string
  /** Folders outside the tree that it needs; it cannot write there. */
  needs?: string[]
  /** The connected program whose home folder it has; left out: that of the conversation. */
  home?: string
  /**
   * It is a container engine: it may make namespaces of its own, and writes in the tree only if the turn may. Below
   * this folder it has one that it writes, apart for each trust, whose path becomes its last argument.
   */
  engine?: string
}
/** The command to start instead, in this folder with exactly this environment. */
export interface ProgramBehindWall {
  program: string
  args: string[]
  env: { [name: string]: string }
  cwd: string
  /** False where this machine has no wall: the program then runs with the rights of the daemon's user. */
  enforced: boolean
}

/** A program of a conversation that another group started has begun. */
export interface ProgramBegun {
  conversationId: ConversationId
  pid: number & tags.Type<'uint32'> & tags.Minimum<2>
}
/** It has ended, with the end of what it wrote. */
export interface ProgramOver {
  pid: number & tags.Type<'uint32'> & tags.Minimum<2>
  code: number
  output: string & tags.MaxLength<8000>
}

/** A piece of what a turn says. */
export interface SpokenPiece {
  text: string
}

/** What a stop found. */
export interface Stopped {
  ok: true
  /** `resume`: no turn ran, and one that an outage had ended is not resumed; `nothing`: no turn ran. */
  stopped: 'turn' | 'resume' | 'nothing'
  /** The commands in the background that ended, and those that go on. */
  ended: Count
  running: Count
}

/** The running turn: watch it, send it messages, stop it, move it to another provider. */
export interface TurnCalls {
  /**
   * Watch a conversation's newest run: its head, the frames after `after`, then live, then the end.
   *
   * `after` applies to the run named by `run`, or to the newest one. For the run of a waiting message the stream waits
   * until it starts; for any other old run it sends the newest one from its first frame. A stream that closes without
   * `end` was interrupted: attach again with the last `seq`. Any number may watch, and a slow watcher never slows the
   * turn.
   *
   * - 404: no such conversation, or its frames are no longer kept
   */
  'POST /agent/attach'(input: {
    conversationId: ConversationId
    run?: string
    after?: Count
  }): Stream<AttachData, { run: RunId; reason: RunEnd }>

  /**
   * Send a message into the running turn without stopping it.
   *
   * The `steer` frame is in the log before the answer. A parked turn receives it when its card is answered. This call
   * never starts a turn and never queues.
   *
   * - 400: neither text nor attachment, or an attachment that leads out of the workspace or is not there
   * - 404: no such conversation
   * - 409: nothing runs, the turn is stopping, it may write in folders that the caller may only read, its provider
   *   accepts no messages during a turn, or its program shares a home folder with work that lands by itself and the
   *   caller may not land: use `POST /agent`
   */
  'POST /agent/steer'(input: {
    conversationId: Text
    text: string & tags.MaxLength<20000>
    attachments?: Text[] & tags.MaxItems<20>
    editorContext?: EditorContext
  }): Ok

  /**
   * Stop the turn and say what was stopped; returns when it has fully ended, at most 15 s later.
   *
   * Files already written stay written, and nothing lands. A planned resume after an outage is dropped. Without a
   * running turn it returns at once. Commands that the turn started in the background end with it; those of earlier
   * turns go on, unless `background` is true. The answer counts both.
   *
   * - 404: no such conversation
   */
  'POST /agent/stop'(input: { conversationId: Text; background?: boolean }): Stopped

  /**
   * Move a conversation to another account, model, provider or harness.
   *
   * A running turn moves at its next gap between tool calls, in the same run; an open call is interrupted after 30 s. A
   * parked turn moves with its answer. Without a turn, and with `when` "next", the choice is stored for the next one. A
   * second move replaces a pending one. Work, copy and queue are unchanged.
   *
   * - 400: nothing to change was given
   * - 404: no such conversation
   * - 409: the turn is stopping
   * - 422: unknown provider, harness, account or model
   * - 501: the harness needs a program that is not installed; the message names it
   */
  'POST /agent/switch-account'(input: SwitchInput): Switched

  /**
   * The command that runs a program behind the wall of a conversation with a running turn, in its tree and its network,
   * at most until the turn ends.
   */
  'agent.walled'(input: ProgramAsked): ProgramBehindWall

  /** Where the files of a conversation with a running turn are, and the folders of it that the turn is limited to. */
  'agent.tree'(input: { conversationId: ConversationId }): { root: string; folders?: ReachFolder[] }

  /** Counts a program that was started behind the wall of a conversation: its limits hold for all together. */
  'checkouts.programBegun'(input: ProgramBegun): Ok

  /** Says how such a program ended; answers the sentence of the limit that the conversation went over. */
  'checkouts.programEnded'(input: ProgramOver): { exceeded?: string }

  /** What a run says, from its beginning, as it says it; ends with the run. Waits until a queued run starts. */
  'agent.words'(input: { conversationId: ConversationId; run: RunId }): Stream<SpokenPiece>
}
