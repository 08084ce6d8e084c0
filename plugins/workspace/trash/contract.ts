import type { tags } from 'typia'
import type { Count, Millis, Ok, Positive, Size, Text } from '../../../sdk/types.js'
import type { WsPath } from '../tree/contract.js'

/** Something that was deleted and can come back. */
export interface TrashItem {
  id: string
  path: string
  type: 'file' | 'dir'
  /** Of all files in it, in bytes. */
  size: Size
  files: Count
  deletedAt: Millis
  by: string
  expiresAt: Millis
}
/** A page of the trash. */
export interface TrashPage {
  items: TrashItem[]
  /** What the trash holds in all. */
  bytes: Size
  /** Of the next page. */
  before?: Millis
}
/** Something that is gone from its place. */
export interface DeletedEntry {
  ok: true
  /** With which it comes back. */
  trashId?: string
}
/** Something that is back. */
export interface RestoredEntry {
  ok: true
  path: string
}
/** What was copied. */
export interface CopiedEntry {
  ok: true
  files: Count
  bytes: Size
}

/** Deleting, moving and copying. */
export interface TrashCalls {
  /**
   * Move a file or folder into the trash, with all below it, or with `permanent` remove it for good.
   *
   * It is one rename, however much there is. A link goes itself, never what it leads to. Nothing there is fine too.
   * Terminals that were started in it are ended first. The trash keeps it for 30 days, and at most 5 GiB in all.
   *
   * - 404: closed
   * - 409: it belongs to git, or a turn or git is at work in it
   * - 413: larger than the trash may hold: ask with `permanent`
   */
  'DELETE /workspace/entry'(input: { path: WsPath; permanent?: boolean }): DeletedEntry

  /** List what was deleted and can come back, newest first. */
  'GET /workspace/trash'(input: { limit?: Positive & tags.Maximum<4294967295>; before?: Millis }): TrashPage

  /**
   * Put something deleted back where it was, or at `to`, with the folders above it.
   *
   * Asking again within a day gives the same path.
   *
   * - 404: no such id, or `to` is closed
   * - 409: something is at the target, or a file is in the way
   */
  'POST /workspace/restore'(input: { id: Text & tags.MaxLength<64>; to?: WsPath }): RestoredEntry

  /**
   * Move or rename a file or folder, with the missing folders above its new place.
   *
   * With `overwrite` a file at the new place goes to the trash first. A link goes itself.
   *
   * - 404: nothing is there, or either is closed
   * - 409: something is at the new place, either belongs to git, or a turn or git is at work in it
   * - 413: the disk is full
   */
  'POST /workspace/move'(input: { from: WsPath; to: WsPath; overwrite?: boolean }): Ok

  /**
   * Copy a file or folder with all below it; links stay links, and times and modes are kept.
   *
   * The copy has its name only when it is whole. A `.git` that is a file, and so leads to a repository's folder
   * elsewhere, is left out: two folders would share it.
   *
   * - 404: nothing is there, or either is closed
   * - 409: something is at the new place, or it belongs to git
   * - 413: over 1,000,000 files, or the disk is full
   * - 422: something in it cannot be copied
   */
  'POST /workspace/copy'(input: { from: WsPath; to: WsPath; overwrite?: boolean }): CopiedEntry
}
