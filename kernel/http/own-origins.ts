import { refuse } from '../../sdk/refusal.js'
import type { Calls } from '../calls.js'
import { KERNEL } from '../events.js'
import type { RequestContext } from './request.js'
import { pathPattern, targetPath } from './routes.js'

/** A group's answer about the origin of a page. */
export type OriginVerdict = 'admitted' | 'refused' | 'unknown'

interface OriginRule {
  readonly call: string
  readonly path: RegExp
  readonly names: readonly string[]
  /** The call of its group that judges. */
  readonly by: string
}

const LINES = {
  'access-control-allow-methods': 'GET, POST, OPTIONS',
  'access-control-allow-headers': 'content-type, last-event-id',
  'access-control-expose-headers': 'retry-after',
}

/** The routes whose group says which origins may call them, in place of the sandbox's list. */
export class OwnOrigins {
  readonly #rules: OriginRule[] = []
  readonly #calls: Calls

  constructor(calls: Calls) {
    this.#calls = calls
  }

  add(call: string, path: string, by: string): void {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
    this.#rules.push({ call, path: new RegExp(pathPattern(path).source.replaceAll('[^/]+', '([^/]+)')), names, by })
  }

  /** Judges the request of such a route, before its body is read; undefined: it follows another rule. */
  judge(ctx: RequestContext): Promise<void> | undefined {
    const path = targetPath(ctx.req.url)
    const rules = this.#rules.filter(rule => rule.path.test(path))
    // The method of a preflight is not that of the request that follows.
    const rule = rules.find(({ call }) => call.startsWith(`${ctx.method} `)) ?? rules[0]
    return rule && this.#judge(ctx, rule, path)
  }

  async #judge(ctx: RequestContext, { call, path, names, by }: OriginRule, target: string): Promise<void> {
    const origin = ctx.state.arrival.head.get('origin')
    if (origin === undefined)
      return refuse('forbidden', 'expected a page of a site that is admitted here, found no origin')
    const [, ...values] = path.exec(target) ?? []
    const params = Object.fromEntries(names.map((name, at) => [name, decoded(values[at])]))
    const asked = { ...params, origin, asked: ctx.method === call.split(' ', 1)[0] ? call : ctx.method }
    const { verdict } = (await this.#calls.answer(by, asked, KERNEL)) as { verdict: OriginVerdict }
    if (verdict === 'unknown') refuse('not-found', `nothing is served at ${ctx.path.slice(0, 200)}`)
    if (verdict === 'refused')
      refuse('forbidden', `pages of ${origin.slice(0, 200)} may not use this: its origin is not on the list`)
    ctx.state.reply.lines.setAll(LINES).set('access-control-allow-origin', origin)
  }
}

const decoded = (value = ''): string => {
  try {
    return decodeURIComponent(value)
  } catch {
    return ''
  }
}
