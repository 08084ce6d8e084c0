import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { SafetyReplay } from '../contract.js'
import type { ReplayAsked } from './replay.js'

const WORKER = 'plugins/safety/replay/replay-worker.js'
const MOST_MEMORY_MB = 512
const GRACE_MS = 5_000

/** Runs a replay in a thread of its own, so that other calls go on meanwhile. */
export const runReplay = async (root: string, asked: ReplayAsked, signal: AbortSignal): Promise<SafetyReplay> => {
  const worker = new Worker(join(root, WORKER), {
    workerData: asked,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
  })
  const stop = AbortSignal.any([signal, AbortSignal.timeout(asked.longestMs + GRACE_MS)])
  const end = () => void worker.terminate()
  stop.addEventListener('abort', end, { once: true })
  try {
    return await new Promise<SafetyReplay>((resolve, reject) => {
      worker.once('message', resolve).once('error', reject)
      worker.once('exit', () => reject(new Error('the replay was ended before it was done')))
    })
  } finally {
    stop.removeEventListener('abort', end)
    await worker.terminate()
  }
}
