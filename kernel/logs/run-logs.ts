import { join } from 'node:path'
import { CrashReports } from './crash-reports.js'
import { logHead } from '../../sdk/log-line.js'
import { RotatingFile } from '../../sdk/node/logs/rotating-file.js'
import { ignored } from '../../sdk/ignored.js'

/**
 * The logs of one run of the daemon, below a folder: one file with all lines, one for each group, and crash reports.
 */
export class RunLogs {
  readonly #folder: string
  readonly #daemon: RotatingFile
  readonly #groups = new Map<string, RotatingFile>()
  readonly #crashes: CrashReports

  constructor(folder: string) {
    this.#folder = folder
    this.#daemon = new RotatingFile(join(folder, 'daemon.log'))
    this.#crashes = new CrashReports(folder)
    this.#crashes.begin()
  }

  /** Writes a line to its files; returns immediately and never throws. */
  readonly keep = (line: string): void => {
    this.#daemon.write(line)
    const group = logHead(line)?.group
    if (group === undefined) return
    const known = this.#groups.get(group) ?? new RotatingFile(join(this.#folder, 'plugins', `${group}.log`))
    this.#groups.set(group, known)
    known.write(line)
  }

  /** Logs and reports uncaught errors and unhandled rejections; the daemon keeps running. */
  watch(log: { error(fields: object, message: string): void }): void {
    const report = (what: string) => (error: unknown) => {
      log.error({ err: error }, what)
      this.#crashes.write(what, error)
    }
    // Once nobody reads the output, each line fails, and a report of that would be the next line.
    for (const stream of [process.stdout, process.stderr])
      stream.on('error', ignored('nobody reads what is printed any more'))
    process.on('unhandledRejection', report('unhandled promise rejection'))
    process.on('uncaughtException', report('uncaught exception'))
  }

  /** Reports a crash of the previous run. */
  reportLast(): void {
    this.#crashes.reportLast()
  }

  /** Marks a normal exit once every line is written. */
  async end(): Promise<void> {
    await Promise.all([this.#daemon, ...this.#groups.values()].map(file => file.close()))
    this.#crashes.reportLast()
    this.#crashes.end()
  }
}
