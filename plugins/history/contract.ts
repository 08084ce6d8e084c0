import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { ChangedSides, Count, Millis, Positive, SidePair, Size, Text } from '../../sdk/types.js'

/** Why a point was saved. */
export type PointTrigger = 'turn' | 'interval' | 'pre-restore' | 'restore' | 'user'

/** A saved point that a person can restore. */
export interface Snapshot {
  id: string
  at: Millis
  trigger: PointTrigger
  label?: string
  by?: string
  conversationId?: string
  /** The repositories that changed since the point before. */
  scopes: string[]
  /** How many files changed since the point before. */
  files: Count
  /** Files larger than 50 MiB, which it does not contain. */
  skipped?: Count
  /** Repositories that could not be saved. */
  partial?: string[]
}
/** One file that differs between two points. */
export interface SnapshotChange {
  scope: string
  path: string
  status: 'added' | 'modified' | 'deleted' | 'type-changed'
}
/** Both sides of one file; a missing side means added or deleted. */
export interface PointFileDiff {
  before?: string
  after?: string
  binary?: boolean
  /** A side is larger than 512 KiB; the texts are then left out. */
  truncated?: boolean
}
/** Something a restore could not bring back. */
export interface RestoreFailure {
  scope: string
  path?: string
  message: string
}
/** The state of the files of each repository: what `expect` of a restore takes. */
export interface FilesSeen {
  [scope: string]: string & tags.MinLength<1> & tags.MaxLength<64>
}
/** The result of a restore. */
export interface Restored {
  ok: true
  /** The point saved before: restoring it undoes this restore. */
  point: string
  restored: Count
  removed: Count
  failed: RestoreFailure[]
}

/** Saved points of the whole workspace, independent of the user's git. */
export interface HistoryCalls {
  /**
   * List saved points, newest first; `before` pages by `at`.
   *
   * `path` selects the points in which that file or folder changed. Points saved every 60 s are listed with
   * `intervals` only. People limited to areas get the points that touch their folders.
   *
   * Points are kept for 90 days, and the newest 200 longer; those saved every 60 s for a day, then one an hour for a
   * week. While they take more than 10 GiB of the disk, the oldest go earlier, down to the newest ten.
   *
   * - 404: `path` is closed
   */
  'GET /history/snapshots'(input: {
    limit?: Positive & tags.Default<100>
    before?: Millis
    path?: string & tags.MinLength<1> & tags.MaxLength<4096>
    intervals?: boolean
  }): { snapshots: Snapshot[]; before?: Millis }

  /**
   * Save a point now; if nothing changed since the last one, return that one with `saved: false`.
   *
   * It contains every file that git does not ignore, in every repository of the workspace; no dependencies, no secrets
   * (`.env`, private keys) and no file over 50 MiB.
   *
   * - 409: a restore is running
   * - 413: the disk is full
   * - 501: git is missing; the message says how to install it
   */
  'POST /history/snapshots'(input: { label?: string & tags.MinLength<1> & tags.MaxLength<160> }): {
    id?: string
    saved: boolean
    at: Millis
    partial?: string[]
  }

  /**
   * List the changes of a point since the previous listed one, or from it to another one.
   *
   * `against` is the id of another point, or `now`: what a restore would undo, read from disk; then `now` is the state
   * that it showed.
   *
   * - 404: no such point
   * - 501: git is missing; the message says how to install it
   */
  'GET /history/diff'(input: { id: Text; against?: Text; limit?: Positive & tags.Default<2000>; after?: Text }): {
    changes: SnapshotChange[]
    hasMore?: boolean
    after?: string
    now?: FilesSeen
  }

  /**
   * Get both sides of one file for the same two points as GET /history/diff, each at most 512 KiB.
   *
   * - 404: no such point or repository, or the path is on neither side
   * - 501: git is missing; the message says how to install it
   */
  'GET /history/file-diff'(input: {
    id: Text
    scope: Text
    path: string & tags.MinLength<1> & tags.MaxLength<4096>
    against?: Text
  }): PointFileDiff

  /**
   * Bring the workspace, one repository or the named files back to a point.
   *
   * A point is saved before; restoring that one undoes this. Files made since are removed, ignored files stay, and so
   * do branches, HEAD and index: the difference shows as uncommitted. A folder in `paths` counts with all below it.
   * With `expect`, the `now` of `GET /history/diff`, only what that diff showed is replaced or removed.
   *
   * - 400: `paths` without `scope`
   * - 404: no such point, no such repository in it, or a path that is neither in it nor on disk
   * - 409: a turn runs in the shared tree, without `force`; a repository is in the middle of an operation or busy for
   *   60 s; another restore runs; something that no point holds, such as an ignored file, is where a file of the point
   *   goes; or files are not those of `expect`: `now` is the state of now, `moved` names the paths that changed since
   * - 413: the disk is full; nothing was changed
   * - 501: git is missing; the message says how to install it
   */
  'POST /history/restore'(input: {
    id: Text
    scope?: Text
    paths?: (string & tags.MinLength<1> & tags.MaxLength<4096>)[] & tags.MinItems<1> & tags.MaxItems<500>
    force?: boolean
    expect?: FilesSeen
  }): Restored

  /** Saves a point of the workspace for another group; without an id nothing could be saved. */
  'history.snapshot'(input: { trigger: PointTrigger; label?: string; by?: string; conversationId?: string }): {
    id?: string
    /** Repositories that could not be saved: the point has an earlier state of them, or none. */
    partial?: string[]
  }

  /**
   * Brings the workspace back to a point as `POST /history/restore` does, but for `.sandbox/config/`: no turn writes
   * there, so that a conversation that goes back takes back no setting.
   */
  'history.rewind'(input: { id: string; force?: boolean }): Restored

  /** Whether the workspace went back to a point by `history.rewind`; a kill may have interrupted that. */
  'history.rewound'(input: { id: string }): { back: boolean }

  /** Writes both sides of a file, as `GET /history/file-diff` compares them, into a folder, each up to `most` bytes. */
  'history.sides'(input: {
    id: string
    scope: string
    path: string
    against?: string
    folder: string
    most: Size
  }): SidePair

  /** Gives the files of one repository that differ, as `GET /history/diff` compares them; at most 20,000. */
  'history.changed'(input: { id: string; scope: string; against?: string }): { changes: ChangedSides[] }
}

export const historyContract: Contract<HistoryCalls> = {
  schema: () => typia.json.application<HistoryCalls>(),
  request: typia.misc.createValidatePrune<Requests<HistoryCalls>>(),
  reply: () => typia.createValidate<Replies<HistoryCalls>>(),
}
