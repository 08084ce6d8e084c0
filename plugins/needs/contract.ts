import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok } from '../../sdk/types.js'
import type { ConversationId, RunId } from '../agent/contract.js'

type Words<Most extends number> = string & tags.MinLength<1> & tags.MaxLength<Most>

/** `hands`: something done outside this machine, such as pressing a button or calling somebody. */
export type NeedKind = 'secret' | 'account' | 'capability' | 'decision' | 'information' | 'file' | 'hands'
export type NeedStatus = 'open' | 'given' | 'declined' | 'withdrawn' | 'expired'

/** One answer that can be chosen. */
export interface NeedOption {
  /** What the agent gets. */
  value: Words<100>
  /** What the person reads. */
  label: Words<200>
  /** What choosing it means. */
  description?: string & tags.MaxLength<500>
}
/** One thing that is asked for. */
export interface NeedField {
  /** Its name. */
  key: string & tags.Pattern<'^[A-Za-z_][A-Za-z0-9_]{0,63}$'>
  /** What the person reads. */
  label: Words<200>
  /** A secret is stored, and the agent gets its reference alone. */
  type: 'text' | 'choice' | 'yes-no' | 'file' | 'secret'
  /** Only of a choice. */
  options?: NeedOption[] & tags.MinItems<2> & tags.MaxItems<20>
  /** It must be answered. */
  required: boolean
  /** The name of a stored secret. */
  secretKey?: Words<128>
  /** How to find the answer. */
  hint?: string & tags.MaxLength<500>
}

/** What is asked of a person. */
export interface NeedQuestion {
  /** What kind of thing it is; `hands`: something done outside this machine. */
  kind: NeedKind
  /** In a few words. */
  title: Words<120>
  /** What stopped the work, and what happens with the answer. */
  why: Words<4000>
  /** The parts of the answer; left out: one text `answer`, or one file `file` of kind `file`. */
  fields?: NeedField[] & tags.MaxItems<12>
  /** Of a capability: its card of the catalogue. */
  card?: Words<60>
  /** Of an account: the provider to sign in to. */
  provider?: Words<120>
  /** The task waits for it; left out: it does. */
  blocking?: boolean
  /** When it is too late for an answer. */
  expiresAt?: Millis
  /** An open need with the same text is returned in place of a new one. */
  dedupe?: Words<128>
}
/** A need of a conversation. */
export interface NeedInput extends NeedQuestion {
  conversationId: ConversationId
}

/** What was given: a secret as `{{secret:KEY}}`, a file as its path in the workspace. */
export interface NeedAnswers {
  [key: string]: string | boolean
}

/** What an agent waits for. */
export interface Need extends NeedInput {
  id: string
  status: NeedStatus
  raisedBy: string
  raisedAt: Millis
  /** The run that raised it. */
  run?: RunId
  conversationTitle?: string
  settledBy?: string
  settledAt?: Millis
  answers?: NeedAnswers
  note?: string
  /** The run that went on with the answer. */
  continued?: RunId
  /** Whether the caller may give it. */
  allowed: { give: boolean; reason?: string }
}
/** A need that was settled, and the run that goes on with the answer. */
export interface SettledNeed {
  need: Need
  run?: RunId
}

/** What only a person can give, and agents wait for. */
export interface NeedsCalls {
  /**
   * List what agents wait for, newest first.
   *
   * `open` counts all open ones that the caller may see.
   *
   * - 400: an unknown status
   */
  'GET /needs'(input: {
    /** Statuses with commas between them; left out: `open`. */
    status?: string & tags.MaxLength<60>
    conversationId?: ConversationId
    kind?: NeedKind
    limit?: Count & tags.Minimum<1> & tags.Maximum<200>
    /** Only what was raised before this time. */
    before?: Millis
  }): { needs: Need[]; open: Count }

  /**
   * Read one need, in any state.
   *
   * - 404: no such need, or its conversation is outside the caller's areas
   */
  'GET /needs/{id}'(input: { id: string }): Need

  /**
   * Raise a need for a conversation, as the tool `Need` does from inside a turn.
   *
   * A command of a turn makes it too, at `SANDBOX_DAEMON` with `SANDBOX_TURN_TOKEN` in `x-sandbox-turn`, for its own
   * conversation.
   *
   * - 400: a choice without options, a secret without `secretKey`, or two fields with one key
   * - 404: no such conversation
   * - 422: unknown card, `expiresAt` has passed, or the value of a stored secret is in it
   * - 429: 20 needs are open in this conversation
   * - 503: of an account, which this sandbox does not keep yet
   */
  'POST /needs'(input: NeedInput): Need

  /**
   * Give what was asked; the conversation goes on once nothing that it waits for is open.
   *
   * A secret is stored first, and appears in no answer, log or transcript. A capability must be connected. Without
   * answers, hands and capabilities are done. The same answers again are answered as the first time.
   *
   * - 403: a secret from anybody but a maintainer in a session
   * - 404: no such need
   * - 409: settled otherwise, or the capability is not connected
   * - 413: a text of more than 64 KiB
   * - 422: a required answer is missing, not among the options, names no file, or was not asked for
   * - 424: secrets cannot be stored now; nothing was stored
   */
  'POST /needs/{id}/give'(input: {
    id: string
    answers?: { [key: string]: string | boolean }
    note?: string & tags.MaxLength<4000>
    /** False: store it, and tell the agent in its next turn. */
    continue?: boolean
  }): SettledNeed

  /**
   * Say that it will not be given; the agent is told, and decides what it can do without.
   *
   * - 404: no such need
   * - 409: settled already
   */
  'POST /needs/{id}/decline'(input: {
    id: string
    reason?: string & tags.MaxLength<2000>
    /** False: tell the agent in its next turn only. */
    continue?: boolean
  }): SettledNeed

  /** Raises a need from inside a turn. */
  'needs.ask'(input: NeedInput & { run: RunId }): { id: string }
  /** An agent says that it needs it no longer. 404: it is not an open need of this conversation. */
  'needs.withdraw'(input: { id: string; conversationId: ConversationId }): Ok
  /**
   * Answers that the conversation did not wait for, as notes for a run. A run that asks again gets the same. With
   * `byOthers` somebody who may not land has a say in them.
   */
  'needs.forTurn'(input: { conversationId: ConversationId; run: RunId }): {
    notes: { title: string; text: string }[]
    byOthers: boolean
  }
  /** The open needs that a conversation waits for, oldest first. */
  'needs.open'(input: { conversationId: ConversationId }): { ids: string[] }
  /** How many needs are open, by conversation. */
  'needs.counts'(): { open: { [conversationId: string]: Count } }
}

export interface NeedsEvents {
  /** A need was raised or settled; so many are open in its conversation now. */
  'need.changed': { id: string; conversationId: ConversationId; title: string; status: NeedStatus; open: Count }
  'need.settled': { id: string; conversationId: ConversationId; status: NeedStatus }
}

export const needsContract: Contract<NeedsCalls> = {
  schema: () => typia.json.application<NeedsCalls>(),
  request: typia.misc.createValidatePrune<Requests<NeedsCalls>>(),
  reply: () => typia.createValidate<Replies<NeedsCalls>>(),
}
