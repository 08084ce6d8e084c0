import type { tags } from 'typia'
import type { Millis, Ok, Positive, Size } from '../../../sdk/types.js'
import type { CopyOf, WsPath } from '../tree/contract.js'

/** The SHA-256 of a file's bytes. */
export type FileHash = string & tags.Pattern<'^[0-9a-f]{64}$'>

/** A part of a file as text, or only the path if there is no such file. */
export interface FileWindow {
  path: string
  content?: string
  /** Of the whole file, in bytes. */
  size?: Size
  /** The offset of the text, in bytes. */
  offset?: Size
  /** The number of bytes of the file that the text covers. */
  bytes?: Size
  /** It was read in the shared tree: no copy was requested, or the copy lacks it. */
  shared?: boolean
  /** Bytes that are not UTF-8 show as U+FFFD. */
  lossy?: true
}
/** A file as it was written. */
export interface WrittenFile {
  ok: true
  path: string
  size: Size
  hash: string
  /** The file did not exist before. */
  created: boolean
  mtime: Millis
}
/** The bytes of a file. */
export interface FileBytes {
  'content-type': string
}

/** Reading and writing single files. */
export interface FileCalls {
  /**
   * Read a part of a file as text, at most 4 MiB.
   *
   * A character belongs to the part that holds its first byte: `offset` and `bytes` name the bytes that were read, so
   * consecutive parts lose and repeat nothing. A negative `offset` counts from the end. Of a file that does
   * not exist the answer is its path alone.
   *
   * - 404: closed, outside the caller's areas, or no such conversation
   * - 409: the private copy was cleaned up
   * - 422: a folder, pipe or device
   */
  'GET /workspace/file'(input: {
    agent?: CopyOf
    path: WsPath
    offset?: number & tags.Type<'int64'>
    limit?: Positive
  }): FileWindow

  /**
   * Write a whole file of the shared tree in one step, at most 16 MiB.
   *
   * With `baseHash` it is written only if the file still has that SHA-256, or with `absent` if it does not exist:
   * of two concurrent saves, one gets 409 with the current `hash`. Its mode is kept; the same content changes nothing,
   * not even its time.
   *
   * - 404: closed, or a folder is missing and `createParents` is false
   * - 409: the file changed, it is a folder, a file is in the way, or it belongs to git
   * - 413: more than 16 MiB, or the disk is full
   */
  'PUT /workspace/file'(input: {
    path: WsPath
    content: string
    encoding?: 'utf8' | 'base64'
    baseHash?: FileHash | 'absent'
    createParents?: boolean
  }): WrittenFile

  /**
   * Read the bytes of a file, or the requested `range`.
   *
   * The type is that of its extension; active content is sandboxed. Without a range at most 25 MiB.
   *
   * - 404: no such file, or outside the caller's areas
   * - 409: the private copy was cleaned up
   * - 413: over 25 MiB without a range
   * - 416: the range is outside the file
   * - 422: a folder, pipe or device
   */
  'GET /workspace/raw'(input: { agent?: CopyOf; path: WsPath }): FileBytes

  /**
   * Create a folder and its missing parents; an existing one succeeds.
   *
   * - 404: closed
   * - 409: a file is in the way, or it belongs to git
   * - 413: the disk is full
   */
  'POST /workspace/dir'(input: { path: WsPath }): Ok
}
