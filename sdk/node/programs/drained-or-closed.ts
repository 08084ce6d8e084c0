import type { Writable } from 'node:stream'

/** Resolves when a stream takes more, or is closed; leaves no listener on it, however often it is asked. */
export const drainedOrClosed = (out: Writable): Promise<void> =>
  new Promise(resolve => {
    const go = () => {
      out.off('drain', go).off('close', go)
      resolve()
    }
    if (out.closed || out.destroyed) return resolve()
    out.on('drain', go).on('close', go)
  })
