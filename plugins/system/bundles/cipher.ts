import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'
import { Refusal } from '../../../sdk/index.js'

const MAGIC = Buffer.from('sandbox-sealed-1')
/** scrypt as RFC 7914 names its parameters: 64 MiB for one guess. */
const COST = { N: 65_536, r: 8, p: 1, maxmem: 96 * 1024 * 1024 }
const SALT = 16
const NONCE = 8
const TAG = 16
const HEAD = MAGIC.length + SALT + NONCE
const CHUNK = 64 * 1024

const WRONG = 'the passphrase does not open this bundle, or the bundle was changed'
const CUT = 'the bundle was cut short or changed: get it again from where it was made'

const damaged = (message: string): Refusal => new Refusal('unprocessable', message)

const keyOf = (passphrase: string, salt: Uint8Array): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(passphrase.normalize('NFC'), salt, 32, COST, (error, key) => (error ? reject(error) : resolve(key))),
  )

/** Each chunk is numbered and the last one is marked, so that none can be removed, moved or appended. */
const nonceOf = (prefix: Uint8Array, chunk: number): Buffer => {
  const counted = Buffer.alloc(4)
  counted.writeUInt32BE(chunk)
  return Buffer.concat([prefix, counted])
}

const aboutOf = (head: Uint8Array, last: boolean): Buffer => Buffer.concat([head, Buffer.of(last ? 1 : 0)])

/** Whether a file that begins so was encrypted here. */
export const isEncrypted = (head: Uint8Array): boolean => MAGIC.equals(head.subarray(0, MAGIC.length))

/** Encrypts a stream under a passphrase (AES-256-GCM, chunk by chunk). */
export async function* encrypted(passphrase: string, plain: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const [salt, prefix] = [randomBytes(SALT), randomBytes(NONCE)]
  const head = Buffer.concat([MAGIC, salt, prefix])
  const key = await keyOf(passphrase, salt)
  yield head
  let at = 0
  for await (const { bytes, last } of inChunks(plain, CHUNK)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(prefix, at++))
    cipher.setAAD(aboutOf(head, last))
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }
}

/** Decrypts a stream; refuses a wrong passphrase and every change before it yields changed bytes. */
export async function* decrypted(passphrase: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer | undefined
  let key: Buffer | undefined
  let at = 0
  for await (const { bytes: piece, last } of headThenChunks(bytes)) {
    if (!head) {
      head = piece
      if (head.length < HEAD || !isEncrypted(head)) throw damaged(CUT)
      key = await keyOf(passphrase, head.subarray(MAGIC.length, MAGIC.length + SALT))
      continue
    }
    if (piece.length < TAG) throw damaged(CUT)
    const cipher = createDecipheriv('aes-256-gcm', key!, nonceOf(head.subarray(HEAD - NONCE), at))
    cipher.setAAD(aboutOf(head, last)).setAuthTag(piece.subarray(piece.length - TAG))
    const plain = cipher.update(piece.subarray(0, piece.length - TAG))
    try {
      cipher.final()
    } catch {
      throw damaged(at === 0 ? WRONG : CUT)
    }
    at++
    yield plain
  }
  if (at === 0) throw damaged(CUT)
}

async function* headThenChunks(bytes: AsyncIterable<Buffer>): AsyncGenerator<{ bytes: Buffer; last: boolean }> {
  const iterator = bytes[Symbol.asyncIterator]()
  let begun = Buffer.alloc(0)
  while (begun.length < HEAD) {
    const { value, done } = await iterator.next()
    if (done) break
    begun = Buffer.concat([begun, value])
  }
  yield { bytes: begun.subarray(0, HEAD), last: false }
  const rest = begun.subarray(HEAD)
  yield* inChunks(
    (async function* () {
      yield rest
      yield* { [Symbol.asyncIterator]: () => iterator }
    })(),
    CHUNK + TAG,
  )
}

/** The same bytes in pieces of one size; the last may be shorter, and is there even when it is empty. */
async function* inChunks(bytes: AsyncIterable<Buffer>, size: number): AsyncGenerator<{ bytes: Buffer; last: boolean }> {
  let waiting: Buffer[] = []
  let length = 0
  for await (const piece of bytes) {
    waiting.push(piece)
    length += piece.length
    // One byte more than a chunk: the last one is known only at the end.
    if (length <= size) continue
    const all = Buffer.concat(waiting)
    let from = 0
    for (; all.length - from > size; from += size) yield { bytes: all.subarray(from, from + size), last: false }
    waiting = [all.subarray(from)]
    length = all.length - from
  }
  yield { bytes: Buffer.concat(waiting), last: true }
}
