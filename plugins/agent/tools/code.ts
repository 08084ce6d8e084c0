import { endedProgram } from './program.js'
import { tool } from './tool.js'

const USUAL_MS = 600_000

/** Runs JavaScript in a process of its own; what it prints, and how it ended when not well. */
export const code = tool('Code', {
  category: 'execute',
  describe: ({ source }) => ({ target: source.slice(0, 200).toWellFormed(), code: source }),
  run: async ({ source, timeoutMs = USUAL_MS }, { code, onOutput, references }) => {
    const options = { timeoutMs, shown: source, ...(onOutput && { onOutput }) }
    return endedProgram(await code(await references.text(source, 'code'), options), timeoutMs)
  },
})
