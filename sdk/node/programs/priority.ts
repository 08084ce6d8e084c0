import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/** The niceness of programs that turns start (nice(1)). */
export const TURN_NICENESS = 10

/**
 * Lowers the priority of a started program and its children below this process and people's programs.
 *
 * Linux may schedule by session (sched(7), "The autogroup feature"), so the session's niceness is set too.
 */
export const lowerPriority = (pid: number): void => {
  try {
    setPriority(pid, TURN_NICENESS)
    if (process.platform === 'linux') writeFileSync(`/proc/${pid}/autogroup`, String(TURN_NICENESS))
  } catch {
    // It has ended, or the system does not permit it; then it keeps the normal priority.
  }
}
