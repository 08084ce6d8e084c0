import type { Count, Millis, Positive } from '../../../../sdk/types.js'

/** Minted; unique for ever in this sandbox. */
export type RunId = string

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

/** A note of the sandbox before the message, exactly as the model received it. */
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

/** Why a message waits. */
export type QueuedWhy =
  | 'no-mid-turn-words'
  | 'parked'
  | 'stopping'
  | 'other-options'
  | 'errand'
  | 'behind-others'
  | 'budget'

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
  /** The other options of the message. */
  options: { [option: string]: unknown }
}

/**
 * Why a path does not land: `workspace`: your uncommitted version conflicts, `diverged`: the committed main line
 * changed, `binary`: git cannot merge it.
 */
export type ConflictReason = 'workspace' | 'diverged' | 'binary'
/** What stands where a file or folder of the work would be: such as a file at `docs` for `docs/a.md`. */
export interface InTheWay {
  path: string
  /** `outside`: the change itself is a link that leads out of the workspace. */
  what: 'file' | 'folder' | 'link' | 'repository' | 'closed' | 'special' | 'outside'
}
export interface ConflictPath {
  path: string
  reason: ConflictReason
  /** Absent: a file stands there, with other content. */
  inTheWay?: InTheWay
}
/**
 * The paths of one repository that do not land; `clean` counts those that would. Both empty: the main checkout is
 * missing.
 */
export interface LandConflict {
  repo: string
  paths: ConflictPath[]
  clean: Count
  mainBranch?: string
}
