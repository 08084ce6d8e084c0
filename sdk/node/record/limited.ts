import type { Context } from '../../contract.js'
import type { Host } from '../../host.js'
import { Refusal } from '../../refusal.js'
import { isStream } from '../../wire.js'
import { record } from './record.js'

/** How long one entry stands for all refusals of an address at a route. */
const WINDOW = 10 * 60_000
const MOST = 10_000

type Handler = (input: unknown, context: Context) => unknown

/** What an address was told of, and when. */
class Told {
  readonly #at = new Map<string, number>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether the refusal is the first one of its period. */
  isFirst(key: string): boolean {
    const now = this.#now()
    const before = this.#at.get(key)
    // A clock that was set back ends a period.
    if (before !== undefined && before <= now && now - before < WINDOW) return false
    this.#at.delete(key)
    this.#at.set(key, now)
    if (this.#at.size > MOST) this.#at.delete(this.#at.keys().next().value!)
    return true
  }
}

/**
 * The handlers, of which these routes record an address that they refuse with 429: at most once in ten minutes for
 * each route, because they are open to strangers.
 */
export const recordingLimits = <H extends object>(
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  routes: readonly (keyof H & string)[],
  handlers: H,
  now: () => number = Date.now,
): H => {
  const told = new Told(now)
  const refused = async (route: string, error: unknown, { http }: Context): Promise<never> => {
    const address = http?.address ?? 'unknown'
    if (error instanceof Refusal && error.reason === 'too-many' && told.isFirst(`${address} ${route}`))
      await record(host, {
        type: 'rate.limited',
        direction: 'in',
        outcome: 'error',
        actor: 'stranger',
        source: 'rate.limited',
        extra: { route, address },
      })
    throw error
  }
  const streamed = async function* (route: string, events: AsyncIterable<unknown, unknown>, context: Context) {
    try {
      return yield* events
    } catch (error) {
      return refused(route, error, context)
    }
  }
  const wrapped =
    (route: string, handler: Handler): Handler =>
    async (input, context) => {
      try {
        const value = await handler(input, context)
        return isStream(value) ? streamed(route, value, context) : value
      } catch (error) {
        return refused(route, error, context)
      }
    }
  const limited = routes.map(route => [route, wrapped(route, handlers[route] as Handler)] as const)
  return { ...handlers, ...Object.fromEntries(limited) }
}
