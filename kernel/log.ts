import { pino, type Logger } from 'pino'
import type { Log } from '../sdk/host.js'
import { redactedJson, visible } from '../sdk/node/redact.js'

export type { Logger }

/** Where lines of the log go. */
export interface LogOptions {
  /** JSON lines for machines; else warnings and errors as plain lines for a person. */
  readonly json: boolean
  readonly write?: (line: string) => void
  /** Takes every line as JSON, to keep it. */
  readonly keep?: ((line: string) => void) | undefined
}

/** The daemon's log: JSON lines, each free of credentials before it goes anywhere. */
export const createLog = ({ json, write = line => void process.stderr.write(line), keep }: LogOptions): Logger =>
  pino({
    level: json || keep ? 'info' : 'warn',
    base: { pid: process.pid },
    messageKey: 'message',
    timestamp: () => `,"at":${Date.now()}`,
    formatters: { level: label => ({ level: label }) },
  }, {
    write: line => {
      const safe = visible(redactedJson(line))
      keep?.(safe)
      if (json) write(safe)
      else if (WORTH_SAYING.test(safe)) write(plain(safe))
    },
  })

const WORTH_SAYING = /^\{"level":"(?:warn|error|fatal)"/

const plain = (line: string): string => {
  const { level, message, group, err, error, stack } = JSON.parse(line) as { [key: string]: unknown }
  const detail = (err as { stack?: string } | undefined)?.stack ?? stack ?? error
  // A line break from outside must not begin a line that looks like one of the log's own.
  const words = String(message).replaceAll('\n', '\\n')
  return visible(`${level === 'warn' ? 'warning' : 'error'}: ${group ? `${group}: ` : ''}${words}${detail ? `\n${detail}`.replaceAll('\n', '\n  ') : ''}\n`)
}

/** A plugin's view of the log: every line carries the group's name. */
export const pluginLog = (log: Logger, group: string): Log => {
  const child = log.child({ group })
  return {
    info: (message, fields) => child.info(fields ?? {}, message),
    warn: (message, fields) => child.warn(fields ?? {}, message),
    error: (message, fields) => child.error(fields ?? {}, message),
  }
}
