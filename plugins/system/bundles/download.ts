import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { refuse, type HttpFacts } from '../../../sdk/index.js'
import type { Bundle } from './contract.js'

const REMEMBERED = 1_000

/** A part of something: its first byte and its last. */
export interface Part {
  readonly first: number
  readonly last: number
}

/**
 * The part that a header asks for; undefined: all of it (RFC 9110, section 14.2: what is not understood, and several
 * parts at once, may be answered so).
 */
export const partOf = (range: string | undefined, size: number): Part | undefined => {
  const [, first = '', last = ''] = /^bytes=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(range ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined
  const part =
    first === ''
      ? { first: Math.max(0, size - Number(last)), last: size - 1 }
      : { first: Number(first), last: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
  if (part.first >= size || (first === '' && Number(last) === 0)) {
    refuse('range', `expected a part of ${size} bytes, found ${range!.slice(0, 80)}`, { fields: { sizeBytes: size } })
  }
  return part
}

/** A finished bundle or the requested part of it, read as fast as the client takes it. */
export const downloadOf = async (
  { name }: Pick<Bundle, 'name'>,
  path: string,
  { range, ifRange }: Pick<HttpFacts, 'range' | 'ifRange'> = {},
) => {
  const handle = await open(path, 'r').catch(() => refuse('not-found', `the file of ${name} is gone`))
  try {
    const { size } = await handle.stat()
    const tag = `"${name}"`
    // A different tag means different bytes: then send all of these.
    const part = ifRange === undefined || ifRange === tag ? partOf(range, size) : undefined
    const { first, last } = part ?? { first: 0, last: size - 1 }
    const headers = {
      etag: tag,
      'accept-ranges': 'bytes',
      'cache-control': 'no-store',
      'content-length': String(last - first + 1),
      'content-disposition': `attachment; filename="${name}"`,
      ...(part && { 'content-range': `bytes ${first}-${last}/${size}` }),
    }
    const type = name.endsWith('.tar.gz') ? ('application/gzip' as const) : ('application/octet-stream' as const)
    const data = (async function* () {
      // Opened only now: an answer to HEAD reads nothing, and would leave it open.
      const bytes = await open(path, 'r')
      yield* bytes.createReadStream({ start: first, end: last, highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>
    })()
    return { 'content-type': type, headers, data, ...(part && { status: 206 as const }) }
  } finally {
    await handle.close()
  }
}

/** Which tickets began a download: a request for another part belongs to the same one. */
export class Downloads {
  readonly #begun = new Set<string>()

  /** Whether a ticket is shown for the first time. */
  begun(ticket: string): boolean {
    const hash = createHash('sha256').update(ticket).digest('base64url')
    if (this.#begun.has(hash)) return false
    this.#begun.add(hash)
    if (this.#begun.size > REMEMBERED) this.#begun.delete(this.#begun.values().next().value!)
    return true
  }
}
