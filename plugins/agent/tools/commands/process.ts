import type { ToolResult } from '../../providers/adapter.js'
import type { BackgroundProcess } from '../../processes/background-process.js'
import { textContent } from '../content.js'
import { done, failed, tool, type ProcessTools } from '../tool.js'
import type { ProcessInput } from '../contract.js'

type Action = ProcessInput['action']

/** What each action takes. */
const TAKES: { readonly [action in Action]: readonly (keyof ProcessInput)[] } = {
  list: [],
  output: ['id', 'since', 'waitMs'],
  input: ['id', 'text'],
  kill: ['id'],
}
const NEEDS = ['id', 'text'] as const
const FIELDS = ['id', 'since', 'waitMs', 'text'] as const

/** What a command wrote since the last look or a position, and whether it runs. */
export const outputOf = (process: BackgroundProcess, since?: number): ToolResult => {
  const { id } = process.facts
  const asked = process.place(since)
  const { text, from, to } = process.output(since)
  const state = process.ended ? `${id} ${process.ended.how}` : `${id} runs`
  const lost = from > asked ? `[the output from ${asked} to ${from} is no longer kept]\n` : ''
  const part = to === from ? `nothing new; its output ends at ${to}` : `this is its output from ${from} to ${to}`
  const all = `${lost}${text}${text === '' || text.endsWith('\n') ? '' : '\n'}[${state}; ${part}]`
  return done(all, textContent(all))
}

const listed = (processes: ProcessTools): string => {
  const rows = processes.all().map(({ id, state, startedAt, command, usable }) => {
    const seconds = Math.round((Date.now() - startedAt) / 1000)
    return `${id} ${state}, started ${seconds} s ago: ${usable ? command : '[by a turn with other access]'}`
  })
  return rows.length === 0 ? 'no command runs in the background' : rows.join('\n')
}

/** Looks at the commands in the background, writes to one, or ends it. */
export const processTool = tool('Process', {
  category: 'execute',
  refine: (input, misfit) => {
    const { action } = input
    for (const field of NEEDS)
      if (input[field] === undefined && TAKES[action].includes(field))
        misfit(field, `a value, which ${action} takes`, undefined)
    for (const field of FIELDS)
      if (input[field] !== undefined && !TAKES[action].includes(field))
        misfit(field, `none with ${action}`, input[field])
  },
  // What is written to a shell is judged as a command, and a look as reading.
  describe: ({ action, id, text }) => ({
    target: id === undefined ? action : `${action} ${id}`,
    ...(action === 'input' ? { command: text ?? '' } : { category: 'think' }),
  }),
  run: async ({ action, id = '', since, waitMs, text = '' }, { processes, references, signal }) => {
    if (action === 'list') {
      const rows = listed(processes)
      processes.told()
      return done(rows)
    }
    const process = processes.one(id, action === 'kill' ? 'end' : 'use')
    if (action === 'kill') {
      const before = process.ended?.how
      await process.end('by a call of Process')
      processes.told()
      return done(before === undefined ? `ended ${id}` : `${id} ${before} before`)
    }
    if (action === 'input') {
      const refusal = process.write(await references.text(text, 'code'))
      if (refusal !== undefined) return failed(`nothing was written: ${id} ${refusal}`)
      return done(text === '' ? `ended the input of ${id}` : `wrote ${Buffer.byteLength(text)} bytes to ${id}`)
    }
    if (waitMs !== undefined) await process.news(waitMs, signal, since)
    if (process.ended) processes.told()
    return outputOf(process, since)
  },
})
