import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { ContentDigest, Count, Millis, MostCharacters, Size } from '../../sdk/types.js'

/** The two speakers' words, or also tool calls, changes, pictures and thinking. */
export type ShareDetail = 'messages' | 'everything'
export type ShareId = string & tags.Pattern<'^[a-z0-9][a-z0-9-]{0,95}$'>
type ShareTitle = string & tags.MinLength<1> & MostCharacters<80>
type SharedOf = string & tags.MinLength<1> & tags.MaxLength<64>

/** How often something was replaced before the page left. */
export interface Redaction {
  /** A stored value, a known form of a key, a token of the privacy shield, or a folder of this machine. */
  kind: 'secret' | 'pattern' | 'shield' | 'path'
  count: Count
}
/** A conversation as a page that anybody with its address can read. */
export interface SharedConversation {
  id: ShareId
  conversationId: string
  title: string
  detail: ShareDetail
  /** When the snapshot was taken. */
  sharedAt: Millis
  messages: Count
  pictures: Count
  sizeBytes: Size
  redactions: Redaction[]
  sharedBy: string
  expiresAt?: Millis
  /** How often the page was opened. */
  opened: Count
  /** The conversation has newer messages than the snapshot. */
  stale: boolean
  /** Absent when nothing is served. */
  url?: string
}
/** A picture that is copied beside the page. */
export interface SharedPicture {
  path: string
  sizeBytes: Size
}
/** A file that is only named on the page. */
export interface DroppedFile {
  path: string
  reason: string
}
/** The page of a conversation before it is shared. */
export interface SharePreview {
  title: string
  detail: ShareDetail
  messages: Count
  pictures: SharedPicture[]
  redactions: Redaction[]
  dropped: DroppedFile[]
  /** At most 4 MiB of it. */
  html: string
  truncated: boolean
  /** Of the page and its pictures: what `expect` of a share takes. */
  digest: ContentDigest
}
/** The page of a share, or one of its pictures. */
export interface SharePageBytes {
  'content-type': 'text/html; charset=utf-8' | 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'image/avif'
}

/** Conversations as read-only pages. */
/** A share is not there any more. */
export interface ShareRemoved {
  ok: true
  /** False: there was none with this id. */
  removed: boolean
}

export interface ShareCalls {
  /** List the shares, newest snapshot first, without those of conversations outside the caller's areas. */
  'GET /share'(input: { conversationId?: string & tags.MaxLength<200> }): { shares: SharedConversation[] }

  /**
   * Make the page of a conversation exactly as sharing would, with what is replaced and left out.
   *
   * Nothing is stored or served. Pictures of the page are listed; their addresses in it answer only once it is shared.
   *
   * - 404: no such conversation
   * - 413: the page would be larger than 64 MiB with its pictures
   * - 422: it has no message yet
   * - 503: the store with the tokens of the privacy shield is locked
   */
  'POST /share/preview'(input: { conversationId: SharedOf; detail: ShareDetail; title?: ShareTitle }): SharePreview

  /**
   * Share a conversation as it is now: its page gets an address that nobody can guess.
   *
   * The page does not change when the conversation goes on. Sharing a conversation twice gives two addresses. With
   * `expect`, the `digest` of `POST /share/preview` with the same title and detail, exactly the page that it showed is
   * shared.
   *
   * - 404: no such conversation
   * - 409: serving is switched off, or the page is not the one of `expect`: `digest` and `messages` are those of now
   * - 413: the page would be larger than 64 MiB with its pictures, or the disk is full
   * - 422: it has no message yet, or `expiresAt` is in the past
   * - 503: the store with the tokens of the privacy shield is locked
   */
  'POST /share'(input: {
    conversationId: SharedOf
    title: ShareTitle
    detail: ShareDetail
    expiresAt?: Millis
    expect?: ContentDigest
  }): SharedConversation

  /**
   * Take the snapshot of a share again, under the same address, title and detail.
   *
   * Pictures that are not shown any more go. `expiresAt` sets another end, null takes it away. With `expect`, the
   * `digest` of `POST /share/preview` with the title and detail of the share, exactly that page is shared.
   *
   * - 404: no such share, or its conversation is gone
   * - 409: the page is not the one of `expect`: `digest` and `messages` are those of now; the share stays as it was
   * - 413: the page would be larger than 64 MiB with its pictures, or the disk is full
   * - 422: the conversation has no message, or `expiresAt` is in the past
   */
  'POST /share/update'(input: { id: ShareId; expiresAt?: Millis | null; expect?: ContentDigest }): SharedConversation

  /** Take a share down: its address answers 404 from then on. One that is not there is fine, and the answer says so. */
  'POST /share/remove'(input: { id: ShareId }): ShareRemoved

  /**
   * Read the page of a share (an empty path), or one of its pictures (`files/<name>`).
   *
   * The page runs no script. Whatever is not served gets the same answer.
   *
   * - 416: the range is outside the file
   * - 429: more than 300 requests a minute from one address
   */
  'GET /s/{id}/{path}'(input: { id: string; path: string & tags.MaxLength<800> }): SharePageBytes
}

export const shareContract: Contract<ShareCalls> = {
  schema: () => typia.json.application<ShareCalls>(),
  request: typia.misc.createValidatePrune<Requests<ShareCalls>>(),
  reply: () => typia.createValidate<Replies<ShareCalls>>(),
}
