import type { ForgeHost, PipelineJob, PipelinePowers, PipelineRun } from '../contract.js'
import type { ForgeClient, ForgeInterface } from './client.js'
import type { GivenJson } from './given.js'

/** A run as a forge gives it. */
export interface ForgeRun extends Omit<PipelineRun, 'repo' | 'host' | 'project' | 'fix' | 'failedJobs'> {
  /** When the forge changed it last. */
  readonly updatedAt: number
  /** The file with its definition, from the root of the repository. */
  readonly definition?: string
}
/** A job as a forge gives it. */
export type ForgeJob = Omit<PipelineJob, 'log'>

/** A finished run that a forge reports. */
export interface ReportedRun {
  readonly project: string
  readonly run: ForgeRun
}

/** A webhook that a forge has for a project. */
export interface ForgeHook {
  readonly id: number
  readonly url: string
}

/** How many runs a page has. */
export const PAGE = 100

/** What differs between forges. */
export interface Dialect extends ForgeInterface {
  readonly host: ForgeHost
  powers(client: ForgeClient): Promise<PipelinePowers>
  /** One page of runs, from 1, the newest first. */
  runs(client: ForgeClient, project: string, page: number): Promise<ForgeRun[]>
  run(client: ForgeClient, project: string, id: number): Promise<ForgeRun>
  /** The jobs of a run, in any order. */
  jobs(client: ForgeClient, project: string, id: number): Promise<ForgeJob[]>
  log(client: ForgeClient, project: string, job: string): Promise<string>
  rerun(client: ForgeClient, project: string, id: number, failedOnly: boolean): Promise<void>
  cancel(client: ForgeClient, project: string, id: number): Promise<void>
  hooks(client: ForgeClient, project: string): Promise<ForgeHook[]>
  /** Makes a webhook, or changes the one of this id; returns its id. */
  putHook(client: ForgeClient, project: string, hook: WantedHook): Promise<number>
  /** The run that a report is about; undefined: it is about none that has ended. */
  reported(event: string, body: GivenJson): ReportedRun | undefined
}

/** A webhook as this sandbox wants it. */
export interface WantedHook {
  readonly id?: number
  readonly url: string
  readonly secret: string
}
