import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readFile, rename, rm, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isFull, replaceFile } from '../../../sdk/node/files/disk.js'
import { flushFolders } from '../../../sdk/node/files/files.js'
import { outgoing, type OutgoingAnswer, Unanswered } from '../../../sdk/node/models/outgoing.js'
import { NotGguf, readGguf } from './gguf.js'

/** A file of weights to fetch. */
export interface TransferAsked {
  readonly url: string
  /** Not checked when left out. */
  readonly sha256?: string
  /** Asked of the server when left out. */
  readonly size?: number
  /** Where it goes when it is whole and checked. */
  readonly path: string
  readonly signal: AbortSignal
  /** Called with how many bytes are here, and of how many. */
  readonly received: (bytes: number, total: number) => void
}

type Sized = TransferAsked & { readonly size: number }

/** A transfer that cannot go on; trying again is of use only where `again`. */
export class TransferFailed extends Error {
  readonly again: boolean

  constructor(message: string, again: boolean) {
    super(message)
    this.again = again
  }
}

interface PartNote {
  readonly url: string
  readonly validator?: string
  readonly total: number
}

const GIB = 1024 ** 3
const SILENCE = 60_000
const TRIES = 5
const LONGEST_WAIT = 30_000

const partOf = (path: string): string => `${path}.part`
const noteOf = (path: string): string => `${path}.part.json`

/** The size of a file; 0 where there is none. */
export const sizeOfFile = async (path: string): Promise<number> => (await stat(path).catch(() => ({ size: 0 }))).size

/** How many bytes of a file are here, whole or in part. */
export const bytesHere = async (path: string): Promise<number> => (await sizeOfFile(path)) || sizeOfFile(partOf(path))

/** Fetches a file, in several tries where the connection breaks; what is here stays for the next time. */
export const fetchWeights = async (asked: TransferAsked): Promise<void> => {
  for (let tried = 1; ; tried++) {
    try {
      return await fetchOnce(asked)
    } catch (error) {
      asked.signal.throwIfAborted()
      const failed = failureOf(error)
      if (!failed.again || tried >= TRIES) throw failed
      await pause(Math.min(LONGEST_WAIT, 1000 * 2 ** (tried - 1)), asked.signal)
    }
  }
}

const failureOf = (error: unknown): TransferFailed => {
  if (error instanceof TransferFailed) return error
  if (error instanceof Unanswered) return new TransferFailed(error.message, true)
  if (isFull(error)) return new TransferFailed('the disk is full: free some space and start again', true)
  throw error
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })

const fetchOnce = async (given: TransferAsked): Promise<void> => {
  const { path } = given
  const here = await sizeOfFile(path)
  if (given.size === undefined ? here > 0 : here === given.size) return
  const size = given.size ?? (await offeredSize(given.url, given.signal))
  const asked: Sized = { ...given, size }
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const note = await keptNote(asked)
  let have = note ? await sizeOfFile(partOf(path)) : 0
  if (have > size || !note) {
    await discard(path)
    have = 0
  }
  await needSpace(path, size - have)
  const hash = createHash('sha256')
  if (have < size) {
    const { answer, from } = await ask(asked, note, have)
    if (from > 0) await addPart(hash, partOf(path))
    await receive(asked, answer, from, hash)
  } else await addPart(hash, partOf(path))
  await finish(asked, hash.digest('hex'))
}

/** The size of a file that its server offers. */
export const offeredSize = async (url: string, signal: AbortSignal): Promise<number> => {
  const headers = { 'accept-encoding': 'identity', range: 'bytes=0-0' }
  const { status, headers: answered, body } = await outgoing({ url, signal, redirects: 'secure', headers })
  body.destroy()
  const { origin } = new URL(url)
  if (status !== 200 && status !== 206)
    throw new TransferFailed(`${origin} refused the file (${status})`, status >= 500 || status === 429)
  const [, part] = /^bytes \d+-\d+\/(\d+)$/.exec(answered['content-range'] ?? '') ?? []
  const size = Number(status === 206 ? part : answered['content-length'])
  if (!Number.isSafeInteger(size) || size < 1)
    throw new TransferFailed(`${origin} does not say how large the file is: take it from another server`, false)
  return size
}

/** What is known of the part that is here; nothing where it is of another file, or nobody can tell. */
const keptNote = async ({ path, url, size }: Sized): Promise<PartNote | undefined> => {
  try {
    const note = JSON.parse(await readFile(noteOf(path), 'utf8')) as PartNote
    return note.url === url && note.total === size && note.validator ? note : undefined
  } catch {
    return undefined
  }
}

const discard = async (path: string): Promise<void> => {
  await rm(partOf(path), { force: true })
  await rm(noteOf(path), { force: true })
}

const needSpace = async (path: string, missing: number): Promise<void> => {
  const { bavail, bsize } = await statfs(dirname(path))
  const [free, needed] = [bavail * bsize, missing + GIB]
  if (free < needed)
    throw new TransferFailed(`expected ${needed} bytes of free disk space, found ${free}: free some space`, false)
}

/** Asks for what is missing, and says from which byte on the answer is. */
const ask = async (
  { url, size, signal, path }: Sized,
  note: PartNote | undefined,
  have: number,
): Promise<{ answer: OutgoingAnswer; from: number }> => {
  const rest: { [name: string]: string } =
    have > 0 && note?.validator ? { range: `bytes=${have}-`, 'if-range': note.validator } : {}
  const answer = await outgoing({
    url,
    signal,
    redirects: 'secure',
    within: SILENCE,
    headers: { 'accept-encoding': 'identity', ...rest },
  })
  const { status, headers } = answer
  const { origin } = new URL(url)
  if (status === 206) {
    if (headers['content-range'] === `bytes ${have}-${size - 1}/${size}`) return { answer, from: have }
    answer.body.destroy()
    await discard(path)
    throw new TransferFailed(`${origin} answered another part than was asked for`, true)
  }
  if (status !== 200) {
    answer.body.destroy()
    if (status === 416) await discard(path)
    throw new TransferFailed(
      `${origin} refused the file (${status})`,
      status >= 500 || status === 429 || status === 416,
    )
  }
  const length = headers['content-length']
  if (length !== undefined && Number(length) !== size) {
    answer.body.destroy()
    await discard(path)
    throw new TransferFailed(`expected a file of ${size} bytes, and ${origin} has one of ${length}`, false)
  }
  return { answer, from: 0 }
}

const addPart = async (hash: Hash, part: string): Promise<void> => {
  for await (const piece of createReadStream(part) as AsyncIterable<Buffer>) hash.update(piece)
}

/** Writes what comes behind what is here. */
const receive = async (asked: Sized, answer: OutgoingAnswer, from: number, hash: Hash): Promise<void> => {
  const { path, size, url } = asked
  const { etag, 'last-modified': modified } = answer.headers
  // A weak tag says nothing of single bytes.
  const validator = etag && !etag.startsWith('W/') ? etag : modified
  const note: PartNote = { url, total: size, ...(validator && { validator }) }
  if (from === 0) await discard(path)
  await replaceFile(noteOf(path), Buffer.from(JSON.stringify(note)))
  const file = await open(partOf(path), from === 0 ? 'w' : 'a', 0o600)
  let at = from
  let silent = setTimeout(() => {}, 0)
  const listen = () => {
    clearTimeout(silent)
    silent = setTimeout(() => answer.body.destroy(new Error('silence')), SILENCE)
  }
  try {
    listen()
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      listen()
      at += piece.length
      if (at > size) break
      await file.write(piece)
      hash.update(piece)
      asked.received(at, size)
    }
  } catch (error) {
    if (isFull(error)) throw error
    throw new TransferFailed(`${new URL(url).origin} broke the transfer off at byte ${at}`, true)
  } finally {
    clearTimeout(silent)
    answer.body.destroy()
    await file.sync()
    await file.close()
  }
  if (at < size) throw new TransferFailed(`${new URL(url).origin} ended the transfer at byte ${at} of ${size}`, true)
  if (at === size) return
  await discard(path)
  throw new TransferFailed(`expected a file of ${size} bytes, found more`, false)
}

/** Checks what is here, and puts it where it belongs. */
const finish = async ({ path, sha256, size }: Sized, found: string): Promise<void> => {
  const part = partOf(path)
  try {
    if (sha256 !== undefined && found !== sha256)
      throw new TransferFailed(`expected the checksum ${sha256}, found ${found}`, false)
    await shapeOfFile(part, size)
  } catch (error) {
    await discard(path)
    if (error instanceof NotGguf)
      throw new TransferFailed(`the file is no model in the format GGUF: ${error.message}`, false)
    throw error
  }
  await rename(part, path)
  await rm(noteOf(path), { force: true })
  await flushFolders(path)
}

/** What a file that is here needs memory for. */
export const shapeOfFile = async (path: string, size: number) => {
  const file = await open(path, 'r')
  try {
    return await readGguf(async (offset, length) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset)
      return buffer.subarray(0, bytesRead)
    }, size)
  } finally {
    await file.close()
  }
}
