import { randomBytes } from 'node:crypto'
import { refuse, type Caller } from '../../../sdk/index.js'
import { hashOf } from '../../../sdk/node/access/secret.js'
import type { TransferTicket } from './contract.js'

/** The purpose of a ticket, and the person who minted it. */
interface HeldTicket<What> {
  readonly what: What
  readonly caller: Caller
  readonly expiresAt: number
}

const MOST = 20_000
const MOST_OF_ONE = 2_000

/** Tickets for downloads: in memory only, as hashes, each for one purpose. */
export class TransferTickets<What> {
  readonly #held = new Map<string, HeldTicket<What>>()
  readonly #lasts: number

  constructor(lasts: number) {
    this.#lasts = lasts
  }

  mint(caller: Caller, what: What): TransferTicket {
    const now = Date.now()
    for (const [hash, { expiresAt }] of this.#held) if (expiresAt <= now) this.#held.delete(hash)
    const own = [...this.#held].filter(([, held]) => held.caller.actor === caller.actor)
    if (own.length >= MOST_OF_ONE) this.#held.delete(own[0]![0])
    if (this.#held.size >= MOST) this.#held.delete(this.#held.keys().next().value!)
    const ticket = randomBytes(32).toString('base64url')
    const expiresAt = now + this.#lasts
    this.#held.set(hashOf(ticket), { what, caller, expiresAt })
    return { ticket, expiresAt }
  }

  redeem(ticket: string): HeldTicket<What> {
    const held = this.#held.get(hashOf(ticket))
    if (held && held.expiresAt > Date.now()) return held
    return refuse('unauthenticated', 'the ticket is unknown or expired: ask for another one')
  }

  /** Drops the tickets of an ended credential, or of a person whose access was reduced. */
  end({ sessionId, tokenId, email }: { sessionId?: string; tokenId?: string; email?: string }): void {
    for (const [hash, { caller }] of this.#held) {
      const ended =
        (sessionId !== undefined && caller.sessionId === sessionId)
        || (tokenId !== undefined && caller.tokenId === tokenId)
        || (email !== undefined && caller.email === email)
      if (ended) this.#held.delete(hash)
    }
  }
}
