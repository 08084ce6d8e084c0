import type { tags } from 'typia'
import type { Ok } from '../../../sdk/types.js'
import type { ExtensionManifest, ExtensionSlug } from '../manifest/manifest.js'
import type {
  DevRun,
  EntryUses,
  ExtensionAdvisory,
  OfferedUpdate,
  UpdateHealth,
  UpdatePolicy,
} from '../records/kept-extension.js'
import type { BackendStatus } from '../runtime.js'

/** `<publisher>.<name>`: derived from the manifest, never declared. */
export type ExtensionId = string & tags.MinLength<3> & tags.MaxLength<121> & tags.Pattern<'^[a-z0-9][a-z0-9.-]*$'>
/**
 * The digest of an extension's powers: SHA-256 of its id and their sorted lines, each followed by a line break. The
 * line of a power is the JSON list of its key and its sentence.
 */
export type PowersDigest = string & tags.MinLength<64> & tags.MaxLength<64> & tags.Pattern<'^[0-9a-f]*$'>
/** Where an extension comes from. */
export type ExtensionSource = 'builtin' | 'installed' | 'workspace'

/** The version before an update. */
export interface PreviousVersion {
  ref: string
  version?: string
}
/** An extension that is loaded, or could be. */
export interface ExtensionRecord {
  id: string
  manifest: ExtensionManifest
  /**
   * Of an installed one the commit, of a built-in one the daemon's build, of one of the workspace the first 12 digits
   * of the hash of its files.
   */
  commit: string
  source: ExtensionSource
  enabled: boolean
  /** Its switch is fixed on. */
  essential: boolean
  /** By declared entry; never used ones are absent. */
  usage: EntryUses
  /** Present if the manifest names a `server`. */
  backend?: BackendStatus
  /** Declarations that the sandbox cannot honour, as sentences. */
  problems: string[]
  /** Present where it has a page that may be shown: the calls that each route entry lets its pages make. */
  pageCalls?: PageCalls
  update?: OfferedUpdate
  advisory?: ExtensionAdvisory
  health?: UpdateHealth
  previous?: PreviousVersion
  /** Installed ones only. */
  updatePolicy?: UpdatePolicy
  /** It runs from a folder of the workspace. */
  dev?: DevRun
}
/** Calls as `METHOD /path`, by the entry of `permissions.sandbox` that allows them. */
export interface PageCalls {
  [entry: string]: string[]
}
/** The code of an extension's page. */
export interface PageCode {
  'content-type': 'text/javascript; charset=utf-8'
}
/** An extension of the workspace that waits for approval. */
export interface PendingExtension {
  id: string
  /** Its folder, from the workspace. */
  dir: string
  manifest: ExtensionManifest
  /** The requested powers, as sentences. */
  powers: string[]
  /** The powers not approved before, and approved ones that are no longer requested. */
  added: string[]
  removed: string[]
  unchanged: string[]
  approvedBefore: boolean
  digest: string
}
/** A folder that is not an extension, and why. */
export interface InvalidExtension {
  dir: string
  error: string
}
/** Everything that is loaded, could be, or cannot. */
export interface ExtensionList {
  extensions: ExtensionRecord[]
  invalid: InvalidExtension[]
  pending: PendingExtension[]
  /** The time of the last check of the registries. */
  updatesCheckedAt?: string
}
/** How often pages used the entries of their manifests, by extension. */
export interface UsageReports {
  [id: string]: { [entry: string]: number & tags.Type<'uint32'> & tags.Maximum<1000000> }
}
/** A requirement for others to run an extension. */
export interface ReadinessCheck {
  id: 'manifest' | 'files' | 'bundle' | 'server' | 'engines' | 'permissions' | 'tools' | 'secrets' | 'version' | 'git'
  label: string
  status: 'pass' | 'warn' | 'fail'
  detail: string
}
/** Something on the disk that a removal deletes. */
export interface RemovedFile {
  path: string
  detail: string
}
/** A connection that was made from a card of the extension, or by installing it. */
export interface RemovedConnection {
  id: string
  kind: string
  /** The card. */
  entry: string
  secrets: string[]
  /** `stays`: another extension offers its card too; `stops`: it is kept, but no longer served. */
  effect: 'removed' | 'stops' | 'stays'
}
/** A stored setting. */
export interface RemovedSetting {
  key: string
  secret: boolean
}
/** The effects of removing an extension. */
export interface RemovalPlan {
  id: string
  name: string
  version: string
  source: ExtensionSource
  /** Why it cannot be removed. */
  blocked?: string
  files: RemovedFile[]
  connections: RemovedConnection[]
  settings: RemovedSetting[]
  processes: string[]
  /** Those that use its listener or tools: they are kept and become inactive. */
  automations: string[]
  rebuildNeeded: boolean
  /** What is not removed, as sentences. */
  keeps: string[]
}
/** Values of an extension's settings by key. */
export interface SettingValues {
  [key: string]: string | number | boolean
}

/** The extensions of the sandbox, their approval, switches and settings. */
export interface ListingCalls {
  /**
   * List everything that is loaded or could be: built in, installed, of the workspace, each by id.
   *
   * An extension of the workspace that waits for approval is in `pending` alone. Where the last check for updates is
   * older than 6 hours, one starts in the background.
   */
  'GET /extensions'(): ExtensionList

  /**
   * Write a small working extension into the workspace: a page and a backend with one route in TypeScript, its test, a
   * manifest and a readme. There is no build step.
   *
   * The powers of the untouched files count as approved by the caller, so it runs at once.
   *
   * - 400: a bad publisher or name; the publisher `sandbox` is reserved
   * - 409: an extension with that id exists, or its folder's path is taken
   * - 413: the disk is full
   * - 422: a parent of its path is not a folder
   * - 424: a file could not be written; the message says why
   */
  'POST /extensions/workspace'(input: { publisher: ExtensionSlug; name: ExtensionSlug }): { id: string; dir: string }

  /**
   * Show the effects of removing an extension; for one that cannot be removed `blocked` says why.
   *
   * - 404: no such extension
   */
  'GET /extensions/{id}/removal'(input: { id: ExtensionId }): RemovalPlan

  /**
   * Remove an extension with its files, data, settings, approval, and the connections that the plan marks `removed`.
   *
   * Its backend and processes have ended when this answers. A removal that was begun is finished after a restart.
   *
   * - 404: no such extension
   * - 409: it is built in (switch it off instead), or an update is being applied
   * - 413: the disk is full
   * - 422: the file of settings cannot be read
   * - 424: a file could not be removed; the message says why
   * - 503: it has secret settings, and the store of secrets is locked
   */
  'POST /extensions/{id}/remove'(input: { id: ExtensionId }): {
    ok: true
    connections: string[]
    rebuildNeeded: boolean
  }

  /**
   * Get the settings of an extension, with defaults; of secret ones only whether they have a value.
   *
   * - 404: no such extension
   * - 422: the file of settings cannot be read
   */
  'GET /extensions/{id}/settings'(input: { id: ExtensionId }): { settings: SettingValues; secretsSet: string[] }

  /**
   * Replace the settings of an extension. A key that is left out returns to its default; a secret one keeps its value,
   * and an empty text removes it.
   *
   * - 400: a value of the wrong type, or none of the choices
   * - 404: no such extension
   * - 409: the store of secrets cannot store the value
   * - 413: the disk is full, or a secret value has more than 64 KiB
   * - 422: a key that the extension does not declare, or the file of settings cannot be read
   * - 424: the file could not be written; the message says why
   * - 503: a secret value, and the store of secrets is locked
   */
  'POST /extensions/{id}/settings'(input: { id: ExtensionId; settings: SettingValues }): Ok

  /**
   * Approve the powers of an extension of the workspace, as they were shown: the digest binds the approval to them.
   *
   * The manifest is read again, and its powers compared, before anything starts.
   *
   * - 404: no such extension in the workspace
   * - 409: the digest is not that of the powers now declared; read the list again
   * - 422: the manifest cannot be used
   */
  'POST /extensions/{id}/approve'(input: { id: ExtensionId; digest: PowersDigest }): Ok

  /**
   * Switch an extension on or off. When it is off, its backend and processes have ended at the answer; settings, data
   * and approval stay. Switching on ends a quarantine.
   *
   * - 404: no such extension
   * - 409: it is built in and cannot be switched off, or it waits for approval
   */
  'POST /extensions/{id}/enabled'(input: { id: ExtensionId; enabled: boolean }): Ok

  /**
   * Report how often the pages of extensions used the entries of their manifests since the last report.
   *
   * Unknown extensions and entries that no manifest declares are dropped. At most 200 extensions, 100 entries each.
   *
   * - 400: too many extensions or entries
   */
  'POST /extensions/usage'(input: { reports: UsageReports }): Ok

  /**
   * Give the code of an extension's page, as browsers load it: of TypeScript without its types.
   *
   * - 404: no such extension, it has no page, is switched off, or waits for approval
   * - 422: types that cannot be erased, such as an `enum`
   */
  'GET /extensions/{id}/bundle'(input: { id: ExtensionId }): PageCode

  /**
   * Show whether others could run an extension, judged by its files and its use.
   *
   * - 404: no such extension
   */
  'GET /extensions/{id}/readiness'(input: { id: ExtensionId }): { checks: ReadinessCheck[] }
}
