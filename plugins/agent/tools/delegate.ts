import type { SubagentSpec } from '../providers/adapter.js'
import { done, failed, Fields, tool } from './tool.js'

const MOST_PROMPT = 1024 * 1024
const MOST_MS = 3_600_000
const MOST_IDS = 200

const optional = (fields: Fields, name: 'agentType' | 'model') =>
  fields.value(name) === undefined ? undefined : fields.text(name, { least: 1, most: 120 })

/** Gives a part of the work to a helper: its last words, or at once when it works in the background. */
export const delegate = tool<SubagentSpec>({
  category: 'other',
  check: input => {
    const fields = new Fields('Delegate', input)
    const [agentType, model] = [optional(fields, 'agentType'), optional(fields, 'model')]
    return {
      description: fields.text('description', { least: 1, most: 2000 }),
      prompt: fields.text('prompt', { least: 1, most: MOST_PROMPT }),
      background: fields.flag('background'),
      ...(agentType !== undefined && { agentType }),
      ...(model !== undefined && { model }),
    }
  },
  describe: ({ description }) => ({ target: description }),
  run: async (spec, { subagents }) => {
    const { status, summary } = await subagents.delegate(spec)
    if (status === 'completed') return done(summary || 'the helper ended without a word')
    if (status === 'running' || status === 'blocked') return done(summary)
    return failed(status === 'killed' ? 'the helper was stopped' : summary)
  },
})

interface JoinInput {
  readonly ids?: readonly string[]
  readonly timeoutMs?: number
}

/** Waits for helpers in the background, all unless some are named; what became of each. */
export const join = tool<JoinInput>({
  category: 'other',
  check: input => {
    const fields = new Fields('Join', input)
    const [ids, timeoutMs] = [fields.value('ids'), fields.whole('timeoutMs', { least: 1, most: MOST_MS })]
    if (ids !== undefined && !isIds(ids))
      return fields.wrong('ids', `a list of at most ${MOST_IDS} ids of helpers`, ids)
    return { ...(ids !== undefined && { ids }), ...(timeoutMs !== undefined && { timeoutMs }) }
  },
  describe: ({ ids }) => (ids ? { target: ids.join(', ').slice(0, 200) } : {}),
  run: async ({ ids, timeoutMs }, { subagents }) => {
    const joined = await subagents.join(ids, timeoutMs)
    if (!joined.length) return done('no helper works in the background')
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

const isIds = (value: unknown): value is string[] =>
  Array.isArray(value)
  && value.length > 0
  && value.length <= MOST_IDS
  && value.every(id => typeof id === 'string' && id.length <= 400)
