import type { FileHandle } from 'node:fs/promises'
import type { LogLevel } from '../../sdk/log-line.js'
import type { LogWindow } from './contract.js'
import { CUT, isGrave } from './line.js'

const USUAL = 64 * 1024
const PIECE = 256 * 1024
const MOST_SCANNED = 64 * 1024 * 1024
const LINE_END = 0x0a

/** Which part of a log is asked for. */
export interface Wanted {
  readonly bytes?: number
  readonly offset?: number
  readonly find?: string
  readonly level?: LogLevel
}

type Read = Omit<LogWindow, 'name'>

/** Whole lines of a log, read where they lie: what a window costs does not depend on how long the log is. */
export const windowOf = async (file: FileHandle, wanted: Wanted): Promise<Read> => {
  const { size } = await file.stat()
  const { bytes = USUAL, offset, find, level } = wanted
  if (find !== undefined || level !== undefined) {
    const begin = offset ?? (await lineAt(file, Math.max(0, size - MOST_SCANNED), size))
    return matching(file, {
      size,
      begin: Math.min(begin, size),
      bytes,
      fits: text => (find === undefined || text.includes(find)) && isGrave(text, level),
    })
  }
  if (offset !== undefined) return forwards(file, await lineAt(file, Math.min(offset, size), size), bytes, size)
  const begin = Math.max(0, size - bytes)
  const first = await lineAt(file, begin, size)
  if (first < size || size === 0) return forwards(file, first, bytes, size)
  const text = utf8(await readAt(file, begin, bytes))
  return { sizeBytes: size, text: `…${text}`, offset: begin, truncated: true }
}

/** Lines from the beginning of one, as many as fit. */
const forwards = async (file: FileHandle, begin: number, bytes: number, size: number): Promise<Read> => {
  const read = await readAt(file, begin, Math.min(bytes, size - begin))
  const last = read.lastIndexOf(LINE_END) + 1
  const end = begin + read.length
  // The end of the log may be a line that is still being written.
  if (end >= size) return { sizeBytes: size, text: utf8(read), offset: begin, truncated: false }
  if (last > 0)
    return { sizeBytes: size, text: utf8(read.subarray(0, last)), offset: begin, next: begin + last, truncated: false }
  const next = await lineAt(file, end, size)
  return {
    sizeBytes: size,
    text: `${utf8(read)}${CUT}\n`,
    offset: begin,
    ...(next < size && { next }),
    truncated: true,
  }
}

interface Search {
  readonly size: number
  readonly begin: number
  readonly bytes: number
  readonly fits: (text: string) => boolean
}

const matching = async (file: FileHandle, { size, begin, bytes, fits }: Search): Promise<Read> => {
  const found: string[] = []
  let [length, truncated, first] = [0, false, begin]
  const answer = (at: number): Read => ({
    sizeBytes: size,
    text: found.join(''),
    offset: first,
    ...(at < size && { next: at }),
    truncated,
  })
  for (let at = begin; at < Math.min(size, begin + MOST_SCANNED);) {
    const read = await readAt(file, at, Math.min(PIECE, size - at))
    if (read.length === 0) return answer(size)
    let start = 0
    while (start < read.length) {
      const end = read.indexOf(LINE_END, start) + 1 || (at + read.length >= size || start === 0 ? read.length : 0)
      if (end === 0) break
      const text = utf8(read.subarray(start, end))
      if (fits(text)) {
        const room = bytes - length
        if (end - start > room && found.length > 0) return answer(at + start)
        if (found.length === 0) first = at + start
        truncated ||= end - start > room
        found.push(end - start > room ? `${utf8(read.subarray(start, start + room))}${CUT}\n` : text)
        length += end - start
      }
      start = end
    }
    at += start
  }
  return answer(Math.min(size, begin + MOST_SCANNED))
}

/** Where the first line begins that is not before an offset. */
const lineAt = async (file: FileHandle, offset: number, size: number): Promise<number> => {
  if (offset === 0) return 0
  for (let at = offset - 1; at < size; at += PIECE) {
    const read = await readAt(file, at, Math.min(PIECE, size - at))
    const found = read.indexOf(LINE_END)
    if (found >= 0) return at + found + 1
    if (read.length === 0) break
  }
  return size
}

/** Bytes at an offset; fewer only where the log ends. */
export const readAt = async (file: FileHandle, offset: number, length: number): Promise<Buffer> => {
  if (length <= 0) return Buffer.alloc(0)
  const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, offset)
  return buffer.subarray(0, bytesRead)
}

/** Bytes as text, with replacement characters for invalid UTF-8. */
export const utf8 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
