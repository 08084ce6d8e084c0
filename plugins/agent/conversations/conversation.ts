import type { ReachFolder } from '../../../sdk/reach.js'
import type { Count, Millis } from '../../../sdk/types.js'
import type { ExperimentArm } from '../briefing/contract.js'
import type { BackgroundCount } from '../processes/contract.js'
import type {
  Card,
  ConversationId,
  Harness,
  LandConflict,
  PermissionMode,
  ProviderId,
  RunEnd,
  RunId,
  Unenforced,
} from '../turn/frames/frames.js'

/** A path a landing left behind, outstanding since commit `from`. */
export interface LeftPath {
  path: string
  from: string
}
/** One repository of a private copy. */
export interface CopyRepo {
  /** `root`, or the repository's path from the workspace root. */
  repo: string
  /** The commit of the main line that the branch is based on. */
  base: string
  /** Pinned by `worktreeBase`: never rebased onto the main line. */
  pinned?: true
  /** The git dir of a submodule that the workspace has not checked out, as a path from its root. */
  module?: string
  landedTip?: string
  landedHead?: string
  landedAt?: Millis
  left?: LeftPath[]
}
/** The starting commit of one repository of a private copy that was not created yet. */
export interface CopyStart {
  repo: string
  /** The commit its branch begins at. */
  tip: string
  /** The commit of the main line that it is based on. */
  base: string
  pinned?: true
}
/** The origin of a fork: `index` is the number of rows that it began with. */
export interface ForkOrigin {
  conversationId: ConversationId
  index: Count
  files: 'then' | 'now'
}
export interface Totals {
  turns: Count
  toolUses: Count
  helpers: Count
  costUsd: number
  inputTokens: Count
  outputTokens: Count
}
export interface ProviderSession {
  id: string
  provider: ProviderId
  harness: Harness
}
/** Who requested a landing, and when. */
export interface LandRequest {
  email: string
  name?: string
  at: Millis
}
/** What started a conversation or turn that nobody started by hand; set by the sandbox alone. */
export interface Origin {
  automationId: string
  provider: string
  channelId?: string
  author?: string
}
/** The model of a turn and its options. */
export interface ModelChoice {
  model?: string
  effort?: string
  thinking?: boolean
  fast?: boolean
}
/** The fields that a conversation's record and its card share. */
export interface ConversationTraits extends ModelChoice {
  id: ConversationId
  title?: string
  provider: ProviderId
  harness: Harness
  actsAs?: string
  startIn?: string
  /** That of its next turn, unless the message names one. */
  permissionMode?: PermissionMode
  /**
   * The folders that its turns are limited to: the reach of the person who opened it, if limited to areas; absent: all.
   */
  folders?: ReachFolder[]
  forkedFrom?: ForkOrigin
  /** What started it, if nobody did by hand. */
  origin?: Origin
  /**
   * `agent/<id>`, or from its first turn on another name where refs of somebody else are in the way; absent: works in
   * the shared tree.
   */
  branch?: string
  /** Whether completed turns land automatically; absent: the sandbox's setting. */
  autoLand?: boolean
  /** Whether turns resume after an outage; absent: the sandbox's setting. */
  resumeAfterOutage?: boolean
  /** A person's request to land the work; removed by the next landing or discard. */
  landRequested?: LandRequest
  openedBy: string
  lastBy: string
  contextTokens?: Count
  contextWindow?: Count
  /** Restrictions that could not be enforced on the newest run's program. */
  unenforced?: Unenforced[]
  updatedAt: Millis
  seenAt?: Millis
  archivedAt?: Millis
}
/** A stored conversation. */
export interface Conversation extends ConversationTraits {
  titleBy: 'prompt' | 'model' | 'person'
  createdAt: Millis
  /** The control token that opened it; an `editor` token reaches only its own conversations. */
  openedByToken?: string
  /**
   * All input came from people who may land, or was landed by one since; absent: its work does not land automatically.
   */
  landsAlone?: boolean
  /**
   * Work that does not land by itself was in its private copy: ignored files, settings and index flags that no diff
   * shows are left there. The copy is made anew before a turn that lands works in it.
   */
  copyApart?: boolean
  /**
   * One of its ended turns had content from outside, or words of somebody who may not land: its record and its session
   * hold them, so no later turn pays without a yes.
   */
  heardOthers?: boolean
  /** A control token spoke in one of its ended turns: no later turn changes the machine's network. */
  heardTokens?: boolean
  /** Empty for the shared tree. */
  repos: CopyRepo[]
  /** Until the copy is created: the starting commits in repositories that do not start at the main line. */
  starts?: CopyStart[]
  session?: ProviderSession
  /** Its arm in the experiment with the search tool. */
  searchArm?: ExperimentArm
  /** The account that its turns run on, at this provider. */
  account?: { provider: ProviderId; id: string }
  lastRun?: RunId
  lastEnd?: RunEnd
  /** Why the last run failed. */
  failure?: string
  conflicts?: LandConflict[]
  totals: Totals
}
export interface OpenCard {
  requestId: string
  kind: Card['kind']
  title: string
  raisedAt: Millis
}
/** The number of running subagents, and of all. */
export interface SubagentCount {
  running: Count
  total: Count
}
/** The live turn. */
export interface LiveTurn {
  run: RunId
  state: 'running' | 'parked' | 'stopping'
  startedAt: Millis
  cards: OpenCard[]
  /** Restrictions that cannot be enforced on its program. */
  unenforced?: Unenforced[]
  /** Subagents of this turn; absent: it had none. */
  helpers?: SubagentCount
  tool?: string
  target?: string
  todo?: string
}
/** A conversation with its live turn and its queue. */
export interface ConversationState {
  conversation: Conversation
  live?: LiveTurn
  /** When the newest run, which an outage ended, is resumed. */
  resumesAt?: Millis
  waiting: Count
  queuePaused: boolean
  /** Its commands in the background. */
  processes?: BackgroundCount
}
