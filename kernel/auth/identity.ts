import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failures } from '../../sdk/node/failures.js'
import { refuse } from '../../sdk/refusal.js'
import { Kept, type KeptFiles } from '../../sdk/node/kept.js'
import { hashOf, holds } from '../../sdk/node/secret.js'
import type { Spent } from './sessions.js'

const MINUTE = 60_000
const CODE_LIFE = 5 * MINUTE
const CODES = 32
const NONCE_LIFE = 10 * MINUTE

/** The identity of whoever holds the machine. */
export const LOCAL = { issuer: 'local', subject: 'owner', email: 'owner@sandbox.local' } as const

/** A person, by who vouches for them and under which name. */
export interface Person {
  readonly issuer: string
  readonly subject: string
  readonly email: string
}

/** A code as it arrives. */
export interface Presented {
  readonly code: string
  readonly address: string
  readonly signal: AbortSignal
}

/** What a code buys its owner, kept together with the code as spent. */
export type Grant<T> = (owner: Person, code: Spent) => Promise<T>

interface OwnerKind {
  readonly owner?: Person & { readonly claimedAt: number }
}

interface CodesKind {
  readonly codes: readonly Spent[]
}

/** Who owns the sandbox, the one-time codes that prove it, and the nonces of sign-in programs. */
export class Identity {
  readonly #owner: Kept<OwnerKind>
  readonly #codes: Kept<CodesKind>
  readonly #now: () => number
  readonly #nonceKey = randomBytes(32)
  readonly #failed: Failures
  readonly #allFailed: Failures
  #redeeming: Promise<unknown> = Promise.resolve()

  private constructor(owner: Kept<OwnerKind>, codes: Kept<CodesKind>, now: () => number) {
    this.#owner = owner
    this.#codes = codes
    this.#now = now
    this.#failed = new Failures(10, 10 * MINUTE, now)
    this.#allFailed = new Failures(50, 60 * MINUTE, now)
  }

  static async open(files: KeptFiles, now: () => number): Promise<Identity> {
    const owner = await Kept.open<OwnerKind>(files, 'owner', {})
    return new Identity(owner, await Kept.open<CodesKind>(files, 'codes', { codes: [] }), now)
  }

  get owner(): Person | undefined {
    return this.#owner.value.owner
  }

  /** Mints a login code: one use, 5 minutes; only its hash is kept. */
  async mintLogin(): Promise<string> {
    const code = randomBytes(32).toString('base64url')
    const made = { hash: hashOf(code), expiresAt: this.#now() + CODE_LIFE }
    const add = ({ codes }: CodesKind) => ({ codes: [...codes.filter(one => this.#isOpen(one)), made].slice(-CODES) })
    await this.#codes.change(add)
    return code
  }

  /**
   * Redeems a login code for the owner, claiming the sandbox when nobody owns it.
   *
   * `grant` keeps what the code bought and the code as spent in one write: a code is used up exactly when it granted.
   */
  async redeem<T>({ code, address, signal }: Presented, spent: () => readonly Spent[], grant: Grant<T>): Promise<T> {
    const done = this.#redeeming.then(() => this.#redeem(code, address, spent, grant))
    this.#redeeming = done.catch(() => {})
    const result = await done
    if (result) return result.granted
    if (this.#allFailed.wait('all') !== undefined) await sleep(1000, undefined, { signal })
    return refuse('unauthenticated', 'the code is unknown, used or expired; ask for a new one with sandbox login')
  }

  /** A nonce that proves itself for 10 minutes; nothing is stored. */
  async nonce(): Promise<{ nonce: string; expiresAt: number }> {
    const { SignJWT } = await import('jose')
    const seconds = Math.floor((this.#now() + NONCE_LIFE) / 1000)
    const jti = randomBytes(16).toString('base64url')
    const jwt = new SignJWT({ jti, exp: seconds }).setProtectedHeader({ alg: 'HS256' })
    return { nonce: await jwt.sign(this.#nonceKey), expiresAt: seconds * 1000 }
  }

  async #redeem<T>(
    code: string, address: string, spent: () => readonly Spent[], grant: Grant<T>,
  ): Promise<{ granted: T } | undefined> {
    const retryAfter = this.#failed.wait(address)
    if (retryAfter !== undefined) {
      refuse('too-many', `too many failed codes from this address; try again in ${retryAfter} s`, { retryAfter })
    }
    const hash = hashOf(code)
    const used = new Set(spent().map(one => one.hash))
    const open = this.#codes.value.codes.filter(one => this.#isOpen(one) && !used.has(one.hash))
    const found = open.find(one => holds([one.hash], hash))
    if (!found) {
      this.#failed.add(address)
      this.#allFailed.add('all')
      return undefined
    }
    const granted = await this.#asOwner(owner => grant(owner, found))
    // The grant's own write already says the code is spent: this one only tidies.
    await this.#codes.change(({ codes }) => ({ codes: codes.filter(one => one.hash !== hash) })).catch(() => {})
    return { granted }
  }

  /** Runs work as the owner; a claim made for work that fails is taken back. */
  async #asOwner<T>(work: (owner: Person) => Promise<T>): Promise<T> {
    if (this.owner) return work(this.owner)
    await this.#owner.change(() => ({ owner: { ...LOCAL, claimedAt: this.#now() } }))
    try {
      return await work(LOCAL)
    } catch (error) {
      await this.#owner.clear()
      throw error
    }
  }

  #isOpen({ expiresAt }: Spent): boolean {
    return expiresAt > this.#now()
  }
}
