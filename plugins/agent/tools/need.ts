import { done, tool } from './tool.js'

const WAITS =
  'Somebody is asked. End your turn now and say what you wait for: the conversation goes on by itself once '
  + 'it is settled.'
const GOES_ON = 'Somebody is asked. Go on: you are told the answer at the beginning of a later turn.'

/** Asks for something that only a person can give; nobody has to be watching. */
export const raiseNeed = tool('Need', {
  category: 'other',
  describe: ({ title }) => ({ target: title }),
  run: async (asked, { needs }) => {
    const id = await needs.raise(asked)
    return done(`${id}: ${asked.title}\n${asked.blocking === false ? GOES_ON : WAITS}`)
  },
})

/** Takes back a need that the agent can do without. */
export const withdrawNeed = tool('Withdraw', {
  category: 'other',
  describe: ({ id }) => ({ target: id }),
  run: async ({ id }, { needs }) => {
    await needs.withdraw(id)
    return done(`${id} is withdrawn`)
  },
})

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
