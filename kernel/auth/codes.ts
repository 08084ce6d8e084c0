import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { BadCode } from '../../sdk/node/access/admission.js'
import { type Book, findOwner } from '../../sdk/node/access/book.js'
import { Failures } from '../../sdk/node/failures.js'
import type { Kept } from '../../sdk/node/kept.js'
import { hashOf } from '../../sdk/node/secret.js'
import { refuse } from '../../sdk/refusal.js'

const MINUTE = 60_000
const LIFE = 5 * MINUTE
const OPEN = 32
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const WRONG = 'the code is unknown, used or expired; ask for a new one where you had it from (sandbox login, or whoever invited you)'

/** One-time codes: made here, used up by what they buy, and guessed at only so often. */
export class Codes {
  readonly #kept: Kept<Book>
  readonly #now: () => number
  readonly #failed: Failures
  readonly #allFailed: Failures
  #claimHash: string | undefined

  constructor(kept: Kept<Book>, now: () => number) {
    this.#kept = kept
    this.#now = now
    this.#failed = new Failures(10, 10 * MINUTE, now)
    this.#allFailed = new Failures(50, 60 * MINUTE, now)
  }

  /** The hash of the claim code, while nobody owns the sandbox. */
  get claimHash(): string | undefined {
    return findOwner(this.#kept.value) ? undefined : this.#claimHash
  }

  /** Makes the claim code of this start: 130 bits that a person can type. */
  makeClaim(): string {
    const code = Array.from(randomBytes(26), byte => BASE32[byte & 31]).join('')
    this.#claimHash = hashOf(code)
    return code
  }

  /** Mints a login code: one use, 5 minutes; only its hash is kept. */
  async mintLogin(): Promise<string> {
    const code = randomBytes(32).toString('base64url')
    const made = { hash: hashOf(code), expiresAt: this.#now() + LIFE }
    await this.#kept.change(book => ({ ...book, codes: [...book.codes.filter(one => one.expiresAt > this.#now()), made].slice(-OPEN) }))
    return code
  }

  /** Looks at a code, unless its address has guessed too often; a wrong one counts. */
  look<T>(address: string, judge: () => T): T {
    const retryAfter = this.#failed.wait(address)
    if (retryAfter !== undefined) refuse('too-many', `too many failed codes from this address; try again in ${retryAfter} s`, { retryAfter })
    try {
      return judge()
    } catch (error) {
      if (error instanceof BadCode) {
        this.#failed.add(address)
        this.#allFailed.add('all')
      }
      throw error
    }
  }

  /** The answer to what was wrong with a code: a slow one, once there were many. */
  async refuse(error: unknown, signal: AbortSignal): Promise<never> {
    if (!(error instanceof BadCode)) throw error
    if (this.#allFailed.wait('all') !== undefined) await sleep(1000, undefined, { signal })
    return refuse('unauthenticated', WRONG)
  }
}
