import type { GivenBytes } from '../../contract.js'
import type { HttpFacts } from '../../types.js'
import { partOf, type BytePart } from '../files/byte-part.js'
import { namesTag } from './entity-tag.js'

/** A file that anybody with its address may read, held open until its answer has ended. */
export interface PublicFileBytes {
  readonly type: string
  readonly size: number
  /** Changes with the bytes. */
  readonly tag: string
  /** Headers besides those that every public file has. */
  readonly headers?: { readonly [name: string]: string }
  /** Its bytes from one position to another. */
  read(part: BytePart): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

/** The facts of a request that decide what is sent of a public file. */
export type PublicFileRequest = Pick<HttpFacts, 'range' | 'ifRange' | 'ifNoneMatch' | 'headOnly'>

/** A public file, or the part that was asked for, read at the pace of the client. */
export const servedPublicFile = async (
  file: PublicFileBytes,
  { range, ifRange, ifNoneMatch, headOnly }: PublicFileRequest = {},
  signal?: AbortSignal,
): Promise<GivenBytes> => {
  const tag = `W/"${file.tag}"`
  try {
    // A weak tag never makes a part valid (RFC 9110, section 13.1.5).
    const part = ifRange === undefined ? partOf(range, file.size) : undefined
    const whole = part ?? { first: 0, last: file.size - 1 }
    const unread = headOnly || namesTag(ifNoneMatch, tag) || signal?.aborted
    if (unread) await file.close()
    return {
      'content-type': file.type,
      headers: {
        'cache-control': 'no-cache',
        'x-robots-tag': 'noindex',
        'accept-ranges': 'bytes',
        etag: tag,
        'content-length': String(whole.last - whole.first + 1),
        ...file.headers,
        ...(part && { 'content-range': `bytes ${part.first}-${part.last}/${file.size}` }),
      },
      data: unread ? nothing() : readAtPace(file, whole, signal),
      ...(part && { status: 206 as const }),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

const readAtPace = (file: PublicFileBytes, part: BytePart, signal?: AbortSignal): AsyncIterable<Uint8Array> => {
  // A generator that was never begun does not run to its end.
  const end = () => void file.close()
  signal?.addEventListener('abort', end, { once: true })
  return (async function* () {
    try {
      if (part.last >= part.first) yield* file.read(part)
    } finally {
      signal?.removeEventListener('abort', end)
      await file.close()
    }
  })()
}
