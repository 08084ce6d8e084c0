import type { ReachFolder } from '../../../sdk/reach.js'
import type { Count, Millis } from '../../../sdk/types.js'
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
} from '../turn/frames.js'

/** A path a landing left behind, outstanding since commit `from`. */
export interface LeftPath {
  path: string
  from: string
}
/** One repository of a private copy. */
export interface CopyRepo {
  /** `root`, or the repository's path from the workspace root. */
  repo: string
  /** Commit of the main line the branch now sits on. */
  base: string
  /** `worktreeBase` named it: it is never moved onto the main line. */
  pinned?: true
  landedTip?: string
  landedHead?: string
  landedAt?: Millis
  left?: LeftPath[]
}
/** Where a private copy that is not made yet is to begin in one repository. */
export interface CopyStart {
  repo: string
  /** The commit its branch begins at. */
  tip: string
  /** The commit of the main line under it. */
  base: string
  pinned?: true
}
/** Where a conversation came from: `index` is the number of rows it began with. */
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
/** Who asked for somebody who may land, and when. */
export interface LandRequest {
  email: string
  name?: string
  at: Millis
}
/** How a provider is to think: its model, and what that takes. */
export interface ModelChoice {
  model?: string
  effort?: string
  thinking?: boolean
  fast?: boolean
}
/** What the record of a conversation and its card on the board both say. */
export interface ConversationTraits extends ModelChoice {
  id: ConversationId
  title?: string
  provider: ProviderId
  harness: Harness
  actsAs?: string
  startIn?: string
  /**
   * Folders its turns are limited to: those that the person limited to areas who opened it reached; absent: all.
   */
  folders?: ReachFolder[]
  forkedFrom?: ForkOrigin
  /** `agent/<id>`; absent: works in the shared tree. */
  branch?: string
  /** Whether clean turns land by themselves; absent: as the sandbox says. */
  autoLand?: boolean
  /** Whether an outage is waited out; absent: as the sandbox says. */
  resumeAfterOutage?: boolean
  /** Somebody asks for the work to be landed; the landing or discard that answers it takes it away. */
  landRequested?: LandRequest
  openedBy: string
  lastBy: string
  contextTokens?: Count
  contextWindow?: Count
  /** What the program of the newest run could not be held to. */
  unenforced?: Unenforced[]
  updatedAt: Millis
  seenAt?: Millis
  archivedAt?: Millis
}
/** One conversation as the sandbox keeps it. */
export interface Conversation extends ConversationTraits {
  titleBy: 'prompt' | 'model' | 'person'
  createdAt: Millis
  /** The control token that opened it: what an `editor` token may reach. */
  openedByToken?: string
  permissionMode?: PermissionMode
  /**
   * All that went into it came from people who may land, or they landed it since; without it nothing lands by itself.
   */
  landsAlone?: boolean
  /** Empty for the shared tree. */
  repos: CopyRepo[]
  /** Until the copy is made: where it begins, in repositories that do not begin at the main line. */
  starts?: CopyStart[]
  session?: ProviderSession
  lastRun?: RunId
  lastEnd?: RunEnd
  /** The sentence the last run died on. */
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
/** How many subagents are at work, and how many there were. */
export interface HelperCount {
  running: Count
  total: Count
}
/** What the live turn is doing now. */
export interface LiveTurn {
  run: RunId
  state: 'running' | 'parked' | 'stopping'
  startedAt: Millis
  cards: OpenCard[]
  /** What its program cannot be held to. */
  unenforced?: Unenforced[]
  /** Of this turn; absent: it had none. */
  helpers?: HelperCount
  tool?: string
  target?: string
  todo?: string
}
/** A conversation with what lives: its turn and its queue. */
export interface ConversationState {
  conversation: Conversation
  live?: LiveTurn
  /** An outage ended its newest run, which is run again at this time. */
  resumesAt?: Millis
  waiting: Count
  queuePaused: boolean
}
