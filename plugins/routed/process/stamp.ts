import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Files } from '../../../sdk/index.js'

/** Names one process of this machine: an id is used again, but not with the same start. */
interface ProcessStamp {
  readonly pid: number
  readonly started: string
}

const NAME = 'process'
/** The start, in ticks since the machine's (proc(5), `/proc/<pid>/stat`); the third field there is the first here. */
const STARTED = 19
const GONE_MS = 2_000
const LOOK_MS = 20

const startOf = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // One that has ended and was not waited for serves nobody.
    return fields[0] === 'Z' ? undefined : fields[STARTED]
  } catch {
    return undefined
  }
}

/** Keeps which process is the translator's, so that the next daemon finds one that outlived its own. */
export class ProcessStamps {
  readonly #files: Pick<Files, 'read' | 'write' | 'remove'>

  constructor(files: Pick<Files, 'read' | 'write' | 'remove'>) {
    this.#files = files
  }

  async keep(pid: number): Promise<void> {
    const started = startOf(pid)
    if (started !== undefined) await this.#files.write(NAME, { pid, started } satisfies ProcessStamp)
  }

  /** Ends the process of the last daemon, if it is still there. */
  async endLast(): Promise<boolean> {
    const last = await this.#files.read<ProcessStamp>(NAME).catch(() => undefined)
    if (!last) return false
    const runs = () => startOf(last.pid) === last.started
    const was = runs()
    if (was) process.kill(last.pid, 'SIGKILL')
    for (const until = Date.now() + GONE_MS; runs() && Date.now() < until;) await delay(LOOK_MS)
    await this.#files.remove(NAME)
    return was
  }
}
