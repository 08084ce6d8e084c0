import type { Caller } from '../../sdk/index.js'
import type { ActivityInput } from './contract.js'
import type { Facts } from './entry.js'
import { dayOf } from './segments.js'

const A_DAY = 5000
const SOURCES = 256

interface Source {
  kept: number
  further: number
  last?: Facts
}

/** Limits the entries per source and day, so that strangers and extensions cannot displace all others. */
export class Caps {
  readonly #most: number
  readonly #now: () => number
  #day = ''
  #sources = new Map<string, Source>()

  constructor(now: () => number, most = A_DAY) {
    this.#now = now
    this.#most = most
  }

  /** Who outside the sandbox an entry comes from; undefined for its own people, agents and groups. */
  static sourceOf({ source }: ActivityInput, { kind, actor }: Caller): string | undefined {
    return source ?? (kind === 'extension' || actor === 'stranger' ? actor : undefined)
  }

  /** Whether one more entry of a source is kept today; counts the others. */
  admits(source: string, facts: Facts): boolean {
    // Further sources share one limit, because strangers can choose their number.
    const name = this.#sources.has(source) || this.#sources.size < SOURCES ? source : 'others'
    const found = this.#sources.get(name) ?? { kept: 0, further: 0 }
    this.#sources.set(name, found)
    if (found.kept < this.#most) {
      found.kept += 1
      return true
    }
    found.further += 1
    found.last = facts
    return false
  }

  /** The summary entries for those that were only counted, once their day is over or with `now`. */
  due(when: 'daily' | 'now'): Facts[] {
    const today = dayOf(this.#now())
    if (today === this.#day && when === 'daily') return []
    this.#day = today
    const full = [...this.#sources].filter(([, { further }]) => further > 0)
    if (when === 'daily') this.#sources = new Map()
    return full.map(([source, found]) => {
      const { type, direction, audience, actor } = found.last!
      const facts: Facts = {
        type,
        direction,
        audience,
        ...(actor !== undefined && { actor }),
        extra: { source: source.slice(0, 200), further: found.further },
      }
      found.further = 0
      return facts
    })
  }
}
