import type { ToolCategory } from '../../turn/frames/frames.js'

/** A tool call as a script makes it. */
export interface ToolUse {
  readonly name: string
  readonly category: ToolCategory
  readonly target: string
  readonly input: object
  /** Paths whose content tells whether the call had its effect. */
  readonly changes?: readonly string[]
  /** Never made again when it may have been made. */
  readonly once?: boolean
}
