import type { Caller, Contract, Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { record } from '../../sdk/node/record/record.js'
import { Accounts } from './accounts.js'
import { accountsContract, type AccountsCalls } from './contract.js'
import { examples } from './examples.js'
import { plainFlow } from './sign-in/sign-ins.js'

export const contract: Contract<AccountsCalls> = { ...accountsContract, examples }

const TICK_MS = 60_000

/** Whose attempt to sign in it is. */
const personOf = ({ email, actor }: Caller): string => email ?? actor

const isForced = (force: string | undefined): boolean => force === '1' || force === 'true'

/** Serves the accounts of providers. */
export const activate = async (host: Host): Promise<void> => {
  const accounts = new Accounts(host)
  await accounts.load()
  const failed = (error: unknown) => host.log.warn('looking after accounts failed', { error: String(error) })
  repeat(host, TICK_MS, 'looking after accounts', () => accounts.tick())
  host.on('daemon.ready', () => void accounts.tick().catch(failed))
  host.on('provider.refused', met => void accounts.refused(met).catch(failed))
  host.on('provider.answered', ({ provider, account }) => void accounts.answered(provider, account).catch(failed))

  const cancel = async ({ provider, handshake }: { provider: string; handshake: string }) => {
    await accounts.definition(provider)
    await accounts.signIns.cancel(provider, handshake)
    return { ok: true as const }
  }
  const rename = async ({ provider, id, label }: { provider: string; id: string; label: string }, caller: Caller) => {
    const definition = await accounts.definition(provider)
    return accounts.row(await accounts.rename(provider, id, label.trim()), definition, caller)
  }
  const disconnect = async ({ provider, id }: { provider: string; id: string }, caller: Caller) => {
    const gone = await accounts.disconnect(await accounts.definition(provider), id)
    if (gone)
      await record(host, {
        type: 'account.disconnected',
        actor: caller.actor,
        outcome: 'ok',
        extra: { provider, account: id },
      })
    return { ok: true as const }
  }

  await host.serve(accountsContract, {
    'POST /accounts/{provider}/login/start': async ({ provider, account, ...asked }, { caller }) => {
      const definition = await accounts.definition(provider)
      if (account !== undefined) accounts.get(provider, account)
      return accounts.signIns.start(definition, { ...asked, ...(account && { account }), by: personOf(caller) })
    },
    'POST /accounts/{provider}/login/finish': async ({ provider, ...given }, { caller }) => {
      const definition = await accounts.definition(provider)
      return accounts.row(await accounts.signIns.finish(definition, given), definition, caller)
    },
    'POST /accounts/{provider}/login/cancel': cancel,
    'GET /accounts/{provider}': ({ provider, force }, { caller }) => accounts.list(provider, isForced(force), caller),
    'POST /accounts/{provider}/rename': (asked, { caller }) => rename(asked, caller),
    'POST /accounts/{provider}/disconnect': (asked, { caller }) => disconnect(asked, caller),
    'GET /accounts/{provider}/limits': ({ provider, force, model }) =>
      accounts.limits(provider, isForced(force), model),
    'POST /{provider}/login/start': async ({ provider }, { caller, http }) => {
      const definition = await accounts.definition(provider)
      const flow = plainFlow(definition)
      const started = await accounts.signIns.start(definition, { ...(flow && { flow }), by: personOf(caller) })
      const { handshake, expiresAt, finish } = started
      // Its clients have no call with which to finish it: the console takes what the page of the provider gives.
      const url = finish === 'none' || !http ? started.url : `${http.base}/#/accounts/${provider}/${handshake}`
      return { url, handshake, expiresAt }
    },
    'POST /{provider}/login/cancel': cancel,
    'GET /{provider}/accounts': async ({ provider, force }, { caller }) => ({
      accounts: (await accounts.list(provider, isForced(force), caller)).accounts,
    }),
    'POST /{provider}/account/rename': (asked, { caller }) => rename(asked, caller),
    'POST /{provider}/account/disconnect': (asked, { caller }) => disconnect(asked, caller),
    'accounts.lease': async ({ provider, ...asked }) =>
      accounts.leases.lend(await accounts.definition(provider), asked),
    'accounts.renew': async ({ provider, account, lease, refused }) =>
      accounts.leases.renew(await accounts.definition(provider), accounts.get(provider, account), lease, refused),
    'accounts.release': ({ lease }) => {
      accounts.leases.release(lease)
      return { ok: true as const }
    },
    'accounts.holds': ({ provider, account }) => ({ holds: accounts.holds(provider, account) }),
    'accounts.standing': async () => ({ providers: await accounts.standing() }),
    'accounts.known': async ({ provider }, { caller }) => ({ accounts: await accounts.known(provider, caller) }),
    'accounts.inventory': async () => ({ credentials: await accounts.held() }),
    'limits.heard': async ({ provider, account, headers, rates }) => ({
      windows: await accounts.heard(provider, account, headers, rates),
    }),
  })
}
