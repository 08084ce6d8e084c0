import type { Files } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'

/** What an account signs requests with. */
export interface AccountCredential {
  readonly kind: 'bearer' | 'key'
  readonly value: string
  /** The client that it was given to, where that is the person's own. */
  readonly clientId?: string
  /** Of a bearer: what renews it, and when it was given and ends. */
  readonly refresh?: string
  readonly issuedAt?: number
  readonly expiresAt?: number
}
/** An account as it is kept, encrypted. */
export interface StoredAccount {
  readonly id: string
  readonly provider: string
  /** Which account of its provider it is, for a label; 0 when that cannot be read. */
  readonly number: number
  readonly label?: string
  readonly email?: string
  readonly organization?: string
  readonly scope?: string
  readonly connectedAt: number
  /** The attempts to sign in that connected it: the first and the last one. */
  readonly handshakes: readonly string[]
  /** Left out: it cannot be read. */
  readonly credential?: AccountCredential
  /** Why a person must sign in again. */
  readonly problem?: string
}

const FOLDER = 'auth/'
const UNREADABLE = 'its stored credential cannot be read: sign in to it again, or disconnect it'

const nameOf = ({ provider, id }: Pick<StoredAccount, 'provider' | 'id'>): string => `${FOLDER}${provider}/${id}`

/** The accounts of all providers: an encrypted file each, outside of every backup. */
export class StoredAccounts {
  readonly #files: Files
  readonly #accounts = new Map<string, StoredAccount>()
  readonly #locks = new KeyedMutex()

  constructor(files: Files) {
    this.#files = files
  }

  async load(): Promise<void> {
    for (const name of await this.#files.list(FOLDER)) {
      const [provider = '', id = ''] = name.slice(FOLDER.length).split('/')
      const account = await this.#files.read<StoredAccount>(name).catch(() => undefined)
      this.#accounts.set(
        id,
        account ?? { id, provider, number: 0, connectedAt: 0, handshakes: [], problem: UNREADABLE },
      )
    }
  }

  /** The accounts of a provider, without one those of all, oldest first. */
  all(provider?: string): StoredAccount[] {
    return [...this.#accounts.values()]
      .filter(account => provider === undefined || account.provider === provider)
      .sort((a, b) => a.connectedAt - b.connectedAt || a.number - b.number)
  }

  get(provider: string, id: string): StoredAccount | undefined {
    const found = this.#accounts.get(id)
    return found?.provider === provider ? found : undefined
  }

  /** Stores an account. */
  keep(account: StoredAccount): Promise<StoredAccount> {
    return this.#locks.with(account.id, () => this.#write(account))
  }

  /** Changes an account as it is now; undefined: it is gone. */
  change(
    { provider, id }: Pick<StoredAccount, 'provider' | 'id'>,
    changed: (before: StoredAccount) => StoredAccount,
  ): Promise<StoredAccount | undefined> {
    return this.#locks.with(id, async () => {
      const before = this.get(provider, id)
      return before && this.#write(changed(before))
    })
  }

  /** Destroys an account; undefined: it was gone. */
  remove(provider: string, id: string): Promise<StoredAccount | undefined> {
    return this.#locks.with(id, async () => {
      const found = this.get(provider, id)
      if (!found) return undefined
      await this.#files.remove(nameOf(found))
      this.#accounts.delete(id)
      return found
    })
  }

  async #write(account: StoredAccount): Promise<StoredAccount> {
    await this.#files.write(nameOf(account), account)
    this.#accounts.set(account.id, account)
    return account
  }
}
