import { join } from 'node:path'
import { RotatingFile } from './rotating-file.js'

const OF_GROUP = /^\{"level":"\w+","at":\d+,"pid":\d+,"group":"([a-z][a-z0-9-]{0,60})"/

/** The daemon's own logs below a folder: every line, and the lines of each group once more. */
export class DaemonLogs {
  readonly #folder: string
  readonly #daemon: RotatingFile
  readonly #groups = new Map<string, RotatingFile>()

  constructor(folder: string) {
    this.#folder = folder
    this.#daemon = new RotatingFile(join(folder, 'daemon.log'))
  }

  /** Keeps a line; it returns at once and never fails. */
  readonly keep = (line: string): void => {
    this.#daemon.write(line)
    const group = OF_GROUP.exec(line)?.[1]
    if (group === undefined) return
    const known = this.#groups.get(group) ?? new RotatingFile(join(this.#folder, 'plugins', `${group}.log`))
    this.#groups.set(group, known)
    known.write(line)
  }

  async close(): Promise<void> {
    await Promise.all([this.#daemon, ...this.#groups.values()].map(file => file.close()))
  }
}
