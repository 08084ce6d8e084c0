import type { tags } from 'typia'
import type { Count, Millis, Positive } from '../../../sdk/types.js'
import type { Snippet } from '../conversations/contract.js'
import type { TranscriptMessage } from '../conversations/record.js'
import type { ConversationId, Harness, ProviderId } from '../turn/frames/frames.js'

/** Where a conversation is: on the board, archived, or only its record is left. */
export type SessionState = 'live' | 'archived' | 'discarded'

/** One conversation of all that were ever recorded. */
export interface SessionRow {
  id: ConversationId
  /** Its title, else the first words said, else the names of the attached files. */
  title: string
  updatedAt: Millis
  startedAt: Millis
  state: SessionState
  provider: ProviderId
  harness: Harness
  model?: string
  /** Rows of the record. */
  total: Count
  /** An e-mail, `token:<label>` or `sandbox:<what>`. */
  openedBy: string
  /** Only of a search, and only where the title does not hold the words. */
  snippet?: Snippet
}
/** A position in the list of records: after the named one. */
export interface RecordPlace {
  updatedAt: Millis
  id: string
}
/** One page of records, newest first. */
export interface RecordPage {
  sessions: SessionRow[]
  /** The last one of this page, where more follow. */
  next?: RecordPlace
  /** The index of what was said is still being built: the answer can grow. */
  indexing: boolean
}
/** One record in full. */
export interface PastSession extends SessionRow {
  messages: TranscriptMessage[]
}

/** What a conversation sent to its model, once each. */
export interface SentTexts {
  provider: ProviderId
  account?: string
  /** This machine runs its models. */
  local: boolean
  requests: Count
  /** In order; `before` is how many requests were made before the one that sent it first. */
  texts: { text: string; before: Count }[]
}

/** What was recorded of conversations, on the board or off it; asked as the caller being served. */
export interface SessionRecordCalls {
  /** A page of the records that the caller may read, of those that hold the words where there is a query. */
  'agent.records'(input: {
    query?: string
    caseSensitive?: boolean
    state?: SessionState
    limit: Positive
    before?: RecordPlace
  }): RecordPage

  /** One record with its rows: all, or with `limit` the last ones before index `before`. */
  'agent.record'(input: { id: string; limit?: Positive; before?: Count }): PastSession

  /** What one conversation sent to its model: words, earlier answers, and results of tools. */
  'agent.sent'(input: { id: string }): SentTexts

  /** Deletes the record of a discarded conversation for good, and returns its title. */
  'agent.forget'(input: { id: string }): { title: string & tags.MinLength<1> }
}
