import type { AccountUsageFrame, Frame, LimitWindow, RateLimitFrame } from '../../turn/frames/frames.js'

/** The headers of an answer. */
export interface AnswerHeaders {
  readonly [name: string]: string | string[] | undefined
}

/** From so many percent on a limit is nearly reached. */
const NEARLY = 90
/** The use of a limit is told again when it moved by so many points. */
const MOVED = 10
/** The last moment that a date can be. */
const LAST_MS = 8_640_000_000_000_000
/** Headers of one limit: what is allowed, what is left, and when it is whole again. */
interface LimitHeaders {
  readonly kind: string
  readonly label: string
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

const anthropic = (kind: string, label: string, prefix = 'anthropic-ratelimit'): LimitHeaders => ({
  ...{ kind, label, limit: `${prefix}-${kind}-limit`, remaining: `${prefix}-${kind}-remaining` },
  reset: `${prefix}-${kind}-reset`,
})
const openai = (kind: string, label: string): LimitHeaders => ({
  ...{ kind, label, limit: `x-ratelimit-limit-${kind}`, remaining: `x-ratelimit-remaining-${kind}` },
  reset: `x-ratelimit-reset-${kind}`,
})

/** The limits that Anthropic, and OpenAI and those who speak as it does, publish with each answer. */
const PUBLISHED: readonly LimitHeaders[] = [
  anthropic('requests', 'requests'),
  anthropic('tokens', 'tokens'),
  anthropic('input-tokens', 'input tokens'),
  anthropic('output-tokens', 'output tokens'),
  openai('requests', 'requests'),
  openai('tokens', 'tokens'),
]

/** A limit as an answer tells it: what is allowed in all, and what is left of it. */
export interface ToldLimit {
  readonly kind: string
  readonly label: string
  readonly most: number
  readonly left: number
  readonly resetsAt?: number
}

/** The limits that the headers of an answer tell. */
export const limitsIn = (headers: AnswerHeaders, now: number): ToldLimit[] =>
  PUBLISHED.flatMap(({ kind, label, limit, remaining, reset }) => {
    const [most, left] = [countOf(headers[limit]), countOf(headers[remaining])]
    if (most === undefined || left === undefined || most === 0) return []
    const resetsAt = resetOf(headers[reset], now)
    return [{ kind, label, most, left, ...(resetsAt !== undefined && { resetsAt }) }]
  })

/** What the headers of an answer say of limits, as how much of each is used. */
export const publishedLimits = (headers: AnswerHeaders, now: number): LimitWindow[] =>
  limitsIn(headers, now).map(({ kind, label, most, left, resetsAt }) => {
    const utilization = Math.min(100, Math.max(0, Math.round(((most - left) / most) * 100)))
    return { kind, label, utilization, ...(resetsAt !== undefined && { resetsAt }), measuredAt: now }
  })

const countOf = (value: string | string[] | undefined): number | undefined =>
  typeof value === 'string' && /^\d{1,15}$/.test(value.trim()) ? Number(value) : undefined

const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A moment as they write it: a date, or the time until then, such as `6m0s` or `850ms`. */
const resetOf = (value: string | string[] | undefined, now: number): number | undefined => {
  if (typeof value !== 'string') return undefined
  if (/^(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h|d)){1,5}$/.test(value)) {
    const parts = [...value.matchAll(/([\d.]+)(ms|s|m|h|d)/g)]
    return momentOf(Math.round(now + parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!, 0)))
  }
  return momentOf(/^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : NaN)
}

/** A moment that a date can be. */
const momentOf = (at: number): number | undefined => (at >= 0 && at <= LAST_MS ? at : undefined)

/** What hears the headers of answers too. */
interface HearsAnswers {
  hear(headers: AnswerHeaders, now: number): void
}

/** The limits of a provider as its answers in one turn tell them, as frames that say what changed. */
export class HeardLimits {
  readonly #account: string | undefined
  readonly #pace: HearsAnswers | undefined
  readonly #windows = new Map<string, LimitWindow>()
  #rejectedUntil: number | undefined
  #rejected = false
  #told: { status?: RateLimitFrame['status']; readonly used: Map<string, number> } = { used: new Map() }

  constructor(account?: string, pace?: HearsAnswers) {
    this.#account = account
    this.#pace = pace
  }

  /** Hears an answer; a status of 429 means that a limit is reached. */
  hear(headers: AnswerHeaders, status: number, now = Date.now()): void {
    this.add(publishedLimits(headers, now))
    this.#pace?.hear(headers, now)
    this.#rejected = status === 429
    const after = countOf(headers['retry-after'])
    this.#rejectedUntil = this.#rejected && after !== undefined ? momentOf(now + after * 1000) : undefined
  }

  /** Hears of limits that were read elsewhere. */
  add(windows: readonly LimitWindow[]): void {
    for (const window of windows) this.#windows.set(window.kind, window)
  }

  /** What changed since it was told last: nothing where nothing is published and nothing is reached. */
  *frames(): Generator<Frame> {
    const windows = [...this.#windows.values()]
    const fullest = windows.reduce<LimitWindow | undefined>(
      (most, one) => (most && most.utilization >= one.utilization ? most : one),
      undefined,
    )
    if (!fullest && !this.#rejected) return
    const account = this.#account !== undefined && { account: this.#account }
    const status = this.#rejected ? 'rejected' : fullest!.utilization >= NEARLY ? 'allowed_warning' : 'allowed'
    if (status !== this.#told.status) {
      this.#told.status = status
      const resetsAt = this.#rejectedUntil ?? fullest?.resetsAt
      yield {
        kind: 'rate_limit_info',
        ...account,
        status,
        ...(fullest && { rateLimitType: fullest.kind, utilization: fullest.utilization }),
        ...(resetsAt !== undefined && { resetsAt }),
      } satisfies RateLimitFrame
    }
    const { used } = this.#told
    const moved = windows.some(({ kind, utilization }) => Math.abs((used.get(kind) ?? -MOVED) - utilization) >= MOVED)
    if (!moved) return
    for (const { kind, utilization } of windows) used.set(kind, utilization)
    yield { kind: 'account_usage', ...account, windows } satisfies AccountUsageFrame
  }
}
