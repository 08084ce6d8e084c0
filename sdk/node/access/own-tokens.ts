import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Store } from '../../host.js'

/** The token of one open route, as it is stored in the data folder. */
export interface OwnToken {
  readonly token: string
  readonly createdAt: number
  readonly lastUsedAt?: number
  readonly lastUsedFrom?: string
}

const KEY = 'token/'
const BYTES = 32

/** The tokens of routes that each take a token of their own; they are in no file of the workspace. */
export class OwnTokens {
  readonly #store: Pick<Store, 'set' | 'delete'>
  readonly #now: () => number
  readonly #tokens = new Map<string, OwnToken>()

  constructor(store: Pick<Store, 'set' | 'delete'>, now: () => number) {
    this.#store = store
    this.#now = now
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(KEY))
    for (const [key, value] of found) this.#tokens.set(key.slice(KEY.length), value as OwnToken)
  }

  of(id: string): OwnToken | undefined {
    return this.#tokens.get(id)
  }

  /** Makes a token; an earlier one stops working. */
  async make(id: string): Promise<OwnToken> {
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

  async #keep(id: string, token: OwnToken): Promise<void> {
    await this.#store.set(KEY + id, token)
    this.#tokens.set(id, token)
  }
}

const hashed = (text: string): Buffer => createHash('sha256').update(text).digest()
