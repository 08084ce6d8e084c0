import { endedProgram } from './program.js'
import { tool } from '../tool.js'

const USUAL_MS = 600_000

/** Runs JavaScript in its own process; returns its output, with the exit code if it failed. */
export const code = tool('Code', {
  category: 'execute',
  describe: ({ source }) => ({ target: source.slice(0, 200).toWellFormed(), code: source }),
  run: async ({ source, timeoutMs = USUAL_MS }, { code, onOutput, references, shorten }) => {
    const options = { timeoutMs, shown: source, ...(onOutput && { onOutput }) }
    const ended = await code(await references.text(source, 'code'), options)
    return endedProgram(ended, { timeoutMs, ...(shorten && { shorten }) })
  },
})
