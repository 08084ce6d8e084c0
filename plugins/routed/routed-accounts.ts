import { refuse, type Context, type Host } from '../../sdk/index.js'
import type { ProviderDefinition, SignInFlow } from '../providers/contract.js'
import type { RoutedAccount, RoutedAccounts, RoutedStart } from './contract.js'
import { routedDefinitions } from './process/table.js'

type Link = Pick<Host, 'call' | 'serves'>

/** The definition of a routed provider; refused where it is none. */
export const routedDefinition = async (host: Link, provider: string): Promise<ProviderDefinition> => {
  const { definition } = await host.call('definitions.get', { provider })
  return definition?.serving === 'routed'
    ? definition
    : refuse(
        'not-found',
        `${JSON.stringify(provider.slice(0, 40))} is not a routed provider: GET /translator/accounts lists them`,
      )
}

/** The accounts of each routed provider; no provider is waited for. */
export const routedAccounts = async (host: Link, as: Context): Promise<RoutedAccounts> => {
  const all = await Promise.all(
    (await routedDefinitions(host)).map(async ({ id: provider }) => {
      const { accounts } = await host.call('accounts.known', { provider }, { as })
      const rows = accounts.map(({ id, label, usage, needsReauth, detail }): RoutedAccount => ({
        ...{ name: id, label },
        ...(usage && { usage }),
        ...(needsReauth && { needsReauth }),
        ...(detail !== undefined && { detail }),
      }))
      return [provider, rows] as const
    }),
  )
  return Object.fromEntries(all)
}

/** Begins a sign-in in the first way that needs neither a code nor a key. */
export const connectRouted = async (host: Link, provider: string, as: Context): Promise<RoutedStart> => {
  const { auth, label } = await routedDefinition(host, provider)
  const flow = auth.flows.find((each: SignInFlow) => each === 'device' || each === 'redirect')
  if (flow !== 'device' && flow !== 'redirect')
    return refuse(
      'unprocessable',
      `${label} has neither a sign-in by device nor one by redirect: use POST /accounts/${provider}/login/start`,
    )
  const started = await host.call('POST /accounts/{provider}/login/start', { provider, flow }, { as })
  const { url, code = '', handshake: state, expiresAt } = started
  return { url, code, state, flow, expiresAt }
}

const HANDSHAKE = /^[A-Za-z0-9_-]{22,64}$/

/** Completes a sign-in with the address that the browser ended at. */
export const completeRouted = async (
  host: Link,
  { provider, redirectUrl, state }: { provider: string; redirectUrl: string; state: string },
  as: Context,
): Promise<void> => {
  const { label } = await routedDefinition(host, provider)
  const query = URL.parse(redirectUrl.trim())?.searchParams
  if (!query) return refuse('invalid', 'redirectUrl: expected a whole address')
  if (!query.has('code')) {
    const error = query.get('error')
    const said = error === null ? 'found none' : `the provider reported ${JSON.stringify(error.slice(0, 200))}`
    return refuse('invalid', `redirectUrl: expected a code in it, ${said}`)
  }
  if (!HANDSHAKE.test(state)) return refuse('not-found', `there is no such sign-in at ${label}: connect again`)
  await host.call('POST /accounts/{provider}/login/finish', { provider, handshake: state, redirectUrl }, { as })
}

/** Disconnects one account; one that is gone already is fine. */
export const disconnectRouted = async (host: Link, provider: string, name: string, as: Context): Promise<void> => {
  const { label } = await routedDefinition(host, provider)
  const { credentials } = await host.call('accounts.inventory')
  const held = credentials.find(({ account }) => account === name)
  if (held && held.provider !== provider)
    refuse('conflict', `the account ${name} is one of ${held.provider}, not of ${label}`)
  if (held) await host.call('POST /accounts/{provider}/disconnect', { provider, id: name }, { as })
}
