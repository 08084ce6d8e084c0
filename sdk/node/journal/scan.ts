import { fstatSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { entriesOf, stretches } from './format.js'
import type { Format } from './format.js'

const readAt = promisify(read)

/** Bytes between two marks; entries between marks are found by counting. */
export const STRIDE = 64 * 1024

/** Where one entry begins. */
export interface Mark {
  readonly position: number
  readonly at: number
}

/** The complete entries of a file. */
export interface Found {
  size: number
  entries: number
  dataEnd: number
  closed: boolean
  torn: boolean
  marks: Mark[]
}

/** Finds the complete entries of a file. JSON contains no NUL, so a NUL marks a block that a power cut left empty. */
export const scan = async (fd: number, format: Format): Promise<Found> => {
  const found: Found = { size: 0, entries: 0, dataEnd: 0, closed: false, torn: false, marks: [] }
  const { size } = fstatSync(fd)
  const source = async (at: number, most: number): Promise<Buffer> => {
    const length = Math.min(most, size - at)
    if (length <= 0) return Buffer.alloc(0)
    const { bytesRead, buffer } = await readAt(fd, Buffer.allocUnsafe(length), 0, length, at)
    return buffer.subarray(0, bytesRead)
  }
  for await (const { at, bytes } of stretches(source, 0, format.terminator)) {
    const hole = bytes.indexOf(0)
    for (const [start, end] of entriesOf(bytes, format.terminator)) {
      if (hole >= 0 && hole < end) break
      if (format.counts(bytes, start)) {
        found.entries++
        const begin = at + start
        if (begin - (found.marks.at(-1)?.at ?? 0) >= STRIDE) found.marks.push({ position: found.entries, at: begin })
        found.dataEnd = at + end
        continue
      }
      found.closed = format.ends(bytes, start)
      found.size = at + end
    }
    if (hole >= 0) break
  }
  // Control events without the final one are an interrupted close, which does not count.
  if (!found.closed) found.size = found.dataEnd
  found.torn = size > found.size
  return found
}
