/** How entries lie in a journal's file. */
export interface Format {
  readonly extension: string
  /** What ends an entry and appears nowhere inside one. */
  readonly terminator: string
  /** An entry's bytes as text. */
  entry(position: number, json: string): string
  /** Whether the entry that begins here has a position; control events have none. */
  counts(bytes: Buffer, start: number): boolean
  /** Whether the entry that begins here is the last of a closed journal. */
  ends(bytes: Buffer, start: number): boolean
  /** The JSON of an entry that has a position. */
  json(text: string): string
}

/** A control event: what the watchers of a closed journal get last. */
export interface Control {
  readonly event: 'message' | 'done' | 'error'
  readonly data: unknown
}

const LETTER_I = 'i'.charCodeAt(0)
const ENDS = ['event: done\n', 'event: error\n']
const DATA = '\ndata: '

/** Server-sent events as watchers receive them: JSON holds no line break, so an empty line only ends an entry. */
export const eventsOf = (id: string): Format => ({
  extension: '.events',
  terminator: '\n\n',
  entry: (position, json) => `id: ${id}:${position}\nevent: message\ndata: ${json}\n\n`,
  counts: (bytes, start) => bytes[start] === LETTER_I,
  ends: (bytes, start) => ENDS.includes(bytes.toString('latin1', start, bytes.indexOf('\n', start) + 1)),
  json: text => text.slice(text.indexOf(DATA) + DATA.length),
})

/** One JSON value a line. */
export const lines: Format = {
  extension: '.jsonl',
  terminator: '\n',
  entry: (_, json) => `${json}\n`,
  counts: () => true,
  ends: () => false,
  json: text => text,
}

/** The format of a journal, which its name decides. */
export const formatOf = (name: string): Format => {
  const parts = name.split('/')
  return parts[1] === 'frames' && parts.length > 2 ? eventsOf(parts.at(-1) ?? '') : lines
}

/** A control event's bytes as text. */
export const controlEvent = ({ event, data }: Control): string =>
  `event: ${event}\ndata: ${JSON.stringify(data) ?? 'null'}\n\n`

/** Bytes from an offset on: fewer than asked for only at the end. */
export type Source = (at: number, most: number) => Buffer | Promise<Buffer>

export const PIECE = 256 * 1024

/** A stretch of whole entries, and where it begins. */
export interface Stretch {
  readonly at: number
  readonly bytes: Buffer
}

/** Everything from an offset to the end of the source in stretches of whole entries; a torn last one is left out. */
export const stretches = async function* (source: Source, from: number, terminator: string): AsyncGenerator<Stretch> {
  let most = PIECE
  for (let at = from; ;) {
    const bytes = await source(at, most)
    const last = bytes.lastIndexOf(terminator)
    if (last >= 0) {
      const whole = last + terminator.length
      yield { at, bytes: bytes.subarray(0, whole) }
      at += whole
      most = PIECE
      continue
    }
    if (bytes.length < most) return
    most *= 2
  }
}

/** Where each entry of a stretch begins and ends. */
export const entriesOf = function* (bytes: Buffer, terminator: string): Generator<[start: number, end: number]> {
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(terminator, start)
    if (end < 0) return
    yield [start, end + terminator.length]
    start = end + terminator.length
  }
}

/**
 * The values of a stretch, control events left out; `damaged` stands for what is no JSON, which without it cannot be
 * read.
 */
export const valuesOf = (bytes: Buffer, format: Format, damaged?: unknown): unknown[] => {
  const values: unknown[] = []
  for (const [start, end] of entriesOf(bytes, format.terminator)) {
    if (!format.counts(bytes, start)) continue
    const json = format.json(bytes.toString('utf8', start, end - format.terminator.length))
    try {
      values.push(JSON.parse(json))
    } catch (error) {
      if (damaged === undefined) throw error
      values.push(damaged)
    }
  }
  return values
}
