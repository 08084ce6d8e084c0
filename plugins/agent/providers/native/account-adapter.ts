import type { AccountLease } from '../../../accounts/contract.js'
import { Refusal, type Host } from '../../../../sdk/index.js'
import type { ProviderDefinition } from '../../../providers/contract.js'
import type { ProviderAdapter, TurnRequest } from '../adapter.js'
import type { ConnectedProviders } from '../connected-providers.js'
import { refusalKind } from '../refusal-kinds.js'
import { ServerFault } from './faults.js'
import { HeardLimits, publishedLimits, type AnswerHeaders } from './heard-limits.js'
import type { RequestPaces } from './pace.js'
import { modelFetch, type AnswerLimits } from './model-fetch.js'
import { nativeAdapter } from './native-adapter.js'
import type { NativeDeps } from './native-turn.js'
import { failTurn } from './over.js'
import type { NativeTarget } from './target.js'

/** What turns on accounts need of the group. */
export interface AccountDeps extends NativeDeps {
  /** A provider that is reached through the translator. */
  readonly routed: (definition: ProviderDefinition) => Promise<ProviderAdapter>
  /** The account that a conversation uses at a provider. */
  readonly accountOf: (conversationId: string, provider: string) => string | undefined
  /** Called with the account on which a conversation's turn runs: the conversation stays on it. */
  readonly stays: (conversationId: string, provider: string, account: string) => Promise<unknown>
}

type Link = Pick<Host, 'call' | 'serves' | 'emit' | 'log'>

/** Providers that are defined by a file, each on the accounts that are connected there. */
export const accountProviders = (host: Link, deps: AccountDeps): ConnectedProviders => ({
  prefix: '',
  ready: async () =>
    (await host.serves('accounts.standing'))
      ? (await host.call('accounts.standing')).providers.flatMap(({ provider, ready }) =>
          ready === 'yes' ? [provider] : [],
        )
      : [],
  find: async name => {
    if (!(await host.serves('accounts.lease')) || !(await host.serves('definitions.get'))) return undefined
    const { definition } = await host.call('definitions.get', { provider: name })
    if (!definition) return undefined
    return definition.serving === 'routed' ? deps.routed(definition) : accountAdapter(host, definition, deps)
  },
})

const accountAdapter = async (
  host: Link,
  definition: ProviderDefinition,
  deps: AccountDeps,
): Promise<ProviderAdapter> => {
  const { models } = await host.call('definitions.catalogue', { provider: definition.id })
  const { label } = definition
  const provider: string = definition.id
  const target = (request: TurnRequest) => targetOn(host, definition, deps, request)
  return {
    ...nativeAdapter(
      { id: provider, label, models: models.map(({ id }) => id), fast: definition.fast ?? false, target },
      deps,
    ),
    holds: async account => (await host.call('accounts.holds', { provider, account })).holds,
  }
}

/** The provider as one turn uses it; the conversation stays on the account that it gets. */
const targetOn = async (
  host: Link,
  definition: ProviderDefinition,
  deps: AccountDeps,
  { conversationId, model, depth }: TurnRequest,
): Promise<NativeTarget> => {
  const { id: provider } = definition
  const prefer = deps.accountOf(conversationId, provider)
  const asked = { ...(prefer !== undefined && { prefer }), ...(model && { model }) }
  const target = await leasedTarget(host, definition, asked, deps.limits, deps.paces)
  const { account } = target
  if (depth === 0 && account !== prefer) await deps.stays(conversationId, provider, account)
  return target
}

/** A provider with the credential of an account, which is renewed when it is refused; `over` gives it back. */
export const leasedTarget = async (
  host: Link,
  definition: ProviderDefinition,
  asked: { readonly prefer?: string; readonly model?: string },
  most?: AnswerLimits,
  paces?: RequestPaces,
): Promise<NativeTarget & { readonly account: string }> => {
  const { id: provider, label, protocol, baseUrl } = definition
  const lent = await host
    .call('accounts.lease', { provider, ...asked })
    .catch((error: unknown) => failLease(label, error))
  const { lease, account } = lent
  const { models, default: usual } = await host.call('definitions.catalogue', { provider })
  const headers = { ...lent.headers }
  let { value } = lent
  const warn = (what: string) => (error: unknown) => host.log.warn(what, { provider, error: String(error) })
  const limits = new HeardLimits(account, paces?.of(provider, account))
  const told = (answer: AnswerHeaders, status: number) => {
    limits.hear(answer, status)
    const rates = publishedLimits(answer, Date.now())
    if (definition.limits?.from !== 'headers' && rates.length === 0) return
    const said = Object.fromEntries(Object.entries(answer).flatMap(([name, one]) => (one ? [[name, String(one)]] : [])))
    host
      .call('limits.heard', { provider, account, headers: said, rates })
      .then(({ windows }) => limits.add(windows))
      .catch(warn('reading limits failed'))
  }
  const renew = async (refused: string): Promise<void> => {
    const again = await host
      .call('accounts.renew', { lease, provider, account, refused })
      .catch((error: unknown) => Promise.reject(faultOfRenewal(label, error)))
    value = again.value
    Object.assign(headers, again.headers)
  }
  const send: typeof fetch = async (input, init) => {
    const sent = value
    try {
      return await modelFetch(headers, most, told)(input, init)
    } catch (error) {
      if (!(error instanceof ServerFault) || error.details.status !== 401 || lent.kind === 'key')
        throw inWordsOf(error, lent)
      await renew(sent)
    }
    return modelFetch(headers, most, told)(input, init).catch(error => Promise.reject(inWordsOf(error, lent)))
  }
  return {
    id: provider,
    label,
    protocol,
    baseUrl,
    apiBase: baseUrl,
    headers,
    local: false,
    models,
    default: usual,
    account,
    limits,
    send,
    over: (failure, stopped) => {
      host.call('accounts.release', { lease }).catch(warn('giving a credential back failed'))
      const kind = refusalKind(failure?.code)
      const { message = '', resetsAt } = failure ?? {}
      const when = resetsAt !== undefined && { resetsAt }
      if (kind) host.emit('provider.refused', { provider, account, kind, message, ...when })
      else if (!stopped) host.emit('provider.answered', { provider, account })
    },
  }
}

/** Ends a turn that gets no credential. */
const failLease = (label: string, error: unknown): never => {
  if (!(error instanceof Refusal)) throw error
  const { message, reason, detail } = error
  const { reopensAt } = detail.fields ?? {}
  const text = `${label} cannot be used: ${message}`
  if (reason === 'too-many') return failTurn(text, 'rate_limit', typeof reopensAt === 'number' ? reopensAt : undefined)
  return failTurn(text, reason === 'dependency' ? 'provider-outage' : 'reauth')
}

/** Why a credential was not renewed within a turn: the provider may not answer now, or a person must sign in. */
const faultOfRenewal = (label: string, error: unknown): unknown => {
  if (!(error instanceof Refusal)) return error
  const now = error.reason === 'dependency'
  return new ServerFault(`${label} cannot be used: ${error.message}`, {
    code: now ? 'provider-outage' : 'reauth',
    again: now,
  })
}

/** What a refused credential means where it is that of an account. */
const inWordsOf = (error: unknown, { label }: AccountLease): unknown => {
  if (!(error instanceof ServerFault) || error.details.code !== 'token-refused') return error
  const said = /; it says: .*$/.exec(error.message)?.[0] ?? ''
  return new ServerFault(
    `the provider refused the account ${label} (${error.details.status}): sign in to it again, or choose another`
      + said,
    error.details,
  )
}
