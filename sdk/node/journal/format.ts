/** The file format of a journal. */
export interface Format {
  readonly extension: string
  /** Ends an entry; never occurs inside one. */
  readonly terminator: string
  /** The text of an entry. */
  entry(position: number, json: string): string
  /** Whether the entry that begins here has a position; control events have none. */
  counts(bytes: Buffer, start: number): boolean
  /** Whether the entry that begins here is the last of a closed journal. */
  ends(bytes: Buffer, start: number): boolean
  /** The JSON of an entry that has a position. */
  json(text: string): string
}

/** A control event, sent last to the watchers of a closed journal. */
export interface Control {
  readonly event: 'message' | 'done' | 'error'
  readonly data: unknown
}

const LETTER_I = 'i'.charCodeAt(0)
const ENDS = ['event: done\n', 'event: error\n']
const DATA = '\ndata: '

/** Server-sent events as watchers receive them. JSON contains no line break, so an empty line always ends an entry. */
export const eventsOf = (id: string): Format => ({
  extension: '.events',
  terminator: '\n\n',
  entry: (position, json) => `id: ${id}:${position}\nevent: message\ndata: ${json}\n\n`,
  counts: (bytes, start) => bytes[start] === LETTER_I,
  ends: (bytes, start) => ENDS.includes(bytes.toString('latin1', start, bytes.indexOf('\n', start) + 1)),
  json: text => text.slice(text.indexOf(DATA) + DATA.length),
})

/** One JSON value per line. */
export const lines: Format = {
  extension: '.jsonl',
  terminator: '\n',
  entry: (_, json) => `${json}\n`,
  counts: () => true,
  ends: () => false,
  json: text => text,
}

/** The format of a journal, determined by its name. */
export const formatOf = (name: string): Format => {
  const parts = name.split('/')
  return parts[1] === 'frames' && parts.length > 2 ? eventsOf(parts.at(-1) ?? '') : lines
}

/** The text of a control event. */
export const controlEvent = ({ event, data }: Control): string =>
  `event: ${event}\ndata: ${JSON.stringify(data) ?? 'null'}\n\n`

/** Reads bytes from an offset; returns fewer than `most` only at the end. */
export type Source = (at: number, most: number) => Buffer | Promise<Buffer>

export const PIECE = 256 * 1024

/** A range of complete entries, and its offset. */
export interface Stretch {
  readonly at: number
  readonly bytes: Buffer
}

/**
 * Reads from an offset to the end of the source, in ranges of complete entries; leaves out a partly written last entry.
 */
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

/** The start and end of each entry of a range. */
export const entriesOf = function* (bytes: Buffer, terminator: string): Generator<[start: number, end: number]> {
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(terminator, start)
    if (end < 0) return
    yield [start, end + terminator.length]
    start = end + terminator.length
  }
}

/**
 * Parses the values of a range, without control events. Returns `damaged` for invalid JSON; without it, that is an
 * error.
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
