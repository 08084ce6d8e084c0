// Loaded before a daemon (`--import`): records the time of each frame's write and the delay of its event loop. Written
// to a file at its exit.
import fs, { readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** The delay of an event loop, in ms. */
export interface Late {
  readonly p50: number
  readonly p99: number
  readonly max: number
  /** The 99th percentile of the delay by its own work: on a busy machine the rest is waiting for a processor. */
  readonly own: number
}

/** The measurements of a probe; times are of the machine's monotonic clock, in ms, which all processes share. */
export interface Probed {
  /** The time at which each frame was in the file, by its id. */
  readonly written: { readonly [id: string]: number }
  readonly late: Late
  /** The processor time since the last mark, in ms. */
  readonly processor: number
  /** The bytes in use after a garbage collection, at each mark. */
  readonly held: readonly number[]
}

/** The clock that all processes share. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6

const INTERVAL = 10

/** Measures the delay of the event loop, and the processor time of its thread meanwhile. */
export class Lateness {
  readonly #delays = monitorEventLoopDelay({ resolution: INTERVAL })
  #own: number[] = []
  #at = performance.now()
  #used = threadTime()

  constructor() {
    this.#delays.enable()
    setInterval(() => {
      const [now, used] = [performance.now(), threadTime()]
      this.#own.push(Math.max(0, Math.min(now - this.#at - INTERVAL, used - this.#used)))
      this.#at = now
      this.#used = used
    }, INTERVAL).unref()
  }

  reset(): void {
    this.#delays.reset()
    this.#own = []
  }

  found(): Late {
    const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - INTERVAL)
    const own = [...this.#own].sort((one, other) => one - other)[Math.floor(this.#own.length * 0.99)] ?? 0
    return {
      p50: late(this.#delays.percentile(50)),
      p99: late(this.#delays.percentile(99)),
      max: late(this.#delays.max),
      own,
    }
  }
}

const threadTime = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const IDS = /^id: (\S+)$/gm

const { BENCH_PROBE } = process.env

if (BENCH_PROBE !== undefined && process.argv[1]?.endsWith('main.js') === true) {
  const written: { [id: string]: number } = {}
  const held: number[] = []
  const { writeSync } = fs
  fs.writeSync = ((...args: Parameters<typeof writeSync>) => {
    const wrote = Reflect.apply(writeSync, fs, args) as number
    const [, bytes] = args as unknown as [number, unknown]
    if (!(bytes instanceof Uint8Array) || bytes[0] !== 0x69) return wrote
    const at = clock()
    for (const [, id = ''] of Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      .toString('latin1')
      .matchAll(IDS))
      written[id] = at
    return wrote
  }) as typeof writeSync
  syncBuiltinESMExports()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const lateness = new Lateness()
  let used = process.cpuUsage()
  process.on('SIGUSR2', () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    held.push(heapUsed + external)
    lateness.reset()
    used = process.cpuUsage()
    writeFileSync(`${BENCH_PROBE}.marks`, String(held.length))
  })
  process.on('exit', () => {
    const { user, system } = process.cpuUsage(used)
    const probed: Probed = { written, held, processor: (user + system) / 1000, late: lateness.found() }
    writeFileSync(BENCH_PROBE, JSON.stringify(probed))
  })
}

/** Reads the measurements that a daemon's probe wrote at its exit. */
export const probedIn = (file: string): Probed => JSON.parse(readFileSync(file, 'utf8')) as Probed
