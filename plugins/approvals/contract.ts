import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { ReachFolder } from '../../sdk/reach.js'
import type { Count, Millis, MostCharacters, Ok } from '../../sdk/types.js'
import type { ConversationId, RunId } from '../agent/contract.js'

type Words<Most extends number> = string & tags.MinLength<1> & MostCharacters<Most>

export type ApprovalId = string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
export type ApprovalDigest = string & tags.MinLength<64> & tags.MaxLength<64> & tags.Pattern<'^[0-9a-f]+$'>
export type ApprovalStatus = 'proposed' | 'approved' | 'sending' | 'done' | 'failed' | 'declined'

/** Something to publish. */
export interface PostBody {
  /**
   * Where; `webhook` sends one HTTP POST to `target`, `outbox` publishes `content`, HTML or text, as a page `target`
   * with `media` beside it.
   */
  platform: Words<60>
  /** The channel, the address of what it replies to, or the one that `webhook` calls. */
  target?: string & MostCharacters<2000>
  title?: string & MostCharacters<300>
  /** Word for word; a secret as `{{secret:KEY}}`. */
  content: Words<40000>
  /** Paths of files, which are copied when the post is filed. */
  media?: Words<1000>[] & tags.MaxItems<10>
}
/** Something to do in an outside system, as a person sees it. */
export interface ShownAction {
  /**
   * `<provider>.<type>`, as in the setting `actionRules`; of an extension's tool `<publisher>.<name>.<tool>`, of a
   * connected server's `<connection>.<tool>` in small letters. `outbox.publish` publishes a file or folder (`path`, and
   * if wanted `as` and `expiresAt`), which is copied when the action is filed.
   */
  key: string & tags.MaxLength<180> & tags.Pattern<'^[a-z0-9_-]+\\.[a-z0-9._-]+$'>
  /** What happens; the person reads it. */
  summary: Words<500>
  /** At most 64 KiB as JSON; left out for callers who may only read. */
  args?: { [key: string]: unknown }
  capability?: Words<120>
}
/** Something to do in an outside system. */
export interface ActionBody extends ShownAction {
  args: { [key: string]: unknown }
}

/** What a proposal has beside its action. */
interface ApprovalParts {
  /** Whether something is published or done. */
  kind: 'post' | 'action'
  /** What is published; only of a post. */
  post?: PostBody
  /** The persona in whose name it is done. */
  actsAs?: Words<60>
  /** Not before this time. */
  scheduledAt?: Millis
  /** Why; the person reads it. */
  why?: string & MostCharacters<2000>
  /** Say the outcome in the conversation; left out: true for actions. */
  tellAgent?: boolean
}
/** What an agent proposes: `post` or `action`, as `kind` says. */
export interface ApprovalDraft extends ApprovalParts {
  /** Left out: a new one. A known one replaces the content of that item. */
  id?: ApprovalId
  /** What is done; only of an action. */
  action?: ActionBody
}
/** What is proposed, for a conversation or for none. */
export interface ApprovalInput extends ApprovalDraft {
  conversationId?: ConversationId
}
/** One try to carry an item out. */
export interface ApprovalAttempt {
  at: Millis
  endedAt?: Millis
  /** `unknown`: it may have gone out. */
  outcome?: 'done' | 'failed' | 'unknown'
  error?: string
  url?: string
  via: 'executor' | 'turn'
  conversationId?: string
  run?: string
}
/** An item of the queue. */
export interface Approval extends ApprovalParts {
  id: ApprovalId
  conversationId?: ConversationId
  action?: ShownAction
  status: ApprovalStatus
  /** SHA-256, in hex, of the kind, the content, the copied files and the persona: a yes is for this content alone. */
  digest: ApprovalDigest
  /** Who wrote the present content. */
  proposedBy: string
  createdAt: Millis
  updatedAt: Millis
  approvedBy?: string
  approvedAt?: Millis
  /** When it will be carried out. */
  sendAt?: Millis
  declinedBy?: string
  reason?: string
  /** How it is carried out; `nobody`: it cannot be, and `problem` says what is missing. */
  via: 'executor' | 'turn' | 'nobody'
  problem?: string
  /** It moves money: only the owner may say yes. */
  ownerOnly: boolean
  /** The newest 20. */
  attempts: ApprovalAttempt[] & tags.MaxItems<20>
  /** Where what was published is. */
  url?: string
  /** What the outside system answered. */
  result?: string & MostCharacters<4000>
}
/** Where the files of a post are: the folder that their paths are from, and the folders of it that count. */
export interface ApprovalFiles {
  root: string
  folders?: ReachFolder[]
}
/** A page of the queue. */
export interface ApprovalPage {
  approvals: Approval[]
  /** How many there are in each state. */
  counts: { [status: string]: Count }
}

/** A post of the queue, as older clients know it. */
export interface Draft extends PostBody {
  id: ApprovalId
  status: 'proposed' | 'approved' | 'posting' | 'posted' | 'failed'
  actsAs?: string
  scheduledAt?: Millis
  why?: string
  conversationId?: ConversationId
  createdAt: Millis
  updatedAt: Millis
  /** Where what was published is. */
  url?: string
  /** Why it failed, or what is missing. */
  problem?: string
}
/** A post to save, as older clients send it. */
export interface DraftInput extends PostBody {
  /** Left out: a new one. */
  id?: ApprovalId
  /** `approved`: say yes to exactly this content, as `POST /approvals/{id}/approve` does. */
  status?: 'proposed' | 'approved'
  actsAs?: Words<60>
  scheduledAt?: Millis
  why?: string & MostCharacters<2000>
  conversationId?: ConversationId
}

/** Posts and actions that agents have prepared, and that a person allows before they are carried out. */
export interface ApprovalsCalls {
  /**
   * List the queue, newest first, each item word for word.
   *
   * Callers who may only read get no `action.args`. A `limit` above 200 counts as that.
   *
   * - 400: an unknown status
   */
  'GET /approvals'(input: {
    /** Statuses with commas between them; left out: all. */
    status?: string & tags.MaxLength<100>
    kind?: 'post' | 'action'
    conversationId?: ConversationId
    /** 100 when left out. */
    limit?: Count & tags.Minimum<1>
    /** Only what was proposed before this time. */
    before?: Millis
  }): ApprovalPage

  /**
   * Propose a post or an action, or replace the content of one; nothing is carried out.
   *
   * A known `id` names an item of one's own, or of anybody for a maintainer; an earlier yes is then lost. Files are
   * copied now: what is approved is what is sent.
   *
   * A command of a turn makes it too, at `SANDBOX_DAEMON` with `SANDBOX_TURN_TOKEN` in `x-sandbox-turn`: for its own
   * conversation, with files of its own tree. Every other call answers it 403.
   *
   * - 400: a body of the other kind, arguments over 64 KiB, or a path that leaves the workspace
   * - 403: it replaces somebody else's item
   * - 404: a turn names another conversation
   * - 409: it is being sent, or done
   * - 413: the files have more than 100 MiB together
   * - 422: a path names no file, the value of a stored secret is in it, or there is no such conversation
   * - 429: of a turn, and 50 proposals of its conversation wait for a decision
   */
  'POST /approvals'(input: ApprovalInput): Approval

  /**
   * Say yes to exactly the content with this digest.
   *
   * A post goes out after 60 seconds, an action at once, both not before `scheduledAt`; `now` skips the wait. A failed
   * item is tried again the same way. An approved one stays as it is, except that `now` skips the rest of its wait.
   *
   * - 403: it moves money, and only the owner may say yes
   * - 404: no such item
   * - 409: the content has changed, or it is declined, being sent or done
   * - 422: `scheduledAt` is more than a year ahead
   * - 424: nothing here can carry it out; the message says what is missing
   */
  'POST /approvals/{id}/approve'(input: {
    id: ApprovalId
    digest: ApprovalDigest
    scheduledAt?: Millis
    now?: boolean
  }): Approval

  /**
   * Take a yes back while nothing has gone out.
   *
   * - 404: no such item
   * - 409: it is not approved, or already being sent
   */
  'POST /approvals/{id}/recall'(input: { id: ApprovalId }): Approval

  /**
   * Say no; with `tellAgent` the reason is said in the conversation.
   *
   * - 404: no such item
   * - 409: it is approved (recall it first), declined, being sent or done
   */
  'POST /approvals/{id}/decline'(input: { id: ApprovalId; reason?: string & MostCharacters<2000> }): Approval

  /**
   * Remove an item and its copied files; what was sent stays sent.
   *
   * - 404: no such item
   * - 409: it is being sent
   */
  'DELETE /approvals/{id}'(input: { id: ApprovalId }): Ok

  /** List the posts of the queue that are not declined, newest first, for older clients of `GET /approvals`. */
  'GET /drafts'(): { drafts: Draft[] }

  /**
   * Save a post for older clients: `POST /approvals`, and with the status `approved` the yes to what is sent here.
   *
   * - 400: arguments that do not fit, or a path that leaves the workspace
   * - 403: it is somebody else's, or `approved` by a caller that is no maintainer
   * - 404: the id names an action
   * - 409: it is being sent, or done
   * - 413: the files have more than 100 MiB together
   * - 422: a path names no file, the value of a stored secret is in it, or there is no such conversation
   * - 424: nothing here can carry it out; it stays proposed
   */
  'POST /drafts'(input: DraftInput): Draft

  /**
   * Remove a post and its copied files, for older clients: `DELETE /approvals/{id}`.
   *
   * - 404: no such post
   * - 409: it is being sent
   */
  'DELETE /drafts/{id}'(input: { id: ApprovalId }): Ok

  /** Proposes something from inside a turn; paths of files are below `files.root`. */
  'approvals.file'(
    input: ApprovalInput & {
      conversationId: ConversationId
      run: RunId
      /** Left out: it has no files. */
      files?: ApprovalFiles
    },
  ): Approval
  /** Counts proposed items by conversation; those of none are under an empty id. */
  'approvals.counts'(): { proposed: { [conversationId: string]: Count } }
}

export interface ApprovalsEvents {
  /** An item changed; so many of its conversation are proposed now. Without a conversation its id is empty. */
  'approval.changed': { id: string; conversationId: string; title: string; status: ApprovalStatus; proposed: Count }
}

export const approvalsContract: Contract<ApprovalsCalls> = {
  schema: () => typia.json.application<ApprovalsCalls>(),
  request: typia.misc.createValidatePrune<Requests<ApprovalsCalls>>(),
  reply: () => typia.createValidate<Replies<ApprovalsCalls>>(),
}
