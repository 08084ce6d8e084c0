import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { procBehind, processesOf } from '../../../../sdk/node/limits/processes.js'
import type { BackendLimits } from './limits.js'

const MIB = 1024 * 1024
/** Of a clock tick in proc_pid_stat(5), on all machines of today. */
const TICK_MS = 10
const PAGE = 4096

/** The processes below one, such as those of a wall. */
export const innerProcesses = (pid: number): number[] => {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
    return children.flatMap(child => [child, ...innerProcesses(child)])
  } catch {
    return []
  }
}

/** Asks the processes below one to end. */
export const terminateInner = (pid: number): void => {
  for (const inner of innerProcesses(pid)) {
    try {
      process.kill(inner, 'SIGTERM')
    } catch {
      // It has ended.
    }
  }
}

const GONE_MS = 2_000
const GONE_EVERY_MS = 5

const isThere = (pid: number): boolean => textOf(`/proc/${pid}/cmdline`) !== ''

/** Resolves when these processes have ended: what a wall kills may go on for a moment after the wall itself. */
export const vanished = async (pids: readonly number[]): Promise<void> => {
  for (const end = performance.now() + GONE_MS; pids.some(isThere) && performance.now() < end;)
    await delay(GONE_EVERY_MS)
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Resident bytes, and ms of processor time. */
const useOf = (folder: string): { resident: number; cpu: number } => {
  const fields = textOf(`${folder}/stat`).split(') ').at(-1)?.split(' ') ?? []
  const [user = 0, system = 0, resident = 0] = [11, 12, 21].map(at => Number(fields[at] ?? 0))
  return { resident: resident * PAGE, cpu: (user + system) * TICK_MS }
}

/** Watches memory, processor time and heartbeat of one process. */
export class ProcessWatch {
  readonly #pid: number
  readonly #limits: BackendLimits
  readonly #over: (why: string) => void
  #timers: NodeJS.Timeout[] = []
  #folders: string[] = []
  #answeredAt = performance.now()
  #window: { at: number; cpu: number } | undefined
  #resident = 0

  constructor(pid: number, limits: BackendLimits, over: (why: string) => void) {
    this.#pid = pid
    this.#limits = limits
    this.#over = over
  }

  get resident(): number {
    return this.#resident
  }

  begin(ping: () => void): void {
    const { lookMs, pingEveryMs } = this.#limits
    this.#timers = [
      setInterval(() => this.#look(), lookMs).unref(),
      setInterval(() => {
        this.#late()
        ping()
      }, pingEveryMs).unref(),
    ]
  }

  /** It answered a ping. */
  answered(): void {
    this.#answeredAt = performance.now()
  }

  end(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  #late(): void {
    const { pingMs } = this.#limits
    if (performance.now() - this.#answeredAt > pingMs) this.#over(`it did not answer for ${pingMs / 1000} s`)
  }

  #look(): void {
    const { resident: most, cpuShare, cpuMs } = this.#limits
    if (this.#folders.length === 0) {
      const proc = procBehind(this.#pid)
      this.#folders = proc === undefined ? [] : processesOf(proc)
      // Before Node runs, only the first process of the wall exists.
      if (this.#folders.length < 2) {
        this.#folders = []
        return
      }
    }
    let [resident, cpu] = [0, 0]
    for (const folder of this.#folders) {
      const use = useOf(folder)
      resident += use.resident
      cpu += use.cpu
    }
    this.#resident = resident
    if (resident > most) this.#over(`it used ${Math.round(resident / MIB)} MiB of memory; it may use ${most / MIB} MiB`)
    const now = performance.now()
    this.#window ??= { at: now, cpu }
    const ms = now - this.#window.at
    const share = (cpu - this.#window.cpu) / Math.max(1, ms)
    if (share <= cpuShare && ms >= LEAST_WINDOW) this.#window = { at: now, cpu }
    else if (ms >= cpuMs) this.#over(`it used ${Math.round(share * 100)} % of a processor for ${cpuMs / 1000} s`)
  }
}

/** A shorter interval is imprecise, because processor time is counted in ticks. */
const LEAST_WINDOW = 1_000
