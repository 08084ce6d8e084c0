import { BrokenPicture, partAt } from './parts.js'

const [SOI, EOI, SOS, APP0, APP1, APP14, COM, DQT] = [0xd8, 0xd9, 0xda, 0xe0, 0xe1, 0xee, 0xfe, 0xdb]
/** Standalone markers within the data of a scan. */
const isRestart = (marker: number): boolean => marker >= 0xd0 && marker <= 0xd7

/** A JPEG of its needed segments alone, with its orientation, without what follows its end. */
export const withoutJpegMetadata = (bytes: Buffer): Buffer => {
  const parts = [partAt(bytes, 0, 2)]
  let orientation: number | undefined
  let hasPixels = false
  for (let at = 2; ;) {
    while (bytes[at] === 0xff && bytes[at + 1] === 0xff) at += 1
    if (partAt(bytes, at, 2)[0] !== 0xff) throw new BrokenPicture('the picture has bytes where a segment begins')
    const marker = bytes[at + 1]!
    if (marker === EOI) {
      if (!hasPixels) throw new BrokenPicture('the picture has no pixels')
      return Buffer.concat([...parts, partAt(bytes, at, 2)])
    }
    if (marker === SOI || marker < 0xc0 || isRestart(marker)) throw new BrokenPicture('the picture has a stray marker')
    const length = partAt(bytes, at + 2, 2).readUInt16BE(0)
    if (length < 2) throw new BrokenPicture('the picture has an empty segment')
    const segment = partAt(bytes, at, 2 + length)
    at += segment.length
    if (marker === APP1) orientation ??= orientationOf(segment)
    if (!isMetadata(marker, segment)) {
      // Where Exif has its place: before the first table.
      if (marker === DQT && orientation !== undefined) parts.push(orientationSegment(orientation))
      if (marker === DQT) orientation = undefined
      parts.push(marker === APP0 ? bareJfif(segment) : segment)
    }
    if (marker !== SOS) continue
    hasPixels = true
    const end = endOfScan(bytes, at)
    parts.push(bytes.subarray(at, end))
    at = end
  }
}

/** APP14 of Adobe says how colours are coded, APP0 how dense the pixels are. */
const isMetadata = (marker: number, segment: Buffer): boolean => {
  if (marker === COM) return true
  if (marker === APP0) return segment.toString('latin1', 4, 9) !== 'JFIF\0' || segment.length < 18
  if (marker === APP14) return segment.toString('latin1', 4, 9) !== 'Adobe' || segment.length !== 16
  return (marker >= APP0 && marker <= 0xef) || marker >= 0xf0
}

/** The header without its thumbnail. */
const bareJfif = (segment: Buffer): Buffer => {
  const bare = Buffer.from(segment.subarray(0, 18))
  bare.writeUInt16BE(16, 2)
  bare.writeUInt16BE(0, 16)
  return bare
}

const endOfScan = (bytes: Buffer, from: number): number => {
  for (let at = bytes.indexOf(0xff, from); at >= 0 && at + 1 < bytes.length; at = bytes.indexOf(0xff, at + 1)) {
    const next = bytes[at + 1]!
    if (next !== 0 && next !== 0xff && !isRestart(next)) return at
  }
  throw new BrokenPicture('the picture ends before it is complete')
}

const ORIENTATION = 0x112

/** How the picture is turned, by its Exif. */
const orientationOf = (segment: Buffer): number | undefined => {
  if (segment.toString('latin1', 4, 10) !== 'Exif\0\0' || segment.length < 18) return undefined
  const tiff = segment.subarray(10)
  const little = tiff.toString('latin1', 0, 2) === 'II'
  const short = (at: number) => (at + 2 > tiff.length ? 0 : little ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at))
  const first = little ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4)
  for (let entry = 0; entry < Math.min(short(first), 200); entry++) {
    const at = first + 2 + entry * 12
    if (short(at) !== ORIENTATION) continue
    const value = short(at + 8)
    return value > 1 && value <= 8 ? value : undefined
  }
  return undefined
}

/** An Exif segment that says nothing but how the picture is turned. */
const orientationSegment = (orientation: number): Buffer => {
  const tiff = Buffer.from('4d4d002a000000080001011200030000000100000000' + '00000000', 'hex')
  tiff.writeUInt16BE(orientation, 18)
  const segment = Buffer.concat([Buffer.from('ffe10000', 'hex'), Buffer.from('Exif\0\0', 'latin1'), tiff])
  segment.writeUInt16BE(segment.length - 2, 2)
  return segment
}
