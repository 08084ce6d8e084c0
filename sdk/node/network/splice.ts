import { Socket } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'

/** A connection over which nothing goes for this long is ended. */
const IDLE_MS = 900_000

/** How two connections are joined. */
export interface SpliceOptions {
  /** Ends them when nothing went over them for this long; 0: never. */
  readonly idleMs?: number
  /** What the other one says goes through this. */
  readonly through?: Duplex
}

/**
 * Joins two connections until both are over; each is read no faster than the other takes it.
 *
 * @param other The one that `through` is put behind.
 */
export const splice = (
  one: Socket | Duplex,
  other: Socket | Duplex,
  { idleMs = IDLE_MS, through }: SpliceOptions = {},
): void => {
  const over = (error: unknown) => {
    if (!error) return
    one.destroy()
    other.destroy()
  }
  if (other instanceof Socket) other.setTimeout(idleMs, () => other.destroy(new Error('nothing went over it')))
  pipeline(one, other, over)
  if (through) pipeline(other, through, one, over)
  else pipeline(other, one, over)
}
