import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

/** The resident memory of a process in MiB, the most so far. */
export const peakMiB = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

/** Forgets the most so far. */
export const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5')

/** The bytes of all files below a folder, in MiB. */
export const diskMiB = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).reduce((sum, entry) => {
    const stat = entry.isFile() ? statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false }) : undefined
    return sum + (stat?.size ?? 0)
  }, 0)
  / 1024 ** 2

/** Asks a daemon whether it lives, again and again, and remembers the longest wait. */
export const watched = (t: Pick<Test, 'teardown'>, url: string) => {
  let longest = 0
  let over = false
  const asking = (async () => {
    while (!over) {
      const began = performance.now()
      await fetch(`${url}/health`, { signal: AbortSignal.timeout(60_000) }).then(
        answer => answer.text(),
        () => {},
      )
      longest = Math.max(longest, performance.now() - began)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  })()
  t.teardown(async () => {
    over = true
    await asking
  })
  return {
    /** The longest wait since the last call, in milliseconds. */
    longest: (): number => {
      const most = longest
      longest = 0
      return most
    },
  }
}
