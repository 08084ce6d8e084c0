import { endedProgram } from './program.js'
import { tool } from './tool.js'

const USUAL_MS = 600_000

/** Runs JavaScript in its own process; returns its output, with the exit code if it failed. */
export const code = tool('Code', {
  category: 'execute',
  describe: ({ source }) => ({ target: source.slice(0, 200).toWellFormed(), code: source }),
  run: async ({ source, timeoutMs = USUAL_MS }, { code, onOutput, references }) => {
    const options = { timeoutMs, shown: source, ...(onOutput && { onOutput }) }
    return endedProgram(await code(await references.text(source, 'code'), options), timeoutMs)
  },
})
