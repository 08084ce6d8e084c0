import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream'
import type { Socket } from 'node:net'

/** A connection over which nothing goes for this long is ended. */
const IDLE_MS = 900_000

/**
 * Joins two connections until both are over; each is read no faster than the other takes it.
 *
 * @param idleMs Ends them when nothing went over them for this long; 0: never.
 */
export const splice = (one: Socket | Duplex, other: Socket, idleMs = IDLE_MS): void => {
  const over = (error: unknown) => {
    if (!error) return
    one.destroy()
    other.destroy()
  }
  other.setTimeout(idleMs, () => other.destroy(new Error('nothing went over it')))
  pipeline(one, other, over)
  pipeline(other, one, over)
}
