import { setTimeout as delay } from 'node:timers/promises'

const PERIOD_MS = 50

/**
 * Keeps a stream of bytes to a pace: called with the bytes of each piece; a returned promise settles when the next
 * piece may come.
 */
export const pace = (bytesPerSecond: number): ((bytes: number) => Promise<void> | undefined) => {
  const most = (bytesPerSecond * PERIOD_MS) / 1000
  let [taken, began] = [0, performance.now()]
  return bytes => {
    const now = performance.now()
    if (now - began >= PERIOD_MS) [taken, began] = [0, now]
    taken += bytes
    if (taken <= most) return undefined
    // What is above one period takes as many more.
    const rest = (Math.ceil(taken / most) - 1) * PERIOD_MS - (now - began)
    return rest > 0 ? delay(rest, undefined, { ref: false }) : undefined
  }
}
