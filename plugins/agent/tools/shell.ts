import { endedProgram } from './program.js'
import { tool } from './tool.js'
import { folderAt } from './tree.js'

const USUAL_MS = 600_000

/** Runs a command in the agent's shell; returns its output, with the exit code if it failed. */
export const shell = tool('Shell', {
  category: 'execute',
  refine: ({ command, background }, misfit) => {
    if (command.includes('\0')) misfit('command', 'text without NUL', 'text with a NUL')
    if (background) misfit('background', 'false, because a call waits for its command', true)
  },
  describe: ({ command }) => ({
    target: command.length > 200 ? `${command.slice(0, 200).toWellFormed()}…` : command,
    command,
  }),
  run: async ({ command, cwd, timeoutMs = USUAL_MS }, tree) => {
    const { root, shell, onOutput, references, shorten } = tree
    const { text, env } = await references.command(command)
    const folder = cwd === undefined || cwd === '.' ? root : await folderAt(tree, cwd)
    const options = { timeoutMs, env, shown: command, ...(onOutput && { onOutput }) }
    const ended = await shell(text, folder, options)
    return endedProgram(ended, { timeoutMs, command, ...(shorten && { shorten }) })
  },
})
