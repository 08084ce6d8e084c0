import { hash } from 'node:crypto'
import { readdir, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ignored } from '../../../sdk/index.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import type { SentPicture } from '../providers/adapter.js'

/** Servers take no more of one picture: 5 MiB in base64. */
export const MOST_SHOWN_PICTURE = 3_900_000
const MOST_SIDE = 8_000
/** Older pictures of a conversation go. */
const MOST_KEPT = 64 * 1024 * 1024
const GIF_END = 0x3b
const JPEG_END = Buffer.from([0xff, 0xd9])
const NAME = /^[0-9a-f]{32}\.(?:png|jpeg|gif|webp)$/

/** What a picture is, by its first bytes. */
export interface PictureFacts {
  readonly name: 'PNG' | 'JPEG' | 'GIF' | 'WebP'
  readonly mime: string
  /** Undefined: its header is broken. */
  readonly size: readonly [width: number, height: number] | undefined
  /** Its end is there: servers refuse a request with a picture that is still being written. */
  readonly whole: boolean
}

/** Keeps a picture as a model is shown it, under the name of where it comes from; undefined: it cannot be kept. */
export type KeepPicture = (name: string, bytes: Buffer) => Promise<SentPicture | undefined>

/** The kind and size of a picture; undefined: the bytes are none that models see. */
export const pictureOf = (bytes: Buffer): PictureFacts | undefined => {
  const begins = (magic: string, at = 0) => bytes.toString('latin1', at, at + magic.length) === magic
  const safely = (read: () => PictureFacts['size']): PictureFacts['size'] => {
    try {
      const size = read()
      return size && size[0] > 0 && size[1] > 0 ? size : undefined
    } catch {
      return undefined
    }
  }
  if (begins('\x89PNG\r\n')) {
    const size = begins('\x1a\n\0\0\0\rIHDR', 6)
      ? safely(() => [bytes.readUInt32BE(16), bytes.readUInt32BE(20)])
      : undefined
    return { name: 'PNG', mime: 'image/png', size, whole: bytes.includes('IEND') }
  }
  if (begins('GIF8')) {
    const size = safely(() => [bytes.readUInt16LE(6), bytes.readUInt16LE(8)])
    return { name: 'GIF', mime: 'image/gif', size, whole: bytes.at(-1) === GIF_END }
  }
  if (begins('\xff\xd8\xff')) {
    const size = safely(() => jpegSize(bytes))
    return { name: 'JPEG', mime: 'image/jpeg', size, whole: bytes.includes(JPEG_END) }
  }
  if (!begins('RIFF') || !begins('WEBP', 8)) return undefined
  const size = safely(() => webpSize(bytes))
  return { name: 'WebP', mime: 'image/webp', size, whole: bytes.readUInt32LE(4) + 8 <= bytes.length }
}

/** The size in the frame header, which follows other segments (ITU-T T.81, B.2.2). */
const jpegSize = (bytes: Buffer): PictureFacts['size'] => {
  for (let at = 2; at + 9 < bytes.length;) {
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1]!
    if (marker === 0xff) at += 1
    else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)]
    else at += 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

/** The size in the first chunk (RFC 9649, 2.5 to 2.7). */
const webpSize = (bytes: Buffer): PictureFacts['size'] => {
  const chunk = bytes.toString('latin1', 12, 16)
  if (chunk === 'VP8X') return [1 + bytes.readUIntLE(24, 3), 1 + bytes.readUIntLE(27, 3)]
  if (chunk === 'VP8 ') return [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff]
  if (chunk !== 'VP8L') return undefined
  const bits = bytes.readUInt32LE(21)
  return [1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff)]
}

/** Why a model cannot see a picture, as the end of a sentence; undefined: it can. */
export const unseenBecause = (bytes: Buffer): string | undefined => {
  const facts = pictureOf(bytes)
  if (!facts) return 'it is none of PNG, JPEG, GIF and WebP'
  if (!facts.size) return 'its header is broken'
  if (!facts.whole) return 'its end is missing: it may still be written'
  const [width, height] = facts.size
  if (bytes.length <= MOST_SHOWN_PICTURE && Math.max(width, height) <= MOST_SIDE) return undefined
  return (
    `expected at most ${MOST_SHOWN_PICTURE} bytes and ${MOST_SIDE} pixels a side, found ${bytes.length} bytes and `
    + `${width} × ${height} pixels: make a smaller one with a command, and read that`
  )
}

/** A picture as a model is shown it, or why it does not see it, as the end of a sentence. */
export const shownPicture = async (
  keep: KeepPicture | undefined,
  name: string,
  bytes: Buffer,
): Promise<SentPicture | string> => {
  if (!keep) return 'nobody sees it here'
  return unseenBecause(bytes) ?? (await keep(name, bytes)) ?? 'it could not be kept: the disk is full or failing'
}

/** Keeps a picture as a model was shown it, in a folder that no program of a turn writes in. */
export const keptPicture = async (folder: string, name: string, bytes: Buffer): Promise<SentPicture> => {
  const { mime = 'image/png' } = pictureOf(bytes) ?? {}
  const file = `${hash('sha256', bytes).slice(0, 32)}.${mime.slice('image/'.length)}`
  const absolute = join(await realpath(folder), file)
  await writeAtomic(absolute, bytes, { mode: 0o600 })
  await dropOldest(folder, file)
  return { path: name, absolute, mime }
}

const dropOldest = async (folder: string, newest: string): Promise<void> => {
  const names = (await readdir(folder)).filter(name => NAME.test(name) && name !== newest)
  const files = await Promise.all(names.map(async name => ({ name, ...(await factsOf(join(folder, name))) })))
  let bytes = 0
  for (const { name, size } of files.toSorted((one, other) => other.at - one.at))
    if ((bytes += size) > MOST_KEPT) await rm(join(folder, name), { force: true }).catch(ignored('it stays'))
}

const factsOf = async (path: string): Promise<{ size: number; at: number }> => {
  const found = await stat(path).catch(ignored('it was dropped meanwhile'))
  return { size: found?.size ?? 0, at: found?.mtimeMs ?? 0 }
}
