import { randomBytes } from 'node:crypto'
import { hashOf } from '../../sdk/node/access/secret.js'
import { refuse } from '../../sdk/refusal.js'
import type { TicketPurpose } from '../../sdk/kernel.js'
import type { Caller } from '../../sdk/types.js'

const SECOND = 1000
const UNREDEEMED = 32
const HELD = 2_000

/**
 * How long a ticket is good that may be shown often: a download asks for many ranges, and a browser connects to events
 * again.
 */
const OFTEN: { readonly [purpose in TicketPurpose]?: number } = { bundle: 3600 * SECOND, events: 12 * 3600 * SECOND }
const ONCE = 30 * SECOND

/** What a ticket is good for. */
interface Held {
  readonly person: string
  readonly sessionId: string
  /** Absent: whatever is a socket. */
  readonly purpose?: TicketPurpose
  /** Absent: any of that purpose. */
  readonly name?: string
  readonly expiresAt: number
  readonly shown: boolean
}

/** A ticket as it is shown, and what for. */
export interface Shown {
  readonly ticket: string
  readonly purpose: TicketPurpose
  readonly name: string
}

/** Tickets: what stands for a person where no header can be sent. In memory only, as hashes. */
export class Tickets {
  readonly #now: () => number
  /** By hash, the oldest first. */
  readonly #held = new Map<string, Held>()

  constructor(now: () => number) {
    this.#now = now
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
    const expiresAt = now + ((purpose && OFTEN[purpose]) ?? ONCE)
    this.#held.set(hashOf(ticket), {
      person,
      sessionId,
      expiresAt,
      shown: false,
      ...(purpose && { purpose }),
      ...(name !== undefined && { name }),
    })
    return { ticket, expiresAt }
  }

  /** The session a ticket stands for here, if it is good here, and whether it was shown for the first time. */
  redeem({ ticket, purpose, name }: Shown): { sessionId: string; first: boolean } | undefined {
    const hash = hashOf(ticket)
    const held = this.#held.get(hash)
    if (!held || held.expiresAt <= this.#now()) return undefined
    const fits = held.purpose === undefined ? OFTEN[purpose] === undefined : held.purpose === purpose
    if (!fits || (held.name !== undefined && held.name !== name)) return undefined
    if (OFTEN[purpose] !== undefined) this.#held.set(hash, { ...held, shown: true })
    else this.#held.delete(hash)
    return { sessionId: held.sessionId, first: !held.shown }
  }

  /** Drops the tickets of a session that is over, or of a person who reaches less than before. */
  end({ sessionId, email }: { sessionId?: string; email?: string }): void {
    for (const [hash, held] of this.#held)
      if (held.sessionId === sessionId || held.person === email) this.#held.delete(hash)
  }
}
