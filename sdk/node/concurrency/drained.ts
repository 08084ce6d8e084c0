import type { Writable } from 'node:stream'

/** Resolves when the stream drains, or when the signal is aborted. */
export const drained = (out: Writable, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const go = () => {
      out.off('drain', go)
      signal.removeEventListener('abort', go)
      resolve()
    }
    out.once('drain', go)
    signal.addEventListener('abort', go, { once: true })
  })
