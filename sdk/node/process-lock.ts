import { existsSync, linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Holder {
  pid: number
  /** When the process started, as the kernel counts: a later process with the same number is another one. */
  started?: string
}

const TRIES = 3

/** Takes a lock file for this process, from a holder that is dead too; answers the process that has it, or its release. */
export const lockFile = (lock: string): { holder: number } | { release: () => void } => {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, JSON.stringify({ pid: process.pid, started: startOf(process.pid) } satisfies Holder), { mode: 0o600 })
  try {
    for (let tries = 1; ; tries++) {
      try {
        // A link never replaces: of two that try at once, one gets it.
        linkSync(mine, lock)
        sweep(lock)
        return { release: () => rmSync(lock, { force: true }) }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
        const holder = readHolder(lock)
        if (holder && (lives(holder) || tries === TRIES)) return { holder: holder.pid }
        if (tries === TRIES) throw error
        rmSync(lock, { force: true })
      }
    }
  } finally {
    rmSync(mine, { force: true })
  }
}

/** Removes what processes left beside a lock that were killed while they took it. */
const sweep = (lock: string): void => {
  for (const name of readdirSync(dirname(lock))) {
    const path = join(dirname(lock), name)
    if (!/^\d+$/.test(path.slice(lock.length + 1)) || !path.startsWith(`${lock}.`)) continue
    const holder = readHolder(path)
    if (holder && holder.pid !== process.pid && !lives(holder)) rmSync(path, { force: true })
  }
}

const readHolder = (lock: string): Holder | undefined => {
  try {
    return JSON.parse(readFileSync(lock, 'utf8')) as Holder
  } catch {
    return undefined
  }
}

const lives = ({ pid, started }: Holder): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const now = startOf(pid)
  return pid !== process.pid && (started === undefined || now === undefined || started === now)
}

/** When a process started, where the machine says so: field 22 of `/proc/<pid>/stat` (proc(5)). */
const startOf = (pid: number): string | undefined => {
  const file = `/proc/${pid}/stat`
  if (!existsSync(file)) return undefined
  try {
    return readFileSync(file, 'utf8').split(') ').at(-1)?.split(' ')[19]
  } catch {
    return undefined
  }
}
