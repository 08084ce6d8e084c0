// Loaded before a daemon (`--import`): on SIGUSR2 it writes the daemon's memory use, and the delay of its loop since
// the last time.
import { renameSync, writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Lateness } from './probe.js'

/** A daemon's bytes in use after a garbage collection, and the delay of its loop in ms. */
export interface Held {
  readonly used: number
  readonly p99: number
  readonly max: number
}

const { SOAK_PROBE } = process.env

if (SOAK_PROBE !== undefined && process.argv[1]?.endsWith('main.js') === true) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const lateness = new Lateness()
  process.on('SIGUSR2', () => {
    const { p99, max } = lateness.found()
    collect()
    const { heapUsed, external } = process.memoryUsage()
    const held: Held = { used: heapUsed + external, p99, max }
    writeFileSync(`${SOAK_PROBE}.new`, JSON.stringify(held))
    renameSync(`${SOAK_PROBE}.new`, SOAK_PROBE)
    lateness.reset()
  })
}
