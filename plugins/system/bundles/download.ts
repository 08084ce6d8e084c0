import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { refuse, type HttpFacts } from '../../../sdk/index.js'
import { partOf } from '../../../sdk/node/files/byte-part.js'
import type { Bundle } from './contract.js'

const REMEMBERED = 1_000

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
    // With a different tag the bytes differ: send all of them.
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

/** The tickets that began a download: a request for another part belongs to the same download. */
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
