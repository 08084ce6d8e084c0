import type { LogFile } from '../../../plugins/logs/contract.js'
import type { Client } from '../../client.js'
import { fieldsInWords, LOG_LEVELS, readLogLine, type LogLevel } from '../../log-line.js'
import { connected } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { ago, columns, jsonLine, oneLine, type Styles, stylesOf } from '../terminal/text.js'
import { CONNECTION, EXIT, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { write } from '../terminal/write.js'

const LEVELS: readonly string[] = LOG_LEVELS
const KIB = 1024

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
    return connected(terminal, given, ({ client }) =>
      name === undefined
        ? list(terminal, given, client)
        : given.on('follow')
          ? follow(terminal, given, client, name)
          : show(terminal, given, client, name),
    )
  },
}

const list = async (terminal: Terminal, given: GivenArguments, client: Client): Promise<number> => {
  const query = given.text('find')
  const { files } = await client.call('GET /logs', query ? { query } : {}, { signal: terminal.signal })
  if (given.on('json')) await write(terminal, jsonLine({ files }))
  else
    await write(
      terminal,
      files.length
        ? `${columns([['NAME', 'KIND', 'SIZE', 'CHANGED'], ...files.map(row)], terminal.width).join('\n')}\n`
        : 'there are no logs\n',
    )
  return EXIT.ok
}

const row = ({ name, kind, sizeBytes, modifiedAt, live }: LogFile): string[] => [
  oneLine(name),
  kind,
  sizeOf(sizeBytes),
  `${ago(modifiedAt, Date.now())}${live ? ', being written' : ''}`,
]

const sizeOf = (bytes: number): string =>
  bytes < KIB
    ? `${bytes} B`
    : bytes < KIB * KIB
      ? `${Math.round(bytes / KIB)} KiB`
      : `${(bytes / KIB / KIB).toFixed(1)} MiB`

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
    const time = dim(new Date(at).toISOString().slice(11, 23))
    const from = group ? `${bold(oneLine(group))} ` : ''
    const words = `${oneLine(message)}${dim(oneLine(more))}`
    return `${time} ${colour(oneLine(level).padEnd(5))} ${from}${words}${stack}\n`
  }
