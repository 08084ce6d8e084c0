import type { tags } from 'typia'
import type { Count } from '../../../sdk/types.js'
import type { ConversationId } from '../../agent/contract.js'
import type { ExtensionId, PowersDigest } from '../listing/contract.js'
import type { DevRun } from '../records/kept-extension.js'

/** A folder that an installed extension could run from. */
export interface DevCheckout {
  id: string
  /** The folder, from the workspace. */
  path: string
  /** The conversation whose private copy it is in; absent: the workspace. */
  conversation?: string
  branch: string
  /** The hash of its files. */
  revision: string
  /** Files of it that are not committed. */
  uncommitted: Count
  version: string
  /** The bundles that its manifest names are there. */
  built: boolean
  /** A source is newer than the bundles. */
  stale: boolean
  /** The extension runs from there. */
  running: boolean
  source: 'installed'
}

/** Installed extensions that run from a folder while somebody works on them. */
export interface DevCalls {
  /**
   * List the folders that hold the manifest of an installed extension: in the workspace's repositories and in private
   * copies, up to 100.
   */
  'GET /extensions/dev'(): { checkouts: DevCheckout[] }

  /**
   * Run an installed extension from a folder in place of its commit, which stays the pinned one.
   *
   * The folder is in the workspace, or with `conversation` in that conversation's private copy. It is copied without
   * `.git` and `node_modules`, and the copy runs: what is built later runs from the next reload on. Updates wait until
   * the extension is back at its commit, where it also goes when the conversation is discarded.
   *
   * - 400: a bad path
   * - 404: no such extension, conversation or folder
   * - 409: it is not installed from a repository, the conversation has no private copy, or the folder adds powers and
   *   `digest` is missing or not that of its powers: `added` holds the sentences of the added ones, `digest` the digest
   *   to approve all of them with
   * - 413: more than 200 MiB or 20,000 files, or the disk is full
   * - 422: it is another extension, its manifest cannot be used, its bundles are not built, or a link leaves it
   */
  'POST /extensions/{id}/dev'(input: {
    id: ExtensionId
    path: string & tags.MinLength<1> & tags.MaxLength<400>
    conversation?: ConversationId
    digest?: PowersDigest
  }): { ok: true; dev: DevRun }

  /**
   * Go back to the pinned commit and delete the copy; the folder is not touched. Running it already is a success.
   *
   * - 404: no such extension
   * - 409: it is not installed from a repository
   */
  'DELETE /extensions/{id}/dev'(input: { id: ExtensionId }): { ok: true; ref: string }

  /**
   * Run the folder as it is built now: a new copy and a new start, once the copy was checked.
   *
   * Where nothing changed, nothing is started again.
   *
   * - 404: no such extension, or the folder is gone
   * - 409: it does not run from a folder, the private copy is not there, or the folder adds powers and `digest` is
   *   missing or not that of its powers: `added` and `digest` as for the first run
   * - 413: more than 200 MiB or 20,000 files, or the disk is full
   * - 422: it is another extension, its manifest cannot be used, its bundles are not built, or a link leaves it
   */
  'POST /extensions/{id}/dev/reload'(input: { id: ExtensionId; digest?: PowersDigest }): { ok: true; dev: DevRun }
}
