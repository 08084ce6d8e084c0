import Router from '@koa/router'
import type { Context as KoaContext } from 'koa'
import { refuse } from '../../sdk/refusal.js'
import type { Arrival } from './origin.js'
import { refuseMethod, type HttpReply } from './reply.js'

/** What answers one route; `params` are the decoded path parameters. */
export type RouteHandler = (
  ctx: KoaContext,
  params: { [name: string]: string },
  reply: HttpReply,
  arrival: Arrival,
) => Promise<void>

const METHODS = ['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** The one parameter that may hold a slash: a repository's path as one encoded segment. */
const SLASHED = 'repo'

/**
 * Every route, found by its first path segment and then within that segment's own router.
 *
 * Matching is exact: case, slashes and escapes count (contract, rule 14).
 */
export class Routes {
  readonly #routers = new Map<string, Router>()
  #sorted = true
  readonly #added: { method: string; path: string; handler: RouteHandler }[] = []

  add(method: string, path: string, handler: RouteHandler): void {
    this.#added.push({ method, path, handler })
    this.#sorted = false
  }

  async serve(ctx: KoaContext, reply: HttpReply, arrival: Arrival): Promise<void> {
    if (!this.#sorted) this.#build()
    const path = checkedPath(ctx.req.url ?? '')
    const router = this.#routers.get(path.split('/', 2)[1]!)
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
    const matched = router?.match(path, method)
    const layer = matched?.pathAndMethod[0]
    const nearest = layer ?? matched?.path[0]
    const params = nearest?.params(path, nearest.captures(path)) ?? {}
    const slashed = Object.entries(params).some(([name, value]) => name !== SLASHED && value.includes('/'))
    if (!nearest || slashed) return refuse('not-found', `nothing is served at ${ctx.method} ${path.slice(0, 200)}`)
    if (!layer) {
      const others = new Set(matched!.path.flatMap(({ methods }) => methods))
      reply.lines.set('allow', METHODS.filter(one => others.has(one)).join(', '))
      return refuseMethod(reply, `${path} does not take ${ctx.method}, only ${[...others].join(', ')}`)
    }
    await (layer.stack[0] as unknown as RouteHandler)(ctx, params, reply, arrival)
  }

  /** Literal segments before parameters, so that `/agents/search` is not taken for an id. */
  #build(): void {
    const rank = (path: string) => path.replace(/\{\w+\}/g, '\uffff')
    const sorted = this.#added.toSorted((a, b) => (rank(a.path) < rank(b.path) ? -1 : 1))
    this.#routers.clear()
    for (const { method, path, handler } of sorted) {
      const segment = path.split('/', 2)[1]!
      const router = this.#routers.get(segment) ?? new Router({ strict: true, sensitive: true })
      this.#routers.set(segment, router)
      router.register(path.replace(/\{(\w+)\}/g, ':$1'), [method], handler as never)
    }
    this.#sorted = true
  }
}

/** The raw path of a target, refused where a segment is empty, broken, or decodes to what no name may be. */
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
