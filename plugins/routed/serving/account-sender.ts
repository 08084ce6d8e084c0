import { setTimeout as delay } from 'node:timers/promises'
import { ignored } from '../../../sdk/index.js'
import type { LeasedRequest, TableGrant } from '../link/messages.js'
import { errorWords } from '../translate/errors.js'
import type { DaemonLink } from './daemon-link.js'
import { ServingFailure } from './failure.js'
import { askUpstream, type UpstreamAnswer, type UpstreamRequest } from './upstream.js'

/** What one request is sent with. */
export interface SenderDeps {
  readonly link: Pick<DaemonLink, 'ask'>
  readonly grant: TableGrant
  readonly model: string
  readonly ask?: (asked: UpstreamRequest) => Promise<UpstreamAnswer>
  readonly now?: () => number
}

/** The most accounts that one request is sent to. */
const MOST_ACCOUNTS = 5
const MOST_REFUSAL = 64 * 1024
const REFUSAL_MS = 2_000
/** With these an account refuses, and another may not. */
const REFUSALS = new Set([401, 402, 403, 429])

interface RefusedBy {
  readonly status: number
  readonly message: string
  readonly body: string
  readonly resetsAt?: number
}

/** Sends one request: with a renewed credential once, and to the next account, until an answer begins. */
export class AccountSender {
  readonly #deps: SenderDeps
  readonly #tried: string[] = []
  #leased: LeasedRequest | undefined
  /** How often the request was sent again. */
  retried = 0
  /** The headers of the answer. */
  answered: UpstreamAnswer['headers'] | undefined

  constructor(deps: SenderDeps) {
    this.#deps = deps
  }

  /** The account of the request, with its credential. */
  get leased(): LeasedRequest | undefined {
    return this.#leased
  }

  /** Leases the first account. */
  async lease(): Promise<LeasedRequest> {
    const { link, grant, model } = this.#deps
    return (this.#leased = await link.ask('lease', { grant: grant.id, model, besides: this.#tried }))
  }

  /** @throws ServingFailure where no account answers, with the status and the words of the provider. */
  async send(
    asked: Omit<UpstreamRequest, 'headers'> & { headers: UpstreamRequest['headers'] },
  ): Promise<UpstreamAnswer> {
    let last: RefusedBy | undefined
    let earliest = Infinity
    for (let accounts = 0; accounts < MOST_ACCOUNTS; accounts++) {
      let leased: LeasedRequest
      try {
        leased = accounts === 0 && this.#leased ? this.#leased : await this.lease()
      } catch (error) {
        if (!last || !(error instanceof ServingFailure)) throw error
        const wait = Number(error.retryAfter)
        if (wait > 0) earliest = Math.min(earliest, this.#now() + wait * 1000)
        break
      }
      if (accounts > 0) this.retried++
      const answer = await this.#once(asked, leased)
      if (answer.status >= 200 && answer.status < 300) {
        this.answered = answer.headers
        return answer
      }
      const refused = await this.#refusalOf(answer)
      const { account, lease } = this.#leased!
      if (!REFUSALS.has(refused.status) || account === undefined || lease === undefined)
        throw failed(refused, this.#now())
      const { status, message, resetsAt } = refused
      const { link, grant } = this.#deps
      const met = { grant: grant.id, lease, account, status, message }
      await link.ask('refused', { ...met, ...(resetsAt !== undefined && { resetsAt }) })
      this.#leased = undefined
      this.#tried.push(account)
      last = refused
      earliest = Math.min(earliest, resetsAt ?? Infinity)
      if (grant.named) throw failed(refused, this.#now())
    }
    const { status, message } = last!
    if (status !== 429 && this.#tried.length === 1) throw failed(last!, this.#now())
    const seconds = Number.isFinite(earliest) ? Math.max(1, Math.ceil((earliest - this.#now()) / 1000)) : undefined
    const wait = seconds === undefined ? {} : { retryAfter: String(seconds) }
    throw new ServingFailure(429, `no account of the provider answers now; the last one says: ${message}`, wait)
  }

  /** Sends to one account; a bearer that is refused is renewed once. */
  async #once(asked: Parameters<AccountSender['send']>[0], leased: LeasedRequest): Promise<UpstreamAnswer> {
    const ask = this.#deps.ask ?? askUpstream
    const headers = ({ headers: own }: LeasedRequest) => ({ ...asked.headers, ...own })
    const answer = await ask({ ...asked, headers: headers(leased) })
    const { lease, account, renewable } = leased
    if (answer.status !== 401 || !renewable || lease === undefined || account === undefined) return answer
    const { link, grant } = this.#deps
    const refused = valueOf(leased)
    const again = await link
      .ask('renew', { grant: grant.id, lease, account, refused })
      .catch((error: unknown) => void ignoredRefusal(error))
    // The provider's own words say more than that its sign-in has ended.
    if (!again) return answer
    answer.body.destroy()
    this.retried++
    this.#leased = again
    return ask({ ...asked, headers: headers(again) })
  }

  async #refusalOf({ status, headers, body }: UpstreamAnswer): Promise<RefusedBy> {
    let text = ''
    const read = async (): Promise<void> => {
      for await (const piece of body) {
        text += String(piece)
        if (text.length > MOST_REFUSAL) return
      }
    }
    await Promise.race([read().catch(ignored('the status says enough')), delay(REFUSAL_MS, undefined, { ref: false })])
    body.destroy()
    const safe = withoutValues(text, this.#leased?.headers ?? {})
    const resetsAt = resetOf(headers['retry-after'], this.#now())
    const message = errorWords(safe) || `status ${status}`
    return { status, message, body: safe, ...(resetsAt !== undefined && { resetsAt }) }
  }

  #now(): number {
    return (this.#deps.now ?? Date.now)()
  }
}

const ignoredRefusal = (error: unknown): undefined => {
  if (!(error instanceof ServingFailure)) throw error
  return undefined
}

/** The credential in the headers of a lease. */
const valueOf = ({ headers }: LeasedRequest): string =>
  (headers['x-api-key'] ?? headers.authorization ?? '').replace(/^Bearer /, '')

const failed = ({ status, message, body, resetsAt }: RefusedBy, now: number): ServingFailure =>
  new ServingFailure(status, message, {
    body,
    ...(resetsAt !== undefined && { retryAfter: String(Math.max(1, Math.ceil((resetsAt - now) / 1000))) }),
  })

/** When a provider is asked again at the earliest: `retry-after` is in seconds or a date. */
const resetOf = (after: string | undefined, now: number): number | undefined => {
  if (after === undefined) return undefined
  const at = /^\d{1,9}(\.\d+)?$/.test(after.trim()) ? now + Number(after) * 1000 : Date.parse(after)
  return Number.isFinite(at) ? Math.round(at) : undefined
}

/** Servers repeat the credential that they refuse. */
const withoutValues = (text: string, headers: { readonly [name: string]: string }): string =>
  Object.values(headers)
    .flatMap(value => [value, value.replace(/^\w+ /, '')])
    .filter(value => value.length >= 6)
    .reduce((words, value) => words.replaceAll(value, '***'), text)
