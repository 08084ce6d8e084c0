import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib'
import { refuse } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { codeOf } from '../../../sdk/node/files/paths.js'

const AT_ONCE = 2

const atOnce = new Semaphore(AT_ONCE)
const zlib = promisify(inflate)
const raw = promisify(inflateRaw)
const UNPACK = { gzip: promisify(gunzip), 'x-gzip': promisify(gunzip), deflate: zlib, br: promisify(brotliDecompress) }

/** The low half of the first byte of a zlib stream (RFC 1950, section 2.2); some programs send a bare one. */
const DEFLATE = 8

const isCoding = (coding: string): coding is keyof typeof UNPACK => Object.hasOwn(UNPACK, coding)

/** The bytes of a body, unpacked; refuses more than `most` and what its coding does not fit. */
export const unpackedBody = async (body: Buffer, coding = 'identity', most: number): Promise<Buffer> => {
  const name = coding.trim().toLowerCase()
  if (name === 'identity' || name === '') return body.length > most ? tooLarge(most) : body
  if (!isCoding(name))
    return refuse('unsupported', `expected a body as gzip, deflate, br or as it is, found ${coding.slice(0, 40)}`)
  const unpack = name === 'deflate' && ((body[0] ?? 0) & 0x0f) !== DEFLATE ? raw : UNPACK[name]
  return atOnce.run(async () => {
    try {
      return await unpack(body, { maxOutputLength: most })
    } catch (error) {
      if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') return tooLarge(most)
      return refuse('invalid', `expected a body as ${name}, found ${body.length} bytes that cannot be unpacked so`)
    }
  })
}

const tooLarge = (most: number): never => refuse('too-large', `expected at most ${most} bytes unpacked, found more`)
