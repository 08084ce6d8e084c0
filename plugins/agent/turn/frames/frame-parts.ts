import type { Positive } from '../../../../sdk/types.js'

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
