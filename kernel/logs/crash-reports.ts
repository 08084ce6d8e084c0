import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { logHead } from '../../sdk/log-line.js'
import { reportText } from '../../sdk/node/access/stored-values.js'

const MOST_A_RUN = 20
const MOST_FILES = 50
const LAST_BYTES = 8 * 1024
const LAST_LINES = 20

/** The content of one crash report. */
interface Crash {
  readonly at: number
  readonly pid: number
  readonly what: string
  readonly stack: string
  readonly last?: string
}

interface Running {
  readonly pid: number
  readonly at: number
}

/** Writes one file for each crash of the daemon or a part of its work, to the folder `crash` of its logs. */
export class CrashReports {
  readonly #folder: string
  readonly #log: string
  readonly #marker: string
  readonly #native: string
  #written = 0
  #before: Running | undefined

  /** @param logs The folder of the daemon's logs. */
  constructor(logs: string) {
    this.#folder = join(logs, 'crash')
    this.#log = join(logs, 'daemon.log')
    this.#marker = join(logs, '.running')
    this.#native = join(logs, '.native')
  }

  /** Marks this process as running, and enables reports for fatal errors and aborts. */
  begin(): void {
    this.#attempt(() => {
      mkdirSync(this.#native, { recursive: true, mode: 0o700 })
      this.#before = read<Running>(this.#marker)
      writeFileSync(this.#marker, JSON.stringify({ pid: process.pid, at: Date.now() }), { mode: 0o600 })
      // Without these options a native report contains the environment and network interfaces.
      Object.assign(process.report, {
        directory: this.#native,
        reportOnFatalError: true,
        compact: true,
        excludeEnv: true,
        excludeNetwork: true,
      })
    })
    const abort = process.abort.bind(process)
    process.abort = () => {
      this.write('the process was aborted', new Error('aborted'))
      this.end()
      return abort()
    }
  }

  /** Writes a report for the previous run if it crashed: from Node's own report, or that it ended without one. */
  reportLast(): void {
    this.#attempt(() => {
      const before = this.#before
      this.#before = undefined
      const reports = readdirSync(this.#native)
        .filter(name => name.endsWith('.json'))
        .map(name => join(this.#native, name))
      for (const report of reports) {
        const crash = read<NativeReport>(report)
        if (crash?.header) this.#save(nativeCrash(crash, lastLines(this.#log, crash.header.processId)))
        rmSync(report, { force: true })
      }
      if (before && reports.length === 0) {
        this.#save({
          at: timeOf(this.#log) ?? before.at,
          pid: before.pid,
          what: 'the process ended without a report: it was killed, or the system failed',
          stack: 'unknown',
          last: lastLines(this.#log, before.pid),
        })
      }
    })
  }

  /** Marks a normal exit. */
  end(): void {
    this.#attempt(() => rmSync(this.#marker, { force: true }))
  }

  /** Writes a report immediately; only the first 20 of a run. */
  write(what: string, error: unknown): void {
    if (this.#written >= MOST_A_RUN) return
    this.#written += 1
    this.#attempt(() => this.#save({ at: Date.now(), pid: process.pid, what, stack: stackOf(error) }))
  }

  #save(crash: Crash): void {
    const { at, pid, what, stack, last } = crash
    const time = new Date(at).toISOString()
    const text = [
      `time: ${time}`,
      `group: ${groupOf(stack)}`,
      `what: ${what}`,
      `pid: ${pid}`,
      `node: ${process.version}`,
      '',
      'stack:',
      stack,
      ...(last ? ['', 'last lines of the log:', last] : []),
      '',
    ].join('\n')
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const stamp = time.replace(/[:.]/g, '-')
    writeFileSync(join(this.#folder, `${stamp}-${pid}-${this.#written}.log`), reportText(text), { mode: 0o600 })
    const files = readdirSync(this.#folder).sort()
    for (const name of files.slice(0, Math.max(0, files.length - MOST_FILES)))
      rmSync(join(this.#folder, name), { force: true })
  }

  /** Failing to write a report must not cause another crash. */
  #attempt(work: () => void): void {
    try {
      work()
    } catch {
      // The crash itself is reported.
    }
  }
}

const stackOf = (error: unknown, depth = 0): string => {
  const { stack, message, cause } = error instanceof Error ? error : { message: error }
  const text = String(stack ?? message).slice(0, 1_000_000)
  return cause === undefined || depth > 9 ? text : `${text}\ncaused by ${stackOf(cause, depth + 1)}`
}

/** The group whose code is in a stack, else `daemon`; `unknown` for a stack without source positions. */
const groupOf = (stack: string): string =>
  /[\\/]plugins[\\/]([a-z][a-z0-9-]*)[\\/]/.exec(stack)?.[1] ?? (/\.m?js:\d+/.test(stack) ? 'daemon' : 'unknown')

interface NativeReport {
  readonly header: {
    readonly event: string
    readonly trigger: string
    readonly dumpEventTimeStamp: string
    readonly processId: number
  }
  readonly javascriptStack?: { readonly message?: string; readonly stack?: readonly string[] }
  readonly nativeStack?: readonly { readonly symbol?: string }[]
}

const nativeCrash = ({ header, javascriptStack, nativeStack = [] }: NativeReport, last: string): Crash => ({
  at: Number(header.dumpEventTimeStamp) || Date.now(),
  pid: header.processId,
  what: `${header.event} (${header.trigger})`,
  stack: [javascriptStack?.message, ...(javascriptStack?.stack ?? []), ...nativeStack.map(({ symbol }) => symbol)]
    .filter(Boolean)
    .join('\n'),
  last,
})

const read = <T>(path: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch {
    return undefined
  }
}

const timeOf = (path: string): number | undefined => {
  try {
    return statSync(path).mtimeMs
  } catch {
    return undefined
  }
}

/** The last 20 lines that a process wrote to a log. */
const lastLines = (path: string, pid: number): string => {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const { size } = statSync(path)
    const bytes = Buffer.alloc(Math.min(size, LAST_BYTES))
    readSync(file, bytes, 0, bytes.length, size - bytes.length)
    return bytes
      .toString('utf8')
      .split('\n')
      .filter(line => logHead(line)?.pid === pid)
      .slice(-LAST_LINES)
      .join('\n')
  } catch {
    return ''
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
