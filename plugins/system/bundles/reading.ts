import { createHash, type Hash } from 'node:crypto'
import { open, type FileHandle } from 'node:fs/promises'
import { constants } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Extract } from 'tar-stream'
import { Refusal, refuse } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { decrypted, isEncrypted } from './cipher.js'
import { MANIFEST, parseBundleManifest, type BundleEntry, type BundleManifest } from './manifest.js'
import { checkSeal } from './seal.js'
import { tar } from './tar.js'

/** Receives the entries of an archive as they are read; none is valid before the whole was read. */
export interface Reader {
  begin(manifest: BundleManifest): Promise<void>
  /** Receives one entry; unread content is skipped. */
  take(entry: BundleEntry, content: AsyncIterable<Buffer>): Promise<void>
}

const MOST_MANIFEST = 64 * 1024 * 1024
const BLOCK = 512
/** The size of an entry beside its content and names: two headers, since a long name has its own, and padding. */
const HEADS = 4 * BLOCK
const LOOSE = 1024 * 1024
const GIB = 1024 ** 3
const MOST_BYTES = 10 * GIB
const MOST_TIMES = 200

const NO_BUNDLE = 'this is not a bundle a sandbox made'
const DAMAGED = 'the bundle is damaged: get it again from where it was made'
/** Error messages of decompressors and tar readers for invalid bytes. */
const BROKEN = new RegExp(
  [
    '^(?:Z_|ERR_ZLIB)',
    'incorrect header',
    'unexpected end',
    'invalid (?:tar|stored|block|distance|literal|code|bit)',
    'size mismatch',
  ].join('|'),
  'i',
)

const damaged = (message = DAMAGED): never => refuse('unprocessable', message)

/** Reads a whole bundle, and refuses it unless it is exactly what was written. */
export const readBundle = async (
  path: string,
  passphrase: string | undefined,
  reader: Reader,
  signal: AbortSignal,
): Promise<{ readonly manifest: BundleManifest; readonly digest: string }> => {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const found = await handle.stat()
    if (!found.isFile()) refuse('unprocessable', `${NO_BUNDLE}: it is not a file`)
    const hash = createHash('sha256')
    const bytes = await contentOf(handle, passphrase, hash)
    const manifest = await new Reading(reader, found.size).run(bytes, signal)
    return { manifest, digest: hash.digest('hex') }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal) throw error
    const { message = '' } = error as Error
    throw BROKEN.test(codeOf(error) ?? '') || BROKEN.test(message)
      ? new Refusal('unprocessable', DAMAGED, { cause: error })
      : error
  } finally {
    await handle.close()
  }
}

/** The packed bytes; each is hashed as it is read. */
const contentOf = async (
  handle: FileHandle,
  passphrase: string | undefined,
  hash: Hash,
): Promise<AsyncIterable<Buffer>> => {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(16), 0, 16, 0)
  const head = buffer.subarray(0, bytesRead)
  const stream = handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 256 * 1024 })
  const bytes = (async function* () {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      hash.update(piece)
      yield piece
    }
  })()
  if (isEncrypted(head))
    return decrypted(passphrase ?? refuse('unprocessable', 'the bundle is encrypted: give its passphrase'), bytes)
  if (head[0] !== 0x1f || head[1] !== 0x8b) refuse('unprocessable', NO_BUNDLE)
  return bytes
}

type Entry = Extract extends AsyncIterable<infer One> ? One : never

class Reading {
  readonly #reader: Reader
  readonly #packed: number
  /** Limits the unpacked size: to what the manifest says, and before that to the size of a manifest. */
  #budget = MOST_MANIFEST + LOOSE
  #manifest: BundleManifest | undefined

  constructor(reader: Reader, packed: number) {
    this.#reader = reader
    this.#packed = packed
  }

  async run(bytes: AsyncIterable<Buffer>, signal: AbortSignal): Promise<BundleManifest> {
    const { extract } = await tar()
    const entries = extract()
    const failed = new AbortController()
    const flow = pipeline(
      checkSeal(bytes),
      createGunzip(),
      all => this.#bounded(all as AsyncIterable<Buffer>),
      entries as unknown as NodeJS.WritableStream,
      { signal: AbortSignal.any([signal, failed.signal]) },
    )
    const read = this.#entries(entries).catch(error => {
      failed.abort()
      entries.destroy()
      throw error
    })
    const ends = await Promise.allSettled([read, flow])
    const reasons = ends.flatMap(end => (end.status === 'rejected' ? [end.reason as unknown] : []))
    // Each of the two ends the other; a refusal gives the reason, otherwise the first error.
    if (reasons.length > 0)
      throw (
        reasons.find(reason => reason instanceof Refusal)
        ?? reasons.find(reason => BROKEN.test((reason as Error).message))
        ?? reasons[0]
      )
    return read
  }

  async *#bounded(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of bytes) {
      this.#budget -= piece.length
      if (this.#budget < 0) damaged(this.#manifest ? undefined : `${NO_BUNDLE}: its first entry is no manifest`)
      yield piece
    }
  }

  async #entries(entries: Extract): Promise<BundleManifest> {
    let at = 0
    for await (const entry of entries) {
      if (!this.#manifest) {
        await this.#begin(entry)
        continue
      }
      const wanted = this.#manifest.entries[at++] ?? damaged()
      await this.#entry(wanted, entry)
    }
    const manifest = this.#manifest ?? damaged(NO_BUNDLE)
    if (at !== manifest.entries.length) damaged()
    return manifest
  }

  async #begin(entry: Entry): Promise<void> {
    const { name, type, size = 0 } = entry.header
    if (name !== MANIFEST || type !== 'file' || size > MOST_MANIFEST)
      damaged(`${NO_BUNDLE}: its first entry is no manifest`)
    const pieces: Buffer[] = []
    for await (const piece of entry as AsyncIterable<Buffer>) pieces.push(piece)
    const manifest = parseBundleManifest(Buffer.concat(pieces).toString())
    const unpacked = manifest.entries.reduce((sum, each) => sum + each.size, 0)
    if (unpacked > MOST_BYTES * 100 || (unpacked > GIB && unpacked > this.#packed * MOST_TIMES)) {
      refuse(
        'too-large',
        `the bundle has ${this.#packed} bytes and says it unpacks to ${unpacked}: expected at `
          + `most ${MOST_TIMES} times its size`,
      )
    }
    this.#manifest = manifest
    this.#budget =
      LOOSE
      + manifest.entries.reduce(
        (sum, { path, size, link = '' }) => sum + size + HEADS + Buffer.byteLength(path + link) * 2,
        0,
      )
    await this.#reader.begin(manifest)
  }

  async #entry(wanted: BundleEntry, entry: Entry): Promise<void> {
    const { name, type, size = 0, linkname } = entry.header
    const same =
      name === wanted.path
      && (wanted.link === undefined
        ? type === 'file' && size === wanted.size
        : type === 'symlink' && linkname === wanted.link)
    if (!same)
      damaged(
        `the bundle is damaged: expected ${JSON.stringify(wanted.path.slice(0, 120))}, `
          + `found ${JSON.stringify(name.slice(0, 120))}`,
      )
    const digest = createHash('sha256')
    if (wanted.link !== undefined) digest.update(wanted.link)
    const content = (async function* () {
      for await (const piece of entry as AsyncIterable<Buffer>) {
        digest.update(piece)
        yield piece
      }
    })()
    await this.#reader.take(wanted, content)
    for await (const _rest of content) continue
    if (digest.digest('base64url') !== wanted.sha256)
      damaged(`the bundle is damaged: ${JSON.stringify(wanted.path.slice(0, 120))} is not what was packed`)
  }
}
