import type { NoticeFrame } from '../../turn/frames/frames.js'
import type { TurnIo } from '../adapter.js'
import { limitsIn, type AnswerHeaders } from './heard-limits.js'
import { NativeOver } from './over.js'
import type { SessionEntry } from './session.js'

interface PacedLimit {
  readonly kind: string
  readonly most: number
  left: number
  readonly resetsAt: number
}

/** A wait before a request that would be refused now. */
export interface PaceWait {
  readonly ms: number
  /** What there is too little of. */
  readonly kind: string
}

/** The longest wait before a request; after it the request is made, and refused with the reason. */
const LONGEST_MS = 60_000
/** Other turns may take what a turn waited for: the most waits before a request. */
const MOST_WAITS = 3
/** Clocks differ a little. */
const SPARE_MS = 250

/** What a server allows by the minute, as its newest answer tells: shared by all turns on it and on one account. */
export class RequestPace {
  #limits: readonly PacedLimit[] = []

  hear(headers: AnswerHeaders, now = Date.now()): void {
    const heard = limitsIn(headers, now)
    if (heard.length === 0) return
    this.#limits = heard.flatMap(({ kind, most, left, resetsAt }) =>
      resetsAt === undefined ? [] : [{ kind, most, left, resetsAt }],
    )
  }

  /** How long a request of so many tokens has to wait; undefined: it may be made. Counts it among those made. */
  next(tokens: number, now = Date.now()): PaceWait | undefined {
    const counted = this.#limits.filter(({ resetsAt }) => resetsAt > now)
    const scarce = counted.filter(({ kind, most, left }) => left < needed(kind, tokens, most))
    const last = scarce.reduce<PacedLimit | undefined>(
      (latest, one) => (latest && latest.resetsAt >= one.resetsAt ? latest : one),
      undefined,
    )
    const ms = last === undefined ? 0 : last.resetsAt - now + SPARE_MS
    if (last && ms <= LONGEST_MS) return { ms, kind: last.kind }
    // Other turns begin before the answer to this request tells what is left.
    for (const limit of counted) limit.left = Math.max(0, limit.left - needed(limit.kind, tokens, limit.most))
    return undefined
  }
}

/** What a request takes of a limit. One that takes more than there ever is, is not held. */
const needed = (kind: string, tokens: number, most: number): number => {
  const takes = kind === 'requests' || kind === 'output-tokens' ? 1 : tokens
  return takes > most ? 0 : takes
}

/** Waits while a server would refuse a request by the limits that it tells, for a minute at most in all. */
export async function* waitForPace(
  pace: Pick<RequestPace, 'next'> | undefined,
  tokens: number,
  io: Pick<TurnIo, 'gap' | 'signal'>,
): AsyncGenerator<NoticeFrame, void> {
  let left = LONGEST_MS
  // `gap` does not wait where the turn is to move, which a subagent can delay.
  for (let waits = 0; waits < MOST_WAITS; waits++) {
    const wait = pace?.next(tokens)
    if (!wait || wait.ms > left) return
    left -= wait.ms
    const what = wait.kind.replace('-', ' ')
    const text = `waiting ${Math.ceil(wait.ms / 1000)} s: then the provider allows more ${what} again`
    yield { kind: 'notice', level: 'info', text, source: 'provider' }
    if (await io.gap(wait.ms)) throw new NativeOver('moved')
    if (io.signal.aborted) throw new NativeOver('stopped')
  }
}

/** The tokens that a request takes of a limit, by the last answer: what a cache has counts little or nothing. */
export const takenTokens = (entries: readonly SessionEntry[]): number => {
  const last = entries.findLast(entry => entry.kind === 'answer')
  return last ? Math.max(1, last.usage.input + last.usage.cacheWrite) : 1
}

/** The paces of servers and accounts. */
export class RequestPaces {
  readonly #all = new Map<string, RequestPace>()

  of(provider: string, account = ''): RequestPace {
    const key = `${provider} ${account}`
    const pace = this.#all.get(key) ?? new RequestPace()
    this.#all.set(key, pace)
    return pace
  }
}
