import type { Host } from '../../../sdk/index.js'
import type { ShieldPolicy, ShieldProvider } from '../contract.js'
import { trustUnder } from './trust.js'

type Connected = Pick<ShieldProvider, 'id' | 'label' | 'covered'> & { readonly local: boolean }

/** Every connected provider, and what it gets under a policy. */
export const shieldedProviders = async (
  host: Pick<Host, 'call' | 'serves'>,
  policy: ShieldPolicy,
): Promise<ShieldProvider[]> => {
  const connected = await Promise.all([builtIn(host), connectedRecords(host), withAccounts(host)])
  return connected.flat().map(({ id, label, covered, local }) => ({
    ...{ id, label, covered },
    ...trustUnder(policy, { provider: id, local }),
  }))
}

/** What runs in the daemon itself. */
const builtIn = async (host: Pick<Host, 'call' | 'serves'>): Promise<Connected[]> => {
  if (!(await host.serves('agent.providers'))) return []
  const { providers } = await host.call('agent.providers')
  return providers.map(({ id, label }) => ({ id, label, covered: true, local: true }))
}

/** Model servers, models of this machine, and agent programs. */
const connectedRecords = async (host: Pick<Host, 'call' | 'serves'>): Promise<Connected[]> => {
  if (!(await host.serves('capabilities.records'))) return []
  const { capabilities } = await host.call('capabilities.records', {})
  return capabilities.flatMap(({ id, kind, label }): Connected[] => {
    if (kind === 'agent') return [{ id: `agent/${id}`, label, covered: false, local: false }]
    const isServer = kind === 'endpoint' || kind === 'localmodel'
    return isServer ? [{ id: `endpoint/${id}`, label, covered: true, local: kind === 'localmodel' }] : []
  })
}

/** Providers with accounts; the sandbox itself makes their requests. */
const withAccounts = async (host: Pick<Host, 'call' | 'serves'>): Promise<Connected[]> => {
  if (!(await host.serves('accounts.standing'))) return []
  const { providers } = await host.call('accounts.standing')
  return providers
    .filter(({ accounts }) => accounts > 0)
    .map(({ provider }) => ({ id: provider, label: provider, covered: true, local: false }))
}
