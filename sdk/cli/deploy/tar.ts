/** One file, folder or link of an archive. */
export interface TarEntry {
  readonly path: string
  readonly mode: number
  readonly type: 'file' | 'folder' | 'link'
  /** Where a link leads. */
  readonly target?: string
  readonly size: number
  /** The bytes of a file: exactly `size`. */
  readonly content?: () => AsyncIterable<Buffer>
}

const BLOCK = 512
const TYPES = { file: '0', folder: '5', link: '2', extended: 'x' } as const
const MOST_NAME = 100

const padded = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)

const header = (path: string, mode: number, size: number, type: keyof typeof TYPES, target = ''): Buffer => {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`
  block.write(path, 0, MOST_NAME)
  block.write(octal(mode, 8), 100)
  block.write(octal(0, 8), 108)
  block.write(octal(0, 8), 116)
  block.write(octal(size, 12), 124)
  block.write(octal(0, 12), 136)
  block.write('        ', 148)
  block.write(TYPES[type], 156)
  block.write(target, 157, MOST_NAME)
  block.write('ustar\x0000', 257)
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  )
  return block
}

/** A record of extended headers (pax): its length counts itself. */
const record = (key: string, value: string): Buffer => {
  const rest = ` ${key}=${value}\n`
  const bytes = Buffer.byteLength(rest)
  let length = bytes + String(bytes).length
  length = bytes + String(length).length
  return Buffer.from(`${length}${rest}`)
}

/** The bytes of an archive, as POSIX describes it (pax). Of times and owners it keeps nothing. */
export async function* tarOf(entries: Iterable<TarEntry> | AsyncIterable<TarEntry>): AsyncGenerator<Buffer> {
  for await (const { path, mode, type, target = '', size, content } of entries) {
    const records = [
      ...(Buffer.byteLength(path) > MOST_NAME || /[^\x20-\x7e]/.test(path) ? [record('path', path)] : []),
      ...(Buffer.byteLength(target) > MOST_NAME || /[^\x20-\x7e]/.test(target) ? [record('linkpath', target)] : []),
    ]
    if (records.length > 0) {
      const all = Buffer.concat(records)
      yield Buffer.concat([header('extended', 0o644, all.length, 'extended'), all, padded(all.length)])
    }
    yield header(path, mode, type === 'file' ? size : 0, type, target)
    if (type !== 'file' || !content) continue
    let sent = 0
    for await (const piece of content()) {
      sent += piece.length
      yield piece
    }
    if (sent !== size) throw new Error(`${path} changed while it was read: apply again`)
    yield padded(size)
  }
  yield Buffer.alloc(2 * BLOCK)
}

/** A text as a file of an archive. */
export const textEntry = (path: string, text: string, mode = 0o600): TarEntry => {
  const bytes = Buffer.from(text)
  return {
    path,
    mode,
    type: 'file',
    size: bytes.length,
    async *content() {
      yield bytes
    },
  }
}
