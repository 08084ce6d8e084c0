import { setTimeout as delay } from 'node:timers/promises'
import { tool } from '../tool.js'
import { folderAt } from '../tree.js'
import { outputOf } from './process.js'
import { endedProgram } from './program.js'

const USUAL_MS = 600_000
/** A command that fails at once says so in the result that starts it. */
const EARLY_MS = 1_000

/** Runs a command in the agent's shell; returns its output, with the exit code if it failed. */
export const shell = tool('Shell', {
  category: 'execute',
  refine: ({ command }, misfit) => {
    if (command.includes('\0')) misfit('command', 'text without NUL', 'text with a NUL')
  },
  describe: ({ command }) => ({
    target: command.length > 200 ? `${command.slice(0, 200).toWellFormed()}…` : command,
    command,
  }),
  run: async ({ command, cwd, timeoutMs, background }, tree) => {
    const { root, shell, onOutput, references, shorten, processes, signal } = tree
    const { text, env } = await references.command(command)
    const folder = cwd === undefined || cwd === '.' ? root : await folderAt(tree, cwd)
    if (background) {
      const timed = timeoutMs === undefined ? {} : { timeoutMs }
      const started = await processes.start(text, folder, { env, shown: command, ...timed })
      await Promise.race([started.over, delay(EARLY_MS, undefined, { signal, ref: false })])
      return { ...outputOf(started), ok: started.ended === undefined || started.ended.exit === 0 }
    }
    const most = timeoutMs ?? USUAL_MS
    const options = { timeoutMs: most, env, shown: command, ...(onOutput && { onOutput }) }
    const ended = await shell(text, folder, options)
    return endedProgram(ended, { timeoutMs: most, command, ...(shorten && { shorten }) })
  },
})
