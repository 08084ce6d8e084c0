import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import type { WallLimits } from './settings.js'

const DAEMON = 'sandbox-daemon'
const TURN = 'sandbox-turn'
const NEEDED = ['memory', 'pids']
/** Shares the processors between a turn and everything else. */
const WELCOME = ['cpu']
const AGAIN_MS = [20, 100, 500, 2000]

const lines = (path: string): string[] => readFileSync(path, 'utf8').split('\n').filter(Boolean)
const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)

const attempt = (work: () => void): boolean => {
  try {
    work()
    return true
  } catch {
    return false
  }
}

/** The group (cgroups(7), version 2) this process is in, as a folder. */
const ownGroup = (): string | undefined => {
  const path = lines('/proc/self/cgroup')
    .find(line => line.startsWith('0::'))
    ?.slice(3)
  const mount = lines('/proc/self/mountinfo')
    .find(line => line.includes(' - cgroup2 '))
    ?.split(' ')
  if (path === undefined || !mount) return undefined
  const below = relative(mount[3] ?? '/', path)
  return below.startsWith('..') ? undefined : join(mount[4] ?? '', below)
}

const parentOf = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(') ')).split(' ')[2])
}

const ancestorsOf = (pid: number): number[] => {
  const above: number[] = []
  for (let at = pid; at > 0; at = parentOf(at)) above.push(at)
  return above
}

/**
 * Moves every process of a group into one below it, as the system wants before there may be others; refuses to move
 * what is not the daemon's.
 */
const makeRoom = (group: string): void => {
  const ours = new Set(ancestorsOf(process.pid))
  const pids = lines(join(group, 'cgroup.procs')).map(Number)
  const foreign = pids.find(pid => !ours.has(pid) && !ancestorsOf(pid).includes(process.pid))
  if (foreign !== undefined) throw new Error(`process ${foreign} shares the control group`)
  mkdirSync(join(group, DAEMON), { recursive: true })
  for (const pid of pids) writeFileSync(join(group, DAEMON, 'cgroup.procs'), String(pid))
}

/** The control groups of turns, below the daemon's own. */
export class ControlGroups {
  readonly #folder: string
  readonly #prefix: string
  #made = 0

  private constructor(folder: string, data: string) {
    this.#folder = folder
    this.#prefix = `${TURN}-${short(data)}-`
  }

  /** Undefined where the daemon's group was not delegated to it: others live in it, or it may not write there. */
  static open(data: string): ControlGroups | undefined {
    try {
      const own = ownGroup()
      if (own === undefined) return undefined
      const folder = basename(own) === DAEMON ? dirname(own) : own
      const offered = readFileSync(join(folder, 'cgroup.controllers'), 'utf8').trim().split(' ')
      if (!NEEDED.every(name => offered.includes(name))) return undefined
      const control = join(folder, 'cgroup.subtree_control')
      const missing = () => {
        const given = readFileSync(control, 'utf8').trim().split(' ')
        return [...NEEDED, ...WELCOME].filter(name => offered.includes(name) && !given.includes(name))
      }
      // The root of all groups may hold processes beside groups.
      if (missing().length && existsSync(join(folder, 'cgroup.type'))) makeRoom(folder)
      for (const name of missing()) writeFileSync(control, `+${name}`)
      const groups = new ControlGroups(folder, data)
      groups.#sweep()
      return groups
    } catch {
      return undefined
    }
  }

  /** The group of a turn; undefined when it cannot be made. */
  group({ memory, processes }: WallLimits): ControlGroup | undefined {
    const folder = join(this.#folder, `${this.#prefix}${process.pid}-${++this.#made}`)
    const set = (file: string, value: string) => writeFileSync(join(folder, file), value)
    const made = attempt(() => {
      mkdirSync(folder, { recursive: true })
      set('memory.max', String(memory))
      set('pids.max', String(processes))
    })
    if (!made) return undefined
    // A machine without swap has no such file; without the other the rest of the turn is ended a moment later.
    attempt(() => set('memory.swap.max', '0'))
    attempt(() => set('memory.oom.group', '1'))
    return new ControlGroup(folder)
  }

  /** Removes what a killed daemon left: a group in which something runs stays. */
  #sweep(): void {
    for (const name of readdirSync(this.#folder))
      if (name.startsWith(this.#prefix)) attempt(() => rmdirSync(join(this.#folder, name)))
  }
}

/** One turn's control group. */
export class ControlGroup {
  readonly #folder: string
  #seen: { readonly memory: number; readonly processes: number }

  constructor(folder: string) {
    this.#folder = folder
    this.#seen = this.#events
  }

  /** What a process writes `0` to when it is to be in the group. */
  get procs(): string {
    return join(this.#folder, 'cgroup.procs')
  }

  /** The limit that the system kept since this was last asked. */
  exceeded(): 'memory' | 'processes' | undefined {
    const before = this.#seen
    const now = (this.#seen = this.#events)
    if (now.memory > before.memory) return 'memory'
    return now.processes > before.processes ? 'processes' : undefined
  }

  /** Removes the group once the last process in it is gone. */
  remove([pause, ...later] = AGAIN_MS): void {
    if (attempt(() => rmdirSync(this.#folder)) || !existsSync(this.#folder) || pause === undefined) return
    setTimeout(() => this.remove(later), pause).unref()
  }

  get #events() {
    const value = (file: string, name: string): number => {
      try {
        return Number(
          lines(join(this.#folder, file))
            .find(line => line.startsWith(`${name} `))
            ?.split(' ')[1] ?? 0,
        )
      } catch {
        return 0
      }
    }
    return { memory: value('memory.events', 'oom_kill'), processes: value('pids.events', 'max') }
  }
}
