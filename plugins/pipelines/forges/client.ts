import type { IncomingHttpHeaders } from 'node:http'
import { Refusal, refuse } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import { givenObject, givenText } from './given.js'

const WITHIN_MS = 20_000
const MOST_ANSWER = 16 * 1024 * 1024
const AT_ONCE = 8
const USUAL_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = 3_600_000
const MOST_WORDS = 300

/** What of one forge all of its repositories share: how many ask at once, and until when nobody does. */
export class ForgeGate {
  readonly #atOnce = new Semaphore(AT_ONCE)
  #until = 0

  /** Asks when it is its turn; refuses while the forge wants to be left alone. */
  pass<T>(name: string, ask: () => Promise<T>): Promise<T> {
    return this.#atOnce.run(() => {
      const wait = this.#until - Date.now()
      if (wait > 0) refuse('dependency', `${name} asked for a pause: it is asked again in ${Math.ceil(wait / 1000)} s`)
      return ask()
    })
  }

  /** When it may be asked again. */
  get until(): number {
    return this.#until
  }

  /** Leaves the forge alone for as long as its answer says. */
  pauseBy(headers: IncomingHttpHeaders, now = Date.now()): void {
    this.#until = Math.max(this.#until, now + Math.min(pauseOf(headers, now), LONGEST_PAUSE_MS))
  }
}

const pauseOf = (headers: IncomingHttpHeaders, now: number): number => {
  const after = headers['retry-after']
  if (after !== undefined) {
    const ms = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - now
    if (ms > 0) return ms
  }
  const reset = Number(headers['x-ratelimit-reset'] ?? headers['ratelimit-reset'] ?? NaN) * 1000
  return reset > now ? reset - now : USUAL_PAUSE_MS
}

/** Whether an answer means that the forge was asked too often. */
const isLimited = (status: number, headers: IncomingHttpHeaders): boolean =>
  status === 429
  || (status === 403 && (headers['x-ratelimit-remaining'] === '0' || headers['retry-after'] !== undefined))

/** How the interface of a kind of forge is found, and asked with a credential. */
export interface ForgeInterface {
  readonly api: (site: URL) => string
  readonly headers: (token: string) => { [name: string]: string }
}

export interface ClientDeps {
  readonly dialect: ForgeInterface
  readonly site: URL
  readonly token: string
  readonly reach: NetworkReach
  readonly gate: ForgeGate
  readonly signal: AbortSignal
}

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH'
  /** Below the interface; `at: 'site'`: below the site. */
  readonly path: string
  readonly at?: 'api' | 'site'
  readonly body?: object
  readonly maxBytes?: number
}

/** The status with which a forge refused. */
class ForgeStatus extends Error {
  constructor(readonly status: number) {
    super(`status ${status}`)
  }
}

/** The status with which a forge refused, if this error is such a refusal. */
export const statusOfRefusal = (error: unknown): number | undefined => {
  const cause = error instanceof Refusal ? error.detail.cause : undefined
  return cause instanceof ForgeStatus ? cause.status : undefined
}

/** Asks one forge with one credential. */
export class ForgeClient {
  readonly #deps: ClientDeps
  readonly #api: string

  constructor(deps: ClientDeps) {
    this.#deps = deps
    this.#api = deps.dialect.api(deps.site)
  }

  get site(): URL {
    return this.#deps.site
  }

  /** What names this forge and credential, without the credential. */
  get api(): string {
    return this.#api
  }

  get gate(): ForgeGate {
    return this.#deps.gate
  }

  /** The answer as JSON. */
  async json(asked: Asked): Promise<unknown> {
    const text = await this.text(asked)
    try {
      return JSON.parse(text || '{}')
    } catch {
      return refuse('dependency', `${this.#deps.site.host} answered no JSON`)
    }
  }

  /** The answer as text; refuses with the forge's words what it refused. */
  async text({ method = 'GET', path, at = 'api', body, maxBytes = MOST_ANSWER }: Asked): Promise<string> {
    const { dialect, site, token, reach, gate, signal } = this.#deps
    const answer = await gate.pass(site.host, () =>
      askOutside({
        url: at === 'api' ? `${this.#api}${path}` : new URL(path, site).href,
        method,
        headers: { ...dialect.headers(token), ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
        ...{ reach, signal, timeoutMs: WITHIN_MS, maxBytes },
        redirects: method === 'GET' ? 3 : 0,
      }),
    )
    const { status, headers } = answer
    const text = answer.body.toString()
    if (status < 300) return text
    if (isLimited(status, headers)) gate.pauseBy(headers)
    const words = wordsOf(text).replaceAll(token, '…')
    return refuse('dependency', `${site.host} refused (${status})${words && `: ${words}`}`, {
      cause: new ForgeStatus(status),
    })
  }
}

const wordsOf = (text: string): string => {
  try {
    const { message, error } = givenObject(JSON.parse(text))
    const words = message ?? error
    return givenText(typeof words === 'object' ? JSON.stringify(words) : words, MOST_WORDS)
  } catch {
    return ''
  }
}

/** The path of a project in addresses of the interface. */
export const projectPath = (project: string): string => project.split('/').map(encodeURIComponent).join('/')
