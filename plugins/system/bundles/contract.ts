import type { tags } from 'typia'
import type { ContentDigest, Millis, Ok, Size, Text } from '../../../sdk/types.js'

/** A backup of the sandbox, or one in the making. */
export interface Bundle {
  name: string
  state: 'packing' | 'ready' | 'failed'
  createdAt: Millis
  /** While it is packed, what there is to pack. */
  sizeBytes: Size
  /** Whether it holds the values of secrets. */
  secrets: boolean
  /** The bytes packed so far. */
  doneBytes?: Size
  /** Why it failed. */
  detail?: string
  createdBy: string
}
/** The sandbox a backup was made in. */
export interface BundleOrigin {
  name?: string
  sandboxId: string
  version: string
  createdAt: Millis
}
/** Something that a restore writes. */
export interface RestoredPath {
  /** At the top of the workspace, or `state/<group>` for what a group keeps. */
  path: string
  files: Size
}
/** Something that a restore leaves out. */
export interface SkippedPath {
  path: string
  reason: string
}
/** What a restore does, or would do. */
export interface RestoreReport {
  from: BundleOrigin
  written: RestoredPath[]
  skipped: SkippedPath[]
  /** What a person must still do. */
  todo: string[]
  /** The sandbox restarts now. */
  restarting: boolean
  /** Of the bytes of the bundle: what `expect` takes. */
  digest: ContentDigest
}
/** One file that a group contributes to a backup. */
export interface BundlePartFile {
  name: string
  /** Where it lies. */
  path: string
  /** When its content last changed; a backup `since` a later time leaves it out. */
  at?: Millis
}
/** What a group contributes to a backup: files in its export folder, which the backup removes. */
export interface BundlePart {
  group: string
  /** The version of the format of the files: a group reads its own and older versions. */
  version: Size
  files: BundlePartFile[]
}

/** A backup as it is downloaded. */
export interface BundleBytes {
  'content-type': 'application/gzip' | 'application/octet-stream'
}

/** Backups of the sandbox, and restoring one. */
export interface BundleCalls {
  /** List the backups on disk and the one being packed, newest first. */
  'GET /bundles'(): { exports: Bundle[] }

  /**
   * Begin to pack a backup: files, every repository's history, conversations and hand-edited configuration.
   *
   * Generated files are left out. Answers at once and continues when the client disconnects; turns need not stop. With
   * `passphrase` the archive is encrypted, which `secrets` needs; else it is a plain gzip tar. `repos` packs these
   * repositories only, `since` only conversations that changed after it. The three newest are kept, none longer than 7
   * days.
   *
   * - 400: secrets without a passphrase, or a repository that is unknown
   * - 409: a bundle is being packed, or the sandbox is being restored
   * - 413: not enough free disk; the message gives both sizes
   * - 424: a group could not export its data
   */
  'POST /bundles'(input: {
    secrets?: boolean
    passphrase?: string & tags.MinLength<12> & tags.MaxLength<256>
    repos?: (string & tags.MinLength<1> & tags.MaxLength<400>)[] & tags.MaxItems<200>
    since?: Millis
  }): { name: string }

  /**
   * Delete a backup and its tickets; one being packed is stopped first.
   *
   * - 404: no such bundle
   */
  'DELETE /bundles/{name}'(input: { name: Text }): Ok

  /**
   * Download a finished backup with a ticket of `POST /system/ws-ticket`.
   *
   * `range` asks for a part of it, so that an interrupted download can resume: 206, or 416 with the size.
   *
   * - 404: no such bundle, or its file is gone
   * - 409: the bundle is not ready
   * - 416: the range is outside the file
   */
  'GET /bundles/download'(input: { name: Text; ticket?: string }): BundleBytes

  /**
   * Restore a backup from a file in the workspace.
   *
   * `check` reads it whole and writes nothing. `apply` unpacks and verifies everything and restarts the sandbox with
   * it; the previous state is kept for 7 days. The owner, members, sessions and tokens stay those of this sandbox.
   * Hooks and other things that would run automatically are not restored. With `expect`, the `digest` of a check,
   * exactly that bundle is restored.
   *
   * - 404: no such file
   * - 409: a turn runs, a bundle is being packed or restored, a folder is in the way, or the bundle is not the one of
   *   `expect`: `digest` is that of now; nothing was written
   * - 413: not enough free disk, or the unpacked bundle is too large
   * - 422: not a bundle, a newer version, damaged, or the passphrase does not open it; nothing was written
   */
  'POST /bundles/restore'(input: {
    path: string & tags.MinLength<1> & tags.MaxLength<400>
    passphrase?: string & tags.MaxLength<256>
    mode: 'check' | 'apply'
    expect?: ContentDigest
  }): RestoreReport
}
