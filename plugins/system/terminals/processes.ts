import { readFileSync, readlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { familyOf } from '../../../sdk/node/programs/family.js'
import { killWalled } from '../../../sdk/node/programs/run.js'

const BUILDERS = new Set(['bwrap', 'unshare', 'setpriv', 'env'])
const DEEPEST = 8
const GRACE = 5_000
const LOOK = 50

interface Facts {
  readonly name: string
  /** One letter, such as `Z` for a zombie. */
  readonly state: string
  readonly parent: number
  /** The foreground process group of its terminal. */
  readonly front: number
}

/** The facts about a process (proc(5), `/proc/<pid>/stat`). */
const factsOf = (pid: number): Facts | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(') ') + 2).split(' ')
    return {
      name: stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')),
      state: fields[0]!,
      parent: Number(fields[1]),
      front: Number(fields[5]),
    }
  } catch {
    return undefined
  }
}

const argumentsOf = (pid: number): string[] => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  } catch {
    return []
  }
}

/** The argument that marks a shell as part of the wall. */
export const WALL = 'wall'

/** Whether a process is the wall itself, which stands between a terminal and its shell. */
const isWall = (pid: number): boolean => {
  const [program = '', ...args] = argumentsOf(pid)
  return BUILDERS.has(basename(program)) || (basename(program) === 'sh' && args.includes(WALL))
}

/** The foreground program of the terminal of a process, and its folder; undefined for the shell at its prompt. */
export const foreground = (leader: number): { command?: string; folder?: string } => {
  const front = factsOf(leader)?.front
  if (front === undefined || front <= 0) return {}
  const found = factsOf(front)
  if (!found || isWall(front)) return {}
  let folder: string | undefined
  try {
    folder = readlinkSync(`/proc/${front}/cwd`)
  } catch {
    folder = undefined
  }
  let above = front === leader ? 0 : found.parent
  for (let n = 0; n < DEEPEST && above !== leader && above > 1 && isWall(above); n++)
    above = factsOf(above)?.parent ?? 0
  const isShell = front === leader || (above === leader && isWall(leader))
  return { ...(!isShell && { command: found.name.toWellFormed() }), ...(folder !== undefined && { folder }) }
}

const isThere = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return factsOf(pid)?.state !== 'Z'
}

/** How many bytes a process has read since it began (proc(5), `/proc/<pid>/io`); undefined if unknown. */
export const bytesReadBy = (pid: number): number | undefined => {
  try {
    return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
  } catch {
    return undefined
  }
}

const signalAll = (pids: readonly number[], signal: NodeJS.Signals): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It ended by itself.
    }
  }
}

const gone = async (pid: number): Promise<boolean> => {
  for (let waited = 0; waited < GRACE && isThere(pid); waited += LOOK) await delay(LOOK)
  return !isThere(pid)
}

/** Ends the processes of a terminal: with this signal first, and SIGKILL after 5 s. */
export const endTerminal = async (leader: number, signal: NodeJS.Signals = 'SIGHUP'): Promise<void> => {
  // Ending the wall itself would kill everything in it at once.
  signalAll(
    familyOf(leader).filter(pid => !isWall(pid)),
    signal,
  )
  if (await gone(leader)) return
  const left = familyOf(leader)
  killWalled(leader)
  signalAll(left, 'SIGKILL')
  await gone(leader)
}
