/** A permission to make a call: a method and a path, whose segments may have wildcards. */
export interface RouteEntry {
  readonly method: string
  readonly segments: readonly string[]
  /** It names no route itself: it has `*` or `**`. */
  readonly wild: boolean
}

const ENTRY = /^(GET|POST|PUT|PATCH|DELETE) (\/\S*)$/

/** Parses an entry such as `GET /workspace/*`; undefined: it is invalid. */
export const routeEntryOf = (text: string): RouteEntry | undefined => {
  const [, method, path] = ENTRY.exec(text) ?? []
  if (method === undefined || path === undefined) return undefined
  const segments = path.slice(1).split('/')
  const last = segments.length - 1
  const fits = segments.every(
    (segment, at) =>
      (segment !== '' || last === 0)
      && segment !== '.'
      && segment !== '..'
      && (!segment.includes('**') || (segment === '**' && at === last))
      && (!/[{}]/.test(segment) || /^\{\w+\}$/.test(segment)),
  )
  return fits ? { method, segments, wild: path.includes('*') } : undefined
}

const isParameter = (segment: string): boolean => segment.startsWith('{')

/** Whether a segment of an entry can match a segment of a route, which is a literal or a parameter. */
const segmentFits = (entry: string, route: string): boolean => {
  if (isParameter(entry) || isParameter(route)) return true
  if (!entry.includes('*')) return entry === route
  const pattern = entry
    .split('*')
    .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('.+')
  return new RegExp(`^${pattern}$`).test(route)
}

/** Whether an entry allows some request of a route, given as `METHOD /path`. */
export const entryCovers = ({ method, segments }: RouteEntry, route: string): boolean => {
  const [verb, path = ''] = route.split(' ')
  if (verb !== method) return false
  const parts = path.slice(1).split('/')
  const rest = segments.at(-1) === '**'
  const fixed = rest ? segments.slice(0, -1) : segments
  if (rest ? parts.length <= fixed.length : parts.length !== fixed.length) return false
  return fixed.every((segment, at) => segmentFits(segment, parts[at]!))
}
