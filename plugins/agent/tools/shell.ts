import { endedProgram } from './program.js'
import { Fields, tool } from './tool.js'
import { folderAt } from './tree.js'

const MOST_MS = 3_600_000
const USUAL_MS = 600_000

interface ShellInput {
  readonly command: string
  readonly cwd?: string
  readonly timeoutMs: number
}

/** Runs a command in the agent's shell; its output, and how it ended when not well. */
export const shell = tool<ShellInput>({
  category: 'execute',
  check: input => {
    const fields = new Fields('Shell', input)
    const command = fields.text('command', { least: 1, most: 100_000 })
    if (command.includes('\0')) fields.wrong('command', 'text without NUL', 'one with a NUL')
    if (fields.flag('background')) fields.wrong('background', 'false: commands run to their end', true)
    const cwd = fields.value('cwd') === undefined ? undefined : fields.path('cwd')
    const timeoutMs = fields.whole('timeoutMs', { least: 1, most: MOST_MS }) ?? USUAL_MS
    return { command, timeoutMs, ...(cwd !== undefined && { cwd }) }
  },
  describe: ({ command }) => ({
    target: command.length > 200 ? `${command.slice(0, 200).toWellFormed()}…` : command,
    command,
  }),
  run: async ({ command, cwd, timeoutMs }, tree) => {
    const { root, shell, onOutput } = tree
    const folder = cwd === undefined || cwd === '.' ? root : await folderAt(tree, cwd)
    return endedProgram(await shell(command, folder, { timeoutMs, ...(onOutput && { onOutput }) }), timeoutMs)
  },
})
