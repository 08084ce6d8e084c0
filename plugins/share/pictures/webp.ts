import { partAt } from './parts.js'

const HEADER = 12
const KEPT = new Set(['VP8 ', 'VP8L', 'VP8X', 'ALPH', 'ANIM', 'ANMF'])
/** The flags of a colour profile, of Exif and of XMP. */
const METADATA = 0x20 | 0x08 | 0x04

/** A WebP of its pixels alone, without what follows its end. */
export const withoutWebpMetadata = (bytes: Buffer): Buffer => {
  const end = 8 + partAt(bytes, 4, 4).readUInt32LE(0)
  partAt(bytes, 0, end)
  const parts: Buffer[] = []
  for (let at = HEADER; at + 8 <= end;) {
    const type = bytes.toString('latin1', at, at + 4)
    const length = bytes.readUInt32LE(at + 4)
    const chunk = Buffer.from(partAt(bytes, at, 8 + length))
    if (type === 'VP8X') chunk[8] = chunk[8]! & ~METADATA
    if (KEPT.has(type)) parts.push(chunk, ...(length % 2 ? [Buffer.alloc(1)] : []))
    at += 8 + length + (length % 2)
  }
  const body = Buffer.concat(parts)
  const header = Buffer.from('RIFF\0\0\0\0WEBP', 'latin1')
  header.writeUInt32LE(4 + body.length, 4)
  return Buffer.concat([header, body])
}
