import { join } from 'node:path'
import { logLine, type LogLevel } from '../../../../sdk/log-line.js'
import { safeLine } from '../../../../sdk/node/logs/line.js'
import { RotatingFile } from '../../../../sdk/node/logs/rotating-file.js'
import type { HostHandlers } from '../operations.js'

const MIB = 1024 * 1024
const MOST_TEXT = 4000
const MOST_FIELDS = 4000

/** The log files of extensions, `plugins/extension-<id>.log`, each with a limit on its size. */
export class ExtensionLogs {
  readonly #folder: string
  readonly #files = new Map<string, RotatingFile>()

  constructor(folder: string) {
    this.#folder = folder
  }

  write(id: string, level: LogLevel, message: string, fields?: object): void {
    const file =
      this.#files.get(id)
      ?? new RotatingFile(join(this.#folder, 'plugins', `extension-${id}.log`), { most: 2 * MIB, backlog: MIB / 4 })
    this.#files.set(id, file)
    file.write(safeLine(lineOf(level, message, fields)))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#files.values()].map(file => file.close()))
  }
}

const lineOf = (level: LogLevel, message: string, fields: object = {}): string => {
  const head = { level, at: Date.now(), message: message.slice(0, MOST_TEXT) }
  try {
    const line = logLine({ ...fields, ...head })
    if (line.length <= MOST_TEXT + MOST_FIELDS) return line
  } catch {
    // Too deeply nested fields are left out.
  }
  return logLine(head)
}

/** The operation that logs. */
export const logOperations = (logs: ExtensionLogs, id: string): Pick<HostHandlers, 'log'> => ({
  log: ({ level, message, fields }) => {
    logs.write(id, level, message, fields)
    return {}
  },
})
