import type { JSONWebKeySet, JWK } from 'jose'
import { refuse } from '../../../sdk/index.js'
import { parseObject } from '../../../sdk/node/files/json.js'
import { namedAddress } from '../../../sdk/node/named-address.js'

/** Reads a document: its bytes, or a refusal. `near`: it may be in the deployment's own network. */
export type ReadDocument = (url: string, near: boolean) => Promise<Buffer>

const MINUTE = 60_000
const FRESH = 10 * MINUTE
const AGAIN = MINUTE
const GOOD = 24 * 60 * MINUTE
const KEYS = 100

/** The signing keys of an issuer: cached for ten minutes, and for a day while it cannot be reached. */
export class IssuerKeys {
  readonly #issuer: string
  readonly #read: ReadDocument
  readonly #now: () => number
  #keys: { set: JSONWebKeySet; at: number } | undefined
  #askedAgain = -Infinity
  #reading: Promise<JSONWebKeySet> | undefined

  constructor(issuer: string, read: ReadDocument, now: () => number) {
    this.#issuer = issuer
    this.#read = read
    this.#now = now
  }

  /** The cached or fetched keys; refuses with 424 if none are known, or none younger than a day. */
  async current(): Promise<JSONWebKeySet> {
    const known = this.#keys
    if (known && this.#age(known.at) < FRESH) return known.set
    return this.#fetch().catch(error => {
      if (known && this.#age(known.at) < GOOD) return known.set
      throw error
    })
  }

  /** Fetches the keys again because one was missing, at most once a minute; undefined: too soon. */
  async again(): Promise<JSONWebKeySet | undefined> {
    if (this.#age(this.#askedAgain) < AGAIN) return undefined
    this.#askedAgain = this.#now()
    return this.#fetch().catch(() => undefined)
  }

  /** The age of a time; one in the future, after the clock was set back, counts as infinitely old. */
  #age(at: number): number {
    const age = this.#now() - at
    return age < 0 ? Infinity : age
  }

  #fetch(): Promise<JSONWebKeySet> {
    this.#reading ??= this.#readKeys().finally(() => (this.#reading = undefined))
    return this.#reading
  }

  async #readKeys(): Promise<JSONWebKeySet> {
    // The deployment names the issuer, so that may be in its own network.
    const discovery = await this.#document(`${this.#issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, true)
    const { issuer, jwks_uri: address } = discovery as { issuer?: unknown; jwks_uri?: unknown }
    if (issuer !== this.#issuer)
      this.#fail(`its configuration names the issuer ${JSON.stringify(issuer)?.slice(0, 200)}`)
    const named = typeof address === 'string' ? namedAddress(new URL(this.#issuer), address) : undefined
    if (!named) return this.#fail('its configuration names no https address of keys')
    const { keys } = (await this.#document(named.url.href, named.near)) as { keys?: unknown }
    if (!Array.isArray(keys) || keys.length > KEYS) return this.#fail('its key set has no list of keys')
    const set = { keys: keys.filter((key): key is JWK => typeof key === 'object' && key !== null) }
    this.#keys = { set, at: this.#now() }
    return set
  }

  async #document(url: string, near: boolean): Promise<object> {
    try {
      return parseObject(await this.#read(url, near))
    } catch (error) {
      return this.#fail((error as Error).message)
    }
  }

  #fail(why: string): never {
    return refuse('dependency', `the keys of ${this.#issuer} cannot be fetched: ${why}`)
  }
}
