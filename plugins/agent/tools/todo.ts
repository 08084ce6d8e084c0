import type { TodoItem } from '../turn/frames.js'
import { done, Fields, tool } from './tool.js'

const MARKS = { pending: ' ', in_progress: '~', completed: 'x' } as const
const isStatus = (status: unknown): status is TodoItem['status'] =>
  typeof status === 'string' && Object.hasOwn(MARKS, status)

/** Takes the list of what is to do; the frame `todos` shows it. */
export const todo = tool<{ readonly items: readonly TodoItem[] }>({
  category: 'think',
  check: input => {
    const fields = new Fields('Todo', input)
    const items = fields.value('items')
    if (!Array.isArray(items) || items.length > 200) return fields.wrong('items', 'a list of at most 200', items)
    return {
      items: items.map((value: unknown, at): TodoItem => {
        const item = new Fields(`Todo (items.${at})`, value)
        const [content, status] = [item.text('content', { least: 1, most: 2000 }), item.value('status')]
        const activeForm = item.value('activeForm') === undefined ? undefined : item.text('activeForm', { most: 2000 })
        if (!isStatus(status)) return item.wrong('status', 'one of pending, in_progress, completed', status)
        return { content, status, ...(activeForm !== undefined && { activeForm }) }
      }),
    }
  },
  describe: ({ items }) => {
    const current = items.find(({ status }) => status === 'in_progress')
    return { target: current?.content.slice(0, 200) ?? `${items.length} items` }
  },
  run: async ({ items }) =>
    done(items.map(({ content, status }) => `[${MARKS[status]}] ${content}`).join('\n') || 'nothing to do'),
})
