import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { ActivityEvent } from '../../../plugins/activity/contract.js'
import type { Client } from '../../client.js'
import { ChainCheck } from '../../node/record/chain.js'
import { wordsAs } from '../calls/asked-as.js'
import { connected } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { jsonLine, oneLine, short, type Styles, stylesOf } from '../terminal/text.js'
import { momentWords, nameWords, valueForm, valueWords } from '../terminal/values.js'
import { CONNECTION, EXIT, CommandFailure, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { write } from '../terminal/write.js'

/** Shows what happened in the sandbox and who did it, and checks a record that was exported. */
export const activityVerb: Verb = {
  name: 'activity',
  group: 'activity',
  usage: '[verify FILE|-]',
  summary: 'show what happened and who did it, or check an exported record',
  examples: ['activity --follow', 'activity --type "agent.*"', 'activity verify record.ndjson'],
  notes: [
    'The newest entries, oldest of them first. A type may end in *, such as --type "session.*".',
    `verify needs no daemon: it checks that the output of ${SELF} call 'GET /activity/export' is complete.`,
  ],
  flags: {
    type: { value: 'TYPE', help: 'only entries of this type' },
    actor: { value: 'ACTOR', help: 'only what this person, token or conversation did' },
    conversation: { value: 'ID', help: 'only entries of this conversation' },
    find: { value: 'WORDS', help: 'only entries that contain these words' },
    limit: { value: 'COUNT', help: 'how many, 20 unless given' },
    follow: { short: 'f', help: 'then print new entries, until Ctrl-C' },
    ...CONNECTION,
  },
  most: 2,
  run: (terminal, given) => {
    const [what, file] = given.args
    if (what === undefined) return connected(terminal, given, ({ client }) => show(terminal, given, client))
    if (what !== 'verify' || file === undefined)
      misused(`expected activity, or activity verify FILE|-, found activity ${given.args.join(' ')}`)
    return verify(terminal, file!, given.on('json'))
  },
}

const show = async (terminal: Terminal, given: GivenArguments, client: Client): Promise<number> => {
  const { signal } = terminal
  const limit = Number(given.text('limit') ?? 20)
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    misused(`--limit: expected a number from 1 to 500, found ${given.text('limit')}`)
  const [type, actor, conversationId, query] = ['type', 'actor', 'conversation', 'find'].map(
    flag => given.text(flag) || undefined,
  )
  const filter = {
    ...(type && { type }),
    ...(actor && { actor }),
    ...(conversationId && { conversationId }),
    ...(query && { query }),
  }
  if (!given.on('follow') && !given.on('json')) {
    const words = await wordsAs(terminal, ['activity', 'list'])
    const found = await client.call('GET /activity', { ...filter, limit }, { signal })
    await write(terminal, `${words(found, terminal.width).join('\n')}\n`)
    return EXIT.ok
  }
  const line = given.on('json') ? jsonLine : lineOf(stylesOf(terminal.colour), terminal.columns)
  const print = async (events: readonly ActivityEvent[]) => {
    for (const event of events.toReversed()) await write(terminal, line(event))
  }
  const first = await client.call('GET /activity', { ...filter, limit }, { signal })
  await print(first.events)
  if (!given.on('follow')) return EXIT.ok
  let newest = first.events[0]?.at ?? Date.now()
  for await (const event of await client.call('GET /events', {}, { signal })) {
    if (event.kind !== 'hello' && !(event.kind === 'runtimeChanged' && event.domains.includes('activity'))) continue
    const events = await since(client, filter, newest + 1, signal)
    newest = events[0]?.at ?? newest
    await print(events)
  }
  return EXIT.ok
}

/** Every entry from a moment on, newest first. */
const since = async (client: Client, filter: object, from: number, signal: AbortSignal): Promise<ActivityEvent[]> => {
  const events: ActivityEvent[] = []
  for (let before: number | undefined; ;) {
    const page = await client.call(
      'GET /activity',
      { ...filter, from, limit: 500, ...(before !== undefined && { before }) },
      { signal },
    )
    events.push(...page.events)
    before = page.next
    if (before === undefined) return events
  }
}

/** Formats an entry as one line: time, type, actor and details. */
const lineOf =
  ({ dim, bold, red }: Styles, columns = 0) =>
  (event: ActivityEvent): string => {
    const {
      at,
      type,
      actor = 'sandbox',
      conversationId,
      title,
      content,
      endpoint,
      method,
      provider,
      outcome,
      error,
      extra,
    } = event
    const about = [
      title ? `“${title}”` : conversationId,
      [method, endpoint].filter(Boolean).join(' '),
      provider,
      content,
      ...Object.entries(extra ?? {}).map(
        ([key, value]) => `${nameWords(key)} ${valueWords(valueForm(key), value, Date.now())}`,
      ),
    ]
      .filter(Boolean)
      .map(text => oneLine(text!))
      .join(' · ')
    const begin = `${momentWords(at)}  ${oneLine(type).padEnd(22)}  ${oneLine(actor).padEnd(22)}`
    const failed = outcome === 'error' ? `  failed${error ? `: ${oneLine(error)}` : ''}` : ''
    const room = columns ? Math.max(20, columns - begin.length - failed.length - 3) : 200
    const shown = about ? `  ${short(about, room)}` : ''
    const columned = `${dim(momentWords(at))}  ${bold(oneLine(type).padEnd(22))}  ${oneLine(actor).padEnd(22)}`
    return `${(columned + shown + red(failed)).trimEnd()}\n`
  }

const verify = async (terminal: Terminal, file: string, json: boolean): Promise<number> => {
  const check = new ChainCheck()
  let end: { entries: number; head: string } | undefined
  const source = file === '-' ? terminal.in : createReadStream(file)
  const failed = new Promise<never>((_, reject) =>
    source.once('error', ({ message }: Error) =>
      reject(new CommandFailure(EXIT.failed, `${file} cannot be read: ${message}`)),
    ),
  )
  const read = async () => {
    for await (const line of createInterface({ input: source, crlfDelay: Infinity })) {
      if (!line) continue
      end = endOf(line)
      if (!end) check.read(line)
    }
  }
  await Promise.race([read(), failed])
  check.end()
  const { brokenAt, entries, head } = check
  const whole = end !== undefined && end.entries === entries && (entries === 0 || end.head === head?.hash)
  const intact = brokenAt === undefined && whole
  const words =
    brokenAt !== undefined
      ? `broken: entry ${brokenAt} is not what was written`
      : whole
        ? `intact: ${entries === 1 ? 'one entry' : `${entries} entries`}`
          + (head ? `, up to number ${head.seq}, head ${head.hash}` : '')
        : `cut off: the entries are intact, the end is missing after ${head ? `entry ${head.seq}` : 'the beginning'}`
  await write(
    terminal,
    json
      ? jsonLine({
          intact,
          entries,
          ...(head && { head: head.hash }),
          ...(brokenAt !== undefined && { brokenAt }),
          whole,
        })
      : `${words}\n`,
  )
  return intact ? EXIT.ok : EXIT.failed
}

const endOf = (line: string): { entries: number; head: string } | undefined => {
  try {
    const value = JSON.parse(line) as { kind?: string; entries: number; head: string }
    return value.kind === 'end' ? value : undefined
  } catch {
    return undefined
  }
}
