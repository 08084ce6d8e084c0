import { deflateRawSync, constants } from 'node:zlib'

const BLOCK = 16 * 1024 * 1024
const BLOCKS = 238
const DEFLATED = 8

/** The bytes that the bomb of `zipBomb` unpacks to: just under 4 GB, which needs no ZIP64. */
export const BOMB_BYTES = BLOCK * BLOCKS

/** Blanks as independent blocks, so that repeating one compressed block is a valid stream. */
const bomb = (bytes: number): Buffer => {
  const block = deflateRawSync(Buffer.alloc(BLOCK, ' '), { finishFlush: constants.Z_FULL_FLUSH })
  return Buffer.concat([...Array.from({ length: bytes / BLOCK }, () => block), deflateRawSync('')])
}

/** A part of blanks: its name, how many bytes it unpacks to (a multiple of 16 MiB), and how many are claimed. */
export interface BombPart {
  readonly name: string
  readonly bytes?: number
  readonly claimed?: number
}

const fields = (...values: readonly (readonly [bytes: 2 | 4, value: number])[]): Buffer =>
  Buffer.concat(
    values.map(([bytes, value]) => {
      const field = Buffer.alloc(bytes)
      field.writeUIntLE(value, 0, bytes)
      return field
    }),
  )

/** A ZIP file of some texts and of parts of blanks, each of 4 GB by default. All checksums are 0. */
export const zipBomb = (texts: { readonly [name: string]: string }, ...bombs: readonly BombPart[]): Buffer => {
  const parts = Object.entries(texts).map(([name, text]) => ({
    name,
    packed: deflateRawSync(text),
    size: Buffer.byteLength(text),
  }))
  const blanks = bombs.map(({ name, bytes = BOMB_BYTES, claimed = bytes }) => ({
    name,
    packed: bomb(bytes),
    size: claimed,
  }))
  const [bodies, directory]: [Buffer[], Buffer[]] = [[], []]
  let at = 0
  for (const { name, packed, size } of [...parts, ...blanks]) {
    const common = fields(
      [2, 20],
      [2, 0],
      [2, DEFLATED],
      [4, 0],
      [4, 0],
      [4, packed.length],
      [4, size],
      [2, name.length],
      [2, 0],
    )
    const body = Buffer.concat([fields([4, 0x04034b50]), common, Buffer.from(name), packed])
    bodies.push(body)
    directory.push(
      fields([4, 0x02014b50], [2, 20]),
      common,
      fields([2, 0], [2, 0], [2, 0], [4, 0], [4, at]),
      Buffer.from(name),
    )
    at += body.length
  }
  const listed = Buffer.concat(directory)
  const count = parts.length + blanks.length
  const end = fields([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, listed.length], [4, at], [2, 0])
  return Buffer.concat([...bodies, listed, end])
}
