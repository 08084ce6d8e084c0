import { Worker } from 'node:worker_threads'

const MOST_MEMORY_MB = 768
const GRACE_MS = 5_000

/** What a thread works on, and how long it may. */
export interface ThreadTask {
  /** What the script finds as its `workerData`. */
  readonly data: { readonly longestMs: number }
  readonly signal: AbortSignal
}

/**
 * Runs a script in a thread of its own, without an environment, so that other calls go on meanwhile; returns the
 * first message it posts. It is ended 5 s after its `longestMs`, or with the signal.
 *
 * @throws Where it fails, is ended before, or needs more than 768 MiB.
 */
export const inThread = async <T>(script: string, { data, signal }: ThreadTask): Promise<T> => {
  const worker = new Worker(script, {
    workerData: data,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
  })
  const stop = AbortSignal.any([signal, AbortSignal.timeout(data.longestMs + GRACE_MS)])
  const end = () => void worker.terminate()
  stop.addEventListener('abort', end, { once: true })
  try {
    return await new Promise<T>((resolve, reject) => {
      worker.once('message', resolve).once('error', reject)
      worker.once('exit', () => reject(new Error('the thread was ended before its work was done')))
    })
  } finally {
    stop.removeEventListener('abort', end)
    await worker.terminate()
  }
}
