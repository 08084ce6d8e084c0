import { createHash } from 'node:crypto'
import type { Bytes } from '../contract.js'

/** Text as it is served with an ETag of its content (RFC 9110, section 8.8.3), which a cache asks about each time. */
export const tagged = (type: string, data: string, headers: { readonly [name: string]: string } = {}): Bytes => ({
  'content-type': `${type}; charset=utf-8`,
  data,
  headers: { ...headers, etag: `"${createHash('sha256').update(data).digest('base64url').slice(0, 22)}"`, 'cache-control': 'no-cache' },
})
