import { done, tool } from './tool.js'

const MARKS = { pending: ' ', in_progress: '~', completed: 'x' } as const

/** Takes the list of what is to do; the frame `todos` shows it. */
export const todo = tool('Todo', {
  category: 'think',
  describe: ({ items }) => {
    const current = items.find(({ status }) => status === 'in_progress')
    return { target: current?.content.slice(0, 200) ?? `${items.length} items` }
  },
  run: async ({ items }) =>
    done(items.map(({ content, status }) => `[${MARKS[status]}] ${content}`).join('\n') || 'nothing to do'),
})
