import { BrokenPicture, partAt } from './parts.js'

const SIGNATURE = 8
/** What decides how the pixels look, and the frames of an animation. */
const KEPT = new Set([
  ...['IHDR', 'PLTE', 'IDAT', 'IEND', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'sBIT', 'bKGD', 'cICP'],
  ...['acTL', 'fcTL', 'fdAT'],
])

/** A PNG of its needed chunks alone, without what follows its end. */
export const withoutPngMetadata = (bytes: Buffer): Buffer => {
  const parts = [partAt(bytes, 0, SIGNATURE)]
  for (let at = SIGNATURE; ;) {
    const length = partAt(bytes, at, 8).readUInt32BE(0)
    const type = bytes.toString('latin1', at + 4, at + 8)
    if (at === SIGNATURE && type !== 'IHDR') throw new BrokenPicture('the picture does not begin with its header')
    const chunk = partAt(bytes, at, 12 + length)
    if (KEPT.has(type)) parts.push(chunk)
    if (type === 'IEND') return Buffer.concat(parts)
    at += chunk.length
  }
}
