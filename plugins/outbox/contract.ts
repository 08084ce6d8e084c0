import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { ContentDigest, Count, Millis, Ok, Size } from '../../sdk/types.js'
import type { ConversationId } from '../agent/contract.js'

/** Why a file is not served. */
export type BlockReason =
  | 'hidden'
  | 'credential-name'
  | 'credential-content'
  | 'too-large'
  | 'link'
  | 'expired'
  | 'unlisted'

type PublishedPath = string & tags.MinLength<1> & tags.MaxLength<400>
/** A name at the top of the outbox. */
export type OutboxName = string & tags.Pattern<'^[^\\/.][^\\/]{0,119}$'>

/** A file in the outbox. */
export interface PublicFile {
  /** From the outbox, with forward slashes. */
  path: string
  size: Size
  modifiedAt: Millis
  /** Absent when it is blocked, or nothing is served. */
  url?: string
  /** Why it is not served, in words. */
  blocked?: string
  reason?: BlockReason
  /** The workspace path that it was copied from. */
  source?: string
  publishedBy?: string
  publishedAt?: Millis
  expiresAt?: Millis
  /** Requests answered since it was published. */
  opened?: Count
}
/** A file that was not published. */
export interface BlockedFile {
  /** From the published folder. */
  path: string
  reason: BlockReason
}
/** What was published. */
export interface PublishedEntry {
  path: string
  /** Absent for a folder without `index.html`: its files have addresses. */
  url?: string
  files: Count
  bytes: Size
  blocked: BlockedFile[]
  /** Of the names and bytes of the files: what `expect` takes. */
  digest: ContentDigest
}
/** The bytes of a published file. */
export interface OutboxFile {
  'content-type': string
}

/** Files that the sandbox serves to anyone with their address. */
export interface OutboxCalls {
  /**
   * List the files in the outbox by path, each with whether and why it is served.
   *
   * `reach` says whether the addresses answer from outside, on this machine alone, or not at all. Files whose source
   * lies outside the caller's areas are left out.
   *
   * `after` is the path of the last file that the caller has.
   */
  'GET /public'(input: {
    limit?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<2000>
    after?: string
  }): {
    url?: string
    reach: 'public' | 'machine' | 'none'
    files: PublicFile[]
    totalBytes: Size
    next?: string
  }

  /**
   * Publish a copy of a workspace file or folder, or of one in a conversation's private copy (`agent`).
   *
   * It gets its own name or `as`, and replaces what was published under that name in one step, so that addresses stay.
   * In a folder, links, hidden files, credentials and files that contain secrets are left out and listed in `blocked`;
   * `index.html` is served at the folder's address. `mode: "check"` reads all of it, says what would be published and
   * publishes nothing. With `expect`, the `digest` of that answer, exactly those files are published.
   *
   * - 404: no such path
   * - 409: serving is switched off, something with or below the name in `public/` was not published, or the files are
   *   not those of `expect`: `digest`, `files` and `bytes` are those of now, and nothing was published
   * - 413: a file over 512 MiB, over 4 GiB or 20,000 files in the outbox, over 12 folders in each other, or the disk is
   *   full
   * - 422: the file is blocked, a folder without a file to publish, or `expiresAt` in the past
   */
  'POST /public/publish'(input: {
    path: PublishedPath
    as?: OutboxName
    expiresAt?: Millis
    agent?: ConversationId
    mode?: 'check' | 'apply'
    expect?: ContentDigest
  }): PublishedEntry

  /**
   * Withdraw an entry: a file, a folder or a file inside one. One that is not there is fine.
   *
   * Its address answers 404 at once, and downloads of it end at their next read. Only files that were published are
   * removed: others in a published folder stay.
   *
   * - 409: what is at `path` was not published; `DELETE /workspace/entry` moves it to the trash
   */
  'POST /public/unpublish'(input: { path: PublishedPath }): Ok

  /**
   * Give the outbox a new address; every address handed out before answers 404 at once. The files stay.
   *
   * - 409: serving is switched off
   */
  'POST /public/rotate'(): { url?: string }

  /**
   * Read a published file, or the part that `range` names.
   *
   * The slot is the secret of the address. A folder answers with its `index.html`; without a slash at its end it
   * redirects. Every guard of the outbox is checked again on the opened file. Whatever is not served gets the same
   * answer.
   *
   * - 416: the range is outside the file
   * - 429: more than 600 requests a minute from one address, or over 200 MiB/s in all
   */
  'GET /p/{slot}/{path}'(input: { slot: string; path: string & tags.MaxLength<800> }): OutboxFile

  /** Publishes a folder or file of this machine that the asking group made, such as an approved page. */
  'outbox.publish'(input: { place: string; as: OutboxName; by: string; expiresAt?: Millis }): PublishedEntry
}

export const outboxContract: Contract<OutboxCalls> = {
  schema: () => typia.json.application<OutboxCalls>(),
  request: typia.misc.createValidatePrune<Requests<OutboxCalls>>(),
  reply: () => typia.createValidate<Replies<OutboxCalls>>(),
}
