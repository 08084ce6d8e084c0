import { BrokenPicture, partAt } from './parts.js'

const [EXTENSION, IMAGE, TRAILER] = [0x21, 0x2c, 0x3b]
const [CONTROL, APPLICATION] = [0xf9, 0xff]
/** The application extensions that say how often an animation runs. */
const LOOPS = new Set(['NETSCAPE2.0', 'ANIMEXTS1.0'])

/** The bytes of a colour table, by the flags that announce it. */
const tableLength = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0)

/** A GIF of its pictures alone, without comments and without what follows its end. */
export const withoutGifMetadata = (bytes: Buffer): Buffer => {
  const parts = [partAt(bytes, 0, 13 + tableLength(partAt(bytes, 10, 1)[0]!))]
  for (let at = parts[0]!.length; ;) {
    const [kind] = partAt(bytes, at, 1)
    if (kind === TRAILER) return Buffer.concat([...parts, partAt(bytes, at, 1)])
    if (kind === EXTENSION) {
      const [, label] = partAt(bytes, at, 2)
      const end = endOfBlocks(bytes, at + 2)
      const isLoop = label === APPLICATION && LOOPS.has(bytes.toString('latin1', at + 3, at + 14))
      if (label === CONTROL || isLoop) parts.push(bytes.subarray(at, end))
      at = end
    } else if (kind === IMAGE) {
      const head = 10 + tableLength(partAt(bytes, at, 10)[9]!)
      // The data begins with the size of its codes.
      const end = endOfBlocks(bytes, at + head + 1)
      parts.push(partAt(bytes, at, end - at))
      at = end
    } else throw new BrokenPicture('the picture has bytes where a block begins')
  }
}

/** Where a row of blocks ends: each begins with its length, the last is empty. */
const endOfBlocks = (bytes: Buffer, from: number): number => {
  for (let at = from; ;) {
    const [length = 0] = partAt(bytes, at, 1)
    at += 1 + length
    if (length === 0) return at
  }
}
