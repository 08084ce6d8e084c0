import { pino, type Logger } from 'pino'
import type { Log } from '../sdk/host.js'

export type { Logger }

/** The daemon's log on standard error: JSON lines for machines, or warnings and errors as plain lines for a person. */
export const createLog = (json: boolean, write: (line: string) => void = line => void process.stderr.write(line)): Logger =>
  json
    ? pino({ base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.epochTime }, { write })
    : pino({ level: 'warn', base: null }, { write: line => write(plain(line)) })

const plain = (line: string): string => {
  const { level, msg, plugin, err, error, stack } = JSON.parse(line) as { [key: string]: unknown }
  const detail = (err as { stack?: string } | undefined)?.stack ?? stack ?? error
  return `${Number(level) >= 50 ? 'error' : 'warning'}: ${plugin ? `${plugin}: ` : ''}${msg}${detail ? `\n  ${detail}` : ''}\n`
}

/** A plugin's view of the log: every line carries the plugin's name. */
export const pluginLog = (log: Logger, plugin: string): Log => {
  const child = log.child({ plugin })
  return {
    info: (message, fields) => child.info(fields ?? {}, message),
    warn: (message, fields) => child.warn(fields ?? {}, message),
    error: (message, fields) => child.error(fields ?? {}, message),
  }
}
