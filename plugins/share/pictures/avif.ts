import { BrokenPicture, partAt } from './parts.js'

interface Box {
  readonly type: string
  /** Where it begins, its content begins, and it ends. */
  readonly start: number
  readonly from: number
  readonly end: number
}

/** An item's pieces in the file, or in the box `idat`. */
interface Item {
  readonly id: number
  readonly inData: boolean
  readonly extents: readonly { readonly at: number; readonly length: number }[]
}

const PIXELS = new Set(['av01', 'grid', 'iovl', 'tmap'])
const TOP = new Set(['ftyp', 'meta', 'mdat', 'moov'])

/**
 * An AVIF whose items that are no pixels hold zeros: items are found by their place in the file, so nothing moves.
 *
 * Boxes that no decoder needs hold zeros too.
 */
export const withoutAvifMetadata = (given: Buffer): Buffer => {
  const bytes = Buffer.from(given)
  const boxes = boxesIn(bytes, 0, bytes.length)
  // An animation keeps its metadata in tracks.
  if (boxes.some(({ type }) => type === 'moov')) throw new BrokenPicture('animations of this type are not shared')
  const meta = boxes.find(({ type }) => type === 'meta') ?? lacking('meta')
  const inner = boxesIn(bytes, meta.from + 4, meta.end)
  const find = (type: string) => inner.find(box => box.type === type)
  const [infos, places] = [find('iinf') ?? lacking('iinf'), find('iloc') ?? lacking('iloc')]
  const data = find('idat')
  const pixels = pixelItems(bytes, infos)
  for (const { id, inData, extents } of itemsAt(bytes, places)) {
    if (pixels.has(id)) continue
    for (const { at, length } of extents) partAt(bytes, at + (inData ? (data?.from ?? 0) : 0), length).fill(0)
  }
  for (const box of boxes) if (!TOP.has(box.type)) bytes.fill(0, box.from, box.end)
  for (const box of inner)
    if (box.type === 'uuid' || box.type === 'free' || box.type === 'skip') bytes.fill(0, box.from, box.end)
  return bytes
}

const lacking = (type: string): never => {
  throw new BrokenPicture(`the picture has no box ${type}`)
}

const boxesIn = (bytes: Buffer, from: number, end: number): Box[] => {
  const found: Box[] = []
  for (let at = from; at < end;) {
    const head = partAt(bytes, at, 8)
    const type = head.toString('latin1', 4, 8)
    const short = head.readUInt32BE(0)
    const length = short === 1 ? Number(partAt(bytes, at + 8, 8).readBigUInt64BE(0)) : short === 0 ? end - at : short
    const content = short === 1 ? 16 : 8
    if (length < content || at + length > end) throw new BrokenPicture('a box of the picture ends after it')
    found.push({ type, start: at, from: at + content, end: at + length })
    at += length
  }
  return found
}

/** The ids of the items that are pixels. */
const pixelItems = (bytes: Buffer, infos: Box): ReadonlySet<number> => {
  const [version] = partAt(bytes, infos.from, 1)
  const pixels = new Set<number>()
  for (const { type, from } of boxesIn(bytes, infos.from + (version === 0 ? 6 : 8), infos.end)) {
    if (type !== 'infe') continue
    const wide = partAt(bytes, from, 12)[0] === 3
    const id = wide ? bytes.readUInt32BE(from + 4) : bytes.readUInt16BE(from + 4)
    const kind = from + (wide ? 10 : 8)
    if (PIXELS.has(partAt(bytes, kind, 4).toString('latin1'))) pixels.add(id)
  }
  return pixels
}

/** Where each item is, by the box `iloc`. */
const itemsAt = (bytes: Buffer, { from }: Box): Item[] => {
  const [version = 0] = partAt(bytes, from, 1)
  const sizes = partAt(bytes, from + 4, 2)
  const [offsetSize, lengthSize] = [sizes[0]! >> 4, sizes[0]! & 15]
  const [baseSize, indexSize] = [sizes[1]! >> 4, version > 0 ? sizes[1]! & 15 : 0]
  let at = from + 6
  const number = (size: number): number => {
    const part = partAt(bytes, at, size)
    at += size
    return size === 0 ? 0 : size === 8 ? Number(part.readBigUInt64BE(0)) : part.readUIntBE(0, size)
  }
  const items: Item[] = []
  for (let left = number(version < 2 ? 2 : 4); left > 0; left--) {
    const id = number(version < 2 ? 2 : 4)
    const method = version > 0 ? number(2) & 15 : 0
    number(2)
    const base = number(baseSize)
    const extents = Array.from({ length: number(2) }, () => {
      number(indexSize)
      return { at: base + number(offsetSize), length: number(lengthSize) }
    })
    items.push({ id, inData: method === 1, extents })
  }
  return items
}
