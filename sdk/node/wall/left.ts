import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { contains } from '../files/paths.js'
import { setTimeout as delay } from 'node:timers/promises'
import { sweepTemporary } from '../files/files.js'
import { RUNNER } from '../programs/runner.js'
import { markOf } from './mark.js'
import { NOTES } from './sources.js'

const INIT = 1
const ROUNDS = 20
const PAUSE_MS = 10

/** The pids of a process in this namespace and the nested ones, outermost first (proc(5), `NSpid`). */
const numbersOf = (pid: number | 'self'): string[] =>
  /^NSpid:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split('\t') ?? []

/**
 * The parent of a process that builds or holds a wall with this mark; undefined for other processes.
 *
 * Inside a wall only the init process counts, since other programs may have any arguments.
 */
const builderOf = (pid: number, mark: string): number | undefined => {
  try {
    if (statSync(`/proc/${pid}`).uid !== process.getuid?.()) return undefined
    if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(mark)) return undefined
    const [, inside, ...deeper] = numbersOf(pid).slice(numbersOf('self').length - 1)
    if (deeper.length > 0 || (inside !== undefined && Number(inside) !== INIT)) return undefined
    return parentOf(pid)
  } catch {
    return undefined
  }
}

/** Whether a process is the tmux server of this data folder, which outlives the daemon. */
const keepsTerminals = (pid: number, data: string): boolean => {
  try {
    return /^tmux\b/.test(readFileSync(`/proc/${pid}/comm`, 'utf8')) && contains(data, readlinkSync(`/proc/${pid}/cwd`))
  } catch {
    return false
  }
}

/** Whether a process belongs to a running daemon; a runner process counts only if its daemon runs. */
const isDaemon = (pid: number): boolean => {
  try {
    if (pid === INIT || readlinkSync(`/proc/${pid}/exe`) !== readlinkSync('/proc/self/exe')) return false
    const [, program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return basename(program) !== basename(RUNNER) || isDaemon(parentOf(pid))
  } catch {
    return false
  }
}

/** proc(5), `/proc/<pid>/stat`. */
const parentOf = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(') ')).split(' ')[2])
}

/**
 * Kills the processes behind walls that a dead daemon built for a data folder; returns how many.
 *
 * A complete wall ends with its daemon, but one that was still being built keeps running. Also removes temporary files
 * of walls.
 */
export const endLeftWalls = async (data: string): Promise<number> => {
  await sweepTemporary(join(data, NOTES))
  if (process.platform !== 'linux') return 0
  const mark = await markOf(data)
  const ended = new Set<number>()
  for (let round = 0; round < ROUNDS; round++) {
    const parents = new Map(
      readdirSync('/proc').flatMap(name => {
        const parent = Number(name) > 0 ? builderOf(Number(name), mark) : undefined
        return parent === undefined ? [] : [[Number(name), parent] as const]
      }),
    )
    const isLeft = (parent: number): boolean =>
      parents.has(parent) ? isLeft(parents.get(parent)!) : !isDaemon(parent) && !keepsTerminals(parent, data)
    const left = [...parents].filter(([, parent]) => isLeft(parent))
    if (!left.length) break
    for (const [pid] of left) {
      ended.add(pid)
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
    await delay(PAUSE_MS)
  }
  return ended.size
}
