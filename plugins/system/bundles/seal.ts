import { createHash } from 'node:crypto'
import { Refusal } from '../../../sdk/index.js'

/**
 * The end of an archive: an empty gzip member whose extra field holds the SHA-256 of every byte before it (RFC 1952,
 * section 2.3.1.1). Programs that unpack do not see it; gzip's own checks leave some bytes of its heads out.
 */
const HEAD = Buffer.from([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 36, 0, 0x53, 0x42, 32, 0])
const EMPTY = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0])
const LENGTH = HEAD.length + 32 + EMPTY.length

const DAMAGED =
  'the bundle is damaged: some of its bytes are not those that were written; get it again from where it was made'

/** The same bytes, ended by their seal. */
export async function* withSeal(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const digest = createHash('sha256')
  for await (const piece of bytes) {
    digest.update(piece)
    yield piece
  }
  yield Buffer.concat([HEAD, digest.digest(), EMPTY])
}

/** The bytes before the seal; throws at the end if the seal does not match them. */
export async function* checkSeal(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const digest = createHash('sha256')
  let held = Buffer.alloc(0)
  for await (const piece of bytes) {
    const all = Buffer.concat([held, piece])
    const free = Math.max(0, all.length - LENGTH)
    held = all.subarray(free)
    if (free === 0) continue
    digest.update(all.subarray(0, free))
    yield all.subarray(0, free)
  }
  if (!held.equals(Buffer.concat([HEAD, digest.digest(), EMPTY]))) throw new Refusal('unprocessable', DAMAGED)
}
