import { stat } from 'node:fs/promises'
import { missingProgram } from './own-programs.js'
import { codeOf } from '../files/paths.js'
import { type RunOptions, type RunResult, runHere } from './run-here.js'
import { runner } from './runner.js'

export { listEnv, type Env } from './list-env.js'
export { missingProgram, needProgram, ownEnv, ownProgram } from './own-programs.js'
export { killWalled, signalGroup, type RunOptions, type RunResult } from './run-here.js'

const failedStart = async (error: unknown, program: string, cwd: string): Promise<never> => {
  if (codeOf(error) !== 'ENOENT' || (error as NodeJS.ErrnoException).syscall?.startsWith('spawn') !== true) throw error
  const folder = await stat(cwd).catch(() => undefined)
  if (folder?.isDirectory()) return missingProgram(program)
  throw new Error(`cannot start ${program}: its working folder does not exist`, { cause: error })
}

let starts = Promise.resolve()

/** Starts one program per turn of the event loop: each start blocks it, and many at once would block it for long. */
const inTurn = (): Promise<void> => (starts = starts.then(() => new Promise(resolve => setImmediate(resolve))))

/**
 * Runs a program to its end in its own process group, which has ended when this resolves.
 *
 * On a timeout the result has `timedOut`; an aborted signal is thrown. Either way the group gets SIGTERM and after 2 s
 * SIGKILL; behind a wall SIGKILL at once.
 */
export const run = async (program: string, args: readonly string[], options: RunOptions): Promise<RunResult> => {
  const far = runner()
  if (!far) await inTurn()
  options.signal?.throwIfAborted()
  try {
    return await (far ? far.run(program, args, options) : runHere(program, args, options))
  } catch (error) {
    return failedStart(error, program, options.cwd)
  }
}
