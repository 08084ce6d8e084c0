import type { OpenAccess } from '../manifest.js'
import type { RequestContext } from './request.js'
import { pathPattern, targetPath } from './routes.js'

/** The routes that pages of every origin may call, which follow this rule in place of the sandbox's list. */
export class AnyOrigin {
  readonly #rules: { readonly path: RegExp; readonly lines: { readonly [name: string]: string } }[] = []

  add(path: string, headers: readonly string[]): void {
    const lines = {
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'POST, OPTIONS',
      'access-control-allow-headers': ['content-type', ...headers].join(', '),
      'access-control-expose-headers': '*',
    }
    this.#rules.push({ path: pathPattern(path), lines })
  }

  /** The CORS headers of a request target; undefined: it follows the sandbox's list. */
  linesOf(target: string | undefined): { readonly [name: string]: string } | undefined {
    if (this.#rules.length === 0) return undefined
    const path = targetPath(target)
    return this.#rules.find(rule => rule.path.test(path))?.lines
  }
}

/** The headers that a call takes as input fields. */
export const inputHeaders = (
  ctx: RequestContext,
  { headers = [], anyOrigin }: OpenAccess,
): { readonly [name: string]: string } =>
  Object.fromEntries(
    [...headers, ...(anyOrigin?.headers ?? [])].flatMap(name => {
      const value = ctx.req.headers[name]
      return value === undefined ? [] : [[name, String(value)]]
    }),
  )
