import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'
import { logLine } from '../../../../sdk/log-line.js'
import { safeLine } from '../../../../sdk/node/logs/line.js'
import { RotatingFile } from '../../../../sdk/node/logs/rotating-file.js'
import { codeOf } from '../../../../sdk/node/files/paths.js'
import { redacted } from '../../../../sdk/node/access/redact.js'

const IDLE = 60_000
const MOST_COMMAND = 8 * 1024
/** The kept beginning and end of an output that is too long. */
const MOST_HEAD = 16 * 1024
const MOST_TAIL = 48 * 1024

/** A command as it begins. */
export interface CommandBegun {
  readonly command: string
  /** The language, if it is not a shell command. */
  readonly language?: 'javascript'
  /** Its folder, from the root of the tree. */
  readonly folder: string
  /** When it began; left out: now. */
  readonly startedAt?: number
}

/** How a command ended; without a code and a signal it was stopped. */
export interface CommandEnded {
  readonly exit?: number
  readonly signal?: string
  readonly timedOut?: boolean
  /** The end as reported by the program that ran it by itself. */
  readonly said?: 'completed' | 'failed'
  readonly output: string
}

/**
 * Logs the start of a command, and its end when the returned function is called; both return at once and never fail.
 */
export type BeginCommand = (begun: CommandBegun) => (ended: CommandEnded) => void

interface Log {
  readonly file: RotatingFile
  underWay: number
  idle?: NodeJS.Timeout
}

/** The commands that the turns of each conversation ran, without credentials: two lines each, at start and end. */
export class CommandLogs {
  readonly #folder: string
  readonly #safe: (text: string) => string
  readonly #open = new Map<string, Log>()
  #next = 1

  /**
   * @param folder Where the logs of commands are.
   * @param mask Replaces stored values.
   */
  constructor(folder: string, mask: (text: string) => string = text => text) {
    this.#folder = folder
    this.#safe = text => redacted(mask(text))
  }

  /** The commands of one run. */
  of(conversationId: string, run: string): BeginCommand {
    return ({ command, folder, language, startedAt = Date.now() }) => {
      const log = this.#log(conversationId)
      log.underWay += 1
      const id = this.#next++
      const known = () => ({
        run,
        id,
        command: start(this.#safe(command)),
        ...(language && { language }),
        folder: folder || '.',
        startedAt,
      })
      // Deferred, so that the turn continues first; the lines stay in order.
      setImmediate(() => log.file.write(lineOf('info', startedAt, 'a command begins', known())))
      return ended => {
        const endedAt = Date.now()
        setImmediate(() => {
          const { exit, signal, timedOut, said, output } = ended
          const well = exit === undefined ? said === 'completed' : exit === 0 && !timedOut
          log.file.write(
            lineOf(well ? 'info' : 'warn', endedAt, 'a command has ended', {
              ...known(),
              ms: endedAt - startedAt,
              ...(exit !== undefined && { exit }),
              ...(signal !== undefined && { signal }),
              ...(said !== undefined && { said }),
              ...(exit === undefined && signal === undefined && said === undefined && { stopped: true }),
              ...(timedOut && { timedOut }),
              output: ends(this.#safe(output.toWellFormed())),
            }),
          )
          log.underWay -= 1
          if (log.underWay === 0 && this.#open.get(conversationId) === log) this.#rest(conversationId, log)
        })
      }
    }
  }

  /** Deletes the log of a conversation that was deleted for good; no turn of it is running. */
  async forget(conversationId: string): Promise<void> {
    const log = this.#open.get(conversationId)
    this.#open.delete(conversationId)
    clearTimeout(log?.idle)
    await log?.file.close()
    await rm(join(this.#folder, conversationId), { recursive: true, force: true }).catch(error => {
      if (codeOf(error) !== 'ENOTDIR') throw error
    })
  }

  /** Resolves when every line is in its file. */
  async close(): Promise<void> {
    await tick()
    await Promise.all([...this.#open.values()].map(({ file, idle }) => (clearTimeout(idle), file.close())))
    this.#open.clear()
  }

  #log(conversationId: string): Log {
    const known = this.#open.get(conversationId)
    clearTimeout(known?.idle)
    if (known) return known
    const made: Log = { file: new RotatingFile(join(this.#folder, conversationId, 'commands.log')), underWay: 0 }
    this.#open.set(conversationId, made)
    return made
  }

  #rest(conversationId: string, log: Log): void {
    log.idle = setTimeout(() => {
      if (log.underWay > 0) return
      this.#open.delete(conversationId)
      void log.file.close()
    }, IDLE).unref()
  }
}

const lineOf = (level: 'info' | 'warn', at: number, message: string, fields: object): string =>
  safeLine(logLine({ level, at, message, ...fields }))

const start = (text: string): string =>
  text.length > MOST_COMMAND ? `${text.slice(0, MOST_COMMAND).toWellFormed()}…` : text.toWellFormed()

const ends = (text: string): string => {
  if (text.length <= MOST_HEAD + MOST_TAIL) return text
  const [head, tail] = [text.slice(0, MOST_HEAD), text.slice(-MOST_TAIL)].map(part => part.toWellFormed())
  return `${head}\n… ${text.length - MOST_HEAD - MOST_TAIL} characters left out …\n${tail}`
}
