import { createHash, createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'
import type { Challenge } from './contract.js'

/** What a puzzle is bound to. */
export interface ChallengeFor {
  readonly automationId: string
  readonly thread: string
}

const LEAST = 16
const HARDEST = 22
const VALID_MS = 15 * 60_000
const HOUR = 3_600_000
/** Puzzles of an address within an hour, for each bit more. */
const PER_BIT = 10
const ADDRESSES = 10_000

/** Puzzles that cost a browser a moment and a program that opens thousands of threads hours; nothing is stored. */
export class Challenges {
  readonly #now: () => number
  /** Puzzles of the last run of the daemon are worthless. */
  readonly #key = randomBytes(32)
  readonly #asked = new Map<string, number[]>()
  /** Puzzles that opened a thread, until they are too old anyway. */
  readonly #used = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** A puzzle; `used` is the part of the day's messages that is used. */
  make(bound: ChallengeFor, address: string, used: number): Challenge {
    const now = this.#now()
    const times = (this.#asked.get(address) ?? []).filter(at => at > now - HOUR && at <= now)
    const byAddress = Math.floor(times.length / PER_BIT)
    const byDay = used > 0.5 ? Math.ceil((used - 0.5) * 2 * (HARDEST - LEAST)) : 0
    const difficulty = Math.min(HARDEST, LEAST + byAddress + byDay)
    this.#asked.delete(address)
    this.#asked.set(address, [...times, now].slice(-PER_BIT * (HARDEST - LEAST)))
    if (this.#asked.size > ADDRESSES) this.#asked.delete(this.#asked.keys().next().value!)
    const head = `${now}.${difficulty}-${randomBytes(15).toString('base64url')}`
    return { salt: `${head}.${this.#sign(head, bound)}`, difficulty, expiresAt: now + VALID_MS }
  }

  /** Refuses an answer that is none, is too old, or is that of another thread. */
  assertSolved(powNonce: string | undefined, bound: ChallengeFor): void {
    const [, at = '', random = '', mark = '', nonce] =
      /^(\d{1,15})\.(\d\d-[\w-]{20})\.([\w-]{43}):([\w-]{1,64})$/.exec(powNonce ?? '') ?? []
    if (nonce === undefined)
      return refuse(
        'forbidden',
        `powNonce: expected a solved puzzle of this thread, found ${powNonce ? 'another text' : 'none'}`,
      )
    const head = `${at}.${random}`
    const [own, given] = [this.#sign(head, bound), mark].map(text => createHash('sha256').update(text).digest())
    if (!timingSafeEqual(own!, given!)) refuse('forbidden', 'powNonce: expected a puzzle of this thread, found another')
    const age = this.#now() - Number(at)
    if (age > VALID_MS || age < 0) refuse('forbidden', 'powNonce: the puzzle is too old: ask for another')
    if (this.#used.has(head)) refuse('forbidden', 'powNonce: the puzzle was used before: ask for another')
    const difficulty = Number(random.slice(0, 2))
    if (zeroBits(powNonce!) < difficulty)
      refuse('forbidden', `powNonce: expected ${difficulty} zero bits, found fewer: the puzzle is not solved`)
  }

  /** A solved puzzle opens one thread. */
  use(powNonce: string): void {
    const now = this.#now()
    for (const [head, at] of this.#used) if (Math.abs(now - at) > VALID_MS) this.#used.delete(head)
    this.#used.set(powNonce.split('.', 2).join('.'), now)
  }

  #sign(head: string, { automationId, thread }: ChallengeFor): string {
    const text = JSON.stringify([head, automationId, thread])
    return createHmac('sha256', this.#key).update(text).digest('base64url')
  }
}

/** The zero bits with which the SHA-256 of a text begins. */
const zeroBits = (text: string): number => Math.clz32(hash('sha256', text, 'buffer').readUInt32BE())
