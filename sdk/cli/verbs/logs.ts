import type { Client } from '../../client.js'
import { fieldsInWords, LOG_LEVELS, readLogLine, type LogLevel } from '../../log-line.js'
import { askedAs } from '../calls/asked-as.js'
import { connected } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { jsonLine, oneLine, type Styles, stylesOf } from '../terminal/text.js'
import { CONNECTION, EXIT, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { clockWords } from '../terminal/values.js'
import { write } from '../terminal/write.js'

const LEVELS: readonly string[] = LOG_LEVELS

/** Lists the logs, shows one, or follows it. */
export const logsVerb: Verb = {
  name: 'logs',
  group: 'logs',
  usage: '[NAME]',
  summary: 'list the logs, show the end of one, or follow it',
  examples: ['logs', 'logs daemon.log --follow'],
  notes: ['Without NAME it lists every log. NAME is a name from that list, such as daemon.log or plugins/agent.log.'],
  ids: { NAME: ['logs', 'list'] },
  flags: {
    follow: { short: 'f', help: 'then print new lines, until Ctrl-C' },
    level: { value: 'LEVEL', choices: LEVELS, help: 'only lines of this level (debug, info, warn, error) or above' },
    find: { value: 'WORDS', help: 'only lines that contain these words' },
    ...CONNECTION,
  },
  most: 1,
  run: (terminal, given) => {
    const [name] = given.args
    const level = given.text('level')
    if (level !== undefined && !LEVELS.includes(level))
      misused(`--level: expected ${LEVELS.join(', ')}, found ${level}`)
    if (name === undefined && (given.on('follow') || level !== undefined))
      misused(`expected the name of a log; ${SELF} logs lists them`)
    if (name === undefined) {
      const query = given.text('find')
      return askedAs(terminal, given, ['logs', 'list'], (client, options) =>
        client.call('GET /logs', query ? { query } : {}, options),
      )
    }
    return connected(terminal, given, ({ client }) =>
      given.on('follow') ? follow(terminal, given, client, name) : show(terminal, given, client, name),
    )
  },
}

const show = async (terminal: Terminal, given: GivenArguments, client: Client, name: string): Promise<number> => {
  const [find, level] = [given.text('find'), given.text('level') as LogLevel | undefined]
  const line = lineOf(given, stylesOf(terminal.colour))
  const searched = find !== undefined || level !== undefined
  for (let offset: number | undefined; ;) {
    const asked = { name, ...(find && { find }), ...(level && { level }), ...(offset !== undefined && { offset }) }
    const window = await client.call('GET /logs/file', asked, { signal: terminal.signal })
    for (const text of window.text.split('\n').filter(Boolean)) await write(terminal, line(text))
    if (!searched || window.next === undefined) return EXIT.ok
    offset = window.next
  }
}

const follow = async (terminal: Terminal, given: GivenArguments, client: Client, name: string): Promise<number> => {
  const [find, level] = [given.text('find'), given.text('level') as LogLevel | undefined]
  const styles = stylesOf(terminal.colour)
  const line = lineOf(given, styles)
  for await (const event of await client.call(
    'GET /logs/follow',
    { name, ...(level && { level }) },
    { signal: terminal.signal },
  )) {
    if ('text' in event) {
      if (find === undefined || event.text.includes(find)) await write(terminal, line(event.text))
    } else if (given.on('json')) await write(terminal, jsonLine(event))
    else if (event.kind === 'skipped')
      await write(terminal, styles.yellow(`skipped ${event.lines} lines that came too fast`) + '\n')
  }
  return EXIT.ok
}

/** Formats a log line: time, level, group, message and further fields. */
const lineOf =
  (given: GivenArguments, { dim, red, yellow, bold }: Styles) =>
  (text: string): string => {
    const structured = given.on('json') ? undefined : readLogLine(text)
    if (!structured) return `${oneLine(text)}\n`
    const { level, at, message, group, pid: _, err, ...rest } = structured
    const colour = level === 'error' ? red : level === 'warn' ? yellow : (word: string) => word
    const fields = fieldsInWords(rest)
    const more = fields && ` ${fields}`
    const stack = err?.stack
      ? `\n${err.stack
          .split('\n')
          .map(one => dim(`  ${oneLine(one)}`))
          .join('\n')}`
      : ''
    const time = dim(clockWords(at))
    const from = group ? `${bold(oneLine(group))} ` : ''
    const words = `${oneLine(message)}${dim(oneLine(more))}`
    return `${time} ${colour(oneLine(level).padEnd(5))} ${from}${words}${stack}\n`
  }
