import { readFileSync } from 'node:fs'
import { familyOf } from './family.js'
import type { PipedProcess } from './piped-process.js'

/** The kernel counts processor time in hundredths of a second (proc(5)). */
const TICK_MS = 10
const LOOK_MS = 1000
const AGAIN_MS = 60_000
/** A program that uses less of a processor is idle: timers of a program that waits use some too. */
const LEAST_SHARE = 1 / 200

/** What is waited for while a program shows life. */
export interface LifeWatch {
  /** After this time `waits` is called, and then every minute. */
  readonly slowMs: number
  /** The longest time without a sign of life: a byte that it wrote, or processor time. */
  readonly quietMs: number
  /** Called with how long it has been waited for and what the program did meanwhile, as the end of a sentence. */
  readonly waits?: ((how: string) => void) | undefined
  /** Called once, with what the program lacks, as the end of a sentence. */
  readonly quiet: (how: string) => void
}

/** The processor time of a process, its descendants, and those of them that have ended, in ms. */
export const processorTime = (pid: number): number => familyOf(pid).reduce((sum, each) => sum + ownTime(each), 0)

const ownTime = (pid: number): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // utime, stime, cutime and cstime; the name before them may contain blanks and parentheses.
    const times = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15)
    return times.reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0)
  } catch {
    return 0
  }
}

const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`

/** Watches a program that is waited for, until the returned function is called. */
export const watchLife = (
  program: Pick<PipedProcess, 'pid' | 'bytesRead'>,
  { slowMs, quietMs, waits, quiet }: LifeWatch,
): (() => void) => {
  const began = performance.now()
  const timeNow = () => (program.pid === undefined ? 0 : processorTime(program.pid))
  const before = timeNow()
  let [alive, bytes, used] = [began, program.bytesRead, before]
  let tellAt = slowMs
  const look = () => {
    const now = performance.now()
    const [bytesNow, usedNow] = [program.bytesRead, timeNow()]
    if (bytesNow !== bytes || usedNow - used > quietMs * LEAST_SHARE) [alive, bytes, used] = [now, bytesNow, usedNow]
    // The time of a process that nobody waited for is lost.
    used = Math.min(used, usedNow)
    const silence = now - alive
    if (silence >= quietMs) {
      end()
      return quiet(`showed no sign of life for ${seconds(quietMs)}: it wrote nothing and used no processor time`)
    }
    if (now - began < tellAt) return
    tellAt += tellAt < AGAIN_MS ? AGAIN_MS - tellAt : AGAIN_MS
    const did =
      silence > quietMs / 4
        ? `has shown no sign of life for ${seconds(silence)}: after ${seconds(quietMs)} it is ended`
        : `has used ${seconds(Math.max(0, usedNow - before))} of processor time`
    waits?.(`after ${seconds(now - began)}, and ${did}`)
  }
  const timer = setInterval(look, Math.min(LOOK_MS, quietMs / 4, slowMs / 2))
  const end = () => clearInterval(timer)
  return end
}
