import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { LogLevel } from '../../sdk/log-line.js'
import type { Count, Millis } from '../../sdk/types.js'

export type LogKind = 'daemon' | 'plugin' | 'terminal' | 'run' | 'crash'
/** A log's path inside the folder of the logs, as `GET /logs` gives it. */
export type LogName = string & tags.MinLength<1> & tags.MaxLength<300>
type Offset = number & tags.Type<'uint64'>

/** One log file. */
export interface LogFile {
  name: string
  kind: LogKind
  sizeBytes: Offset
  modifiedAt: Millis
  /** Lines are being added to it. */
  live: boolean
  conversationId?: string
}

/** Some lines of a log. */
export interface LogWindow {
  name: string
  sizeBytes: Offset
  text: string
  /** Where the text begins. */
  offset: Offset
  /** Where to continue; left out at the end. */
  next?: Offset
  /** A line was longer than the window, and is cut. */
  truncated: boolean
}

/** One line of a log that is followed. */
export interface LogLine {
  offset: Offset
  text: string
  level?: LogLevel
  at?: Millis
}
/** The log was rotated and begins again. */
export interface LogRotated {
  kind: 'rotated'
}
/** The number of lines left out because they came too fast. */
export interface LogSkipped {
  kind: 'skipped'
  lines: Count
}

export interface LogsCalls {
  /** List every log file, the one that changed last first; `query` is looked for in their names. */
  'GET /logs'(input: { kind?: LogKind; query?: string & tags.MaxLength<100> }): { files: LogFile[] }

  /**
   * Read whole lines of one log: its end, or from `offset` on.
   *
   * With `find` or `level` only lines that hold these words, or are at least as grave; at most 64 MiB are searched,
   * then `next` says where to continue. Invalid UTF-8 is shown with replacement characters.
   *
   * - 400: the name leaves the folder of logs
   * - 404: no such log
   */
  'GET /logs/file'(input: {
    name: LogName
    bytes?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<1048576>
    offset?: Offset
    find?: string & tags.MinLength<1> & tags.MaxLength<200>
    level?: LogLevel
  }): LogWindow

  /**
   * Follow one log line by line as it is written, from `from` on, or after its last 100 lines.
   *
   * The id of an event is the offset after its line. It continues when the log is rotated. Beyond 2,000 lines a second,
   * lines are left out and counted. A person follows 8 logs at once at most.
   *
   * - 400: the name leaves the folder of logs
   * - 404: no such log
   * - 429: 8 logs are followed already
   */
  'GET /logs/follow'(input: {
    name: LogName
    from?: Offset
    level?: LogLevel
  }): Stream<LogLine | LogRotated | LogSkipped, { reason: 'removed' }>
}

export const logs: Contract<LogsCalls> = {
  schema: () => typia.json.application<LogsCalls>(),
  request: typia.misc.createValidatePrune<Requests<LogsCalls>>(),
  reply: () => typia.createValidate<Replies<LogsCalls>>(),
}
