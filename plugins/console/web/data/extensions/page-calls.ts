import { patternHolds, routePattern } from '../../../../../sdk/route-pattern.js'
import type { PageCalls } from '../../../../extensions/contract.js'

/** The entry of a manifest by which a page may make a call with this input. */
export const entryAllowing = (allowed: PageCalls, call: string, input: object): string | undefined => {
  const [method = '', path = ''] = call.split(' ')
  const fields = input as { readonly [name: string]: unknown }
  const segments =
    path === '/'
      ? []
      : path
          .slice(1)
          .split('/')
          .map(segment => filled(segment, fields))
  if (!segments.every(segment => segment !== undefined)) return undefined
  return Object.keys(allowed).find(entry => {
    const pattern = routePattern(entry)
    return pattern !== undefined && allowed[entry]!.includes(call) && patternHolds(pattern, method, segments)
  })
}

/** A segment of a route with its parameter; a slash in it is one that the request encodes. */
const filled = (segment: string, fields: { readonly [name: string]: unknown }): string | undefined => {
  const [, name] = /^\{(\w+)\}$/.exec(segment) ?? []
  if (name === undefined) return segment
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  return typeof value === 'string' || typeof value === 'number' ? String(value).replaceAll('/', '%2f') : undefined
}

/** The address of a route of an extension's backend; undefined: the path leads out of the extension. */
export const backendPath = (id: string, path: string): string | undefined => {
  const base = `/x/${id}`
  if (!path.startsWith('/') || /[\\#\0-\x20]/.test(path)) return undefined
  const { origin, pathname, search } = new URL(base + path, 'http://sandbox.invalid')
  const plain = pathname === (base + path).split('?', 1)[0]
  return origin === 'http://sandbox.invalid' && plain && !/%2f|%5c|%2e|\/\//i.test(pathname)
    ? pathname + search
    : undefined
}
