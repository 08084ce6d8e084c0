import type { tags } from 'typia'
import type { ExtensionPower } from '../powers/power.js'

/** An approval: the powers with their sentences, the person and the time. */
export interface ExtensionApproval {
  readonly powers: readonly ExtensionPower[]
  readonly by: string
  readonly at: string
}

/** The automatic updates that are allowed. */
export interface UpdatePolicy {
  updates: 'notify' | 'agent' | 'auto'
  advisories: 'auto-disable' | 'notify'
}

/** The conversation in which an agent reviews an update, and when it was started. */
export interface UpdateReview {
  conversationId: string
  at: string
}

/** A newer version that a registry lists. */
export interface OfferedUpdate {
  ref: string
  version?: string
  url: string
  path?: string
  trust: 'verified' | 'listed'
  securityFix?: boolean
  registry: string
  at: string
  /** Why it was not applied, or not reviewed, automatically. */
  needsReview?: string
  review?: UpdateReview
}

/** A registry's warning about the installed version. */
export interface ExtensionAdvisory {
  reason: string
  registry: string
  at: string
  /** It was switched off for it. */
  autoDisabled: boolean
}

/** The result of an update. */
export interface UpdateHealth {
  state: 'watching' | 'healthy' | 'unhealthy'
  detail?: string
  /** The version before. */
  fromRef?: string
  at: string
  autoReverted?: boolean
}

/** One version of an installed extension: its commit and the powers that were approved with it. */
export interface InstalledVersion {
  readonly ref: string
  readonly version?: string
  readonly approval: ExtensionApproval
}

/** A folder of the workspace, or of a private copy, that an installed extension runs from. */
export interface DevRun {
  /** The folder, from the workspace. */
  path: string
  /** The conversation whose private copy it is in; absent: the workspace, or one that the caller may not see. */
  conversation?: string
  /** Files of it that are not committed, as of the copy that runs. */
  uncommitted: number & tags.Type<'uint32'>
  /** The hash of the copy that runs. */
  revision: string
  /** Why the folder as it is now does not run: it was rebuilt, adds powers, or cannot be used. */
  held?: string
}
/** The folder that an installed extension runs from, by a copy. */
export interface DevSource {
  readonly path: string
  /** The conversation whose private copy it is in; absent: the workspace. */
  readonly conversation?: string
  /** The hash of the copy. */
  readonly revision: string
  readonly uncommitted: number
  /** Of the powers that it adds to those of the commit. */
  readonly approval?: ExtensionApproval
}

/** Where an installed extension comes from, and which versions are kept. */
export interface InstalledCode {
  readonly url: string
  readonly path?: string
  readonly secret?: string
  /** The connection that installed it, whose access token it is fetched with. */
  readonly link?: string
  readonly registry?: string
  readonly current: InstalledVersion
  readonly previous?: InstalledVersion
  readonly policy: UpdatePolicy
  readonly update?: OfferedUpdate
  readonly advisory?: ExtensionAdvisory
  readonly health?: UpdateHealth
  readonly dev?: DevSource
}

/** The stored record of an extension. */
export interface KeptExtension {
  readonly id: string
  readonly source: 'installed' | 'workspace'
  readonly enabled: boolean
  /** The approval of a workspace extension. */
  readonly approval?: ExtensionApproval
  /** The folder of a workspace extension when its powers were approved: it comes before others with the same id. */
  readonly folder?: string
  readonly installed?: InstalledCode
  /** The time at which the folder of a workspace extension was found missing. */
  readonly goneAt?: number
  /** Its folder is being created under this name. */
  readonly creating?: string
  /** It is being removed; the next start continues the removal. */
  readonly removing?: RemovalLeft
}

/** The remaining steps of a started removal. */
export interface RemovalLeft {
  /** The folder of a workspace extension, below that of all of them. */
  readonly folder?: string
  /** The connections that are removed with it. */
  readonly connections?: readonly string[]
}

/** How often a declared entry was used, and when last. */
export interface EntryUse {
  calls: number
  last: string
}
/** Uses by declared entry. */
export interface EntryUses {
  [entry: string]: EntryUse
}

/** How the powers of one version of an extension differ from those of another, as sentences. */
export interface PowersDiff {
  added: string[]
  removed: string[]
  unchanged: string[]
}
