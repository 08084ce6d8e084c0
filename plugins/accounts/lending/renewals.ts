import { refuse, type Log, ignored } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { ProviderDefinition } from '../../providers/contract.js'
import { OAuthRefusal, type OAuth } from '../sign-in/oauth.js'
import type { AccountCredential, StoredAccount, StoredAccounts } from '../stored-accounts.js'

/** What renewing credentials needs of the group. */
export interface RenewalDeps {
  readonly accounts: StoredAccounts
  readonly oauth: Pick<OAuth, 'renew'>
  readonly definition: (provider: string) => Promise<ProviderDefinition>
  readonly log: Pick<Log, 'warn'>
  /** Called when an account can no longer be renewed. */
  readonly ended: (account: StoredAccount, why: string) => void
  /** Whether a turn holds the credential of an account. */
  readonly held: (account: string) => boolean
}

const AHEAD_MS = 1_800_000
const HELD_AHEAD_MS = 120_000
const FIRST_RETRY_MS = 15_000
const MOST_RETRY_MS = 600_000

/** When a credential is to be renewed: ahead of its end, of a short one after half its life. */
const isDue = ({ expiresAt, issuedAt = 0 }: AccountCredential, held: boolean): boolean => {
  if (expiresAt === undefined) return false
  const ahead = Math.min(held ? HELD_AHEAD_MS : AHEAD_MS, (expiresAt - issuedAt) / 2)
  return expiresAt - ahead <= Date.now()
}

/** Renews credentials, each once at a time and ahead of its end. */
export class Renewals {
  readonly #deps: RenewalDeps
  readonly #locks = new KeyedMutex()
  /** Accounts whose renewal failed: how often, and when it is tried again. */
  readonly #failed = new Map<string, { times: number; until: number; message: string }>()

  constructor(deps: RenewalDeps) {
    this.#deps = deps
  }

  /** The account with a credential that is good now; `refused`: this one is not, whatever its end says. */
  async fresh(account: StoredAccount, refused?: string): Promise<StoredAccount> {
    if (!this.#isWanted(account, refused)) return assertUsable(account)
    return this.#locks.with(account.id, async () => {
      // It may have been renewed while this call waited.
      const now = this.#deps.accounts.get(account.provider, account.id) ?? gone(account)
      return this.#isWanted(now, refused) ? this.#renewed(now, refused) : assertUsable(now)
    })
  }

  /** Renews what is due and held by nobody. */
  async tick(): Promise<void> {
    for (const account of this.#deps.accounts.all())
      await this.fresh(account).catch(ignored('the account says so, or it is tried again'))
  }

  /** Forgets the failures of an account that was signed in again. */
  forget(id: string): void {
    this.#failed.delete(id)
  }

  #isWanted({ id, credential, problem }: StoredAccount, refused: string | undefined): boolean {
    if (!credential || problem !== undefined) return false
    if (refused !== undefined) return credential.value === refused
    return credential.refresh !== undefined && isDue(credential, this.#deps.held(id))
  }

  async #renewed(account: StoredAccount, refused: string | undefined): Promise<StoredAccount> {
    const { credential, provider, id } = account
    const { expiresAt = Infinity, refresh, clientId } = credential!
    const usable = refused === undefined && expiresAt > Date.now()
    if (refresh === undefined)
      return this.#ended(account, credential!.kind === 'key' ? 'the provider refused the key' : 'its sign-in has ended')
    const failed = this.#failed.get(id)
    if (failed && failed.until > Date.now()) return usable ? account : refuse('dependency', failed.message)
    const definition = await this.#deps.definition(provider)
    try {
      const next = await this.#deps.oauth.renew(definition, refresh, clientId)
      this.#failed.delete(id)
      return (await this.#deps.accounts.change(account, before => ({ ...before, credential: next }))) ?? gone(account)
    } catch (error) {
      if (error instanceof OAuthRefusal && error.code === 'invalid_grant')
        return this.#ended(account, `${definition.label} ended the sign-in: ${error.message}`)
      const times = (failed?.times ?? 0) + 1
      const message = `the sign-in could not be renewed now: ${(error as Error).message}`
      const until = Date.now() + Math.min(MOST_RETRY_MS, FIRST_RETRY_MS * 2 ** (times - 1))
      this.#failed.set(id, { times, until, message })
      this.#deps.log.warn('renewing an account failed', { provider, account: id, message })
      return usable ? account : refuse('dependency', message, { cause: error })
    }
  }

  async #ended(account: StoredAccount, why: string): Promise<never> {
    const problem = `${why}; sign in to it again`
    const ended = await this.#deps.accounts.change(account, before => ({ ...before, problem }))
    if (ended) this.#deps.ended(ended, problem)
    return refuse('conflict', problem)
  }
}

const assertUsable = (account: StoredAccount): StoredAccount =>
  account.problem === undefined && account.credential ? account : refuse('conflict', account.problem ?? 'sign in again')

const gone = ({ id, provider }: StoredAccount): never =>
  refuse('not-found', `the account ${id} of ${provider} is not connected any more`)
