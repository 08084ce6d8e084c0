import type { Log } from '../../host.js'
import { redactedJson, visible } from '../access/redact.js'
import { withoutStored } from '../access/stored-values.js'

const WORTH_SAYING = /^\{"level":"(?:warn|error|fatal)"/

/** A line of the log as it may be kept: without credentials, and nothing in it steers a terminal. */
export const safeLine = (line: string): string => visible(redactedJson(withoutStored(line)))

/** A line of the log in words for a person; only warnings and errors are worth them. */
export const inWords = (line: string): string => {
  if (!WORTH_SAYING.test(line)) return ''
  const { level, message, group, err, error, stack } = JSON.parse(line) as { [key: string]: unknown }
  const detail = (err as { stack?: string } | undefined)?.stack ?? stack ?? error
  // A line break from outside must not begin a line that looks like one of the log's own.
  const words = String(message).replaceAll('\n', '\\n')
  const more = detail ? `\n${detail}`.replaceAll('\n', '\n  ') : ''
  return visible(`${level === 'warn' ? 'warning' : 'error'}: ${group ? `${group}: ` : ''}${words}${more}\n`)
}

interface Parent {
  child(fields: object): { [level in keyof Log]: (fields: object, message: string) => void }
}

/** A group's view of the log: every line carries the group's name. */
export const groupLog = (log: Parent, group: string): Log => {
  const child = log.child({ group })
  return {
    info: (message, fields) => child.info(fields ?? {}, message),
    warn: (message, fields) => child.warn(fields ?? {}, message),
    error: (message, fields) => child.error(fields ?? {}, message),
  }
}
