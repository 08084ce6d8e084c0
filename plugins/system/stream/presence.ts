import type { Caller, Input } from '../../../sdk/index.js'
import type { PresenceUser, System } from '../contract.js'

type Said = Input<System, 'POST /system/presence'>

/** Who has the sandbox open, and what they say of themselves. An entry lives as long as its stream. */
export class Presence {
  readonly #show: (users: PresenceUser[]) => Promise<unknown>
  /** One entry for each client of a person; it may have a new stream before the old one is known to be cut. */
  readonly #here = new Map<string, { user: PresenceUser; streams: number }>()

  /** @param show Publishes the whole roster. */
  constructor(show: (users: PresenceUser[]) => Promise<unknown>) {
    this.#show = show
  }

  get users(): PresenceUser[] {
    return [...this.#here.values()].map(({ user }) => ({ ...user }))
  }

  /** Puts a person's client on the roster; call what it answers when its stream has ended. */
  async enter(caller: Caller & { readonly email: string }, clientId: string): Promise<() => Promise<void>> {
    const { email, name, picture, role } = caller
    const key = keyOf(email, clientId)
    const known = this.#here.get(key)
    const entry = known ?? {
      user: { clientId, email, ...(name && { name }), ...(picture && { picture }), role, idle: false },
      streams: 0,
    }
    entry.streams += 1
    this.#here.set(key, entry)
    if (!known) await this.#show(this.users)
    return async () => {
      entry.streams -= 1
      if (entry.streams > 0) return
      this.#here.delete(key)
      await this.#show(this.users)
    }
  }

  /** Replaces what the roster says about a client; one that is unknown or of somebody else is left alone. */
  async say({ email }: Caller, { clientId, ...said }: Said): Promise<void> {
    const entry = email === undefined ? undefined : this.#here.get(keyOf(email, clientId))
    if (!entry) return
    const { email: whose, name, picture, role } = entry.user
    const user: PresenceUser = {
      clientId,
      email: whose,
      ...(name && { name }),
      ...(picture && { picture }),
      role,
      ...said,
    }
    if (JSON.stringify(user) === JSON.stringify(entry.user)) return
    entry.user = user
    await this.#show(this.users)
  }
}

const keyOf = (email: string, clientId: string): string => JSON.stringify([email, clientId])
