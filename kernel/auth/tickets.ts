import { randomBytes } from 'node:crypto'
import { hashOf } from '../../sdk/node/access/secret.js'
import { refuse } from '../../sdk/refusal.js'
import type { Caller } from '../../sdk/types.js'

const UNREDEEMED = 32
const HELD = 2_000

const ONCE = 30_000

/** What a ticket is good for. */
interface Held {
  readonly person: string
  readonly sessionId: string
  /** Absent: whatever is a socket. */
  readonly purpose?: string
  /** Absent: any of that purpose. */
  readonly name?: string
  readonly expiresAt: number
  readonly shown: boolean
}

/** A ticket as it is shown, and what for. */
export interface Shown {
  readonly ticket: string
  readonly purpose: string
  readonly name: string
}

/** Tickets: what stands for a person where no header can be sent. In memory only, as hashes. */
export class Tickets {
  readonly #now: () => number
  /** By hash, the oldest first. */
  readonly #held = new Map<string, Held>()
  /** How many ms a ticket for a purpose is good, any number of times; of those left out 30 s and once. */
  readonly #lasting = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Makes tickets for a purpose good for so many ms, any number of times. */
  lasts(purpose: string, ms: number): void {
    this.#lasting.set(purpose, ms)
  }

  mint(
    { purpose, name }: Pick<Held, 'purpose' | 'name'>,
    { kind, sessionId, email, actor }: Caller,
  ): { ticket: string; expiresAt: number } {
    if (kind !== 'session' || sessionId === undefined)
      return refuse('forbidden', `a ticket stands for a signed-in person, found a caller of kind ${kind}`)
    const person = email ?? actor
    const now = this.#now()
    for (const [hash, { expiresAt }] of this.#held) if (expiresAt <= now) this.#held.delete(hash)
    const own = [...this.#held].filter(([, held]) => held.person === person)
    if (own.filter(([, { shown }]) => !shown).length >= UNREDEEMED) {
      refuse(
        'too-many',
        `expected at most ${UNREDEEMED} tickets of one person that were not used; use one, or ask again in 30 s`,
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

  /** The session a ticket stands for here, if it is good here, and whether it was shown for the first time. */
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

  /** Drops the tickets of a session that is over, or of a person who reaches less than before. */
  end({ sessionId, email }: { sessionId?: string; email?: string }): void {
    for (const [hash, held] of this.#held)
      if (held.sessionId === sessionId || held.person === email) this.#held.delete(hash)
  }
}
