import type { Caller, Input } from '../../../sdk/index.js'
import type { PresenceUser, System } from '../contract.js'

type Said = Input<System, 'POST /system/presence'>

/** The people who have the sandbox open, and what their clients report. An entry lives as long as its stream. */
export class Presence {
  readonly #show: (users: PresenceUser[]) => Promise<unknown>
  /** One entry for each client of a person; a client may have a new stream before its old one is known to be closed. */
  readonly #here = new Map<string, { user: PresenceUser; streams: number }>()

  /** @param show Publishes the whole roster. */
  constructor(show: (users: PresenceUser[]) => Promise<unknown>) {
    this.#show = show
  }

  get users(): PresenceUser[] {
    return [...this.#here.values()].map(({ user }) => ({ ...user }))
  }

  /** Puts a person's client on the roster; call the returned function when its stream has ended. */
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

  /** Replaces the roster's entry of a client; ignores a client that is unknown or of another person. */
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
