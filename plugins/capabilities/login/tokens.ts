import { Refusal, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { Vault } from '../records/vault.js'
import { guardedFetch } from './guarded-fetch.js'
import { PersonNeeded, ServerSignIn, type StoredSignIn } from './sign-in.js'

/** The field that holds a sign-in, beside those of a connection's form. */
const FIELD = 'oauth'
const AHEAD_MS = 60_000

/** The tokens of sign-ins: kept in the store of secrets, refreshed ahead of their end, sent to their server alone. */
export class SignInTokens {
  readonly #host: Pick<Host, 'call'>
  readonly #vault: Pick<Vault, 'get' | 'put' | 'drop'>
  readonly #locks = new KeyedMutex()

  constructor(host: Pick<Host, 'call'>, vault: Pick<Vault, 'get' | 'put' | 'drop'>) {
    this.#host = host
    this.#vault = vault
  }

  /** What is kept for a server; nothing for another one under the same id. */
  async stored(id: string, server: URL): Promise<StoredSignIn | undefined> {
    const text = await this.#vault.get(id, FIELD)
    const found = text === undefined ? undefined : (JSON.parse(text) as StoredSignIn)
    return found?.server === server.href ? found : undefined
  }

  async keep(id: string, signIn: StoredSignIn): Promise<void> {
    await this.#vault.put(id, FIELD, JSON.stringify(signIn))
  }

  /** An access token that is good for a minute more; undefined: a person must sign in. `refused`: this one is not. */
  token(id: string, server: URL, refused?: string): Promise<string | undefined> {
    return this.#locks.with(id, async () => {
      const stored = await this.stored(id, server)
      const token = stored?.tokens?.access_token
      if (token === undefined) return undefined
      const fresh = stored!.expiresAt === undefined || stored!.expiresAt - AHEAD_MS > Date.now()
      if (fresh && token !== refused) return token
      return this.#refreshed(id, server, stored!)
    })
  }

  async #refreshed(id: string, server: URL, stored: StoredSignIn): Promise<string | undefined> {
    const { auth } = await import('@modelcontextprotocol/client')
    const signIn = new ServerSignIn('http://127.0.0.1/', stored, {
      interactive: false,
      changed: changed => this.keep(id, changed),
    })
    try {
      await auth(signIn, {
        serverUrl: server,
        fetchFn: guardedFetch(server, async () => (await this.#host.call('kernel.listeners')).listeners),
        ...(stored.scope !== undefined && { scope: stored.scope }),
        ...(stored.metadata !== undefined && { resourceMetadataUrl: new URL(stored.metadata) }),
      })
      return signIn.stored.tokens?.access_token
    } catch (error) {
      if (error instanceof PersonNeeded) {
        await this.#vault.drop(id, FIELD)
        return undefined
      }
      if (error instanceof Refusal) throw error
      throw new Refusal('dependency', `refreshing the sign-in failed: ${(error as Error).message}`, { cause: error })
    }
  }
}
