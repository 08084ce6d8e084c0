import { existsSync, linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Holder {
  pid: number
  /** When the process started, as the kernel counts: a later process may have the same number. */
  started?: string
}

const TRIES = 3

/**
 * Takes a lock file for this process, from a holder that is dead too; answers the process that has it, or its release.
 */
export const lockFile = (lock: string): { holder: number } | { release: () => void } => {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, JSON.stringify({ pid: process.pid, started: startOf(process.pid) } satisfies Holder), {
    mode: 0o600,
  })
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
    const pid = path.slice(lock.length + 1)
    if (!/^\d+$/.test(pid) || !path.startsWith(`${lock}.`)) continue
    // Nothing is in it where its process was killed before it wrote.
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

/** Whether a process is running; a zombie has ended and only waits for its parent. */
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

/** When a process started, where the machine says so. */
const startOf = (pid: number): string | undefined => fieldOf(pid, 22)

/** A field of `/proc/<pid>/stat`, counted as proc(5) does, from the third on. */
const fieldOf = (pid: number, field: number): string | undefined => {
  const file = `/proc/${pid}/stat`
  if (!existsSync(file)) return undefined
  try {
    return readFileSync(file, 'utf8').split(') ').at(-1)?.split(' ')[field - 3]
  } catch {
    return undefined
  }
}
