/** A route entry: a method, and the segments of a pattern. */
export interface RoutePattern {
  readonly entry: string
  readonly method: string
  readonly segments: readonly string[]
  /** No segment of it has a `*`. */
  readonly named: boolean
}

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
/** What no segment has: blanks, characters that are not seen, other separators, and escapes but that of a slash. */
const NEVER = /[\s\p{C}\p{Z}\\?#]|%(?!2f)/u

/** The pattern of `METHOD /path`; undefined: it is none. */
export const routePattern = (entry: string): RoutePattern | undefined => {
  const [, method = '', path = ''] = /^([A-Z]+) (\/.*)$/s.exec(entry) ?? []
  if (!METHODS.has(method)) return undefined
  const segments = path === '/' ? [] : path.slice(1).split('/')
  const wrong = segments.some(
    (segment, at) =>
      /^\.{0,2}$/.test(segment)
      || NEVER.test(segment)
      || (segment.includes('**') && (segment !== '**' || at < segments.length - 1))
      || (/[{}]/.test(segment) && !/^\{\w+\}$/.test(segment)),
  )
  if (wrong) return undefined
  return { entry, method, segments, named: !segments.some(segment => segment.includes('*')) }
}

/** Whether decoded segments are those of a pattern; `GET` holds for `HEAD`. */
export const patternHolds = ({ method, segments }: RoutePattern, asked: string, path: readonly string[]): boolean => {
  if (method !== (asked === 'HEAD' ? 'GET' : asked)) return false
  if (path.some(segment => segment === '' || segment === '.' || segment === '..' || /[/\\\0]/.test(segment)))
    return false
  const rest = segments.at(-1) === '**'
  if (rest ? path.length < segments.length : path.length !== segments.length) return false
  return segments.every((segment, at) => segment === '**' || segmentHolds(segment, path[at]!))
}

/** The pattern that holds for a request: preferably one without a `*`. */
export const patternFor = (
  patterns: readonly RoutePattern[],
  method: string,
  path: readonly string[],
): RoutePattern | undefined => {
  // A repository's path is one segment of a request, with its slashes encoded.
  const segments = path.map(segment => segment.replaceAll('/', '%2f'))
  const matching = patterns.filter(pattern => patternHolds(pattern, method, segments))
  return matching.find(({ named }) => named) ?? matching[0]
}

/** `{name}` is a whole segment, `*` one or more characters within one. */
const segmentHolds = (pattern: string, segment: string): boolean => {
  if (/^\{\w+\}$/.test(pattern)) return true
  if (!pattern.includes('*')) return pattern === segment
  return starHolds(pattern.split('*'), segment)
}

/** Whether a text has these pieces in order with a character or more between each two; linear. */
const starHolds = (pieces: readonly string[], text: string): boolean => {
  const [first = '', ...rest] = pieces
  const last = rest.pop() ?? ''
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length + 1) return false
  const end = text.length - last.length
  let at = first.length
  for (const piece of rest) {
    const found = text.indexOf(piece, at + 1)
    if (found < 0 || found + piece.length > end) return false
    at = found + piece.length
  }
  return at < end
}
