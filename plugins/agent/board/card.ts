import type { ContentDigest, Count, Millis, Positive } from '../../../sdk/types.js'
import type { ConversationTraits, OpenCard, Origin, SubagentCount } from '../conversations/conversation.js'
import type { BackgroundCount } from '../processes/contract.js'
import type { LocalPlacement } from '../turn/input.js'
import type { RunEnd, RunId } from '../turn/frames/frames.js'

/** How much of what landed the shared tree still has. */
export interface LandedPresence {
  landed: Count
  present: Count
}
export type AgentStatus =
  | 'idle'
  | 'running'
  | 'awaiting'
  | 'stopping'
  | 'stopped'
  | 'resuming'
  | 'ready'
  | 'landed'
  | 'conflict'
  | 'error'
  | 'interrupted'

/** What the agent is doing now. */
export interface AgentActivity {
  tool?: string
  target?: string
  todo?: string
}
/** Which kinds of attention the conversation waits for. */
export interface AgentAttention {
  plan: boolean
  question: boolean
  permission: boolean
  help: boolean
  service: boolean
  capability: boolean
  payment: boolean
  conflict: boolean
}
export interface DiffTotals {
  files: Count
  insertions: Count
  deletions: Count
}
/** The state of a loop: it runs, its goal is met, or why it gave up. */
export type LoopState = 'running' | 'done' | 'exhausted' | 'stalled' | 'overspent' | 'stopped' | 'error'
/** The loop of a conversation. */
export interface CardLoop {
  state: LoopState
  /** Its rounds, with the one in hand. */
  iteration: Count
  maxIterations: Positive
  goal: string
}
/** The run of a workflow that a conversation belongs to, and its newest step there. */
export interface CardWorkflow {
  runId: string
  name: string
  /** The title of the step. */
  step: string
  /** The position of the step, from 1, and the number of steps. */
  index: Positive
  total: Positive
}
/** A message for the commit of what landed. */
export interface LandedMessage {
  subject: string
  /** What people who use the software should know. */
  note?: string
  /** What stops working for them. */
  breaking?: string
}
/** A model that was asked for the message, or passed over. */
export interface LandedMessageStep {
  provider: string
  model: string
  status: 'asking' | 'answered' | 'refused' | 'skipped'
  at?: Millis
  ms?: Count
  /** Why it did not answer. */
  reason?: string
}
/** How the message of the newest landing was drafted. */
export interface LandedMessageDraft {
  startedAt: Millis
  steps: LandedMessageStep[]
  /** Left out while it is being written. */
  outcome?: 'written' | 'failed'
  reason?: string
  finishedAt?: Millis
}
/** One conversation on the board. */
export interface AgentCard extends ConversationTraits {
  /** The account that its turns run on; left out for tokens. */
  account?: string
  /** Where its turns run: on this machine. */
  placement?: LocalPlacement
  sessionId?: string
  status: AgentStatus
  /** Why the last run failed; only with status `error`. */
  failure?: string
  /** Short commit of the root repository the branch sits on; absent for the shared tree. */
  base?: string
  /** The newest run, and how it ended; no `lastEnd` while it is running. */
  run?: RunId
  lastEnd?: RunEnd
  /** Open cards. */
  cards?: OpenCard[]
  /** Messages in the queue. */
  waiting?: Positive
  queuePaused?: boolean
  costUsd?: number
  inputTokens?: Count
  outputTokens?: Count
  activity?: AgentActivity
  attention: AgentAttention
  turns?: Count
  toolUses?: Count
  /** The number of its subagents, and of the running ones; absent: it had none. */
  subagents?: SubagentCount
  /** Its commands in the background; absent: it has none. */
  processes?: BackgroundCount
  diff?: DiffTotals
  /** Only if some landed work was removed since. */
  landedPresence?: LandedPresence
  /** The message that a model drafted for the newest landing, and how. */
  landedMessage?: LandedMessage
  landedMessageDraft?: LandedMessageDraft
  /** The loop that repeats it, or the last one that did. */
  loop?: CardLoop
  workflow?: CardWorkflow
  /** Only during a run. */
  startedAt?: Millis
}
/** A fire that waits for a person, or for its time. */
export interface HeldWake {
  id: string
  automationId: string
  /** Why it waits. */
  reason: string
  /** Not for viewers and tokens of scope `read`. */
  payload?: string
  /** Of what an approval runs, the automation as it stands and what was held: `expect` of an approval takes it. */
  digest?: ContentDigest
  origin?: Origin
  title?: string
  conversationId?: string
  createdAt: Millis
  /** When it runs by itself. */
  autoRunAt?: Millis
}
/** Cards that were requested by id. */
export interface Cards {
  agents: AgentCard[]
  gone: string[]
  /** The `rev` of the roster that they are part of. */
  rev: Count
}
export interface Roster {
  agents: AgentCard[]
  /** Only increases; ignore a roster that is older than yours. */
  rev: Count
  /** Fires of automations that wait for a person, without payloads. */
  held: HeldWake[]
}
