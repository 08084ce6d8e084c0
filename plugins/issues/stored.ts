import type {
  IssueEvent,
  IssueException,
  IssueFix,
  IssueIgnoring,
  IssueLevel,
  IssueResolution,
  IssueState,
  ReporterDay,
  StackFrame,
} from './contract.js'

/** A frame as it was reported, without credentials. */
export interface ReportedFrame extends Omit<StackFrame, 'path' | 'mapped'> {
  module?: string
}
/** An exception as it was reported. */
export interface ReportedException extends Omit<IssueException, 'frames'> {
  frames: ReportedFrame[]
}
/** An event as it is stored. */
export interface StoredEvent extends Omit<IssueEvent, 'exceptions'> {
  exceptions: ReportedException[]
}

/** What the events of an issue share. */
export interface IssueIdentity {
  id: string
  reporter: number
  title: string
  type?: string
  culprit?: string
  level: IssueLevel
  platform?: string
}

/** A fix as it is stored: its message is the same however often it is sent. */
export interface StoredFix extends IssueFix {
  messageId: string
  run: string
  resolveOnLand: boolean
}
/** A resolution, and the newest entry that was known then. */
export interface StoredResolution extends IssueResolution {
  seq: number
}
/** How many events an issue had when it was ignored. */
export interface StoredIgnoring extends IssueIgnoring {
  count: number
}

/** An issue as it is stored. */
export interface StoredIssue extends IssueIdentity {
  state: IssueState
  /** When it came again. */
  regressedAt?: number
  count: number
  /** Hashes of users. */
  users?: string[]
  firstSeen: number
  lastSeen: number
  firstRelease?: string
  lastRelease?: string
  environments: string[]
  /** Hours since the epoch with their events, oldest first. */
  hours: [hour: number, events: number][]
  /** The newest frame of the program's own code. */
  top?: ReportedFrame
  resolved?: StoredResolution
  ignored?: StoredIgnoring
  fix?: StoredFix
  /** The newest log entry that is part of this. */
  applied: number
  /** The newest log entry whose event is in the issue's own journal. */
  kept: number
  /** The entries of that journal. */
  entries: number
}

/** A reporter as it is stored. */
export interface StoredReporter {
  id: number
  label: string
  repo?: string
  key: string
  allowedOrigins: string[]
  enabled: boolean
  keepUser: boolean
  dailyMax: number
  createdAt: number
  createdBy: string
  lastEventAt?: number
  /** The day since the epoch that `today` counts. */
  day: number
  today: ReporterDay
  /** The log entry of the first event of each release. */
  releases: [release: string, seq: number][]
  applied: number
  /** It reports no more; `purge`: its issues go too. */
  removed?: 'kept' | 'purge'
}

/** A change of the state of some issues. */
export interface StateChange {
  state: IssueState
  at: number
  by: string
  in?: 'now' | 'next-release'
  commit?: string
  until?: number
  untilCount?: number
}

/** One entry of the log: everything that changes issues is in it before it is answered. */
export type LogEntry = { seq: number } & (
  | { kind: 'event'; of: IssueIdentity; event: StoredEvent }
  | { kind: 'feedback'; issue: string; event: string; text: string }
  | { kind: 'state'; issues: string[]; change: StateChange }
  | { kind: 'fix'; issue: string; fix?: StoredFix }
  | { kind: 'seen'; at: number }
)

/** One entry of an issue's own journal. */
export type KeptEntry = { event: StoredEvent } | { feedback: { event: string; text: string } }
