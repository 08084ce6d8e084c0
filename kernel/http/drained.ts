import type { Writable } from 'node:stream'

/** Waits until a slow reader has taken what was written, or nobody wants more. */
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
