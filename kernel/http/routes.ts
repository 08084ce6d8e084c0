import Router, { type Layer } from '@koa/router'
import { refuse } from '../../sdk/refusal.js'
import { compose } from './compose.js'
import { refuseMethod } from './reply.js'
import type { RequestContext, RequestState, RequestStep } from './request.js'

const METHODS = ['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** The only parameter that may contain a slash: a repository's path as one encoded segment. */
const SLASHED = 'repo'

/** What begins a route whose first segment is a parameter: it takes the paths that no literal segment begins. */
const PARAMETER = '{'

/**
 * All routes, found by their first path segment and then by that segment's router.
 *
 * Matching is exact: case, slashes and escapes count (contract, rule 14).
 */
export class Routes {
  readonly #added = new Map<string, { method: string; path: string; steps: readonly RequestStep[] }[]>()
  readonly #routers = new Map<string, Router<RequestState>>()
  readonly #subtrees = new Map<string, RequestStep>()
  readonly #publicPages = new Map<string, RequestStep>()
  /** Paths that may end in a slash. */
  readonly #slashed: RegExp[] = []
  #open: string | undefined

  /** Adds a route; the router of its first segment is built on the first request that needs it. */
  add(method: string, path: string, steps: readonly RequestStep[]): void {
    const segment = segmentOf(path)
    if (segment.startsWith(PARAMETER)) this.#open = segment
    if (path.endsWith('/') && path !== '/') this.#slashed.push(pathPattern(path))
    this.#routers.delete(segment)
    this.#added.set(segment, [...(this.#added.get(segment) ?? []), { method, path: withoutSlash(path), steps }])
  }

  /** Answers all paths below a segment by one step. */
  subtree(segment: string, step: RequestStep): void {
    this.#subtrees.set(segment, step)
  }

  /** Answers all paths below a segment as a public page. */
  publicPage(path: string, step: RequestStep): void {
    this.#publicPages.set(segmentOf(path), step)
  }

  /** Runs the steps of the request's route, or refuses the request. */
  readonly step: RequestStep = (ctx, next) => {
    const target = targetPath(ctx.req.url)
    const page = target.startsWith('/') ? this.#publicPages.get(segmentOf(target)) : undefined
    if (page) return page(ctx, next)
    if (ctx.state.arrival.publicHost) return refuseUnknown(ctx)
    const path = checkedPath(this.#slashed.some(one => one.test(target)) ? withoutSlash(target) : target)
    const segment = segmentOf(path)
    const subtree = this.#subtrees.get(segment)
    if (subtree) return subtree(ctx, next)
    const router = this.#router(segment) ?? (this.#open === undefined ? undefined : this.#router(this.#open))
    const found = router?.match(path, ctx.method)
    const [layer] = found?.pathAndMethod ?? []
    if (!layer) return refuseOther(ctx, path, found?.path ?? [])
    ctx.params = layer.params(path, layer.captures(path))
    return hasSlash(ctx.params) ? refuseUnknown(ctx) : layer.stack[0]!(ctx, next)
  }

  #router(segment: string): Router<RequestState> | undefined {
    return this.#routers.get(segment) ?? this.#build(segment)
  }

  /** Registers literal segments before parameters, so that `/agents/search` is not matched as an id. */
  #build(segment: string) {
    const rank = (path: string) => path.replace(/\{\w+\}/g, '\uffff')
    const added = this.#added.get(segment)?.toSorted((a, b) => (rank(a.path) < rank(b.path) ? -1 : 1))
    if (!added) return
    const router = new Router<RequestState>({ strict: true, sensitive: true })
    for (const { method, path, steps } of added)
      router.register(path.replace(/\{(\w+)\}/g, ':$1'), [method], compose(steps))
    this.#routers.set(segment, router)
    return router
  }
}

/** Answers 404 for an unknown path, or 405 with `allow` when the path takes other methods. */
const refuseOther = (ctx: RequestContext, path: string, layers: readonly Layer<RequestState>[]): void => {
  const served = layers.filter(layer => !hasSlash(layer.params(path, layer.captures(path))))
  const methods = new Set(served.flatMap(layer => layer.methods))
  if (methods.size === 0) return refuseUnknown(ctx)
  ctx.state.reply.lines.set('allow', METHODS.filter(one => methods.has(one)).join(', '))
  refuseMethod(ctx.state.reply, `${ctx.path} does not take ${ctx.method}, only ${[...methods].join(', ')}`)
}

const refuseUnknown = ({ method, path }: Pick<RequestContext, 'method' | 'path'>): never =>
  refuse('not-found', `nothing is served at ${method} ${path.slice(0, 200)}`)

/** Whether a parameter other than a repository's path contains a slash. */
const hasSlash = (params: { readonly [name: string]: string }): boolean =>
  Object.entries(params).some(([name, value]) => name !== SLASHED && value.includes('/'))

const segmentOf = (path: string): string => path.split('/', 2)[1] ?? ''

const withoutSlash = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

/** Matches the raw paths of a route; one that ends in a slash is matched without it too. */
export const pathPattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+').replace(/(?<=.)\/$/, '/?')}$`)

/** The raw path of a request target. */
export const targetPath = (target = ''): string => target.split('?', 1)[0]!

/** A path without escapes, empty segments or segments that begin with a dot. */
const PLAIN = /^(?:\/[\w-][\w.~-]*)+$/

/**
 * A raw path; refuses empty segments, broken escapes, and segments that decode to `.`, `..`, a backslash or a null
 * byte.
 */
const checkedPath = (path: string): string => {
  if (PLAIN.test(path)) return path
  const unknown = () => refuse('not-found', `nothing is served at ${path.slice(0, 200) || 'an empty target'}`)
  if (!path.startsWith('/')) unknown()
  for (const segment of path === '/' ? [] : path.slice(1).split('/')) {
    if (segment === '') unknown()
    let decoded: string
    try {
      decoded = decodeURIComponent(segment)
    } catch {
      return unknown()
    }
    if (
      decoded.includes('\0')
      || decoded.includes('\\')
      || decoded.split('/').some(part => part === '' || part === '.' || part === '..')
    )
      unknown()
  }
  return path
}
