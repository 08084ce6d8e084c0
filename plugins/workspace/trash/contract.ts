import type { tags } from 'typia'
import type { Count, Millis, Positive, Size, Text } from '../../../sdk/types.js'
import type { WsPath } from '../tree/contract.js'

/** A deleted item that can be restored. */
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
  /** The total size of the trash. */
  bytes: Size
  /** Of the next page. */
  before?: Millis
}
/** Names what is at a path, with all below it, as it was seen; `absent` is nothing. */
export type EntryStamp = string & tags.Pattern<'^(?:[A-Za-z0-9_-]{22}|absent)$'>
/** Whether a call only looks. */
export type EntryMode = 'check' | 'apply'
/** The result of a deletion, or what would be deleted. */
export interface DeletedEntry {
  ok: true
  /** The id for restoring it. */
  trashId?: string
  /** With `check`: for `expect`. */
  stamp?: string
  /** With `check`: the files at the path and below it. */
  files?: Count
  /** With `check`: their size. */
  bytes?: Size
}
/** The result of a move, or what it would replace. */
export interface MovedEntry {
  ok: true
  /** With `check`: of what is at the new path, for `expect`. */
  stamp?: string
}
/** Something that is back. */
export interface RestoredEntry {
  ok: true
  path: string
}
/** The result of a copy. */
export interface CopiedEntry {
  ok: true
  files: Count
  bytes: Size
  /** With `check`: of what is at the new path, for `expect`. */
  stamp?: string
}

/** Deleting, moving and copying. */
export interface TrashCalls {
  /**
   * Move a file or folder into the trash, with all below it, or with `permanent` delete it permanently.
   *
   * It is one rename at any size. A link is deleted itself, never its target. A missing path succeeds too.
   * Terminals that were started in it are ended first. The trash keeps it for 30 days, and at most 5 GiB in all.
   * With `mode` `check` it answers what is there and deletes nothing; with that `stamp` as `expect` exactly that is
   * deleted. Of a repository's git folder its branches and tags count.
   *
   * - 404: closed
   * - 409: it belongs to git, a turn or git is at work in it, or it is not what `expect` names
   * - 413: larger than the trash may hold: ask with `permanent`
   */
  'DELETE /workspace/entry'(input: {
    path: WsPath
    permanent?: boolean
    mode?: EntryMode
    expect?: EntryStamp
  }): DeletedEntry

  /** List the deleted items that can be restored, newest first. */
  'GET /workspace/trash'(input: { limit?: Positive & tags.Maximum<4294967295>; before?: Millis }): TrashPage

  /**
   * Restore a deleted item to its old path, or to `to`, with missing parent folders.
   *
   * Repeating it within a day returns the same path.
   *
   * - 404: no such id, or `to` is closed
   * - 409: the target exists, or a parent is a file
   */
  'POST /workspace/restore'(input: { id: Text & tags.MaxLength<64>; to?: WsPath }): RestoredEntry

  /**
   * Move or rename a file or folder, and create missing parents of its new path.
   *
   * With `overwrite` a file at the new path is moved to the trash first. A link is moved itself. With `mode` `check` it
   * moves nothing and answers what is at the new path; with that `stamp` as `expect` exactly that is replaced.
   *
   * - 404: no such path, or either is closed
   * - 409: the new path exists or is not what `expect` names, either belongs to git, or a turn or git is running in it
   * - 413: the disk is full
   */
  'POST /workspace/move'(input: {
    from: WsPath
    to: WsPath
    overwrite?: boolean
    mode?: EntryMode
    expect?: EntryStamp
  }): MovedEntry

  /**
   * Copy a file or folder with all below it; links stay links, and times and modes are kept.
   *
   * The copy has its name only when it is whole. A `.git` that is a file, and so leads to a repository's folder
   * elsewhere, is left out: two folders would share it. With `mode` `check` it copies nothing and answers what is at
   * the new path; with that `stamp` as `expect` exactly that is replaced.
   *
   * - 404: no such path, or either is closed
   * - 409: the new path exists, or is not what `expect` names, or it belongs to git
   * - 413: over 1,000,000 files, or the disk is full
   * - 422: something in it cannot be copied
   */
  'POST /workspace/copy'(input: {
    from: WsPath
    to: WsPath
    overwrite?: boolean
    mode?: EntryMode
    expect?: EntryStamp
  }): CopiedEntry
}
