import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/** The niceness of what turns start (nice(1)). */
export const TURN_NICENESS = 10

/**
 * Lets this process, and what a person runs, go before a program that was just started and all that it starts.
 *
 * Linux may weigh sessions rather than processes (sched(7), "The autogroup feature"): the session of the program yields
 * as well.
 */
export const lowerPriority = (pid: number): void => {
  try {
    setPriority(pid, TURN_NICENESS)
    if (process.platform === 'linux') writeFileSync(`/proc/${pid}/autogroup`, String(TURN_NICENESS))
  } catch {
    // It is gone, or this system does not let it: the program runs as any other.
  }
}
