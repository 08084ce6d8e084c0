import { parseObject } from '../../../sdk/node/files/json.js'
import { namedPage } from '../../../sdk/node/named-address.js'
import type { ReadDocument } from './issuer-keys.js'

const MINUTE = 60_000
const FRESH = 10 * MINUTE
const AGAIN = MINUTE
/** Milliseconds that a sign-in page waits for an issuer. */
const PATIENCE = 2_000

/** Where a page signs in with an issuer; both are absent while it cannot be reached. */
export interface PageEndpoints {
  readonly authorize?: string
  readonly token?: string
}

interface Kept {
  readonly at: number
  readonly found: PageEndpoints
}

/** Caches the addresses at which pages sign in for ten minutes, and a failure for one minute. */
export class IssuerEndpoints {
  readonly #read: ReadDocument
  readonly #now: () => number
  readonly #known = new Map<string, Kept>()
  readonly #reading = new Map<string, Promise<PageEndpoints>>()

  constructor(read: ReadDocument, now: () => number) {
    this.#read = read
    this.#now = now
  }

  /** The addresses of an issuer; without an answer in 2 s, the last known ones. */
  async of(issuer: string): Promise<PageEndpoints> {
    const known = this.#known.get(issuer)
    const age = known ? this.#now() - known.at : Infinity
    if (known && age >= 0 && age < (known.found.authorize ? FRESH : AGAIN)) return known.found
    let reading = this.#reading.get(issuer)
    if (!reading) {
      reading = this.#fetch(issuer).finally(() => this.#reading.delete(issuer))
      this.#reading.set(issuer, reading)
    }
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<PageEndpoints>(resolve => {
      timer = setTimeout(() => resolve(known?.found ?? {}), PATIENCE)
    })
    return Promise.race([reading, late]).finally(() => clearTimeout(timer))
  }

  async #fetch(issuer: string): Promise<PageEndpoints> {
    const found = await this.#read(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, true)
      .then(bytes => endpointsIn(issuer, parseObject(bytes)))
      .catch((): PageEndpoints => ({}))
    this.#known.set(issuer, { at: this.#now(), found })
    return found
  }
}

const endpointsIn = (issuer: string, configuration: object): PageEndpoints => {
  const {
    issuer: named,
    authorization_endpoint: authorize,
    token_endpoint: token,
  } = configuration as { [field: string]: unknown }
  const page = (address: unknown) => (typeof address === 'string' ? namedPage(new URL(issuer), address) : undefined)
  const [authorizePage, tokenPage] = [page(authorize), page(token)]
  if (named !== issuer || authorizePage === undefined) return {}
  return { authorize: authorizePage, ...(tokenPage !== undefined && { token: tokenPage }) }
}
