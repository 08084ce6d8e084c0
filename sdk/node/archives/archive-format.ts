import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import type { Host } from '../../host.js'
import { PipedProcess } from '../programs/piped-process.js'
import { listEnv, needProgram } from '../programs/run.js'
import { walled } from '../wall/wall.js'
import { isTarHeader, TAR_BLOCK } from './tar-entries.js'
import { BadArchive } from './unpacking.js'

/** How an archive is packed, by its first bytes. */
export type ArchiveFormat = 'zip' | 'tar' | 'gzip' | 'zstd' | 'bzip2' | 'xz' | '7z' | 'rar'

const MAGIC: readonly (readonly [ArchiveFormat, string])[] = [
  ['zip', '504b0304'],
  ['zip', '504b0506'],
  ['gzip', '1f8b'],
  ['zstd', '28b52ffd'],
  ['bzip2', '425a68'],
  ['xz', 'fd377a585a00'],
  ['7z', '377abcaf271c'],
  ['rar', '526172211a07'],
]

/** The format of an archive; undefined: not an archive. */
export const archiveFormat = (head: Buffer): ArchiveFormat | undefined => {
  const hex = head.subarray(0, 8).toString('hex')
  return (
    MAGIC.find(([, magic]) => hex.startsWith(magic))?.[0]
    ?? (isTarHeader(head.subarray(0, TAR_BLOCK)) ? 'tar' : undefined)
  )
}

/** The programs for formats without a library; each reads the file as its input, where 7z needs to seek. */
const PROGRAMS: { readonly [format in ArchiveFormat]?: readonly [program: string, ...args: string[]] } = {
  bzip2: ['bzip2', '-dc'],
  xz: ['xz', '-dc'],
  '7z': ['bsdtar', '--format=pax', '-cf', '-', '@-'],
  rar: ['bsdtar', '--format=pax', '-cf', '-', '@-'],
}

/** The content of a compressed file: a tar, or one file; fails if it is damaged. */
export const unpacked = async (
  { workspace, data, hidden }: Host['place'],
  format: ArchiveFormat,
  at: string,
): Promise<Readable> => {
  const ignore = () => {}
  if (format === 'tar') return createReadStream(at)
  if (format === 'gzip') return pipeline(createReadStream(at), createGunzip(), ignore)
  if (format === 'zstd') return pipeline(createReadStream(at), createZstdDecompress(), ignore)
  const [name, ...args] = PROGRAMS[format]!
  const command = await walled(
    { workspace, data, hide: hidden, cwd: '/', env: listEnv(), only: [], sealed: true, offline: true },
    await needProgram(name),
    args,
  )
  await using file = await open(at)
  const child = new PipedProcess(command, undefined, file.fd)
  const { output } = child
  // The end of the stream is delayed until the program has ended.
  const whole = async function* () {
    try {
      for await (const piece of output) yield piece as Buffer
      const how = await child.ended
      if (how !== 'ended with exit code 0')
        throw new BadArchive('damaged', `${name} ${how}: ${child.errors.slice(0, 200)}`)
    } finally {
      void child.end('at once')
    }
  }
  return Readable.from(whole(), { objectMode: false })
}

/** The first bytes of a stream, and the whole of it. */
export const peeked = async (
  source: Readable,
  bytes: number,
): Promise<{ head: Buffer; whole: AsyncGenerator<Buffer> }> => {
  const pieces = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const taken: Buffer[] = []
  let size = 0
  while (size < bytes) {
    const { value, done } = await pieces.next()
    if (done) break
    taken.push(value)
    size += value.length
  }
  const head = Buffer.concat(taken)
  const whole = async function* () {
    yield head
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) yield next.value
  }
  return { head: head.subarray(0, bytes), whole: whole() }
}
