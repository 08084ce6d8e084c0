import { performance } from 'node:perf_hooks'

const SAMPLE_US = 200_000

/** How long work takes now for each moment a processor spends on it: 1 on a machine with nothing else to do. */
const contention = (): number => {
  const [began, before] = [performance.now(), process.cpuUsage()]
  let used: number
  do {
    const { user, system } = process.cpuUsage(before)
    used = user + system
  } while (used < SAMPLE_US)
  return Math.max(1, ((performance.now() - began) * 1000) / used)
}

/** Whether something took less than `ms`, or as much more as the machine has other work to do. */
export const tookLess = (took: number, ms: number): boolean => took < ms || took < ms * contention()

/** The same of what began at a moment of `performance.now()` and is over now. */
export const inTime = (began: number, ms: number): boolean => tookLess(performance.now() - began, ms)
