// Loaded before a daemon (`--import`): when it wrote each frame, and how late its event loop was. Written down at its exit.
import fs, { readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** What a probe saw; times are those of the machine's own clock, in ms, which every process reads alike. */
export interface Probed {
  /** When each frame was in the file, by its id. */
  readonly written: { readonly [id: string]: number }
  /** How late the loop was, in ms, since the last mark. */
  readonly late: { readonly p50: number; readonly p99: number; readonly max: number }
  /** Processor time since the last mark, in ms. */
  readonly processor: number
  /** Bytes in use after a collection, at each mark. */
  readonly held: readonly number[]
}

/** The clock of all processes. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6

const INTERVAL = 10
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
    for (const [, id = ''] of Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1').matchAll(IDS)) written[id] = at
    return wrote
  }) as typeof writeSync
  syncBuiltinESMExports()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const delays = monitorEventLoopDelay({ resolution: INTERVAL })
  delays.enable()
  let used = process.cpuUsage()
  process.on('SIGUSR2', () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    held.push(heapUsed + external)
    delays.reset()
    used = process.cpuUsage()
    writeFileSync(`${BENCH_PROBE}.marks`, String(held.length))
  })
  process.on('exit', () => {
    const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - INTERVAL)
    const { user, system } = process.cpuUsage(used)
    const probed: Probed = {
      written, held, processor: (user + system) / 1000,
      late: { p50: late(delays.percentile(50)), p99: late(delays.percentile(99)), max: late(delays.max) },
    }
    writeFileSync(BENCH_PROBE, JSON.stringify(probed))
  })
}

/** What a daemon's probe wrote when it ended. */
export const probedIn = (file: string): Probed => JSON.parse(readFileSync(file, 'utf8')) as Probed
