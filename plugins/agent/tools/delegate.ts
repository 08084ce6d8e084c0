import { done, failed, tool } from './tool.js'

/** Gives a part of the work to a subagent; returns its final text, or at once if it runs in the background. */
export const delegate = tool('Delegate', {
  category: 'other',
  describe: ({ description }) => ({ target: description }),
  run: async ({ description, prompt, background, agentType, model }, { subagents }) => {
    const { status, summary } = await subagents.delegate({
      description,
      prompt,
      background: background ?? false,
      ...(agentType !== undefined && { agentType }),
      ...(model !== undefined && { model }),
    })
    if (status === 'completed') return done(summary || 'the subagent ended without a text')
    if (status === 'running' || status === 'blocked') return done(summary)
    return failed(status === 'killed' ? 'the subagent was stopped' : summary)
  },
})

/** Waits for subagents in the background, those named or all; returns the result of each. */
export const join = tool('Join', {
  category: 'other',
  describe: ({ ids }) => (ids ? { target: ids.join(', ').slice(0, 200) } : {}),
  run: async ({ ids, timeoutMs }, { subagents }) => {
    const joined = await subagents.join(ids, timeoutMs)
    if (!joined.length) return done('no subagent works in the background')
    const told = joined.map(
      ({ id, description, status, summary }) =>
        `${id}${description ? ` (${description})` : ''}: ${WORDS[status] ?? status}${summary ? `: ${summary}` : ''}`,
    )
    const text = told.join('\n')
    return joined.every(({ status }) => status === 'completed') ? done(text) : failed(text)
  },
})

const WORDS: { readonly [status: string]: string } = {
  running: 'still at work',
  blocked: 'waits for an answer',
  killed: 'stopped',
}
