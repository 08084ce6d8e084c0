import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Positive, Size } from '../../sdk/types.js'
import type { ConversationId, RunId } from '../agent/contract.js'
import type { PrepushCalls } from './checks/contract.js'
import type { CiHookCalls } from './hooks/contract.js'

export type * from './checks/contract.js'
export type * from './hooks/contract.js'

/** What runs a pipeline: a forge, or this sandbox before a push. */
export type CiHost = 'github' | 'gitlab' | 'forgejo' | 'gitea' | 'local'
/** How a run or a job is; `running` is everything that is not final, also what waits. */
export type PipelineStatus = 'running' | 'success' | 'failed' | 'canceled' | 'skipped'
/** A folder of the workspace; `root` is the workspace's own repository. */
export type CiRepoName = string & tags.MinLength<1> & tags.MaxLength<4096>
/** The forge's id of a run. Checks before a push have ids from 8,000,000,000,000,001, which no forge gives. */
export type PipelineRunId = number & tags.Type<'uint64'>

/** What can be asked of the runs of a repository: read from the forge where it says so. */
export interface PipelinePowers {
  rerun: boolean
  rerunFailed: boolean
  cancel: boolean
  jobs: boolean
  log: boolean
}
/** A repository whose runs are known. */
export interface CiRepo {
  repo: string
  host: CiHost
  /** `owner/name`, or `local`. */
  project: string
  /** The page of the project; empty for `local`. */
  url: string
  /** The connection whose credential is used; tokens do not see it. */
  account?: string
  /** How results arrive: the forge reports them, or it is asked every 2 minutes. */
  delivery: 'hook' | 'poll' | 'none'
  /** When the forge was last asked. */
  polledAt?: Millis
  /** Why the forge does not report results itself. */
  hookWarning?: string
  /** The last refusal of the forge, in its words. */
  error?: string
  can: PipelinePowers
}
/** The conversation that fixes a run. */
export interface PipelineFix {
  conversationId: ConversationId
  at: Millis
}
/** One run of a pipeline. */
export interface PipelineRun {
  repo: string
  host: CiHost
  project: string
  runId: PipelineRunId
  /** As people count the runs. */
  number?: Count
  attempt?: Count
  title?: string
  workflow?: string
  authorName?: string
  authorAvatarUrl?: string
  /** What started it, in the forge's word. */
  trigger?: string
  branch: string
  sha: string
  status: PipelineStatus
  /** Its page; empty for `local`. */
  url: string
  createdAt: Millis
  finishedAt?: Millis
  durationSeconds?: Count
  failedJobs?: string[]
  /** The newest conversation that was opened on it. */
  fix?: PipelineFix
}
/** One job of a run; of a check before a push, one of its rules. */
export interface PipelineJob {
  /** What `POST /ci/runs/log` takes. */
  id: string
  name: string
  status: PipelineStatus
  stage?: string
  /** The jobs that it waits for; absent: not known, empty: none. */
  needs?: string[]
  startedAt?: Millis
  finishedAt?: Millis
  durationSeconds?: Count
  webUrl?: string
  log: 'available' | 'pending' | 'expired' | 'unsupported'
}

/** Which run. */
export interface NamedRun {
  repo: CiRepoName
  runId: PipelineRunId
}
/** Which part of which job's log. */
export interface JobLogInput extends NamedRun {
  job: string & tags.MinLength<1> & tags.MaxLength<200>
  /** Left out: 65536. */
  bytes?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<1048576>
  offset?: Size
  find?: 'failure'
}
/** Which run is run again, and whether only what failed of it. */
export interface RerunInput extends NamedRun {
  failedOnly?: boolean
}
/** The provider and the model of a fix. */
export interface PipelineFixChoice {
  agent: string & tags.MinLength<1> & tags.MaxLength<120>
  model: string & tags.MinLength<1> & tags.MaxLength<200>
}
/** Which run is fixed, and how. */
export interface PipelineFixInput extends NamedRun {
  /** Left out: what a new conversation gets. */
  pick?: PipelineFixChoice
  /** What else the agent should know. */
  note?: string & tags.MaxLength<4000>
}

/** Runs of pipelines at connected forges, and the checks before a push. */
export interface PipelinesCalls extends PrepushCalls, CiHookCalls {
  /**
   * List the runs of all repositories at connected forges and of the checks before a push, the newest first.
   *
   * They come from what is stored; a forge asked more than 60 s ago is asked again in the background, with `fresh`
   * before the answer, at most once in 10 s. A forge that fails has its words in `error` of its repository, and the
   * others are listed. `before` is the `next` of the page before, or any time; a page ends with all runs of its last
   * moment.
   *
   * - 404: no such repository
   */
  'GET /ci/runs'(input: {
    repo?: CiRepoName
    branch?: string & tags.MaxLength<1000>
    status?: PipelineStatus
    host?: CiHost
    /** Left out: 50. */
    limit?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<200>
    before?: Millis
    fresh?: boolean
  }): { repos: CiRepo[]; runs: PipelineRun[]; seenAt?: Millis; next?: Millis }

  /**
   * List the jobs of a run, in the order they started; of a check before a push its rules.
   *
   * Where the forge does not say which jobs wait for which, that is read from the pipeline's definition at the run's
   * commit.
   *
   * - 404: no such repository at a connected forge, or no such run
   * - 422: this version of the forge lists no jobs
   * - 424: the forge refused, in its words
   */
  'POST /ci/runs/jobs'(input: NamedRun): { jobs: PipelineJob[] }

  /**
   * Read a part of a job's log as plain text, without colours, the forge's time stamps, and values of secrets.
   *
   * Without `offset` it is the end; with `find` the part around the first line that looks like the failure. Offsets and
   * sizes are bytes of that text. Of a log over 32 MiB the first 32 MiB are read.
   *
   * - 404: no such repository, run or job
   * - 409: the job has not started
   * - 422: this version of the forge gives no logs
   * - 424: the forge refused, in its words, or the log has expired
   */
  'POST /ci/runs/log'(input: JobLogInput): {
    job: string
    text: string
    offset: Size
    sizeBytes: Size
    truncated: boolean
  }

  /**
   * Run a finished run again, or only what failed of it; the forge is asked once. A check before a push starts anew.
   *
   * - 404: no such repository at a connected forge, or no such run
   * - 409: it is still running
   * - 422: the forge cannot do that, as `can` says
   * - 424: the forge refused, in its words
   */
  'POST /ci/runs/rerun'(input: RerunInput): Ok

  /**
   * Stop a run; of a check before a push all its processes end, and the push does not go.
   *
   * - 404: no such repository at a connected forge, or no such run
   * - 409: it has ended
   * - 422: the forge cannot do that, as `can` says
   * - 424: the forge refused, in its words
   */
  'POST /ci/runs/cancel'(input: NamedRun): Ok

  /**
   * Put an agent on a failed run: starts a turn in a new private copy at the commit of the run.
   *
   * The agent reads the ends of the logs of the failed jobs as outside content, which instructs nobody. A second call
   * within 10 s gets the first conversation. After a failed check before a push, the copy has the work that a
   * conversation landed and nobody has committed. An agent that ends without a change, and without saying that the
   * fault is elsewhere, is asked once more.
   *
   * - 403: the repository lies in an area that you may only read
   * - 404: no such repository, or no such run
   * - 409: the run did not fail
   * - 422: its commit is not in the repository and cannot be fetched, or the turn is not possible
   */
  'POST /ci/fix'(input: PipelineFixInput): { conversationId: ConversationId; run: RunId }

  /** Mark all results as seen up to now, for everybody. */
  'POST /ci/seen'(): { seenAt: Millis }

  /** Branches that failed since they were last seen. */
  'ci.waiting'(): RedBranches
}

/** How many branches failed and wait for a person, by the folder of their repository. */
export interface RedBranches {
  waiting: { within: string; count: Positive }[]
}

export interface PipelinesEvents {
  /** Which branches wait for a person changed. */
  'ci.waiting': RedBranches
}

export const pipelinesContract: Contract<PipelinesCalls> = {
  schema: () => typia.json.application<PipelinesCalls>(),
  request: typia.misc.createValidatePrune<Requests<PipelinesCalls>>(),
  reply: () => typia.createValidate<Replies<PipelinesCalls>>(),
}
