import type { Host } from '../../../sdk/index.js'
import type { EndpointTarget } from '../../endpoints/contract.js'
import type { ProviderDefinition } from '../../providers/contract.js'
import type { TranslatorServed } from '../contract.js'
import type { TableProvider } from '../link/messages.js'

type Link = Pick<Host, 'call' | 'serves'>

/** What the translator serves, and how many accounts that are. */
export interface ServedNow {
  readonly providers: readonly TableProvider[]
  readonly serves: readonly TranslatorServed[]
}

/** The beginning of the ids of model servers. */
export const SERVER = 'endpoint/'

/** The providers that are reached through the translator. */
export const routedDefinitions = async (host: Link): Promise<ProviderDefinition[]> =>
  (await host.call('definitions.list')).definitions.filter(({ serving }) => serving === 'routed')

/** Reads what is to be served: each routed provider with an account, and each model server that has models. */
export const servedNow = async (host: Link): Promise<ServedNow> => {
  const [definitions, { providers: standing }] = await Promise.all([
    routedDefinitions(host),
    host.call('accounts.standing'),
  ])
  const routed = definitions.flatMap(definition => {
    const accounts = standing.find(({ provider }) => provider === definition.id)?.accounts ?? 0
    return accounts > 0 ? [{ definition, accounts }] : []
  })
  const rows = await Promise.all(
    routed.map(async ({ definition, accounts }) => {
      const { id, baseUrl: base } = definition
      const { models } = await host.call('definitions.catalogue', { provider: id })
      const table: TableProvider = {
        ...{ id, base, local: false, leased: true },
        protocol: protocolOf(definition),
        models: models.map(modelOf),
      }
      return { table, accounts, protocol: definition.protocol }
    }),
  )
  const servers = (await targets(host)).map(target => ({
    table: tableOf(target),
    accounts: 0,
    protocol: target.protocol === 'anthropic' ? ('anthropic' as const) : ('openai' as const),
  }))
  const all = [...rows, ...servers]
  return {
    providers: all.map(({ table }) => table),
    serves: all.map(({ table: { id, models }, accounts, protocol }) => ({
      ...{ provider: id, protocol, accounts },
      models: models.length,
    })),
  }
}

const protocolOf = ({ protocol, api }: ProviderDefinition): TableProvider['protocol'] =>
  protocol === 'anthropic' ? 'messages' : (api ?? 'chat')

const modelOf = ({ id, label, maxOutput }: { id: string; label: string; maxOutput?: number }) => ({
  ...{ id, label },
  ...(maxOutput !== undefined && { maxOutput }),
})

const targets = async (host: Link): Promise<EndpointTarget[]> => {
  if (!(await host.serves('endpoints.choices'))) return []
  const { endpoints } = await host.call('endpoints.choices')
  const found = await Promise.all(
    endpoints.filter(({ models }) => models.length > 0).map(({ id }) => host.call('endpoints.target', { id })),
  )
  return found.filter(({ problem }) => problem === undefined)
}

const tableOf = ({ id, protocol, baseUrl, apiBase, local, models }: EndpointTarget): TableProvider => ({
  id: SERVER + id,
  protocol: protocol === 'anthropic' ? 'messages' : 'chat',
  // A server of Ollama speaks chat completions beside its own protocol.
  base: (protocol === 'ollama' ? undefined : apiBase) ?? `${baseUrl}/v1`,
  ...{ local, leased: false },
  models: models.map(modelOf),
})
