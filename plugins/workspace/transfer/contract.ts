import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'
import type { CopyOf, WsPath } from '../tree/contract.js'

/** A credential for one address, for clients that cannot send headers. */
export interface TransferTicket {
  ticket: string
  expiresAt: Millis
}
/** A ticket for a ZIP, and the name that browsers save it under. */
export interface DownloadTicket extends TransferTicket {
  filename: string
}
/** The bytes of a file, for a player. */
export interface MediaBytes {
  'content-type': string
}
/** A ZIP of files and folders. */
export interface ZipBytes {
  'content-type': 'application/zip'
}

/** A ticket as it is shown. */
export type ShownTicket = string & tags.MinLength<1> & tags.MaxLength<64>

/** Files and folders as downloads. */
export interface TransferCalls {
  /**
   * Mint a ticket with which a player reads one file, any number of times for 8 hours.
   *
   * It is valid only for this file of this tree. Role and areas are checked again at each use.
   *
   * - 404: no such file, or no such conversation
   * - 409: the private copy was cleaned up
   * - 422: a folder, pipe or device
   */
  'POST /workspace/media-ticket'(input: { agent?: CopyOf; path: WsPath }): TransferTicket

  /**
   * Read the file of a ticket of POST /workspace/media-ticket, or the requested `range`.
   *
   * `download` lets browsers save it; active content is sandboxed and always saved. `path` and `agent` may
   * be repeated and must be those of the ticket.
   *
   * - 401: the ticket is unknown, expired, or for another file
   * - 404: the file was deleted or replaced
   * - 416: the range is outside the file
   * - 422: its permissions do not allow reading it any more
   */
  'GET /workspace/media'(input: { ticket: ShownTicket; path?: WsPath; agent?: CopyOf; download?: boolean }): MediaBytes

  /**
   * Mint a ticket for one ZIP of files and folders, good for 10 minutes.
   *
   * Ignored folders and `.git` are left out unless `includeIgnored` asks for them; a path below another one is part of
   * that.
   *
   * - 404: a path is missing, closed or outside the caller's areas; the message names the first
   * - 409: the private copy was cleaned up
   * - 413: more than 200,000 files
   * - 422: a path cannot be read
   */
  'POST /workspace/download-ticket'(input: {
    agent?: CopyOf
    paths: WsPath[] & tags.MinItems<1> & tags.MaxItems<200>
    includeIgnored?: boolean
  }): DownloadTicket

  /**
   * Download the ZIP of a ticket of POST /workspace/download-ticket.
   *
   * It is created while it is sent. Files that are deleted or unreadable by then are listed in its last entry,
   * `_skipped.txt`; any other failure cuts the connection.
   *
   * - 401: the ticket is unknown or expired
   * - 429: two downloads are running
   */
  'GET /workspace/download'(input: { ticket: ShownTicket }): ZipBytes
}
