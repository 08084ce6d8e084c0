import { join } from 'node:path'
import { CrashReports } from './crash-reports.js'
import { RotatingFile } from '../../sdk/node/logs/rotating-file.js'

const OF_GROUP = /^\{"level":"\w+","at":\d+,"pid":\d+,"group":"([a-z][a-z0-9-]{0,60})"/

/**
 * The logs of one run of the daemon, below a folder: every line, those of each group once more, and why something
 * crashed.
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

  /** Keeps a line; it returns at once and never fails. */
  readonly keep = (line: string): void => {
    this.#daemon.write(line)
    const group = OF_GROUP.exec(line)?.[1]
    if (group === undefined) return
    const known = this.#groups.get(group) ?? new RotatingFile(join(this.#folder, 'plugins', `${group}.log`))
    this.#groups.set(group, known)
    known.write(line)
  }

  /** Logs and writes down what nobody caught; the daemon goes on. */
  watch(log: { error(fields: object, message: string): void }): void {
    const unseen = (what: string) => (error: unknown) => {
      log.error({ err: error }, what)
      this.#crashes.write(what, error)
    }
    process.on('unhandledRejection', unseen('a promise was rejected and nobody looked'))
    process.on('uncaughtException', unseen('an error was thrown and nobody caught it'))
  }

  /** Logs how the run before ended, when that run could not. */
  tellOfLast(): void {
    this.#crashes.tellOfLast()
  }

  /** Says that the run ends as it should, once every line is written. */
  async end(): Promise<void> {
    await Promise.all([this.#daemon, ...this.#groups.values()].map(file => file.close()))
    this.#crashes.tellOfLast()
    this.#crashes.end()
  }
}
