import type { ToolCategory } from '../frames.js'
import type { ToolAction } from './command.js'
import { helperUse } from './helper-verbs.js'

/** A tool call as the interpreter makes it. */
export interface Use {
  readonly name: string
  readonly category: ToolCategory
  readonly target: string
  readonly input: object
  /** Paths whose content tells whether the call had its effect. */
  readonly changes?: readonly string[]
  /** Never made again when it may have been made. */
  readonly once?: boolean
}

/** The call that a line stands for, its variables replaced by `text`. */
export const useOf = (action: ToolAction, text: (raw: string) => string): Use => {
  switch (action.verb) {
    case 'helper':
    case 'join':
      return helperUse(action, text)
    case 'run': {
      const command = text(action.text)
      return { name: 'Shell', category: 'execute', target: command, input: { command }, once: true }
    }
    case 'move': {
      const [from, to] = [text(action.from), text(action.to)]
      return { name: 'Move', category: 'move', target: from, input: { from, to }, changes: [from, to] }
    }
    case 'todo': {
      const items = action.items.map(item => ({ ...item, content: text(item.content) }))
      return { name: 'Todo', category: 'think', target: `${items.length} items`, input: { items } }
    }
  }
  const path = text(action.path)
  switch (action.verb) {
    case 'read': {
      const { from, to } = action
      const range = from !== undefined && to !== undefined && { offset: from, limit: to - from + 1 }
      return { name: 'Read', category: 'read', target: path, input: { path, ...range } }
    }
    case 'image':
      return { name: 'Read', category: 'read', target: path, input: { path } }
    case 'list':
      return { name: 'List', category: 'search', target: path, input: { path } }
    case 'write':
      return { name: 'Write', category: 'edit', target: path, input: { path, content: text(action.content) } }
    case 'append':
      return {
        name: 'Append', category: 'edit', target: path, input: { path, content: text(action.content) }, changes: [path],
      }
    case 'edit':
      return {
        name: 'Edit', category: 'edit', target: path, changes: [path],
        input: { path, old: text(action.old), new: text(action.new) },
      }
    case 'delete':
      return { name: 'Delete', category: 'delete', target: path, input: { path }, changes: [path] }
  }
}
