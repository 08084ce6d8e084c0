/** One line of the daemon's logs, and of each group's. */
export interface StructuredLine {
  readonly level: WrittenLevel
  readonly at: number
  readonly message: string
  readonly pid?: number
  readonly group?: string
  readonly err?: { readonly message?: string; readonly stack?: string }
  /** What else belongs to the message. */
  readonly [field: string]: unknown
}

const WRITTEN = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
/** A level as the log has it. */
export type WrittenLevel = (typeof WRITTEN)[number]
/** A level as people choose it, from the least grave on. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly WrittenLevel[]
export type LogLevel = (typeof LOG_LEVELS)[number]

const CHOSEN: { readonly [level in WrittenLevel]: LogLevel } = {
  trace: 'debug',
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  error: 'error',
  fatal: 'error',
}

const HEAD = new RegExp(
  `^\\{"level":"(${WRITTEN.join('|')})","at":(\\d{1,15})(?:,"pid":(\\d+))?(?:,"group":"([a-z][a-z0-9-]{0,60})")?[,}]`,
)

/** The first fields of a line, which every line has in this order: read without parsing the rest. */
export interface LogHead {
  readonly level: LogLevel
  readonly at: number
  readonly pid?: number
  readonly group?: string
}

/** The first fields of a line of the log; absent for any other text. */
export const logHead = (text: string): LogHead | undefined => {
  const [, level, at, pid, group] = HEAD.exec(text) ?? []
  if (level === undefined) return undefined
  return {
    level: CHOSEN[level as WrittenLevel],
    at: Number(at),
    ...(pid !== undefined && { pid: Number(pid) }),
    ...(group !== undefined && { group }),
  }
}

/** A line of the log, parsed; absent for any other text. Its first fields are the writer's, whatever follows them. */
export const readLogLine = (text: string): (StructuredLine & LogHead) | undefined => {
  const head = logHead(text)
  if (!head) return undefined
  try {
    const line = JSON.parse(text) as StructuredLine
    return typeof line.message === 'string' ? { ...line, ...head } : undefined
  } catch {
    return undefined
  }
}

/** A line of the log as it is written, with its end. */
export const logLine = ({ level, at, pid, group, ...rest }: StructuredLine): string =>
  `${JSON.stringify({ level, at, pid, group, ...rest })}\n`

/** Whether a level is at least as grave as another. */
export const isAtLeast = (level: LogLevel, least: LogLevel): boolean =>
  LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least)

/** Some fields of a line as text, `name=value` each. */
export const fieldsInWords = (fields: { readonly [field: string]: unknown }): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
