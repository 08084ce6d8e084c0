import type { IncomingMessage } from 'node:http'
import { Readable, Transform } from 'node:stream'
import zlib from 'node:zlib'
import type { Masker } from '../access/masker.js'
import { placeholdersIn, withValues, type BoundTarget, type BoundTraffic } from './bound-traffic.js'

const MOST_BODY = 1024 * 1024
const BASIC = /^(basic +)([A-Za-z0-9+/]+={0,2})$/i
const CODINGS: { readonly [coding: string]: () => Transform } = {
  gzip: () => zlib.createGunzip(),
  'x-gzip': () => zlib.createGunzip(),
  deflate: () => zlib.createInflate(),
  br: () => zlib.createBrotliDecompress(),
  zstd: () => zlib.createZstdDecompress(),
}

/** A request as it is sent on. */
export interface Sent {
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: Readable | Buffer
}

type Encode = (value: string) => string

const plain: Encode = value => value

/** How a value stands in a body of this type; undefined: none is put in. */
export const encodingOf = (type: string): Encode | undefined => {
  if (/^application\/(?:[\w.+-]*\+)?json\b/i.test(type)) return value => JSON.stringify(value).slice(1, -1)
  if (/^application\/x-www-form-urlencoded\b/i.test(type)) return encodeURIComponent
  return /^(?:text\/|multipart\/form-data\b)/i.test(type) ? plain : undefined
}

/** The headers of a list of names and values. */
export const pairs = (headers: readonly string[]): [name: string, value: string][] =>
  Array.from({ length: headers.length / 2 }, (_, at) => [headers[2 * at]!, headers[2 * at + 1]!])

/** The name and password in a header, as they are encoded in it. */
const basicOf = (value: string): { readonly scheme: string; readonly words: string } | undefined => {
  const [, scheme, encoded] = BASIC.exec(value) ?? []
  return encoded === undefined ? undefined : { scheme: scheme!, words: Buffer.from(encoded, 'base64').toString() }
}

const headerWith = (value: string, values: ReadonlyMap<string, string>): string => {
  const basic = basicOf(value)
  if (!basic) return withValues(value, values, latin(plain))
  const words = withValues(basic.words, values)
  return words === basic.words ? value : basic.scheme + Buffer.from(words).toString('base64')
}

/** A body that is small enough to be looked at, or all of it as it comes. */
const looked = async (asked: IncomingMessage): Promise<Readable | Buffer> => {
  if (Number(asked.headers['content-length'] ?? 0) > MOST_BODY) return asked
  const pieces: Buffer[] = []
  const rest = asked[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  let bytes = 0
  for (;;) {
    const { done, value } = await rest.next()
    if (done) return Buffer.concat(pieces)
    pieces.push(value)
    bytes += value.length
    if (bytes > MOST_BODY) break
  }
  return Readable.from(
    (async function* () {
      yield* pieces
      yield* { [Symbol.asyncIterator]: () => rest }
    })(),
  )
}

/** A request with the values in it that may go where it goes. */
export const filled = async (
  asked: IncomingMessage,
  headers: readonly string[],
  to: BoundTarget,
  bound: BoundTraffic,
): Promise<Sent> => {
  const encode = asked.headers['content-encoding'] ? undefined : encodingOf(asked.headers['content-type'] ?? '')
  const body = encode ? await looked(asked) : asked
  const text = Buffer.isBuffer(body) ? body.toString('latin1') : ''
  const found = placeholdersIn(
    [text, ...pairs(headers).flatMap(([, value]) => [value, basicOf(value)?.words ?? ''])].join('\n'),
  )
  const values = found.length > 0 ? await bound.fill(found, to) : new Map<string, string>()
  if (values.size === 0) return { headers, body }
  const bytes = encode && text ? Buffer.from(withValues(text, values, latin(encode)), 'latin1') : body
  return { headers: pairs(headers).flatMap(([name, value]) => [name, headerWith(value, values)]), body: bytes }
}

/** The bytes of a text, one a character: so that a body which is no text stays as it is. */
const latin =
  (encode: Encode): Encode =>
  value =>
    Buffer.from(encode(value)).toString('latin1')

/** What is held back as the beginning of a value goes on after this time, where a protocol waits for it. */
const HELD_MS = 1_000

/** Masks bytes as they come; with `waits` what may be the beginning of a value is held back for a second at most. */
export const maskedBytes = (masker: Masker, waits = true): Transform => {
  let stream = masker.stream()
  let late: NodeJS.Timeout | undefined
  const go = (text: string) => Buffer.from(text, 'latin1')
  const bytes = new Transform({
    transform: (piece: Buffer, _, done) => {
      clearTimeout(late)
      if (waits)
        late = setTimeout(() => {
          const rest = stream.end()
          stream = masker.stream()
          if (rest) bytes.push(go(rest))
        }, HELD_MS).unref()
      done(null, go(stream.push(piece.toString('latin1'))))
    },
    flush: done => {
      clearTimeout(late)
      done(null, go(stream.end()))
    },
    destroy: (error, done) => {
      clearTimeout(late)
      done(error)
    },
  })
  return bytes
}

const OF_BODY = /^content-encoding$/i

/** An answer without the values: its headers, and its body as it comes; undefined: it cannot be read. */
export const hidden = (
  came: IncomingMessage,
  headers: readonly string[],
  masker: Masker,
): { readonly headers: string[]; readonly body: readonly [Readable, ...Transform[]] } | undefined => {
  const codings = (came.headers['content-encoding'] ?? 'identity').split(',').map(each => each.trim().toLowerCase())
  const unpacking = codings.filter(coding => coding !== 'identity').toReversed()
  if ((came.headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') return undefined
  if (unpacking.some(coding => !Object.hasOwn(CODINGS, coding))) return undefined
  return {
    headers: pairs(headers).flatMap(([name, value]) =>
      OF_BODY.test(name) || masker.mask(name) !== name ? [] : [name, masker.mask(value)],
    ),
    body: [came, ...unpacking.map(coding => CODINGS[coding]!()), maskedBytes(masker, false)],
  }
}
