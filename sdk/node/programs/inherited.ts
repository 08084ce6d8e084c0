import { closeSync, readdirSync, readFileSync } from 'node:fs'

/** The bit that a file does not reach the programs a process starts (proc(5), `flags` of fdinfo, in octal). */
const CLOSE_ON_EXEC = 0o2000000

/**
 * Closes the files this process was started with, but the three every program has: a turn would be started with them
 * too.
 */
export const closeInherited = (): void => {
  for (const name of openFiles()) {
    const file = Number(name)
    if (file <= 2) continue
    try {
      const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8'))?.[1]
      if (flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0) closeSync(file)
    } catch {
      continue
    }
  }
}

const openFiles = (): string[] => {
  try {
    return readdirSync('/proc/self/fdinfo')
  } catch {
    return []
  }
}
