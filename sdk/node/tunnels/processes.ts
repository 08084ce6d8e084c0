import { readdir } from 'node:fs/promises'
import { codeOf } from '../files/paths.js'
import { holdsWithin } from './interfaces.js'

const END_MS = 10_000

/** Ends a process; one that has ended is fine. */
export const signalProcess = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

/** Ends the processes of a tunnel, known or not; those that go on, or that these started meanwhile, are killed. */
export const endProcesses = async (isOurs: (pid: number) => Promise<boolean>): Promise<void> => {
  const oursOf = async (pids: readonly number[]): Promise<number[]> => {
    const ours = await Promise.all(pids.map(isOurs))
    return pids.filter((_, at) => ours[at])
  }
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const pids = await oursOf((await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number))
    if (pids.length === 0) return
    for (const pid of pids) signalProcess(pid, signal)
    await holdsWithin(END_MS, async () => (await oursOf(pids)).length === 0)
  }
}
