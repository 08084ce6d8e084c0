import { closeSync, readdirSync, readFileSync } from 'node:fs'

/** The close-on-exec flag (proc(5), `flags` of fdinfo, in octal). */
const CLOSE_ON_EXEC = 0o2000000

/** Closes inherited file descriptors above 2, which turns would inherit in turn. */
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
