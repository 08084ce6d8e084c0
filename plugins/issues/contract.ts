import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, MostCharacters, Millis, Ok, Positive } from '../../sdk/types.js'
import type { ConversationId, RunId } from '../agent/contract.js'
import type { IngestCalls } from './ingest/contract.js'

export type * from './ingest/contract.js'

export type IssueState = 'open' | 'resolved' | 'ignored'
export type IssueLevel = 'fatal' | 'error' | 'warning' | 'info' | 'debug'
export type IssueId = string & tags.Pattern<'^iss_[0-9a-f]{20}$'>
/** 32 hexadecimal digits. */
export type EventId = string & tags.Pattern<'^[0-9a-f]{32}$'>
type Origin = string & tags.MaxLength<300>
type DailyMax = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<1000000>

/** Where the newest frame of the program's own code is. */
export interface IssueLocation {
  repo?: string
  /** From the root of the workspace. */
  path: string
  line?: Positive
  function?: string
}
/** `next-release`: only a release that was not known then opens it again. */
export interface IssueResolution {
  at: Millis
  by: string
  in: 'now' | 'next-release'
  commit?: string
}
/** Until a time, or until so many more events; without both until somebody opens it. */
export interface IssueIgnoring {
  at: Millis
  by: string
  until?: Millis
  untilCount?: Positive
}
/** The conversation that fixes an issue. */
export interface IssueFix {
  conversationId: ConversationId
  at: Millis
}
/** One fault: its events are counted, and the first and the newest of them kept. */
export interface Issue {
  id: IssueId
  reporter: Positive
  title: string
  type?: string
  /** Where it happened, as the program says. */
  culprit?: string
  level: IssueLevel
  platform?: string
  state: IssueState
  /** It was resolved, and came again. */
  regressed?: boolean
  /** Its first event is newer than the last call of `POST /issues/seen`. */
  isNew: boolean
  count: Count
  /** Users that are told apart, at most 1,000; only when the reporter sends them. */
  users?: Count
  firstSeen: Millis
  lastSeen: Millis
  firstRelease?: string
  lastRelease?: string
  environments: string[] & tags.MaxItems<20>
  /** Events of each of the last 24 hours, the newest last. */
  trend: Count[]
  location?: IssueLocation
  resolved?: IssueResolution
  ignored?: IssueIgnoring
  fix?: IssueFix
}

/** One call of a trace. */
export interface StackFrame {
  function?: string
  file?: string
  line?: Positive
  column?: Count
  /** Of the program itself, not of a library. */
  own: boolean
  /** The file in the workspace. */
  path?: string
  /** A source map says where it is in the original file. */
  mapped?: boolean
  before?: string[]
  source?: string
  after?: string[]
}
/** An exception, with its frames, the newest first. */
export interface IssueException {
  type?: string
  value?: string
  handled?: boolean
  frames: StackFrame[]
}
/** What the program did before. */
export interface IssueBreadcrumb {
  at?: Millis
  category?: string
  level?: string
  message?: string
}
/** The program that sent an event. */
export interface IssueSdk {
  name: string
  version: string
}
/** One failure, without credentials. */
export interface IssueEvent {
  id: EventId
  /** As the program says. */
  at: Millis
  receivedAt: Millis
  level: IssueLevel
  message?: string
  /** The outermost first. */
  exceptions: IssueException[]
  breadcrumbs: IssueBreadcrumb[] & tags.MaxItems<100>
  tags: { [tag: string]: string }
  release?: string
  environment?: string
  url?: string
  transaction?: string
  runtime?: string
  os?: string
  browser?: string
  device?: string
  /** A salted hash of who was using the program. */
  userHash?: string
  sdk?: IssueSdk
  extra?: { [field: string]: unknown }
  /** What the user wrote about it. */
  feedback?: string
}
/** What a reporter sent since midnight, UTC. */
export interface ReporterDay {
  accepted: Count
  /** Items of other kinds, and broken ones. */
  dropped: Count
  /** Events beyond its limits. */
  limited: Count
}
/** One program or site that reports its failures. */
export interface Reporter {
  id: Positive
  label: string
  repo?: string
  /** Public by design: it can only report. */
  key: string
  /** What the program's SDK is configured with. */
  dsn: string
  /** The origins of pages that may report; empty: any, and programs without one. */
  allowedOrigins: string[] & tags.MaxItems<50>
  enabled: boolean
  /** Keep who used the program as it was sent, and not only as a hash. */
  keepUser: boolean
  /** Events a day, UTC. */
  dailyMax: DailyMax
  createdAt: Millis
  createdBy: string
  lastEventAt?: Millis
  today: ReporterDay
}

/** Failures of the user's own programs. */
export interface IssuesCalls extends IngestCalls {
  /**
   * List issues: one row per fault, however often it happened.
   *
   * `query` is looked for in title, type, culprit and path, in any case. `counts` counts what the other filters match,
   * by state.
   *
   * - 400: `after` is not the `next` of a list with this `sort`
   */
  'GET /issues'(input: {
    /** Left out: `open`. */
    state?: IssueState | 'all'
    reporter?: Positive
    environment?: string & tags.MaxLength<200>
    /** The first or the last release with the fault. */
    release?: string & tags.MaxLength<200>
    level?: IssueLevel
    query?: string & tags.MaxLength<200>
    /** What comes first: the last seen, the first seen, most events or most users; left out: `last`. */
    sort?: 'last' | 'first' | 'count' | 'users'
    limit?: Positive
    after?: string & tags.MaxLength<100>
  }): { issues: Issue[]; total: Count; counts: { [state in IssueState]: Count }; seenAt?: Millis; next?: string }

  /**
   * Read an issue with a page of its kept events, the newest first; `event` picks one.
   *
   * Frames are mapped through source maps and found in the workspace now, so that a later build improves old events.
   * File names in a report are outside words: they lead nowhere outside the reporter's repository and the caller's
   * areas, and no source lines come from files of secrets.
   *
   * - 404: no such issue, or the event is not kept
   */
  'GET /issues/{id}'(input: {
    id: string
    limit?: Positive
    /** Only events received before this time. */
    before?: Millis
    event?: EventId
  }): { issue: Issue; events: IssueEvent[]; next?: Millis }

  /**
   * Open, resolve or ignore issues, all or none.
   *
   * `in` and `commit` belong to resolved, `until` and `untilCount` to ignored. An issue in the state already stays as
   * it is.
   *
   * - 400: a field of another state, or `until` has passed
   * - 403: an issue belongs to a repository that you may only read
   * - 404: an issue is unknown; nothing changed
   */
  'POST /issues/state'(input: {
    ids: string[] & tags.MinItems<1> & tags.MaxItems<100>
    state: IssueState
    /** Left out: `now`. */
    in?: 'now' | 'next-release'
    until?: Millis
    untilCount?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<100000>
    commit?: string & tags.Pattern<'^[0-9a-f]{40}$'>
  }): { issues: Issue[] }

  /**
   * Put an agent on an issue: starts a turn in a new private copy, in the reporter's repository.
   *
   * The agent reads the newest event with its trace as outside content, which instructs nobody. A second call within
   * 10 s gets the first conversation.
   *
   * - 403: the issue belongs to a repository that you may only read
   * - 404: no such issue
   * - 409: the conversation of its last fix is running
   * - 422: the turn is not possible; the message says why
   */
  'POST /issues/{id}/fix'(input: {
    id: string
    /** Left out: what a new conversation gets. */
    pick?: {
      agent: string & tags.MinLength<1> & tags.MaxLength<120>
      model: string & tags.MinLength<1> & tags.MaxLength<200>
    }
    /** What else the agent should know. */
    note?: string & tags.MaxLength<4000>
    /** The issue is resolved in the next release once the conversation landed. */
    resolveOnLand?: boolean
  }): { conversationId: ConversationId; run: RunId }

  /** Mark all issues as seen up to now, for everybody. */
  'POST /issues/seen'(): { seenAt: Millis }

  /**
   * List the reporters with their DSN and what they sent today.
   *
   * `reach` says whether programs outside can get to the address of `ingest`.
   */
  'GET /issues/reporters'(): { reporters: Reporter[]; ingest: string; reach: 'public' | 'machine' | 'none' }

  /**
   * Make a reporter, or change the one of `id`: fields that are left out stay; `rotate` gives it a new key, and the old
   * one stops at once.
   *
   * - 400: an origin is not `scheme://host[:port]`
   * - 404: no reporter of this id, or no such repository
   * - 429: there are 200 reporters
   */
  'POST /issues/reporters'(input: {
    id?: Positive
    label: string & tags.MinLength<1> & MostCharacters<60>
    repo?: string & tags.MinLength<1> & tags.MaxLength<200>
    allowedOrigins?: Origin[] & tags.MaxItems<50>
    enabled?: boolean
    keepUser?: boolean
    dailyMax?: DailyMax
    rotate?: boolean
  }): Reporter

  /**
   * Remove a reporter: its key stops at once. Its issues stay readable, unless `purge` deletes them with their events.
   *
   * - 404: no such reporter
   */
  'DELETE /issues/reporters/{id}'(input: { id: Positive; purge?: boolean }): Ok & { purged: Count }

  /** Issues that wait for a person: open, and new or come again since they were last seen. */
  'issues.waiting'(): IssuesWaiting
}

/** How many issues wait for a person, by the folder of their repository; without one for issues of none. */
export interface IssuesWaiting {
  waiting: { within?: string; count: Count }[]
}

export interface IssuesEvents {
  /** Which issues wait for a person changed. */
  'issues.waiting': IssuesWaiting
}

export const issuesContract: Contract<IssuesCalls> = {
  schema: () => typia.json.application<IssuesCalls>(),
  request: typia.misc.createValidatePrune<Requests<IssuesCalls>>(),
  reply: () => typia.createValidate<Replies<IssuesCalls>>(),
}
