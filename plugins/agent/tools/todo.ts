import { done, tool } from './tool.js'

const MARKS = { pending: ' ', in_progress: '~', completed: 'x' } as const

/** Replaces the todo list, which the frame `todos` shows. */
export const todo = tool('Todo', {
  category: 'think',
  describe: ({ items }) => {
    const current = items.find(({ status }) => status === 'in_progress')
    return { target: current?.content.slice(0, 200) ?? `${items.length} items` }
  },
  run: async ({ items }) =>
    done(items.map(({ content, status }) => `[${MARKS[status]}] ${content}`).join('\n') || 'nothing to do'),
})
