import { done, tool } from './tool.js'

/** Files a post or an action for a person to decide; nothing is carried out. */
export const propose = tool('Propose', {
  category: 'other',
  describe: ({ post, action }) => ({
    target: post ? `${post.platform} ${post.target ?? ''}`.trim() : (action?.key ?? ''),
  }),
  run: async (draft, { approvals, root, folders }) => {
    const { id, problem } = await approvals.file(draft, { root, ...(folders && { folders: [...folders] }) })
    const lack = problem === undefined ? '' : `\nAs it is it cannot be carried out: ${problem}.`
    return done(`${id}: it waits for a person's yes. Go on, and do not do it another way.${lack}`)
  },
})
