import type { Resumable } from '../turn/outage.js'
import type { Acceptance, LedgerRow } from './queue.js'

interface AcceptLine extends Acceptance {
  readonly line: 'accept'
}
/** A run is over: its message, and what was said into it, are done with. */
interface EndedLine {
  readonly line: 'ended'
  readonly conversationId: string
  readonly run: string
  readonly paused: boolean
  /** An outage ended it. */
  readonly resumable?: Resumable
}
/** Another word on whether the run that an outage ended is resumed. */
interface ResumableLine {
  readonly line: 'resumable'
  readonly conversationId: string
  readonly resumable?: Resumable
}
/** A waiting message was taken back. */
interface WithdrawnLine {
  readonly line: 'withdrawn'
  readonly conversationId: string
  readonly messageId: string
}
/** What waits got another order, or its pause was lifted. */
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
/** A ledger row whose message is done with, or a pause; written when the journal is compacted. */
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
  AcceptLine | EndedLine | ResumableLine | WithdrawnLine | OrderedLine | DroppedLine | RowLine | PausedLine
