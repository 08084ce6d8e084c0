import type { Log } from '../../host.js'
import { isAtLeast, logHead, readLogLine } from '../../log-line.js'
import { redactedJson, visible } from '../access/redact.js'
import { withoutStored } from '../access/stored-values.js'

/** Makes a log line safe to store: without credentials and terminal control characters. */
export const safeLine = (line: string): string => visible(redactedJson(withoutStored(line)))

const isGrave = (line: string): boolean => isAtLeast(logHead(line)?.level ?? 'debug', 'warn')

/** Formats a warning or error as text; empty for other levels. */
export const inWords = (line: string): string => {
  if (!isGrave(line)) return ''
  const found = readLogLine(line)
  if (!found) return ''
  const { level, message, group, err, error, stack } = found
  const detail = err?.stack ?? stack ?? error
  // A line break in a message must not forge a log line.
  const words = message.replaceAll('\n', '\\n')
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
