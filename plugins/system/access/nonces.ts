import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const LIFE = 10 * 60_000
const FORM = /^([0-9a-z]{8,10})\.([\w-]{22})\.([\w-]{43})$/

/** Nonces of this run of the daemon: each verifies itself and is stored only once used. */
export class Nonces {
  readonly #key = randomBytes(32)
  readonly #now: () => number
  /** The used nonces, each with the time at which it expires. */
  readonly #used = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  make(): { nonce: string; expiresAt: number } {
    const expiresAt = this.#now() + LIFE
    const text = `${expiresAt.toString(36)}.${randomBytes(16).toString('base64url')}`
    return { nonce: `${text}.${this.#sign(text)}`, expiresAt }
  }

  /** Whether a nonce is from this daemon, at most ten minutes old, and unused. */
  isOpen(nonce: string): boolean {
    const [, end = '', random = '', signed = ''] = FORM.exec(nonce) ?? []
    if (!signed || !timingSafeEqual(Buffer.from(this.#sign(`${end}.${random}`)), Buffer.from(signed))) return false
    return Number.parseInt(end, 36) > this.#now() && !this.#used.has(nonce)
  }

  /** Marks a nonce as used; false: it was used already. */
  use(nonce: string): boolean {
    if (!this.isOpen(nonce)) return false
    const now = this.#now()
    for (const [old, end] of this.#used) if (end <= now) this.#used.delete(old)
    this.#used.set(nonce, now + LIFE)
    return true
  }

  /** Marks a nonce as unused again, because its token was not accepted. */
  release(nonce: string): void {
    this.#used.delete(nonce)
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url')
  }
}
