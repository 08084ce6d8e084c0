import { accessSync, chmodSync, constants, existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from './config.js'

interface Holder {
  pid: number
  /** When the process started, as the kernel counts: a later process with the same number is another one. */
  started?: string
}

/** Makes the data folder private and ours alone while this process lives; answers what gives it back. */
export const holdFolder = (data: string): (() => void) => {
  try {
    mkdirSync(data, { recursive: true, mode: 0o700 })
    chmodSync(data, 0o700)
    accessSync(data, constants.R_OK | constants.W_OK | constants.X_OK)
    return hold(join(data, 'daemon.lock'), data)
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`the data folder ${data} cannot be written: ${(error as NodeJS.ErrnoException).code}`)
  }
}

const hold = (lock: string, data: string): (() => void) => {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, JSON.stringify({ pid: process.pid, started: startOf(process.pid) } satisfies Holder), { mode: 0o600 })
  try {
    for (let tries = 0; tries < 3; tries++) {
      try {
        linkSync(mine, lock)
        return () => rmSync(lock, { force: true })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
        const holder = readHolder(lock)
        if (holder && lives(holder)) {
          throw new StartError(`the data folder ${data} is in use by another daemon (process ${holder.pid}): stop it, or choose another with --data`)
        }
        rmSync(lock, { force: true })
      }
    }
    throw new StartError(`the data folder ${data} is being taken by another daemon: try again`)
  } finally {
    rmSync(mine, { force: true })
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

