import { extname } from 'node:path'
import { namesOf } from '../programs/library.js'

/** What a browser would run on the sandbox's own origin. */
const ACTIVE =
  /^(?:text\/html|application\/xhtml\+xml|image\/svg\+xml|(?:text|application)\/(?:xml|javascript|[\w.-]+\+xml))/

/** Whether a browser would run what has a media type. */
export const isActiveType = (type: string): boolean => ACTIVE.test(type)

/** The media type of a name by its extension; undefined: it is not known. The types are a large table, read late. */
export const mediaTypeOf = async (name: string): Promise<string | undefined> =>
  namesOf(await import('mime-types')).contentType(extname(name).toLowerCase()) || undefined

/** A name encoded for a header field (RFC 5987). */
export const attachmentNamed = (name: string): string => {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const coded = encodeURIComponent(name).replace(/['()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${plain}"; filename*=UTF-8''${coded}`
}
