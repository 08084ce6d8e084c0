import type { Count, Millis, Positive, Text } from '../../sdk/types.js'
import type { tags } from 'typia'

/** Chosen by the caller, or minted as `c-…`. */
export type ConversationId = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$'>
/** Minted; unique for ever in this sandbox. */
export type RunId = string
/** `script`, an account provider's id, `endpoint/<id>` or `agent/<id>`. */
export type ProviderId = string & tags.MinLength<1> & tags.MaxLength<120>
export type Harness = 'native' | 'vendor-code'
export type PermissionMode = 'default' | 'acceptEdits' | 'plan' | 'bypassPermissions'
export type RunEnd = 'completed' | 'failed' | 'stopped' | 'interrupted'

export type ToolCategory = 'read' | 'edit' | 'delete' | 'move' | 'search' | 'execute' | 'think' | 'fetch' | 'other'
export type ToolStatus = 'pending' | 'in_progress' | 'completed' | 'failed'

/** A place in a file: the path counts from the workspace root, with forward slashes. */
export interface Location {
  path: string
  line?: Positive
}

export interface TextContent {
  type: 'text'
  text: string
}
/** One file before and after; no `oldText`: a new file. */
export interface DiffContent {
  type: 'diff'
  path: string
  oldText?: string
  newText: string
  truncated?: boolean
}
/** A picture in the workspace, by its path; never its bytes. */
export interface ImageContent {
  type: 'image'
  path: string
}
export type ToolContent = TextContent | DiffContent | ImageContent

/** What the sandbox put in front of the words, exactly as the model was given it. */
export interface TurnNote {
  title: string
  text: string
}
export interface TodoItem {
  content: string
  status: 'pending' | 'in_progress' | 'completed'
  activeForm?: string
}
/** A shortcut of the provider; the name is without its leading marker. */
export interface Command {
  name: string
  description: string
  hint?: string
}

// Cards -------------------------------------------------------------------------------------------------------------

export interface QuestionOption {
  label: string
  description: string
  preview?: string
}
export interface Question {
  question: string
  header: string
  multiSelect: boolean
  options: QuestionOption[]
}
export interface PlanCard {
  kind: 'plan'
  requestId: string
  text: string
}
export interface QuestionCard {
  kind: 'question'
  requestId: string
  questions: Question[]
}
/** `alwaysLabel` is present only when "always" can be remembered. */
export interface PermissionCard {
  kind: 'permission'
  requestId: string
  toolName: string
  title?: string
  displayName?: string
  description?: string
  reason?: string
  path?: string
  alwaysLabel?: string
}
/** What an agent asks of a person; the turn is parked until it is answered. */
export type Card = PlanCard | QuestionCard | PermissionCard

export interface PlanReply {
  kind: 'plan'
  requestId: Text
  approve: boolean
  feedback?: string
}
/** A value is an option's label or the person's own words; a question left out counts as skipped. */
export interface QuestionReply {
  kind: 'question'
  requestId: Text
  answers?: { [question: string]: string | string[] }
  cancelled?: boolean
}
export interface PermissionReply {
  kind: 'permission'
  requestId: Text
  decision: 'once' | 'always' | 'deny'
  feedback?: string
}
/** A person's answer to a card. */
export type CardReply = PlanReply | QuestionReply | PermissionReply

// Frames ------------------------------------------------------------------------------------------------------------

export interface SessionFrame {
  kind: 'session'
  sessionId: string
}
/** The private copy the turn works in; `unenforced`: this machine cannot wall the turn into it. */
export interface WorktreeFrame {
  kind: 'worktree'
  branch: string
  base: string
  unenforced?: boolean
  sync?: { commits: Count; blocked: string[] }
}
export interface PreambleFrame {
  kind: 'preamble'
  notes: TurnNote[]
}
export interface InitFrame {
  kind: 'init'
  model: string
  provider?: ProviderId
  harness?: Harness
  account?: string
}
/** The run goes on elsewhere from here, with its provider's session or with the record. */
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
/** The work as it was before this turn's message; `index` is the message's position in the transcript. */
export interface CheckpointFrame {
  kind: 'checkpoint'
  id: string
  index?: Count
}
export interface ModeFrame {
  kind: 'mode'
  mode: PermissionMode
}
/** Words said into the running turn. */
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
/** Replaces what it names of the call; never appends. */
export interface ToolCallUpdateFrame {
  kind: 'tool_call_update'
  id: string
  status?: ToolStatus
  content?: ToolContent[]
  locations?: Location[]
}
export interface TodosFrame {
  kind: 'todos'
  items: TodoItem[]
}
export interface CommandsFrame {
  kind: 'commands'
  items: Command[]
}
export interface UsageFrame {
  kind: 'usage'
  account?: string
  costUsd?: number
  inputTokens?: Count
  outputTokens?: Count
  cacheReadTokens?: Count
  cacheCreationTokens?: Count
  durationMs?: Count
  numTurns?: Count
}
/** What became of a card; no reply: nobody answered. */
export interface ResolvedFrame {
  kind: 'resolved'
  requestId: string
  reply?: CardReply
  by?: string
}
/** The whole queue, after every change while the run lives. */
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
  | 'session-not-found' | 'rate_limit' | 'reauth' | 'token-refused' | 'not-entitled' | 'provider-outage'
  | 'trial-unavailable' | 'trial-model-unavailable' | 'trial-exhausted' | 'unknown-command' | 'model-invalid'
  | 'subscription-required' | 'agent-busy' | 'harness-missing' | 'harness-crashed' | 'context-full' | 'runner-lost'
  | 'script-syntax'
export interface ErrorFrame {
  kind: 'error'
  message: string
  code?: ErrorCode
  resetsAt?: Millis
}
export interface LandedFrame {
  kind: 'landed'
  landed: boolean
  conflicts?: LandConflict[]
  held?: boolean
}
/** The last frame of a run, exactly once. */
export interface DoneFrame {
  kind: 'done'
  reason: RunEnd
}
/** One item of a run. */
export type Frame =
  | SessionFrame | WorktreeFrame | PreambleFrame | InitFrame | SwitchedFrame | ResumedFrame | CheckpointFrame | ModeFrame
  | SteerFrame | DeltaFrame | TextEndFrame | ThinkingFrame
  | ToolCallFrame | ToolCallUpdateFrame | TodosFrame | CommandsFrame | UsageFrame
  | PlanCard | QuestionCard | PermissionCard | ResolvedFrame
  | QueueFrame | NoticeFrame | ErrorFrame | LandedFrame | DoneFrame

// Queue and landing records that frames carry ------------------------------------------------------------------------

/** Why a message waits. */
export type QueuedWhy =
  | 'no-mid-turn-words' | 'parked' | 'stopping' | 'other-options' | 'errand' | 'behind-others' | 'budget'

export interface QueuedMessage {
  messageId: string
  /** The run this message will start. */
  run: RunId
  text: string
  attachments: string[]
  mentions: string[]
  errand?: string
  by: string
  at: Millis
  why: QueuedWhy
  /** Everything else the message asked for. */
  options: { [option: string]: unknown }
}

/**
 * Why a path does not land: `workspace` your uncommitted copy is in the way, `diverged` the committed main line moved
 * on, `binary` git cannot merge it.
 */
export type ConflictReason = 'workspace' | 'diverged' | 'binary'
export interface ConflictPath {
  path: string
  reason: ConflictReason
}
/** What of one repository does not land; `clean` counts what would. Both empty: the main checkout is gone. */
export interface LandConflict {
  repo: string
  paths: ConflictPath[]
  clean: Count
  mainBranch?: string
}
