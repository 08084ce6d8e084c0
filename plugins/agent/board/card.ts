import type { Count, Millis, Positive } from '../../../sdk/types.js'
import type { ConversationTraits, HelperCount, OpenCard } from '../conversations/conversation.js'
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
/** One conversation on the board. */
export interface AgentCard extends ConversationTraits {
  sessionId?: string
  status: AgentStatus
  /** The sentence the last run died on; only with status `error`. */
  failure?: string
  /** Short commit of the root repository the branch sits on; absent for the shared tree. */
  base?: string
  /** The newest run, and how it ended; no `lastEnd` while it lives. */
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
  /** Helpers it ever had, and those at work; absent: it had none. */
  subagents?: HelperCount
  diff?: DiffTotals
  /** Only when some landed work has since been thrown away. */
  landedPresence?: LandedPresence
  /** Only while a run lives. */
  startedAt?: Millis
}
/** An automation's turn that waits for a yes; there are none without automations. */
export interface HeldWake {
  id: string
}
/** Cards that somebody asked for by name. */
export interface Cards {
  agents: AgentCard[]
  gone: string[]
  /** That of the roster they are part of. */
  rev: Count
}
export interface Roster {
  agents: AgentCard[]
  /** Only grows; drop a roster older than one you hold. */
  rev: Count
  held: HeldWake[]
}
