import { randomUUID } from 'node:crypto'
import type { ServerSignIn } from './sign-in.js'

const LASTS_MS = 600_000

/** A sign-in that waits for a person. */
export interface Handshake {
  readonly id: string
  readonly capability: string
  readonly server: URL
  readonly signIn: ServerSignIn
  readonly metadata?: URL
  readonly scope?: string
  readonly expiresAt: number
  /** It was completed. */
  finished?: boolean
}

/** The sign-ins that wait for a person, one for each connection, for 10 minutes. */
export class Handshakes {
  readonly #waiting = new Map<string, Handshake>()

  add(given: Omit<Handshake, 'id' | 'expiresAt'>): Handshake {
    this.#sweep()
    for (const { id, capability } of this.#waiting.values())
      if (capability === given.capability) this.#waiting.delete(id)
    const made = { ...given, id: randomUUID(), expiresAt: Date.now() + LASTS_MS }
    this.#waiting.set(made.id, made)
    return made
  }

  get(id: string): Handshake | undefined {
    this.#sweep()
    return this.#waiting.get(id)
  }

  /** The one with a state, which is good for one use: it is found once. */
  take(state: string): Handshake | undefined {
    this.#sweep()
    const found = [...this.#waiting.values()].find(({ signIn, finished }) => !finished && signIn.state_ === state)
    if (found) found.finished = true
    return found
  }

  remove(id: string): void {
    this.#waiting.delete(id)
  }

  #sweep(): void {
    for (const { id, expiresAt } of this.#waiting.values()) if (expiresAt < Date.now()) this.#waiting.delete(id)
  }
}
