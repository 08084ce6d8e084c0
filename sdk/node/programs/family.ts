import { readdirSync, readFileSync } from 'node:fs'

/** A process and its descendants, each after the one that started it (proc(5)). */
export const familyOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(familyOf)]

/** Every thread has children of its own. */
const childrenOf = (pid: number): number[] =>
  threadIds(pid).flatMap(thread => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
    } catch {
      // It has ended, or the system does not support this.
      return []
    }
  })

/** The threads of a process; none when it has ended. */
export const threadIds = (pid: number): number[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return []
  }
}
