import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { constants, createReadStream, createWriteStream, type WriteStream } from 'node:fs'
import { copyFile, open, readlink, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip, gzip } from 'node:zlib'
import { promisify } from 'node:util'
import type { Pack } from 'tar-stream'
import { codeOf, contains } from '../../../sdk/node/files/paths.js'
import { encrypted } from './cipher.js'
import { MANIFEST, type BundleEntry, type BundleManifest } from './manifest.js'
import { withSeal } from './seal.js'
import { tar } from './tar.js'
import { ignored } from '../../../sdk/index.js'

const AT_ONCE = 4 * 1024 * 1024
const LEVEL = 5
const BLOCK = 512
const ZERO = new Date(0)

/** Called with the number of bytes added. */
export type Progress = (bytes: number) => void

/**
 * An archive being written: entries go into a compressed file first, since the manifest before them holds their
 * checksums.
 */
export class BundleArchive {
  readonly #folder: string
  readonly #progress: Progress
  readonly #signal: AbortSignal
  readonly #pack: Pack
  readonly #body: string
  readonly #written: Promise<void>
  readonly #entries: BundleEntry[] = []

  private constructor(folder: string, pack: Pack, signal: AbortSignal, progress: Progress) {
    this.#folder = folder
    this.#progress = progress
    this.#signal = signal
    this.#pack = pack
    this.#body = join(folder, 'body')
    this.#written = pipeline(
      pack as unknown as Readable,
      createGzip({ level: LEVEL }),
      createWriteStream(this.#body, { mode: 0o600 }),
      { signal },
    )
    this.#written.catch(ignored('the next add or end throws it'))
  }

  static async begin(folder: string, signal: AbortSignal, progress: Progress): Promise<BundleArchive> {
    const { pack } = await tar()
    return new BundleArchive(folder, pack(), signal, progress)
  }

  get entries(): readonly BundleEntry[] {
    return this.#entries
  }

  /** Adds a file as it is now; skips a path that is gone, not a file any more, or leads outside the root. */
  async add(path: string, root: string, from: string): Promise<void> {
    const handle = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(error => {
      if (LEFT_OUT.has(codeOf(error) ?? '')) return undefined
      throw error
    })
    if (!handle) return
    try {
      const found = await handle.stat()
      // A folder on the way may have become a link since it was listed.
      const real = await (process.platform === 'linux' ? readlink(`/proc/self/fd/${handle.fd}`) : realpath(from)).catch(
        () => '',
      )
      if (!found.isFile() || !contains(root, real)) return
      const runs = (found.mode & 0o100) !== 0
      if (found.size <= AT_ONCE) return await this.#whole(path, await handle.readFile(), runs)
      await this.#large(path, process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : from)
    } finally {
      await handle.close()
    }
  }

  async #whole(path: string, bytes: Buffer, runs: boolean): Promise<void> {
    await this.#entry(
      {
        path,
        size: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('base64url'),
        ...(runs && { runs }),
      },
      [bytes],
    )
  }

  /** For a copy, which is not written to while it is read. */
  async #large(path: string, from: string): Promise<void> {
    const copy = join(this.#folder, 'large')
    await copyFile(from, copy, constants.COPYFILE_FICLONE)
    const handle = await open(copy, 'r')
    try {
      const { size, mode } = await handle.stat()
      const digest = createHash('sha256')
      const pieces = (async function* () {
        for await (const piece of handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 })) {
          digest.update(piece as Buffer)
          yield piece as Buffer
        }
      })()
      const runs = (mode & 0o100) !== 0
      await this.#entry(
        {
          path,
          size,
          get sha256() {
            return digest.copy().digest('base64url')
          },
          ...(runs && { runs: true as const }),
        },
        pieces,
      )
    } finally {
      await handle.close()
      await rm(copy, { force: true })
    }
  }

  /** Adds a link with its target. */
  async link(path: string, link: string): Promise<void> {
    this.#signal.throwIfAborted()
    this.#pack.entry({ name: path, type: 'symlink', linkname: link, mode: 0o777, mtime: ZERO })
    this.#entries.push({ path, size: 0, sha256: createHash('sha256').update(link).digest('base64url'), link })
  }

  async #entry(entry: BundleEntry, pieces: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<void> {
    this.#signal.throwIfAborted()
    const { path, size, runs } = entry
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const sink = this.#pack.entry({ name: path, size, mode: runs ? 0o755 : 0o644, mtime: ZERO }, error =>
      error ? reject(error) : resolve(),
    )
    const failed = this.#written.then(() => new Promise<never>(() => {}))
    for await (const piece of pieces) {
      if (piece.length === 0) continue
      if (!sink.write(piece)) await Promise.race([once(sink as unknown as NodeJS.EventEmitter, 'drain'), failed])
      this.#progress(piece.length)
    }
    sink.end(undefined)
    await Promise.race([promise, failed])
    this.#entries.push({ path, size, sha256: entry.sha256, ...(runs && { runs }) })
  }

  /** Writes the whole archive, its manifest first, to a file that is on the disk when this returns. */
  async end(manifest: BundleManifest, to: string, passphrase?: string): Promise<number> {
    this.#pack.finalize()
    await this.#written
    const first = await headOf(Buffer.from(JSON.stringify(manifest)))
    const bytes = withSeal(joined(first, this.#body))
    const out = createWriteStream(to, { mode: 0o600, flags: 'wx', flush: true })
    await pipeline(passphrase === undefined ? bytes : encrypted(passphrase, bytes), out, { signal: this.#signal })
    return sizeOf(out)
  }
}

/** Errors of paths that are not files any more, or cannot be read. */
const LEFT_OUT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EPERM', 'ENXIO', 'EISDIR'])

const sizeOf = ({ bytesWritten }: WriteStream): number => bytesWritten

async function* joined(first: Buffer, body: string): AsyncGenerator<Buffer> {
  yield first
  for await (const piece of createReadStream(body, { highWaterMark: 256 * 1024 })) yield piece as Buffer
}

/** The manifest as a compressed beginning of an archive, without an archive's end. */
const headOf = async (json: Buffer): Promise<Buffer> => {
  const { pack } = await tar()
  const head = pack()
  const pieces: Buffer[] = []
  head.entry({ name: MANIFEST, mode: 0o644, mtime: ZERO }, json)
  const wanted = BLOCK + Math.ceil(json.length / BLOCK) * BLOCK
  let length = 0
  for await (const piece of head as unknown as AsyncIterable<Buffer>) {
    pieces.push(Buffer.from(piece))
    length += piece.length
    if (length >= wanted) break
  }
  return promisify(gzip)(Buffer.concat(pieces), { level: LEVEL })
}
