import { isUtf8 } from 'node:buffer'
import type { FileHandle } from 'node:fs/promises'
import type { FileWindow } from './contract.js'

/** The most bytes of one part. */
export const MOST_WINDOW = 4 * 1024 * 1024
/** A character has at most this many bytes after its first. */
const LONGEST_REST = 3

/** The length of a character that begins with this byte; 0: none does. */
const lengthFrom = (byte: number): number => {
  if (byte < 0x80) return 1
  if (byte >= 0xc2 && byte < 0xe0) return 2
  if (byte >= 0xe0 && byte < 0xf0) return 3
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0
}

/** The first offset from `at` on that is not inside a character. */
const boundary = (bytes: Buffer, at: number): number => {
  for (let back = 1; back <= LONGEST_REST && at - back >= 0; back++) {
    const length = lengthFrom(bytes[at - back]!)
    if (length === 0) continue
    const end = at - back + length
    const whole = end > at && end <= bytes.length && isUtf8(bytes.subarray(at - back, end))
    return whole ? end : at
  }
  return at
}

const readAt = async (handle: FileHandle, from: number, length: number): Promise<Buffer> => {
  const bytes = Buffer.allocUnsafe(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, length - done, from + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return bytes.subarray(0, done)
}

/** A part of an open file as text. */
export const textWindow = async (
  handle: FileHandle,
  { offset = 0, limit = MOST_WINDOW }: { offset?: number; limit?: number },
): Promise<Required<Pick<FileWindow, 'content' | 'size' | 'offset' | 'bytes'>> & Pick<FileWindow, 'lossy'>> => {
  const { size } = await handle.stat()
  const start = offset < 0 ? Math.max(0, size + offset) : Math.min(offset, size)
  const end = Math.min(size, start + Math.min(limit, MOST_WINDOW))
  const from = Math.max(0, start - LONGEST_REST)
  const around = await readAt(handle, from, Math.min(size, end + LONGEST_REST) - from)
  const begins = boundary(around, Math.min(start - from, around.length))
  const ends = Math.max(begins, boundary(around, Math.min(end - from, around.length)))
  const bytes = around.subarray(begins, ends)
  return {
    content: bytes.toString(),
    size,
    offset: from + begins,
    bytes: bytes.length,
    ...(!isUtf8(bytes) && { lossy: true as const }),
  }
}
