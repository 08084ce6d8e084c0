import { endedProgram } from './program.js'
import { Fields, tool } from './tool.js'

const MOST_MS = 3_600_000
const USUAL_MS = 600_000

interface CodeInput {
  readonly source: string
  readonly timeoutMs: number
}

/** Runs JavaScript in a process of its own; what it prints, and how it ended when not well. */
export const code = tool<CodeInput>({
  category: 'execute',
  check: input => {
    const fields = new Fields('Code', input)
    const timeoutMs = fields.whole('timeoutMs', { least: 1, most: MOST_MS }) ?? USUAL_MS
    return { source: fields.text('source', { least: 1, most: 1024 * 1024 }), timeoutMs }
  },
  describe: ({ source }) => ({ target: source.slice(0, 200).toWellFormed(), code: source }),
  run: async ({ source, timeoutMs }, { code, onOutput }) =>
    endedProgram(await code(source, { timeoutMs, ...(onOutput && { onOutput }) }), timeoutMs),
})
