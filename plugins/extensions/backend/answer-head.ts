/** Headers of an answer that are passed on, in addition to those of the publisher. */
const PASSED = new Set([
  'content-type',
  'content-encoding',
  'content-language',
  'content-disposition',
  'content-range',
  'content-location',
  'etag',
  'cache-control',
  'retry-after',
])
/** The prefixes of headers that a proxy or a browser acts on: no publisher's own headers begin with them. */
const READ_BY_OTHERS = new RegExp(
  '^x-(?:accel|content|dns|download|envoy|forwarded|frame|lighttpd|litespeed|original|permitted|real|reproxy|rewrite'
    + '|sandbox|sendfile|ua|xss)(?:-|$)',
)
/** A header value that no server reads as two (RFC 9110, section 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** The headers of an extension's answer for a client, with those that isolate it from this origin. */
export const answerHeaders = (
  publisher: string,
  given: { readonly [name: string]: string } = {},
): { [name: string]: string } => {
  const own = `x-${publisher}-`
  const passed = Object.entries(given).flatMap(([name, value]): [string, string][] => {
    const key = name.toLowerCase()
    const isOwn = key.startsWith(own) && /^[a-z0-9-]{1,200}$/.test(key) && !READ_BY_OTHERS.test(key)
    return (PASSED.has(key) || isOwn) && VALUE.test(value) ? [[key, value]] : []
  })
  return { ...Object.fromEntries(passed), 'x-content-type-options': 'nosniff', 'content-security-policy': 'sandbox' }
}
