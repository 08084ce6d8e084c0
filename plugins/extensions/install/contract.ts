import type { tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type { Count, Ok, Size } from '../../../sdk/types.js'
import type { CapabilityStatus, KindEntry, KindStep } from '../../capabilities/contract.js'
import type { ExtensionId, PowersDigest } from '../listing/contract.js'
import type { ExtensionManifest } from '../manifest/manifest.js'
import type { PowersDiff } from '../records/kept-extension.js'
import type { BackendStatus } from '../runtime.js'

/** A commit, in full. */
export type CommitSha = string & tags.MinLength<40> & tags.MaxLength<40> & tags.Pattern<'^[0-9a-f]*$'>

/** Where an extension is installed from. */
export interface InstallSource {
  /** A repository: https, ssh, http on this machine, or the path of one in the workspace. */
  url: string & tags.MinLength<1> & tags.MaxLength<2000>
  ref: CommitSha
  /** Its folder in the repository. */
  path?: string & tags.MinLength<1> & tags.MaxLength<400>
  /** The stored secret that is sent as access token; https only. */
  secret?: string & tags.MaxLength<128> & tags.Pattern<'^[A-Za-z_][A-Za-z0-9_]*$'>
  /**
   * The index that lists it, which is checked for updates: https, http on this machine, a file of the workspace, or a
   * repository with a `registry.json`, whose address ends with `.git` or is a folder of the workspace.
   */
  registry?: string & tags.MinLength<1> & tags.MaxLength<2000>
}
/** How much code it is. */
export interface ExtensionSize {
  files: Count
  bytes: Size
}
/** The powers that installing a commit would approve. */
export interface InstallPreview {
  id: string
  manifest: ExtensionManifest
  ref: string
  trust: 'verified' | 'listed' | 'blocked' | 'unlisted'
  trustReason?: string
  compatible: boolean
  powers: string[]
  digest: string
  problems: string[]
  size: ExtensionSize
  /** The extension that has the id already. */
  conflicts?: string
}
/** The current step. */
export interface InstallLog {
  kind: 'log'
  message: string
}
/** It is installed. */
export interface InstallResult {
  kind: 'result'
  id: string
  commit: string
  rebuildNeeded: boolean
  backend?: BackendStatus
}
/** How much an update changes. */
export interface ChangedAmount {
  files: Count
  insertions: Count
  deletions: Count
}
/** The changes of an update. */
export interface UpdatePreview {
  ref: string
  version: string
  installedVersion: string
  engines: string
  compatible: boolean
  powers: PowersDiff
  digest: string
  problems: string[]
  changed: ChangedAmount
}

/** How group capabilities installs, asks, removes and renames the connections of kind `extension`. */
export interface ConnectedExtensionCalls {
  /** Checks the fields before anything is fetched. */
  'extensions.kindCheck'(input: KindEntry): Ok
  /** Installs or updates; 409: the digest is not that of its powers, which the message lists with it. */
  'extensions.kindApply'(input: KindEntry): Stream<KindStep>
  /** Says whether the extension runs, and why not. */
  'extensions.kindStatus'(input: { id: string }): CapabilityStatus
  /** 409: an update of it is being applied. */
  'extensions.kindRelease'(input: { id: string }): Ok
  /** Removes the extension that the connection installed. */
  'extensions.kindForget'(input: { id: string }): Ok
  /** Carries the extension to another id of the connection. */
  'extensions.kindRename'(input: { id: string; to: string }): Ok
}

/** Extensions from repositories, at full commits. */
export interface InstallCalls {
  /**
   * Fetch a commit and list the powers that installing it would approve; nothing of it runs.
   *
   * - 400: an address of a scheme that is not allowed, or a bad path
   * - 413: more than 200 MiB or 20,000 files, or the disk is full
   * - 422: the path is no repository of the workspace, or there is no manifest, one that cannot be used, or a link that
   *   leaves the folder
   * - 424: the source refused, or a registry cannot be read; the message says why
   */
  'POST /extensions/install/preview'(input: InstallSource): InstallPreview

  /**
   * Install exactly that commit with exactly the approved powers, and start it.
   *
   * Closing the stream does not stop it. A failure before the record is written leaves no files.
   *
   * - 400: an address of a scheme that is not allowed, or a bad path
   * - 409: another digest than that of its powers, the id is taken, or its registry blocks it
   * - 413: more than 200 MiB or 20,000 files, or the disk is full
   * - 422: the path is no repository of the workspace, or there is no manifest, one that cannot be used, or a link that
   *   leaves the folder
   * - 424: the source refused, or a registry cannot be read; the message says why
   */
  'POST /extensions/install'(input: InstallSource & { digest: PowersDigest }): Stream<InstallLog | InstallResult>

  /**
   * Check the registries of all installed extensions for updates and advisories, and apply the policies.
   *
   * A second call while one runs joins it. It also runs 60 s after the start and every 24 hours.
   *
   * - 424: every registry was unreachable; all records are kept
   */
  'POST /extensions/updates/check'(): { ok: true; checkedAt: string }

  /**
   * Fetch a newer commit beside the running one, and list the changes; without `ref` that of the offered update.
   *
   * - 404: no such extension
   * - 409: it is not installed from a repository, or no update is recorded and no `ref` given
   * - 413: more than 200 MiB or 20,000 files, or the disk is full
   * - 422: the commit is not this extension, or its manifest cannot be used
   * - 424: the source refused; the message says why
   */
  'POST /extensions/{id}/update/preview'(input: { id: ExtensionId; ref?: CommitSha }): UpdatePreview

  /**
   * Apply an update: fetch, verify, swap in one step, start, and watch for a minute.
   *
   * The switch, settings and data are kept; the outgoing commit can be reverted to.
   *
   * - 404: no such extension
   * - 409: another update runs, it runs from a folder of the workspace, no update is recorded, or it adds a power and
   *   `digest` is missing or not that of its powers: `added` holds the sentences of the added ones, `digest` the digest
   *   to approve all of them with
   * - 413: more than 200 MiB or 20,000 files, or the disk is full
   * - 422: the commit is not this extension, its manifest cannot be used, or it is for another host
   * - 424: the source refused; the old version keeps running
   */
  'POST /extensions/{id}/update'(input: { id: ExtensionId; ref?: CommitSha; digest?: PowersDigest }): {
    ok: true
    ref: string
    rebuildNeeded?: boolean
  }

  /**
   * Exchange the current and the previous commit, and restart; repeating the call reverts this.
   *
   * With `ref`, the commit of `previous`, only to that one.
   *
   * - 404: no such extension
   * - 409: no previous version, the previous commit is not `ref` (`ref` is that of now), it runs from a folder of the
   *   workspace, or an update runs
   */
  'POST /extensions/{id}/revert'(input: { id: ExtensionId; ref?: CommitSha }): {
    ok: true
    ref: string
    rebuildNeeded?: boolean
  }

  /**
   * Choose which updates of an extension are automatic: by default none, but an advisory switches it off.
   *
   * `auto` applies updates that a registry verified, that run on this host and that add no power. `agent` lets an agent
   * review each offered update at the next check, in a conversation of its own, without tools and with nobody to ask:
   * `review` of the update names it, or `needsReview` says why there is none. A person decides.
   *
   * - 400: neither field
   * - 404: no such extension
   * - 409: it is not installed from a repository
   */
  'POST /extensions/{id}/update-policy'(input: {
    id: ExtensionId
    updates?: 'notify' | 'agent' | 'auto'
    advisories?: 'auto-disable' | 'notify'
  }): Ok
}
