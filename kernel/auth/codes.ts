import { randomBytes } from 'node:crypto'
import { BadCode } from './admission.js'
import { type Book, findOwner } from './book.js'
import type { Kept } from '../../sdk/node/files/kept.js'
import { hashOf } from '../../sdk/node/access/secret.js'
import { refuse } from '../../sdk/refusal.js'

const MINUTE = 60_000
const LIFE = 5 * MINUTE
const OPEN = 32
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const WRONG =
  'the code is unknown, used or expired; ask for a new one where you got it (sandbox login, or the person who '
  + 'invited you)'

/**
 * Mints one-time codes; each is deleted in the write that uses it.
 *
 * Wrong guesses are not counted: codes of 130 bits or more cannot be guessed, and a limit would let an attacker lock
 * people out.
 */
export class Codes {
  readonly #kept: Kept<Book>
  readonly #now: () => number
  #claimHash: string | undefined

  constructor(kept: Kept<Book>, now: () => number) {
    this.#kept = kept
    this.#now = now
  }

  /** The hash of the claim code, while the sandbox has no owner. */
  get claimHash(): string | undefined {
    return findOwner(this.#kept.value) ? undefined : this.#claimHash
  }

  /** Makes the claim code of this start: 130 bits that a person can type. */
  makeClaim(): string {
    const code = Array.from(randomBytes(26), byte => BASE32[byte & 31]).join('')
    this.#claimHash = hashOf(code)
    return code
  }

  /** Mints a login code of 256 bits, valid once and for 5 minutes; only its hash is stored. */
  async mintLogin(): Promise<string> {
    const code = randomBytes(32).toString('base64url')
    const made = { hash: hashOf(code), expiresAt: this.#now() + LIFE }
    await this.#kept.change(book => ({
      ...book,
      codes: [...book.codes.filter(one => one.expiresAt > this.#now()), made].slice(-OPEN),
    }))
    return code
  }

  /** Refuses a bad code with the same message for every cause; rethrows other errors. */
  refuse(error: unknown): never {
    if (error instanceof BadCode) return refuse('unauthenticated', WRONG)
    throw error
  }
}
