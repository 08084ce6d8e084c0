import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Positive } from '../../sdk/types.js'

/** Whether something left the sandbox, came in, or happened in it. */
export type ActivityDirection = 'in' | 'out' | 'system'

/** What started the turn that acted. */
export interface ActivityOrigin {
  automationId: string
  provider: string
  channelId?: string
  author?: string
}

/** The data of an entry; every text is data of its field. */
export interface ActivityFacts {
  provider?: string
  account?: string
  direction: ActivityDirection
  /** Such as `session.opened`. */
  type: string & tags.MaxLength<80> & tags.Pattern<'^[a-z][A-Za-z0-9_-]*(\\.[A-Za-z0-9_-]+)+$'>
  channelId?: string
  author?: string
  /** The text of a message, known credentials replaced; a longer one is cut and ends with a mark. */
  content?: string & tags.MaxLength<16384>
  method?: string
  /** The address that was called, without query and credentials. */
  endpoint?: string
  sessionId?: string
  turnId?: string
  conversationId?: string
  /** What the conversation was called then. */
  title?: string
  origin?: ActivityOrigin
  automationIds?: string[]
  outcome?: 'ok' | 'error'
  error?: string
  extra?: { [key: string]: unknown }
}

/** One entry of the record: what happened, who did it, and how it is bound to the entry before. */
export interface ActivityEvent extends ActivityFacts {
  id: string
  /** Increases by one with every entry. */
  seq: number & tags.Type<'uint64'> & tags.Minimum<1>
  /** Strictly increasing. */
  at: Millis
  /** An e-mail, `token:<label>`, `conversation:<id>`, `extension:<id>` or `sandbox:<what>`. */
  actor?: string
  /** What concerns access, sessions, tokens, members, terminals and secrets is for maintainers. */
  audience: 'viewer' | 'maintainer'
  /** `hash` of the entry before. */
  prev: string
  /** SHA-256, in hex, of this entry in canonical JSON (RFC 8785) without this field. */
  hash: string
}

/** An entry as a group submits it; long texts are cut, so that no entry is lost for its length. */
export interface ActivityInput extends Omit<ActivityFacts, 'type' | 'content'> {
  type: string
  content?: string
  /** `viewer` unless named. */
  audience?: 'viewer' | 'maintainer'
  /** Who did it, where that is not the caller. */
  actor?: string
  /**
   * The outside source it came from: the number of entries per source and day is limited. Strangers and extensions are
   * sources by themselves.
   */
  source?: string
}

/** An outside source of entries and whether it works. */
export interface ActivityConnection {
  capabilityId: string
  provider: string
  gateway: 'ready' | 'connecting' | 'pairing' | 'disconnected' | 'idle'
  lastError?: string
}

/** Whether the record is intact: each entry contains the hash of the previous one. */
export interface ActivityChain {
  /** Entries that are kept. */
  entries: Count
  /** `hash` of the newest entry; zeros where there is none. */
  head: string
  headAt?: Millis
  intact: boolean
  /** When every entry was last checked. */
  checkedAt: Millis
  /** The first entry that was changed. */
  brokenAt?: number & tags.Type<'uint64'>
  /**
   * The entry at which verification begins: older ones were removed, or were damaged and are reported in the record.
   */
  anchor?: ActivityAnchor
}

export interface ActivityAnchor {
  seq: number & tags.Type<'uint64'>
  hash: string
}

/** The sources of entries, and the state of the record. */
export interface ActivityStatus {
  connections: ActivityConnection[]
  chain: ActivityChain
  bytes: number & tags.Type<'uint64'>
  oldestAt?: Millis
}

/** Newline-delimited JSON: entries as stored, oldest first, and a last line `{ kind: "end", entries, head }`. */
export interface ActivityExport {
  readonly 'content-type': 'application/x-ndjson'
}

export interface ActivityCalls {
  /**
   * List what agents did outside, what came in, and what the sandbox and its members did, newest first.
   *
   * `type` may end in `*`; `query` is looked for in the texts of an entry; `before` is the `at` of an entry, and `next`
   * of an answer its value for the next page. Below maintainer, and for every token, only entries for viewers are
   * listed, of conversations the caller may see. A search takes at most 2 s: then `next` says where to continue.
   */
  'GET /activity'(input: {
    provider?: string & tags.MaxLength<200>
    direction?: ActivityDirection
    type?: string & tags.MaxLength<80>
    actor?: string & tags.MaxLength<320>
    conversationId?: string & tags.MaxLength<200>
    outcome?: 'ok' | 'error'
    query?: string & tags.MaxLength<200>
    from?: Millis
    to?: Millis
    limit?: Positive
    before?: Millis
  }): { events: ActivityEvent[]; next?: Millis }

  /**
   * Say which outside sources feed the record and whether the record is intact.
   *
   * The chain is checked fully at each start and daily, and its end at each call.
   */
  'GET /activity/status'(): ActivityStatus

  /**
   * Give the record of a time as stored, with its hashes, so that anyone can check it without the sandbox.
   *
   * One entry a line, oldest first. The last line is `{ "kind": "end", "entries", "head" }`: a body without it was cut
   * off.
   *
   * - 400: `from` is after `to`
   */
  'GET /activity/export'(input: { from?: Millis; to?: Millis }): ActivityExport

  /** Record an entry; answers once it would survive a power cut. */
  'activity.record'(input: ActivityInput): { id: string; seq: number & tags.Type<'uint64'>; at: Millis }
}

export const activity: Contract<ActivityCalls> = {
  schema: () => typia.json.application<ActivityCalls>(),
  request: typia.misc.createValidatePrune<Requests<ActivityCalls>>(),
  reply: () => typia.createValidate<Replies<ActivityCalls>>(),
}
