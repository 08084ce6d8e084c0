import { createHash } from 'node:crypto'
import type { Bytes } from '../../sdk/contract.js'

/** The ETag of a body (RFC 9110, section 8.8.3). */
export const etagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`

/** Text with its ETag; caches revalidate it on each request. */
export const tagged = (type: string, data: string, headers: { readonly [name: string]: string } = {}): Bytes => ({
  'content-type': `${type}; charset=utf-8`,
  data,
  headers: { ...headers, etag: etagOf(data), 'cache-control': 'no-cache' },
})
