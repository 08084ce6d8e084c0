import type { RoutePattern } from '../../../sdk/node/extension/entries.js'

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
export const entryCovers = ({ method, segments }: RoutePattern, route: string): boolean => {
  const [verb, path = ''] = route.split(' ')
  if (verb !== method) return false
  const parts = path === '/' ? [] : path.slice(1).split('/')
  const rest = segments.at(-1) === '**'
  const fixed = rest ? segments.slice(0, -1) : segments
  if (rest ? parts.length <= fixed.length : parts.length !== fixed.length) return false
  return fixed.every((segment, at) => segmentFits(segment, parts[at]!))
}
