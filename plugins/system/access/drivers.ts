import type { Host, Scope } from '../../../sdk/index.js'

type DriversHost = Pick<Host, 'call' | 'store'>

const KEY = 'drivers'
const SCOPES: ReadonlySet<Scope> = new Set(['editor', 'drive', 'land'])

/**
 * Whether anybody below maintainer may start turns here, or ever might: what such a turn wrote stays when a token is
 * revoked.
 */
export class Drivers {
  readonly #host: DriversHost
  #known = false

  constructor(host: DriversHost) {
    this.#host = host
  }

  async any(): Promise<boolean> {
    if (this.#known) return true
    const [{ members, invitations }, { tokens }] = await Promise.all([
      this.#host.call('kernel.members.list'),
      this.#host.call('kernel.token.list'),
    ])
    this.#known =
      (await this.#host.store.get<boolean>(KEY)) === true
      || [...members, ...invitations].some(({ role }) => role === 'collaborator')
      || tokens.some(({ scope }) => SCOPES.has(scope))
    if (this.#known) await this.#host.store.set(KEY, true)
    return this.#known
  }
}
