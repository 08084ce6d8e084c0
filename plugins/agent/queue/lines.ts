import type { Conversation, Started } from '../contract.js'
import type { QueuedWhy } from '../turn/frames/frames.js'
import type { Resumable, RunMessage } from '../turn/run-entry.js'

/** The first answer to a message, kept so that the same message sent again gets the same answer. */
export interface LedgerRow extends Started {
  readonly at: number
  /** Removed while it waited: its run never starts. */
  readonly withdrawn?: true
}

/** A message in the queue and why it waits. */
export interface WaitingMessage extends RunMessage {
  readonly why: QueuedWhy
}

/** A message sent into a running turn. */
export interface SaidWords {
  readonly run: string
  readonly messageId: string
  readonly text: string
  readonly attachments: readonly string[]
  /** The sandbox's note before the message, for the provider. */
  readonly note?: string
  readonly by: string
  readonly at: number
  /** Their sender may land. */
  readonly lands?: boolean
  /** A control token sent them. */
  readonly byToken?: boolean
}

/** Everything that accepting one message stores, in one line. */
export interface Acceptance {
  readonly row: LedgerRow
  /** The conversation this message opens. */
  readonly opened?: Conversation
  readonly message?: WaitingMessage | RunMessage
  readonly said?: SaidWords
}

interface AcceptLine extends Acceptance {
  readonly line: 'accept'
}
/** A run has ended, and with it its message and the messages sent into it. */
export interface EndedLine {
  readonly line: 'ended'
  readonly conversationId: string
  readonly run: string
  readonly paused: boolean
  /** An outage ended it. */
  readonly resumable?: Resumable
  /** A budget refuses the first waiting message. */
  readonly unaffordable?: true
}
/** Changes whether the run that an outage ended is resumed. */
interface ResumableLine {
  readonly line: 'resumable'
  readonly conversationId: string
  readonly resumable?: Resumable
}
/** A waiting message was removed. */
interface WithdrawnLine {
  readonly line: 'withdrawn'
  readonly conversationId: string
  readonly messageId: string
}
/** The queue was reordered, or its pause ended. */
interface OrderedLine {
  readonly line: 'ordered'
  readonly conversationId: string
  readonly messageIds: readonly string[]
  readonly paused: boolean
}
interface DroppedLine {
  readonly line: 'dropped'
  readonly conversationId: string
}
/** Ledger rows of ended messages, as text; written when the journal is compacted. */
interface LedgerLine {
  readonly line: 'ledger'
  readonly rows: string
}
/** A ledger row that does not fit into text; earlier versions wrote every row so. */
interface RowLine {
  readonly line: 'row'
  readonly row: LedgerRow
}
interface PausedLine {
  readonly line: 'paused'
  readonly conversationId: string
}
/** One line of the journal of messages. */
export type Line =
  | AcceptLine
  | EndedLine
  | ResumableLine
  | WithdrawnLine
  | OrderedLine
  | DroppedLine
  | LedgerLine
  | RowLine
  | PausedLine
