import type { Log } from '../../host.js'
import { redactedJson, visible } from '../access/redact.js'
import { withoutStored } from '../access/stored-values.js'

const WORTH_SAYING = /^\{"level":"(?:warn|error|fatal)"/

/** Makes a log line safe to store: without credentials and terminal control characters. */
export const safeLine = (line: string): string => visible(redactedJson(withoutStored(line)))

/** Formats a warning or error as text; empty for other levels. */
export const inWords = (line: string): string => {
  if (!WORTH_SAYING.test(line)) return ''
  const { level, message, group, err, error, stack } = JSON.parse(line) as { [key: string]: unknown }
  const detail = (err as { stack?: string } | undefined)?.stack ?? stack ?? error
  // A line break in a message must not forge a log line.
  const words = String(message).replaceAll('\n', '\\n')
  const more = detail ? `\n${detail}`.replaceAll('\n', '\n  ') : ''
  return visible(`${level === 'warn' ? 'warning' : 'error'}: ${group ? `${group}: ` : ''}${words}${more}\n`)
}

interface Parent {
  child(fields: object): { [level in keyof Log]: (fields: object, message: string) => void }
}

/** A logger that adds the group's name to every line. */
export const groupLog = (log: Parent, group: string): Log => {
  const child = log.child({ group })
  return {
    info: (message, fields) => child.info(fields ?? {}, message),
    warn: (message, fields) => child.warn(fields ?? {}, message),
    error: (message, fields) => child.error(fields ?? {}, message),
  }
}
