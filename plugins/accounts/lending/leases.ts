import { randomBytes } from 'node:crypto'
import { Refusal, refuse } from '../../../sdk/index.js'
import { secondsUntil } from '../../../sdk/node/access/failures.js'
import type { ProviderDefinition } from '../../providers/contract.js'
import type { AccountLease, AccountStanding, ProviderLimits } from '../contract.js'
import { headersFor } from '../provider-wire.js'
import type { StoredAccount, StoredAccounts } from '../stored-accounts.js'
import type { Renewals } from './renewals.js'

/** What lending needs of the group. */
export interface LeaseDeps {
  readonly accounts: StoredAccounts
  readonly renewals: Pick<Renewals, 'fresh'>
  readonly labelOf: (account: StoredAccount, definition: ProviderDefinition) => string
  /** The accounts of a provider, ranked for a model. */
  readonly rank: (
    definition: ProviderDefinition,
    model?: string,
  ) => Pick<ProviderLimits, 'limits' | 'next' | 'reopensAt'>
}
/** Which account is to be lent. */
export interface LeaseAsked {
  readonly account?: string
  readonly prefer?: string
  readonly model?: string
  /** These are not lent unless they are named. */
  readonly besides?: readonly string[]
}

const CAN_SERVE = new Set<AccountStanding>(['room', 'unmeasured'])

/** Lends the credentials of accounts. */
export class Leases {
  readonly #deps: LeaseDeps
  readonly #held = new Map<string, string>()

  constructor(deps: LeaseDeps) {
    this.#deps = deps
  }

  /** Whether somebody holds the credential of an account. */
  isHeld(account: string): boolean {
    return [...this.#held.values()].includes(account)
  }

  async lend(definition: ProviderDefinition, asked: LeaseAsked): Promise<AccountLease> {
    const { accounts, renewals } = this.#deps
    const named = asked.account === undefined ? undefined : accounts.get(definition.id, asked.account)
    if (asked.account !== undefined && !named)
      refuse(
        'not-found',
        `${definition.label} has no account ${asked.account.slice(0, 60)}: name one that is connected`,
      )
    const stays = asked.prefer === undefined ? undefined : accounts.get(definition.id, asked.prefer)
    const wanted = named ?? stays
    if (wanted) return this.#lent(definition, await renewals.fresh(wanted))
    for (const tried = new Set<string>(); ;) {
      const account = this.#best(definition, asked)
      try {
        return this.#lent(definition, await renewals.fresh(account))
      } catch (error) {
        // It turned out that it needs a person: the next one is asked.
        if (!(error instanceof Refusal && error.reason === 'conflict') || tried.has(account.id)) throw error
        tried.add(account.id)
      }
    }
  }

  async renew(definition: ProviderDefinition, account: StoredAccount, lease: string, refused: string) {
    return this.#lent(definition, await this.#deps.renewals.fresh(account, refused), lease)
  }

  release(lease: string): void {
    this.#held.delete(lease)
  }

  #best(definition: ProviderDefinition, { model, besides = [] }: LeaseAsked): StoredAccount {
    const { next: first, reopensAt, limits } = this.#deps.rank(definition, model)
    const next =
      besides.length === 0
        ? first
        : limits.find(({ account, standing }) => CAN_SERVE.has(standing) && !besides.includes(account))?.account
    const account = next === undefined ? undefined : this.#deps.accounts.get(definition.id, next)
    if (account) return account
    if (limits.length === 0)
      return refuse('conflict', `no account of ${definition.label} is connected: connect one first`)
    if (limits.every(({ standing }) => standing === 'needs-reauth'))
      return refuse('conflict', `each account of ${definition.label} needs a new sign-in: sign in again`)
    const opens = reopensAt === undefined ? '' : ` until ${new Date(reopensAt).toISOString()}`
    return refuse(
      'too-many',
      `each account of ${definition.label} is spent${opens}: wait, or choose another provider`,
      {
        ...(reopensAt !== undefined && { retryAfter: secondsUntil(reopensAt, Date.now()), fields: { reopensAt } }),
      },
    )
  }

  #lent(definition: ProviderDefinition, account: StoredAccount, lease = randomBytes(12).toString('hex')): AccountLease {
    const credential = account.credential!
    this.#held.set(lease, account.id)
    return {
      lease,
      account: account.id,
      label: this.#deps.labelOf(account, definition),
      kind: credential.kind,
      headers: headersFor(definition, credential),
      value: credential.value,
      ...(credential.expiresAt !== undefined && { expiresAt: credential.expiresAt }),
    }
  }
}
