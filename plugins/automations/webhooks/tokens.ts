import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Store } from '../../../sdk/index.js'

/** The token of one webhook, as it is stored in the data folder. */
export interface StoredToken {
  readonly token: string
  readonly createdAt: number
  readonly lastUsedAt?: number
  readonly lastUsedFrom?: string
}

const KEY = 'token/'
const BYTES = 32

/** The tokens of webhooks; they are in no file of the workspace. */
export class WebhookTokens {
  readonly #store: Pick<Store, 'set' | 'delete'>
  readonly #now: () => number
  readonly #tokens = new Map<string, StoredToken>()

  constructor(store: Pick<Store, 'set' | 'delete'>, now: () => number) {
    this.#store = store
    this.#now = now
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(KEY))
    for (const [key, value] of found) this.#tokens.set(key.slice(KEY.length), value as StoredToken)
  }

  of(id: string): StoredToken | undefined {
    return this.#tokens.get(id)
  }

  /** Makes a token; an earlier one stops working. */
  async make(id: string): Promise<StoredToken> {
    const made = { token: randomBytes(BYTES).toString('base64url'), createdAt: this.#now() }
    await this.#keep(id, made)
    return made
  }

  /** Compares in a time that depends neither on the token nor on whether there is one. */
  holds(id: string, given: string): boolean {
    const known = this.#tokens.get(id)
    const same = timingSafeEqual(hashed(given), hashed(known?.token ?? ''))
    return same && known !== undefined
  }

  async used(id: string, from: string): Promise<void> {
    const known = this.#tokens.get(id)
    if (known) await this.#keep(id, { ...known, lastUsedAt: this.#now(), lastUsedFrom: from })
  }

  async forget(id: string): Promise<void> {
    this.#tokens.delete(id)
    await this.#store.delete(KEY + id)
  }

  async #keep(id: string, token: StoredToken): Promise<void> {
    await this.#store.set(KEY + id, token)
    this.#tokens.set(id, token)
  }
}

const hashed = (text: string): Buffer => createHash('sha256').update(text).digest()
