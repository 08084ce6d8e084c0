import type { Host } from '../../sdk/index.js'
import { Refusal } from '../../sdk/index.js'
import { Limiter } from '../../sdk/node/limits/limiter.js'
import { listEnv, type RunOptions, type RunResult } from '../../sdk/node/programs/run.js'
import { runWalled } from '../../sdk/node/wall/wall.js'

/** A program of the daemon's own took more memory than it may have. */
export class OverMemory extends Error {}

const GIB = 1024 ** 3
const LIMITS = { memory: GIB, processes: 64, openFiles: 1024, fileSize: 64 * 1024 * 1024, pseudoTerminals: 16 }
const HEAP = '--max-old-space-size=768'

const limiter = new Limiter(LIMITS)
let runs = 0

/**
 * Runs a program of the daemon's own on foreign input: behind a wall, without network, seeing neither the workspace nor
 * the data folder, with at most 1 GiB of memory. It has only its input and its output.
 *
 * @throws OverMemory, or the reason of the signal.
 */
export const runConfined = async (
  { workspace, data, hidden }: Pick<Host['place'], 'workspace' | 'data' | 'hidden'>,
  script: string,
  options: Pick<RunOptions, 'input' | 'signal' | 'timeoutMs' | 'maxBytes'>,
): Promise<RunResult> => {
  try {
    return await runWalled(
      {
        workspace,
        data,
        hide: hidden,
        cwd: '/',
        env: listEnv(),
        only: [],
        sealed: true,
        offline: true,
        limits: limiter.of(`confined ${++runs}`),
      },
      process.execPath,
      [HEAP, script],
      options,
    )
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'too-large')
      throw new OverMemory('it took more than 1 GiB of memory')
    throw error
  }
}
