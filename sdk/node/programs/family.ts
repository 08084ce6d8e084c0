import { readFileSync } from 'node:fs'

/** A process and its descendants (proc(5)). */
export const familyOf = (pid: number): number[] => {
  let children: number[] = []
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    // It has ended, or the system does not support this.
  }
  return [pid, ...children.flatMap(familyOf)]
}
