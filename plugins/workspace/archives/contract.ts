import type { tags } from 'typia'
import type { Count, Size } from '../../../sdk/types.js'
import type { WsPath } from '../tree/contract.js'
import type { ReceivedPart } from '../upload/contract.js'

/** An entry of an archive that was left out. */
export interface SkippedEntry {
  path: string
  reason: string
}
/** The result of unpacking. */
export interface UnpackedArchive {
  ok: true
  /** A folder, or a file if the archive is a single packed file. */
  to: string
  files: Count
  bytes: Size
  /** The first 200. */
  skipped: SkippedEntry[] & tags.MaxItems<200>
}
/** The result of merging into the workspace. */
export interface MergedArchive {
  ok: true
  files: Count
  /** The first 200. */
  skipped: SkippedEntry[] & tags.MaxItems<200>
}

/** Archives. */
export interface ArchiveCalls {
  /**
   * Unpack an archive of the workspace, in one step: zip, tar, gz, zst, bz2, xz, 7z or rar, by its content.
   *
   * `to` is the archive's name beside it by default, numbered if that is taken; `removeArchive` deletes the
   * archive afterwards. An entry with a path outside refuses the whole archive. Devices,
   * closed names, and links that lead outside are left out; set-uid bits are dropped. bz2 and xz need the programs
   * of that name, 7z and rar need bsdtar.
   *
   * - 400: not a workspace path
   * - 404: no such archive, or closed
   * - 409: `to` exists and is not empty
   * - 413: more than 10 GiB or 500,000 entries, or over 1 GiB and 200 times its own size, or the disk is full
   * - 422: not an archive, damaged, encrypted, or an entry leads outside
   * - 501: the program for the format is missing
   */
  'POST /workspace/unpack'(input: { path: WsPath; to?: WsPath; removeArchive?: boolean }): UnpackedArchive

  /**
   * Upload a folder as one tar, plain or gzip, sent as bytes, and merge it into `to` (default: the root).
   *
   * Files replace those of the same name and keep their times. An interrupted or damaged upload changes nothing.
   * Devices, closed names, and links that lead outside are left out; a `.git` is unpacked if its folder is
   * new.
   *
   * - 400: no bytes, an entry leads outside, not a tar, or it is cut off
   * - 404: `to` is closed
   * - 409: `to` is a file
   * - 413: more than 10 GiB or 500,000 entries, or the disk is full
   */
  'POST /workspace/upload-archive'(input: { to?: WsPath; bytes?: ReceivedPart }): MergedArchive
}
