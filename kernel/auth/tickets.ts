import { randomBytes } from 'node:crypto'
import { hashOf } from '../../sdk/node/access/secret.js'
import { refuse } from '../../sdk/refusal.js'
import type { Caller } from '../../sdk/types.js'

const UNREDEEMED = 32
const HELD = 2_000

const ONCE = 30_000

/** The person and the use of a ticket. */
interface Held {
  readonly person: string
  readonly sessionId: string
  /** Absent: any WebSocket. */
  readonly purpose?: string
  /** Absent: any name. */
  readonly name?: string
  readonly expiresAt: number
  readonly shown: boolean
}

/** A presented ticket, and the use it is presented for. */
export interface Shown {
  readonly ticket: string
  readonly purpose: string
  readonly name: string
}

/** Tickets identify a person where a client cannot send headers. Stored as hashes, in memory only. */
export class Tickets {
  readonly #now: () => number
  /** By hash, oldest first. */
  readonly #held = new Map<string, Held>()
  /** The lifetime in ms of reusable tickets, by purpose; all others are valid once, for 30 s. */
  readonly #lasting = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Lets tickets of a purpose be used any number of times for the given ms. */
  lasts(purpose: string, ms: number): void {
    this.#lasting.set(purpose, ms)
  }

  mint(
    { purpose, name }: Pick<Held, 'purpose' | 'name'>,
    { kind, sessionId, email, actor }: Caller,
  ): { ticket: string; expiresAt: number } {
    if (kind !== 'session' || sessionId === undefined)
      return refuse('forbidden', `only a signed-in person can get a ticket, found a caller of kind ${kind}`)
    const person = email ?? actor
    const now = this.#now()
    for (const [hash, { expiresAt }] of this.#held) if (expiresAt <= now) this.#held.delete(hash)
    const own = [...this.#held].filter(([, held]) => held.person === person)
    if (own.filter(([, { shown }]) => !shown).length >= UNREDEEMED) {
      refuse(
        'too-many',
        `expected at most ${UNREDEEMED} unused tickets for one person; use one, or ask again in 30 s`,
        { retryAfter: 30 },
      )
    }
    if (own.length >= HELD) this.#held.delete(own[0]![0])
    const ticket = randomBytes(32).toString('base64url')
    const expiresAt = now + ((purpose !== undefined && this.#lasting.get(purpose)) || ONCE)
    this.#held.set(hashOf(ticket), {
      person,
      sessionId,
      expiresAt,
      shown: false,
      ...(purpose !== undefined && { purpose }),
      ...(name !== undefined && { name }),
    })
    return { ticket, expiresAt }
  }

  /** The session of a ticket if it is valid for this use, and whether this is its first use. */
  redeem({ ticket, purpose, name }: Shown): { sessionId: string; first: boolean } | undefined {
    const hash = hashOf(ticket)
    const held = this.#held.get(hash)
    if (!held || held.expiresAt <= this.#now()) return undefined
    const fits = held.purpose === undefined ? !this.#lasting.has(purpose) : held.purpose === purpose
    if (!fits || (held.name !== undefined && held.name !== name)) return undefined
    if (this.#lasting.has(purpose)) this.#held.set(hash, { ...held, shown: true })
    else this.#held.delete(hash)
    return { sessionId: held.sessionId, first: !held.shown }
  }

  /** Deletes the tickets of an ended session, or of a person whose access was reduced. */
  end({ sessionId, email }: { sessionId?: string; email?: string }): void {
    for (const [hash, held] of this.#held)
      if (held.sessionId === sessionId || held.person === email) this.#held.delete(hash)
  }
}
