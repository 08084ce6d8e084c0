import type { Count, Millis, Positive } from '../../../../sdk/types.js'
import type { tags } from 'typia'
import type { RuleMoment, RuleRun } from '../../../settings/contract.js'
import type { Card, CardReply } from '../../cards/card.js'
import type {
  Command,
  LandConflict,
  Location,
  QueuedMessage,
  RunId,
  TodoItem,
  ToolCategory,
  ToolContent,
  ToolStatus,
  TurnNote,
} from './frame-parts.js'

export type * from '../../cards/card.js'
export type * from './frame-parts.js'

/** Chosen by the caller, or minted as `c-…`. */
export type ConversationId = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$'>
/** `script`, an account provider's id, `endpoint/<id>` or `agent/<id>`. */
export type ProviderId = string & tags.MinLength<1> & tags.MaxLength<120>
export type Harness = 'native' | 'vendor-code'
export type PermissionMode = 'default' | 'acceptEdits' | 'plan' | 'bypassPermissions'
export type RunEnd = 'completed' | 'failed' | 'stopped' | 'interrupted'

// Frames ------------------------------------------------------------------------------------------------------------

export interface SessionFrame {
  kind: 'session'
  sessionId: string
}
/**
 * The private copy the turn works in; `unenforced`: this machine has no wall to limit the turn to it. `network` is what
 * the turn really has: a network of the conversation's own, or that of the machine.
 */
export interface WorktreeFrame {
  kind: 'worktree'
  branch: string
  base: string
  unenforced?: boolean
  network?: 'own' | 'shared'
  sync?: { commits: Count; blocked: string[] }
}
export interface PreambleFrame {
  kind: 'preamble'
  notes: TurnNote[]
}
/** A requested restriction or option that cannot be enforced on the program of a turn. */
export type Unenforced = 'mode' | 'tools' | 'rules' | 'model' | 'effort'
/** What the turn runs on; without `unenforced` everything that was requested is enforced. */
export interface InitFrame {
  kind: 'init'
  model: string
  provider?: ProviderId
  harness?: Harness
  account?: string
  unenforced?: Unenforced[]
}
/**
 * How hard the turn was judged, from 0 to 1, by which signs; `judge`: a model said so. `model` is that of its tier, on
 * which a turn that was not routed does not run.
 */
export interface TierFrame {
  kind: 'tier'
  tier: 'fast' | 'standard'
  model: string
  routed: boolean
  score: number & tags.Minimum<0> & tags.Maximum<1>
  rules: string[]
}
/** The run moved to another provider choice, with its provider's session or with the record. */
export interface SwitchedFrame {
  kind: 'switched'
  provider: ProviderId
  harness: Harness
  account?: string
  model?: string
  kept: 'session' | 'record'
}
export interface ResumedFrame {
  kind: 'resumed'
  reason: 'restart' | 'outage' | 'auth'
  attempt: number & tags.Type<'uint32'> & tags.Minimum<2>
  resumedFrom?: RunId
}
/** The state of the work before this turn's message; `index` is the message's position in the transcript. */
export interface CheckpointFrame {
  kind: 'checkpoint'
  id: string
  index?: Count
}
export interface ModeFrame {
  kind: 'mode'
  mode: PermissionMode
}
/** A message sent into the running turn. */
export interface SteerFrame {
  kind: 'steer'
  text: string
  sentAt: Millis
  messageId?: string
  by?: string
  attachments?: string[]
}
export interface DeltaFrame {
  kind: 'delta'
  text: string
  parentToolUseId?: string
}
export interface TextEndFrame {
  kind: 'text_end'
  parentToolUseId?: string
}
export interface ThinkingFrame {
  kind: 'thinking'
  text: string
  parentToolUseId?: string
}
export interface ToolCallFrame {
  kind: 'tool_call'
  id: string
  name: string
  category: ToolCategory
  status: ToolStatus
  target?: string
  locations?: Location[]
  content?: ToolContent[]
  parentToolUseId?: string
}
/** Replaces what it names of the call; never appends. A call may be announced with a placeholder and named later. */
export interface ToolCallUpdateFrame {
  kind: 'tool_call_update'
  id: string
  status?: ToolStatus
  content?: ToolContent[]
  locations?: Location[]
  target?: string
  name?: string
  category?: ToolCategory
}
/** A subagent was started; `id` is the tool call that started it, which its own frames name as their parent. */
export interface SubagentFrame {
  kind: 'subagent'
  id: string
  subagentKind: 'subagent' | 'delegate'
  agentType?: string
  description?: string
  model?: string
  background?: boolean
  terminal?: string
}
export type SubagentStatus = 'pending' | 'running' | 'blocked' | 'completed' | 'failed' | 'killed' | 'paused'
/** A change of a subagent; omitted fields are unchanged. */
export interface SubagentUpdateFrame {
  kind: 'subagent_update'
  id: string
  status?: SubagentStatus
  tokens?: Count
  toolUses?: Count
  lastTool?: string
  summary?: string
  error?: string
}
export interface TodosFrame {
  kind: 'todos'
  items: TodoItem[]
}
export interface CommandsFrame {
  kind: 'commands'
  items: Command[]
}
/** What an answer of a model or a step of a program used; that of a turn is the sum of its frames. */
export interface UsageFrame {
  kind: 'usage'
  /** Of a subagent: the call that started it, and what it ran on, whose price its tokens have. */
  subagent?: string
  provider?: ProviderId
  harness?: Harness
  model?: string
  account?: string
  costUsd?: number
  inputTokens?: Count
  outputTokens?: Count
  cacheReadTokens?: Count
  cacheCreationTokens?: Count
  durationMs?: Count
  numTurns?: Count
}
/** How much of a limit of the provider is used, by its last answer; `utilization` is percent. */
export interface RateLimitFrame {
  kind: 'rate_limit_info'
  account?: string
  status: 'allowed' | 'allowed_warning' | 'rejected'
  resetsAt?: Millis
  rateLimitType?: string
  utilization?: number & tags.Minimum<0> & tags.Maximum<100>
}
/** One limit of an account: `kind` is the provider's name for it, `utilization` percent used. */
export interface LimitWindow {
  kind: string
  label?: string
  utilization: number & tags.Minimum<0> & tags.Maximum<100>
  /** After it the window is dropped. */
  resetsAt?: Millis
  measuredAt: Millis
}
export interface AccountUsageFrame {
  kind: 'account_usage'
  account?: string
  windows: LimitWindow[]
}
export interface FastModeFrame {
  kind: 'fast_mode'
  state: 'off' | 'cooldown' | 'on'
  reason?: string
}
/** A request to the provider's server is repeated; `status` is its previous answer. */
export interface ProviderRetryFrame {
  kind: 'provider_retry'
  attempt: Positive
  maxAttempts?: Positive
  nextAttemptAt?: Millis
  status?: Count
  /** What went wrong, as a sentence, with the provider's own words. */
  message?: string
}
/** How much of the model's context is in use. */
export interface ContextUsageFrame {
  kind: 'context_usage'
  tokens: Count
  contextWindow: Count
}
/** The context was compacted. */
export interface CompactFrame {
  kind: 'compact'
  trigger: string
  preTokens?: Count
  postTokens?: Count
  /** What was lost, in a sentence. */
  detail?: string
}
/** A status or result of a service that a person allowed. */
export interface ServiceFrame {
  kind: 'service_event'
  requestId: string
  event: ServiceStatus | ServiceResult
}
export interface ServiceStatus {
  event: 'status'
  text: string
}
export interface ServiceResult {
  event: 'result'
  data: unknown
}
/** The receipt of a service run; `simulated`: nothing was bought. */
export interface ServiceReceiptFrame {
  kind: 'service_receipt'
  requestId: string
  outcome: 'ok' | 'refunded' | 'refused'
  credits: number
  remaining?: number
  simulated?: boolean
}
export interface CapabilityOutcomeFrame {
  kind: 'capability_outcome'
  requestId: string
  outcome: 'connected' | 'unfinished'
  id?: string
}
/** The receipt of a payment; `simulated`: nothing was paid. */
export interface PaymentReceiptFrame {
  kind: 'payment_receipt'
  requestId: string
  outcome: 'paid' | 'failed'
  amountUsd: string
  transaction?: string
  network?: string
  simulated?: boolean
}
/** The end of a card; no reply: nobody answered. */
export interface ResolvedFrame {
  kind: 'resolved'
  requestId: string
  reply?: CardReply
  by?: string
}
/** The whole queue, after every change during the run. */
export interface QueueFrame {
  kind: 'queue'
  messages: QueuedMessage[]
  paused: boolean
}
export interface NoticeFrame {
  kind: 'notice'
  level: 'info' | 'warning'
  text: string
  source?: string
  counts?: { [kind: string]: number }
}
export type ErrorCode =
  | 'session-not-found'
  | 'rate_limit'
  | 'reauth'
  | 'token-refused'
  | 'not-entitled'
  | 'provider-outage'
  | 'trial-unavailable'
  | 'trial-model-unavailable'
  | 'trial-exhausted'
  | 'unknown-command'
  | 'model-invalid'
  | 'subscription-required'
  | 'agent-busy'
  | 'harness-missing'
  | 'harness-crashed'
  | 'context-full'
  | 'runner-lost'
  | 'script-syntax'
/** When a turn that an outage ended is resumed, which try this is, and of how many. */
export interface OutageNote {
  retryAt: Millis
  attempt: Positive
  maxAttempts: Positive
}
export interface ErrorFrame {
  kind: 'error'
  message: string
  code?: ErrorCode
  resetsAt?: Millis
  /** After an outage: whether the turn resumes automatically, or could if that were turned on. */
  autoResume?: 'scheduled' | 'available'
  outage?: OutageNote
}
export interface LandedFrame {
  kind: 'landed'
  landed: boolean
  conflicts?: LandConflict[]
  held?: boolean
}
/** A need of the conversation was raised or settled. */
export interface NeedFrame {
  kind: 'need'
  id: string
  title: string
  status: string
}
/** What a standing rule of the settings did. */
export interface RuleFrame {
  kind: 'rule'
  id: string
  label: string
  moment: RuleMoment
  action: RuleRun['action']
  outcome: RuleRun['outcome']
  detail?: string
}
/** The terminal of the conversation, which people watch and type in. */
export interface TerminalFrame {
  kind: 'terminal'
  session: string
}
/** The browser of the conversation, which people watch and use. */
export interface BrowserFrame {
  kind: 'browser'
  session: string
}
/** Something that the conversation proposed has changed. */
export interface ApprovalFrame {
  kind: 'approval'
  id: string
  title: string
  status: string
}
/** The last frame of a run, exactly once. */
export interface DoneFrame {
  kind: 'done'
  reason: RunEnd
}
/** One item of a run. */
export type Frame =
  | SessionFrame
  | WorktreeFrame
  | PreambleFrame
  | InitFrame
  | TierFrame
  | SwitchedFrame
  | ResumedFrame
  | CheckpointFrame
  | ModeFrame
  | SteerFrame
  | DeltaFrame
  | TextEndFrame
  | ThinkingFrame
  | ToolCallFrame
  | ToolCallUpdateFrame
  | SubagentFrame
  | SubagentUpdateFrame
  | TodosFrame
  | CommandsFrame
  | UsageFrame
  | RateLimitFrame
  | AccountUsageFrame
  | FastModeFrame
  | ProviderRetryFrame
  | ContextUsageFrame
  | CompactFrame
  | Card
  | ServiceFrame
  | ServiceReceiptFrame
  | CapabilityOutcomeFrame
  | PaymentReceiptFrame
  | ResolvedFrame
  | QueueFrame
  | NoticeFrame
  | ErrorFrame
  | LandedFrame
  | NeedFrame
  | RuleFrame
  | TerminalFrame
  | BrowserFrame
  | ApprovalFrame
  | DoneFrame
