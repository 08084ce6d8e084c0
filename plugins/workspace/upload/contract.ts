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
/** How far an upload is. */
export interface UploadProgress {
  ok: true
  path: string
  /** The bytes that are here. */
  received: Size
  /** The file is in its place. */
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
   * With `size`, parts are collected, also over a restart, and the one that completes it puts the file into its place
   * in one step; a part may be sent again, and a part of no bytes answers where to continue. What stays incomplete for
   * 24 h is dropped. Without `size` the request is one write at `offset`, and at 0 it replaces the file. A JSON part
   * has at most 16 MiB, others 256 MiB. Collaborators upload attachments of conversations, below
   * `.sandbox/records/artifacts/attachments/`, maintainers everywhere.
   *
   * - 400: a part beyond the size, or `offset` beyond the file
   * - 403: no attachment, and the caller is no maintainer
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
   * Say which of at most 20,000 files are here already with the same size and the same second of change.
   *
   * - 413: more than 20,000 files
   */
  'POST /workspace/upload-diff'(input: { files: LocalFile[] }): UploadDiff
}
