import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { familyOf, threadIds } from './family.js'

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

/** Lowers the priority of a program that has run for a while: each of its processes and threads has one of its own. */
export const lowerFamily = (pid: number): void => {
  for (const each of familyOf(pid).toReversed()) {
    lowerPriority(each)
    for (const thread of threadIds(each)) {
      try {
        setPriority(thread, TURN_NICENESS)
      } catch {
        // It has ended, or the system does not permit it.
      }
    }
  }
}
