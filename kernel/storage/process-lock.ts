import { existsSync, linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Holder {
  pid: number
  /** When the process started, in clock ticks since boot: a later process may reuse the pid. */
  started?: string
}

const TRIES = 3

/**
 * Takes a lock file for this process, also from a dead holder; returns a release function, or the pid of the holder.
 */
export const lockFile = (lock: string): { holder: number } | { release: () => void } => {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, JSON.stringify({ pid: process.pid, started: startOf(process.pid) } satisfies Holder), {
    mode: 0o600,
  })
  try {
    for (let tries = 1; ; tries++) {
      try {
        // link(2) never replaces a file: of two processes, only one succeeds.
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

/** Removes the temporary files of processes that were killed while taking the lock. */
const sweep = (lock: string): void => {
  for (const name of readdirSync(dirname(lock))) {
    const path = join(dirname(lock), name)
    const pid = path.slice(lock.length + 1)
    if (!/^\d+$/.test(pid) || !path.startsWith(`${lock}.`)) continue
    // Empty if its process was killed before it wrote.
    const holder = readHolder(path) ?? { pid: Number(pid) }
    if (holder.pid !== process.pid && !lives(holder)) rmSync(path, { force: true })
  }
}

const readHolder = (lock: string): Holder | undefined => {
  try {
    return JSON.parse(readFileSync(lock, 'utf8')) as Holder
  } catch {
    return undefined
  }
}

/** Whether a process is running; a zombie is not. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  return fieldOf(pid, 3) !== 'Z'
}

const lives = ({ pid, started }: Holder): boolean => {
  const now = startOf(pid)
  return pid !== process.pid && isAlive(pid) && (started === undefined || now === undefined || started === now)
}

/** When a process started; undefined without `/proc`. */
const startOf = (pid: number): string | undefined => fieldOf(pid, 22)

/** A field of `/proc/<pid>/stat`, numbered as in proc(5), from the third on. */
const fieldOf = (pid: number, field: number): string | undefined => {
  const file = `/proc/${pid}/stat`
  if (!existsSync(file)) return undefined
  try {
    return readFileSync(file, 'utf8').split(') ').at(-1)?.split(' ')[field - 3]
  } catch {
    return undefined
  }
}
