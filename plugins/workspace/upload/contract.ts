import type { tags } from 'typia'
import type { Millis, Size } from '../../../sdk/types.js'
import type { FileHash } from '../files/contract.js'
import type { WsPath } from '../tree/contract.js'

/** A part of a file as the daemon received it. */
export interface ReceivedPart {
  path: string
  name: string
  type: string
  bytes: number
}
/** The progress of an upload. */
export interface UploadProgress {
  ok: true
  path: string
  /** The bytes that are here. */
  received: Size
  /** The file is complete and at its path. */
  done: boolean
  hash?: string
}
/** A file that is to be uploaded. */
export interface LocalFile {
  path: string
  size: Size
  mtime: Millis
}
/** The files that need not be sent. */
export interface UploadDiff {
  skip: string[]
}

/** Uploading files. */
export interface UploadCalls {
  /**
   * Upload a file whole or in parts: bytes with the other fields in the query, or JSON with `content` as base64.
   *
   * With `size`, parts are collected, also across a restart, and the last one moves the file to its path
   * atomically; a part may be sent again, and an empty part returns where to continue. What stays incomplete for
   * 24 h is dropped. Without `size` the request is one write at `offset`, and at 0 it replaces the file. A JSON part
   * has at most 16 MiB, others 256 MiB. Collaborators upload attachments of conversations, below
   * `.sandbox/records/artifacts/attachments/`, maintainers everywhere.
   *
   * - 400: a part beyond the size, or `offset` beyond the file
   * - 403: not an attachment, and the caller is not a maintainer
   * - 404: closed
   * - 409: the file changed, a part before it is missing (`received` says from where), the path is a folder, or git's
   * - 413: the part is too large, or the disk is full
   */
  'POST /workspace/upload'(input: {
    path: WsPath
    offset?: Size
    size?: Size & tags.Maximum<10737418240>
    mtime?: Millis & tags.Maximum<8640000000000000>
    baseHash?: FileHash | 'absent'
    content?: string & tags.MaxLength<22369624>
    bytes?: ReceivedPart
  }): UploadProgress

  /**
   * List which of at most 20,000 files exist with the same size and the same second of change.
   *
   * - 413: more than 20,000 files
   */
  'POST /workspace/upload-diff'(input: { files: LocalFile[] }): UploadDiff
}
