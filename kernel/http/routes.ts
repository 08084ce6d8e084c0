import Router from '@koa/router'
import { refuse } from '../../sdk/refusal.js'
import { refuseMethod } from './reply.js'
import type { RequestContext, RequestState, RequestStep } from './request.js'

const METHODS = ['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** The only parameter that may contain a slash: a repository's path as one encoded segment. */
const SLASHED = 'repo'

/**
 * All routes, found by their first path segment and then by that segment's router.
 *
 * Matching is exact: case, slashes and escapes count (contract, rule 14).
 */
export class Routes {
  readonly #added = new Map<string, { method: string; path: string; steps: readonly RequestStep[] }[]>()
  readonly #routers = new Map<string, ReturnType<Router<RequestState>['routes']>>()

  /** Adds a route; the router of its first segment is built on the first request that needs it. */
  add(method: string, path: string, steps: readonly RequestStep[]): void {
    const segment = segmentOf(path)
    this.#routers.delete(segment)
    this.#added.set(segment, [...(this.#added.get(segment) ?? []), { method, path, steps }])
  }

  /** Answers all paths below a segment by one step. */
  subtree(segment: string, step: RequestStep): void {
    this.#routers.set(segment, step as ReturnType<Router<RequestState>['routes']>)
  }

  /** Runs the steps of the request's route, or refuses the request. */
  readonly step: RequestStep = (ctx, next) => {
    const segment = segmentOf(checkedPath(ctx.req.url ?? ''))
    const router = this.#routers.get(segment) ?? this.#build(segment)
    return router ? router(ctx, next) : refuseUnknown(ctx)
  }

  /** Registers literal segments before parameters, so that `/agents/search` is not matched as an id. */
  #build(segment: string) {
    const rank = (path: string) => path.replace(/\{\w+\}/g, '\uffff')
    const added = this.#added.get(segment)?.toSorted((a, b) => (rank(a.path) < rank(b.path) ? -1 : 1))
    if (!added) return
    const router = new Router<RequestState>({ strict: true, sensitive: true })
    for (const { method, path, steps } of added)
      router.register(path.replace(/\{(\w+)\}/g, ':$1'), [method], [refuseSlashes, ...steps])
    router.on('not-found', refuseOther)
    const step = router.routes()
    this.#routers.set(segment, step)
    return step
  }
}

/** Answers 404 for an unknown path, or 405 with `allow` when the path takes other methods. */
const refuseOther: RequestStep = async ctx => {
  const layers = (ctx.matched ?? []).filter(layer => !hasSlash(layer.params(ctx.path, layer.captures(ctx.path))))
  const methods = new Set(layers.flatMap(layer => layer.methods))
  if (methods.size === 0) return refuseUnknown(ctx)
  ctx.state.reply.lines.set('allow', METHODS.filter(one => methods.has(one)).join(', '))
  refuseMethod(ctx.state.reply, `${ctx.path} does not take ${ctx.method}, only ${[...methods].join(', ')}`)
}

const refuseUnknown = ({ method, path }: Pick<RequestContext, 'method' | 'path'>): never =>
  refuse('not-found', `nothing is served at ${method} ${path.slice(0, 200)}`)

/** Whether a parameter other than a repository's path contains a slash. */
const hasSlash = (params: { readonly [name: string]: string }): boolean =>
  Object.entries(params).some(([name, value]) => name !== SLASHED && value.includes('/'))

const refuseSlashes: RequestStep = (ctx, next) => (hasSlash(ctx.params) ? refuseUnknown(ctx) : next())

const segmentOf = (path: string): string => path.split('/', 2)[1]!

/**
 * The raw path of a request target; refuses empty segments, broken escapes, and segments that decode to `.`, `..`, a
 * backslash or a null byte.
 */
const checkedPath = (target: string): string => {
  const path = target.split('?', 1)[0]!
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
