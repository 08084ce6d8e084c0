import { randomBytes } from 'node:crypto'
import { ignored, refuse, type Caller, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { record } from '../../sdk/node/record/record.js'
import type { LimitWindow } from '../agent/contract.js'
import type { ProviderDefinition } from '../providers/contract.js'
import type { AccountList, ProviderAccount, ProviderLimits, ProviderStanding } from './contract.js'
import { Leases } from './lending/leases.js'
import { Renewals } from './lending/renewals.js'
import { ranked, shownRefusal } from './limits/choice.js'
import { HeardRates } from './limits/rates.js'
import { LimitReadings } from './limits/readings.js'
import { Refusals, type MetRefusal } from './limits/refusals.js'
import { headersFor, providerWire } from './provider-wire.js'
import { accountRow, accountLabel, seesPeople } from './rows.js'
import { shownAttempt, SignInAttempts, type SignInAttempt } from './sign-in/attempts.js'
import { OAuth, type GrantedAccount } from './sign-in/oauth.js'
import { SignIns } from './sign-in/sign-ins.js'
import { StoredAccounts, type StoredAccount } from './stored-accounts.js'

const WAIT_MS = 1_500
const FORCED_WAIT_MS = 9_000
const HOST = '127.0.0.1'

/** The accounts of all providers: who is signed in, how much room they have, and what they are lent for. */
export class Accounts {
  readonly #host: Host
  readonly #stored: StoredAccounts
  readonly #attempts: SignInAttempts
  readonly #oauth: OAuth
  readonly #renewals: Renewals
  readonly #refusals: Refusals
  readonly #readings: LimitReadings
  readonly #rates = new HeardRates()
  readonly #connecting = new KeyedMutex()
  readonly leases: Leases
  readonly signIns: SignIns

  constructor(host: Host) {
    const { files, store, log, signal } = host
    const ask = providerWire(async () => (await host.call('kernel.listeners')).listeners)
    const definition = (provider: string) => this.definition(provider)
    const changed = (provider: string) => this.#changed(provider)
    const stored = new StoredAccounts(files)
    this.#host = host
    this.#stored = stored
    this.#attempts = new SignInAttempts(files, log)
    this.#oauth = new OAuth(ask)
    this.#refusals = new Refusals(store)
    this.#renewals = new Renewals({
      accounts: stored,
      oauth: this.#oauth,
      definition,
      log,
      ended: (account, why) => this.#ended(account, why),
      held: account => this.leases.isHeld(account),
    })
    const headers = async (provider: string, id: string) => {
      const { credential } = await this.#renewals.fresh(stored.get(provider, id) ?? noAccount(provider, id))
      return headersFor(await definition(provider), credential!)
    }
    this.#readings = new LimitReadings({ store, ask, definition, headers, changed })
    this.leases = new Leases({
      accounts: stored,
      renewals: this.#renewals,
      labelOf: accountLabel,
      rank: (found, model) => this.#ranked(found, model),
    })
    this.signIns = new SignIns({
      attempts: this.#attempts,
      oauth: this.#oauth,
      ask,
      log,
      signal,
      definition,
      // One at a time, so that an identity is found that was connected just now.
      connect: (attempt, granted) => this.#connecting.with(attempt.provider, () => this.#connect(attempt, granted)),
      connected: ({ provider, handshake }) => stored.all(provider).find(each => each.handshakes.includes(handshake)),
      changed,
      listening: async ports =>
        void (await host.call('kernel.listeners.set', {
          name: 'sign-ins',
          listeners: ports.map(port => ({ host: HOST, port })),
        })),
    })
  }

  async load(): Promise<void> {
    await Promise.all([this.#stored.load(), this.#attempts.load(), this.#refusals.load(), this.#readings.load()])
    await this.signIns.recover()
  }

  /** Renews and measures what is due. */
  async tick(): Promise<void> {
    await this.#renewals.tick()
    await this.#readings.tick(this.#stored.all().filter(({ problem }) => problem === undefined))
    await this.#attempts.sweep()
  }

  /** The definition of a provider; refused where there is none. */
  async definition(provider: string): Promise<ProviderDefinition> {
    const { definition } = await this.#host.call('definitions.get', { provider })
    return (
      definition
      ?? refuse('not-found', `there is no provider ${JSON.stringify(provider.slice(0, 40))}: GET /providers lists them`)
    )
  }

  get(provider: string, id: string): StoredAccount {
    return this.#stored.get(provider, id) ?? noAccount(provider, id)
  }

  holds(provider: string, account: string | undefined): boolean {
    return account === undefined
      ? this.#stored.all(provider).length > 0
      : this.#stored.get(provider, account) !== undefined
  }

  async list(provider: string, force: boolean, caller: Caller): Promise<AccountList> {
    const definition = await this.definition(provider)
    await this.#freshen(provider, force)
    await this.#attempts.sweep()
    const signIns = this.#attempts.all.filter(attempt => attempt.provider === provider)
    return {
      accounts: this.#stored.all(provider).map(account => this.row(account, definition, caller)),
      signIns: seesPeople(caller) ? signIns.map(shownAttempt) : [],
    }
  }

  /** The accounts of a provider with their last readings; what is stale is measured behind the answer. */
  async known(provider: string, caller: Caller): Promise<ProviderAccount[]> {
    const definition = await this.definition(provider)
    void this.#freshen(provider, false).catch(ignored('the last readings stay'))
    return this.#stored.all(provider).map(account => this.row(account, definition, caller))
  }

  row(account: StoredAccount, definition: ProviderDefinition, caller: Caller): ProviderAccount {
    const refusal = this.#refusals.read(account.provider, account.id)
    return accountRow(account, definition, {
      people: seesPeople(caller),
      windows: this.#readings.windows(account.id, definition),
      rates: this.#rates.of(account.id),
      ...(refusal && { refusal }),
    })
  }

  async limits(provider: string, force: boolean, model: string | undefined): Promise<ProviderLimits> {
    const definition = await this.definition(provider)
    await this.#freshen(provider, force)
    const refusal = this.#refusals.read(provider)
    return {
      ...this.#ranked(definition, model),
      ...(refusal && { refusal: shownRefusal(refusal) }),
      publishes: definition.limits !== undefined,
    }
  }

  async rename(provider: string, id: string, label: string): Promise<StoredAccount> {
    const { label: _before, ...rest } = this.get(provider, id)
    const renamed = await this.#stored.change(rest, ({ label: _was, ...before }) => ({
      ...before,
      ...(label && { label }),
    }))
    this.#changed(provider)
    return renamed ?? noAccount(provider, id)
  }

  /** Destroys an account; its provider is asked to revoke the credential first. */
  async disconnect(definition: ProviderDefinition, id: string): Promise<StoredAccount | undefined> {
    const found = this.#stored.get(definition.id, id)
    if (!found) return undefined
    if (found.credential?.kind === 'bearer')
      await this.#oauth
        .revoke(definition, found.credential)
        .catch(error => this.#host.log.warn('revoking a credential failed', { error: String(error) }))
    await this.#stored.remove(definition.id, id)
    this.#rates.forget(id)
    await Promise.all([this.#readings.forget(id), this.#refusals.clear(definition.id, id)])
    this.#host.emit('account.disconnected', { provider: definition.id, account: id })
    this.#changed(definition.id)
    return found
  }

  /** A provider refused a turn. */
  async refused(met: MetRefusal): Promise<void> {
    const { provider, account } = met
    const { definition } = await this.#host.call('definitions.get', { provider })
    if (!definition || (account !== undefined && !this.#stored.get(provider, account))) return
    const { kind, message } = await this.#refusals.record(met, definition)
    this.#changed(provider)
    await this.#record('account.refused', { provider, ...(account !== undefined && { account }), kind, message })
  }

  /** A turn ran on an account: no refusal of it stands. */
  async answered(provider: string, account: string | undefined): Promise<void> {
    if (await this.#refusals.clear(provider, account)) this.#changed(provider)
  }

  /** Reads limits from the headers of an answer. */
  async heard(
    provider: string,
    account: string,
    headers: { readonly [name: string]: string },
    rates: readonly LimitWindow[] = [],
  ): Promise<LimitWindow[]> {
    if (!this.holds(provider, account)) return []
    if (this.#rates.hear(account, rates)) this.#changed(provider)
    return this.#readings.heard(await this.definition(provider), account, headers)
  }

  /** How the accounts of each provider stand together. */
  async standing(): Promise<ProviderStanding[]> {
    const { definitions } = await this.#host.call('definitions.list')
    return definitions.map(definition => {
      const { limits, next, reopensAt } = this.#ranked(definition)
      const [first] = limits
      const common = { provider: definition.id, accounts: limits.length }
      if (!first) return { ...common, ready: 'no-account', detail: 'no account of it is connected' }
      if (first.standing === 'refused')
        return { ...common, ready: 'refused', detail: first.refusal?.message ?? 'the provider refuses its accounts' }
      if (next !== undefined) return { ...common, ready: 'yes' }
      if (first.standing === 'needs-reauth')
        return { ...common, ready: 'needs-reauth', detail: 'sign in to its account again' }
      const detail = 'the limits of its accounts are used up'
      return { ...common, ready: 'spent', detail, ...(reopensAt !== undefined && { reopensAt }) }
    })
  }

  /** The credentials that are held. */
  async held() {
    const { definitions } = await this.#host.call('definitions.list')
    const labels = new Map(definitions.map(each => [each.id as string, each]))
    return this.#stored.all().map(account => ({
      provider: account.provider,
      account: account.id,
      label: accountLabel(account, labels.get(account.provider) ?? { label: account.provider }),
      needsReauth: account.problem !== undefined,
    }))
  }

  #freshen(provider: string, force: boolean): Promise<void> {
    const usable = this.#stored.all(provider).filter(({ problem }) => problem === undefined)
    return this.#readings.freshen(usable, { force, waitMs: force ? FORCED_WAIT_MS : WAIT_MS })
  }

  #ranked(definition: ProviderDefinition, model?: string) {
    return ranked(
      this.#stored.all(definition.id).map(account => {
        const refusal = this.#refusals.read(definition.id, account.id)
        return {
          id: account.id,
          label: accountLabel(account, definition),
          connectedAt: account.connectedAt,
          needsReauth: account.problem !== undefined,
          windows: this.#readings.windows(account.id, definition, model),
          ...(refusal && { refusal }),
        }
      }),
    )
  }

  async #connect(attempt: SignInAttempt, granted: GrantedAccount): Promise<StoredAccount> {
    const { provider, reconnects, label, handshake } = attempt
    const before =
      (reconnects === undefined ? undefined : this.#stored.get(provider, reconnects)) ?? this.#same(provider, granted)
    const numbers = new Set(this.#stored.all(provider).map(({ number }) => number))
    const unused = Array.from({ length: numbers.size + 1 }, (_, at) => at + 1).find(each => !numbers.has(each))!
    const { problem: _problem, ...kept } = before ?? {
      id: randomBytes(9).toString('hex'),
      provider,
      number: unused,
      connectedAt: Date.now(),
      handshakes: [],
    }
    const account = await this.#stored.keep({
      ...kept,
      // An account that could not be read begins anew.
      ...(kept.number === 0 && { number: unused, connectedAt: Date.now() }),
      ...granted,
      ...(label && { label }),
      handshakes: [...kept.handshakes.slice(0, 1), handshake],
    })
    failpoint('accounts.connected')
    this.#renewals.forget(account.id)
    await this.#refusals.clear(provider, account.id)
    this.#host.emit('account.connected', { provider, account: account.id })
    this.#changed(provider)
    await this.#record('account.connected', { provider, account: account.id }, attempt.by)
    return account
  }

  /** The account of an identity that is held already. */
  #same(provider: string, { credential, email, organization }: GrantedAccount): StoredAccount | undefined {
    return this.#stored
      .all(provider)
      .find(held =>
        credential.kind === 'key' || email === undefined
          ? held.credential?.kind === credential.kind && held.credential.value === credential.value
          : held.email === email && held.organization === organization,
      )
  }

  #ended({ provider, id }: StoredAccount, message: string): void {
    this.#changed(provider)
    void this.#record('account.needs-reauth', { provider, account: id, message })
  }

  #record(type: string, extra: { [field: string]: string }, actor = 'sandbox:accounts'): Promise<void> {
    return record(this.#host, { type, actor, outcome: 'ok', extra })
  }

  #changed(provider: string): void {
    const failed = (error: unknown) =>
      this.#host.log.warn('publishing a change of accounts failed', { error: String(error) })
    this.#host.emit('accounts.changed', { provider })
    this.#host.call('kernel.events.publish', { domain: 'accounts', key: provider }).catch(failed)
  }
}

const noAccount = (provider: string, id: string): never =>
  refuse('not-found', `${provider} has no account ${id}: GET /accounts/${provider} lists them`)
