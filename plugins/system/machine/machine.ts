import { availableParallelism, loadavg } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { DiskUse, MachineUse, OwnedProcess, UsePoint } from './contract.js'
import { cpuTimes, diskUse, memoryUse, type CpuTimes } from './figures.js'
import { largest, percent, seenProcesses, type Seen } from './processes.js'

/** What the machine's use is measured with. */
export interface MachineDeps {
  readonly places: readonly (readonly [label: DiskUse['label'], path: string])[]
  /** The ones of these processes that groups started. */
  readonly owned: (seen: readonly Seen[]) => Promise<OwnedProcess[]>
  /** Called when a warning line is crossed, in either direction. */
  readonly crossed: () => void
  readonly figures?: typeof FIGURES
}

interface Look {
  readonly at: number
  readonly cpu: CpuTimes
  readonly processes: readonly Seen[]
}

type Lag = ReturnType<typeof monitorEventLoopDelay>

const FIGURES = { cpuTimes, diskUse, memoryUse }
const MINUTE = 60_000
const POINTS = 60
const LINES = [80, 90, 95]
/**
 * Milliseconds between the two measurements of a first request; over a shorter time the figures would be inaccurate.
 */
const APART = 200
const RESOLUTION = 20

/** Measures the machine: in detail on request, and once a minute for the history and the warning lines. */
export class Machine {
  readonly #deps: MachineDeps
  readonly #figures: typeof FIGURES
  #minute: CpuTimes
  #last: Look | undefined
  #points: readonly UsePoint[] = []
  #levels = ''
  #lag: Lag | undefined
  #askedAt = 0
  #asked: Promise<MachineUse> | undefined

  constructor(deps: MachineDeps) {
    this.#deps = deps
    this.#figures = deps.figures ?? FIGURES
    this.#minute = this.#figures.cpuTimes()
  }

  /** Measures once a minute until the signal. */
  begin(signal: AbortSignal, failed: (error: unknown) => void): void {
    const timer = setInterval(() => void this.sample(Date.now()).catch(failed), MINUTE).unref()
    signal.addEventListener(
      'abort',
      () => {
        clearInterval(timer)
        this.#lag?.disable()
      },
      { once: true },
    )
  }

  /** The current figures; concurrent callers share one measurement. */
  async use(history: boolean): Promise<MachineUse> {
    this.#asked ??= this.#look().finally(() => (this.#asked = undefined))
    return { ...(await this.#asked), recent: history ? this.#points.map(point => ({ ...point })) : [] }
  }

  /** One point of the history. */
  async sample(at: number): Promise<void> {
    const before = this.#minute
    const [memory, disks] = await Promise.all([this.#figures.memoryUse(), this.#figures.diskUse(this.#deps.places)])
    this.#minute = this.#figures.cpuTimes()
    const cpuPct = percent(this.#minute.busy - before.busy, this.#minute.all - before.all)
    this.#points = [...this.#points, { at, cpuPct, usedBytes: memory.usedBytes }].slice(-POINTS)
    const full = disks.map(({ totalBytes, freeBytes }) => percent(totalBytes - freeBytes, totalBytes))
    const levels = [cpuPct, percent(memory.usedBytes, memory.limitBytes ?? memory.totalBytes), ...full]
      .map(levelOf)
      .join()
    // The first measurement crosses a line only if a figure is above one already.
    if (levels !== (this.#levels || levels.replaceAll(/\d/g, '0'))) this.#deps.crossed()
    this.#levels = levels
    if (Date.now() - this.#askedAt <= MINUTE) return
    this.#last = undefined
    this.#lag?.disable()
    this.#lag = undefined
  }

  async #look(): Promise<MachineUse> {
    this.#askedAt = Date.now()
    if (!this.#lag) {
      this.#lag = monitorEventLoopDelay({ resolution: RESOLUTION })
      this.#lag.enable()
    }
    if (!this.#last || Date.now() - this.#last.at < APART) {
      this.#last ??= await this.#take()
      await delay(APART)
    }
    const [before, after] = [this.#last, await this.#take()]
    this.#last = after
    const { cpuTimes: _cpu, memoryUse, diskUse } = this.#figures
    const [memory, disks, owned] = await Promise.all([
      memoryUse(),
      diskUse(this.#deps.places),
      this.#deps.owned(after.processes),
    ])
    const { rss, heapUsed } = process.memoryUsage()
    const [one, five, fifteen] = loadavg()
    return {
      at: after.at,
      cpus: availableParallelism(),
      cpuPct: percent(after.cpu.busy - before.cpu.busy, after.cpu.all - before.cpu.all),
      load: [one!, five!, fifteen!],
      memory,
      disks,
      daemon: {
        pid: process.pid,
        rssBytes: rss,
        heapBytes: heapUsed,
        loopLagMs: lagOf(this.#lag),
        uptimeMs: Math.round(process.uptime() * 1000),
      },
      processes: largest(before.processes, after.processes, (after.at - before.at) / 1000, process.pid, owned),
      recent: [],
    }
  }

  async #take(): Promise<Look> {
    const processes = await seenProcesses()
    return { at: Date.now(), cpu: this.#figures.cpuTimes(), processes }
  }
}

const levelOf = (used: number): number => LINES.filter(line => used >= line).length

/** The monitor's own interval is part of the figure. */
const lagOf = (lag: Lag): number => {
  const late = lag.percentile(99) / 1e6 - RESOLUTION
  lag.reset()
  return Number.isFinite(late) ? Math.max(0, Math.round(late * 10) / 10) : 0
}
