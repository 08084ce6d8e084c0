import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'
import type { Entry } from 'yauzl'
import { namesOf } from '../programs/library.js'
import { BadArchive, type ArchiveEntry, type Unpacking } from './unpacking.js'

const KIND = 0o170000
const LINK = 0o120000
const FOLDER = 0o040000
const REGULAR = 0o100000
const MOST_TARGET = 4096
const UNIX = 3

/** The type and mode of an entry in a zip made on Unix. */
const unixMode = ({ versionMadeBy, externalFileAttributes }: Entry): number =>
  versionMadeBy >> 8 === UNIX ? externalFileAttributes >>> 16 : 0

/** Fails at the end of a content with a wrong checksum. */
async function* checked(content: AsyncIterable<Buffer>, { crc32: wanted, fileName }: Entry): AsyncGenerator<Buffer> {
  let sum = 0
  for await (const piece of content) {
    sum = crc32(piece, sum)
    yield piece
  }
  if (sum !== wanted) throw new BadArchive('damaged', `the checksum of ${JSON.stringify(fileName)} does not match`)
}

const targetIn = async (content: Readable): Promise<string> => {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of content) {
    size += (piece as Buffer).length
    if (size > MOST_TARGET) throw new BadArchive('damaged', `a link in it is longer than ${MOST_TARGET} bytes`)
    pieces.push(piece as Buffer)
  }
  return Buffer.concat(pieces).toString()
}

/** Unpacks a zip whose descriptor is open. */
export const unpackZip = async (fd: number, unpacking: Unpacking): Promise<void> => {
  const { fromFdPromise } = namesOf(await import('yauzl'))
  try {
    const zip = await fromFdPromise(fd, { lazyEntries: true, autoClose: false })
    for (let entry = await nextEntry(zip); entry; entry = await nextEntry(zip)) await addEntry(zip, entry, unpacking)
  } catch (error) {
    if (error instanceof BadArchive || (error as NodeJS.ErrnoException).code?.startsWith('E')) throw error
    const { message } = error as Error
    const escaping = /relative path|absolute path/i.test(message)
    throw new BadArchive(escaping ? 'escaping' : 'damaged', message)
  }
}

type OpenZip = Awaited<ReturnType<typeof import('yauzl').fromFdPromise>>

const nextEntry = (zip: OpenZip): Promise<Entry | undefined> => {
  const { promise, resolve, reject } = Promise.withResolvers<Entry | undefined>()
  const over = () => {
    zip.off('entry', found).off('end', ended).off('error', failed)
  }
  const found = (entry: Entry) => (over(), resolve(entry))
  const ended = () => (over(), resolve(undefined))
  const failed = (error: Error) => (over(), reject(error))
  zip.once('entry', found).once('end', ended).once('error', failed)
  zip.readEntry()
  return promise
}

const addEntry = async (zip: OpenZip, entry: Entry, unpacking: Unpacking): Promise<void> => {
  const mode = unixMode(entry)
  const type = mode & KIND
  const shared = { name: entry.fileName, mtime: entry.getLastModDate(), ...(mode !== 0 && { mode }) }
  if (entry.fileName.endsWith('/') || type === FOLDER) return unpacking.add({ ...shared, kind: 'folder' })
  if (type !== 0 && type !== REGULAR && type !== LINK) return unpacking.add({ ...shared, kind: 'other' })
  if (entry.isEncrypted()) throw new BadArchive('encrypted', `the entry ${JSON.stringify(entry.fileName)} is encrypted`)
  const content = await zip.openReadStreamPromise(entry)
  if (type === LINK) return unpacking.add({ ...shared, kind: 'link', target: await targetIn(content) })
  const kind: ArchiveEntry['kind'] = 'file'
  return unpacking.add({ ...shared, kind }, Readable.from(checked(content as AsyncIterable<Buffer>, entry)))
}
