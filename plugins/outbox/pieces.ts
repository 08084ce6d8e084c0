import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { BytePart } from '../../sdk/node/files/byte-part.js'

const PIECE = 1024 * 1024

/** The bytes of a file as they were published. */
export interface PublishedBytes {
  readonly size: number
  /** The SHA-256 of the file, or of the hashes of its pieces if it has several. */
  readonly sha256: string
  /** The SHA-256 of each MiB; empty if there is only one. */
  readonly pieces: readonly string[]
}

const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('base64url')

/** Reads `length` bytes, or up to the end. */
const readAt = async (handle: FileHandle, from: number, length: number): Promise<Buffer> => {
  const piece = Buffer.allocUnsafe(length)
  let read = 0
  while (read < length) {
    const { bytesRead } = await handle.read(piece, read, length - read, from + read)
    if (bytesRead === 0) break
    read += bytesRead
  }
  return piece.subarray(0, read)
}

/** Every piece of a file from its beginning to its end. */
export async function* filePieces(handle: FileHandle): AsyncGenerator<Buffer, void> {
  for (let from = 0; ; from += PIECE) {
    const piece = await readAt(handle, from, PIECE)
    if (piece.length > 0) yield piece
    if (piece.length < PIECE) return
  }
}

/** Hashes the pieces of a file as they pass. */
export class PieceHashes {
  readonly #pieces: string[] = []
  #size = 0

  push(piece: Buffer): void {
    this.#pieces.push(hashOf(piece))
    this.#size += piece.length
  }

  end(): PublishedBytes {
    const [first = hashOf(Buffer.alloc(0)), ...more] = this.#pieces
    if (more.length === 0) return { size: this.#size, sha256: first, pieces: [] }
    return { size: this.#size, sha256: hashOf(Buffer.from(this.#pieces.join())), pieces: this.#pieces }
  }
}

/**
 * The bytes of a part, each piece compared with its published hash before it is given: a turn may write into the file
 * while it is sent, through a mapping of memory also without a trace in its times.
 */
export async function* publishedPart(
  handle: FileHandle,
  { size, sha256, pieces }: PublishedBytes,
  { first, last }: BytePart,
): AsyncGenerator<Buffer, void> {
  for (let at = Math.floor(first / PIECE); at * PIECE <= last; at++) {
    const from = at * PIECE
    const piece = await readAt(handle, from, Math.min(PIECE, size - from))
    if (hashOf(piece) !== (pieces.length > 0 ? pieces[at] : sha256)) throw new Error('a file changed while it was sent')
    yield piece.subarray(Math.max(0, first - from), Math.min(piece.length, last + 1 - from))
  }
}
