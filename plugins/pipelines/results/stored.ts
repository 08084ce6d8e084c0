import type { StoredPipelineFix } from '../checks/stored.js'
import type { ForgeHost } from '../contract.js'
import type { ForgeRun } from '../forges/forge.js'

/** A run of a forge, as it is stored. */
export interface StoredPipelineRun extends ForgeRun {
  failedJobs?: string[]
  fix?: StoredPipelineFix
}

/** How the newest finished run of a branch ended, and since when it is so. */
export interface BranchResult {
  readonly color: 'green' | 'red'
  readonly at: number
  /** When its run was made. */
  readonly madeAt: number
}

/** The events that automations receive. */
export type CiEventType = 'pipeline_failed' | 'pipeline_broken' | 'pipeline_succeeded' | 'pipeline_fixed'

/** An event that automations have not received yet. */
export interface PendingCiEvent {
  readonly type: CiEventType
  readonly run: ForgeRun
}

/** What is known of the results of one repository. */
export interface StoredResults {
  readonly repo: string
  readonly host: ForgeHost
  readonly project: string
  readonly site: string
  /** The forge was asked at least once: what ends from now on is news. */
  looked: boolean
  /** The newest first. */
  runs: StoredPipelineRun[]
  branches: { [branch: string]: BranchResult }
  /** The ends that were taken in, each with the time. */
  announced: [end: string, at: number][]
  pending: PendingCiEvent[]
  /** The webhook that this sandbox registered, and the age of the secret it has. */
  hook?: { id: number; url: string; secretAt: number }
  hookWarning?: string
}
