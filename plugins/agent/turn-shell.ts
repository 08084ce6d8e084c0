import { join, relative } from 'node:path'
import { listEnv, type RunOptions } from '../../sdk/node/run.js'
import { runWalled, type WallSpec } from '../../sdk/node/wall.js'
import type { ShellResult, ToolContext } from './tools/tool.js'

const MOST_OUTPUT = 1024 * 1024
const SHELL = 'sh'
/** The command is an argument of its own; both outputs go one way, in the order they come. */
const BOTH = 'exec sh -c "$1" 2>&1'

/** The agent's shell in one tree: behind the wall, in a process group of its own that ends with the turn. */
export const turnShell =
  (wall: Omit<WallSpec, 'cwd' | 'env'>, root: string, signal: AbortSignal): ToolContext['shell'] =>
  async (command, cwd, { timeoutMs, onOutput }): Promise<ShellResult> => {
    const seen = join(wall.workspace, relative(root, cwd))
    const options: Omit<RunOptions, 'cwd' | 'env'> = {
      signal, timeoutMs, maxBytes: MOST_OUTPUT, ...(onOutput && { onOutput: piece => onOutput(piece.toString()) }),
    }
    const result = await runWalled({ ...wall, cwd: seen, env: listEnv({ PWD: seen }) }, SHELL, ['-c', BOTH, SHELL, command], options)
    return { exit: result.code, output: result.stdout.toString() + result.stderr, truncated: result.truncated, timedOut: result.timedOut }
  }
