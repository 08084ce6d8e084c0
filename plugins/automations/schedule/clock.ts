/** The time, and a call at a time; tests give one that they set. */
export interface FireClock {
  now(): number
  /** Calls once when the time has come; the returned function cancels. */
  at(when: number, work: () => void): () => void
}

/** The longest single wait, so that a clock that was set is noticed. */
const MOST_WAIT = 30_000

/** The clock of the machine. */
export const systemClock: FireClock = {
  now: () => Date.now(),
  at: (when, work) => {
    let timer: NodeJS.Timeout
    const wait = () => {
      const left = when - Date.now()
      timer = setTimeout(() => (left > MOST_WAIT ? wait() : check()), Math.min(MOST_WAIT, Math.max(0, left)))
      timer.unref()
    }
    // A timer may end a little early.
    const check = () => (Date.now() < when ? wait() : work())
    wait()
    return () => clearTimeout(timer)
  },
}
