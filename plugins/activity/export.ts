import { recordEntryOf } from './record.js'
import { dayNamed, dayOf, segmentLines, type Segments } from './segments.js'

const AT = /^\{"seq":\d+,"at":(\d+),/
const HEAD_BYTES = 64
const LINE_END = 0x0a
const DAY = 24 * 60 * 60_000

/** The entries of a time as they are stored, in stretches, and then the line that says it was all. */
export async function* exported(
  segments: Pick<Segments, 'names' | 'forwards'>,
  { from = 0, to = Infinity }: { from?: number; to?: number },
): AsyncGenerator<Uint8Array | string, void> {
  let entries = 0
  let head = ''
  const first = dayOf(from - DAY)
  for (const name of await segments.names()) {
    if (dayNamed(name) < first) continue
    if (dayNamed(name) > dayOf(to)) break
    for await (const stretch of segments.forwards(name)) {
      const part = within(stretch, from, to)
      if (part.length === 0) continue
      const lines = segmentLines(part)
      entries += lines.length
      head = recordEntryOf(lines.at(-1)!)?.hash ?? head
      yield part
    }
  }
  yield `${JSON.stringify({ kind: 'end', entries, head })}\n`
}

/** The lines of a time: times only grow, so they lie together; a line that says none goes with the one before. */
const within = (stretch: Buffer, from: number, to: number): Buffer => {
  let begin: number | undefined
  let taken = from === 0
  for (let at = 0; at < stretch.length; at = stretch.indexOf(LINE_END, at) + 1) {
    const found = AT.exec(stretch.toString('latin1', at, at + HEAD_BYTES))
    if (found) taken = Number(found[1]) >= from && Number(found[1]) <= to
    if (found && Number(found[1]) > to) return stretch.subarray(begin ?? at, at)
    if (taken) begin ??= at
  }
  return stretch.subarray(begin ?? stretch.length)
}
