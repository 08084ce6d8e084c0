import { performance } from 'node:perf_hooks'

const SAMPLE_US = 200_000

/** The ratio of elapsed time to processor time of some work: 1 on an idle machine. */
const contention = (): number => {
  const [began, before] = [performance.now(), process.cpuUsage()]
  let used: number
  do {
    const { user, system } = process.cpuUsage(before)
    used = user + system
  } while (used < SAMPLE_US)
  return Math.max(1, ((performance.now() - began) * 1000) / used)
}

/** Whether something took less than `ms`, multiplied by the contention of the machine. */
export const tookLess = (took: number, ms: number): boolean => took < ms || took < ms * contention()

/** Whether work that began at `began` (`performance.now()`) and has just ended took less than `ms`, likewise. */
export const inTime = (began: number, ms: number): boolean => tookLess(performance.now() - began, ms)
