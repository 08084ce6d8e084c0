import { type Caller, type Contract, type Host, Refusal, refuse } from '../../sdk/index.js'
import { programNamed } from '../../sdk/node/programs/installed-at.js'
import { splitWords } from '../../sdk/node/programs/split-words.js'
import { knownOf, ProviderCatalogues, type AccountHeaders } from './catalogues.js'
import { pageOf } from './choices.js'
import type { BuiltInProvider } from '../agent/contract.js'
import type { TokenPrice } from '../endpoints/contract.js'
import { type Choice, type DefinedProviderCalls, type ProviderRow, providers } from './contract.js'
import type { DefinedAuth, ProviderDefinition } from './definitions/contract.js'
import { Definitions } from './definitions/definitions.js'
import { shippedDefinitions } from './definitions/shipped.js'
import { examples } from './examples.js'
import { resolvedModel } from './resolved-model.js'

export const contract: Contract<DefinedProviderCalls> = { ...providers, examples }

/** The beginning of the ids of model servers. */
const SERVER = 'endpoint/'
const NO_ACCOUNT = { ready: 'no-account', accounts: 0, detail: 'no account of it is connected' } as const

/** Lists the providers of models and what they offer. */
export const activate = async (host: Host): Promise<void> => {
  const publish = (key?: string): void => {
    host
      .call('kernel.events.publish', { domain: 'providers', ...(key !== undefined && { key }) })
      .catch(error => host.log.warn('publishing a change of providers failed', { error: String(error) }))
  }
  const folder = host.place.models?.providers
  const definitions = new Definitions({
    shipped: shippedDefinitions(),
    workspace: host.place.workspace,
    signal: host.signal,
    changed: publish,
    ...(folder !== undefined && { folder }),
  })
  await definitions.load()
  for (const { file, message } of definitions.problems)
    host.log.warn('a definition of a provider was not loaded', { file, message })
  const catalogues = new ProviderCatalogues({ files: host.files, signal: host.signal, now: Date.now, changed: publish })

  host.on('accounts.changed', ({ provider }) => publish(provider))

  /** The providers that need no definition. */
  const running = async (): Promise<BuiltInProvider[]> => {
    if (!(await host.serves('agent.providers'))) return []
    const { providers: all } = await host.call('agent.providers')
    return all.filter(({ id }) => !id.includes('/') && !definitions.find(id))
  }

  const rowOf = async (definition: ProviderDefinition, readiness: Readiness): Promise<ProviderRow> => ({
    id: definition.id,
    label: definition.label,
    serving: definition.serving,
    harnesses: ['native', ...(definition.harness ? ['vendor-code' as const] : [])],
    flows: [...definition.auth.flows],
    ...clientFor(definition.auth),
    ...readiness,
    default: (await catalogues.known(definition)).default,
    paid: definition.auth.flows.includes('key'),
  })

  const rows = async (): Promise<ProviderRow[]> => {
    const readinessOf = await readiness()
    return Promise.all(definitions.all.map(async each => rowOf(each, await readinessOf(each))))
  }

  /** How each provider stands: by its accounts, then by the program that it names. */
  const readiness = async (): Promise<(definition: ProviderDefinition) => Promise<Readiness>> => {
    const served = await host.serves('accounts.standing')
    const { providers: standing } = served ? await host.call('accounts.standing') : { providers: [] }
    const byId = new Map(standing.map(({ provider, ...stands }) => [provider, stands]))
    return async definition => {
      const stands = byId.get(definition.id) ?? NO_ACCOUNT
      const missing = stands.ready === 'yes' ? await lackOf(definition) : undefined
      return missing === undefined ? stands : { ...stands, ready: 'missing-program', detail: missing }
    }
  }

  /** What a provider is asked with: the credential of an account; undefined: there is none that can be used. */
  const credentialOf = async (provider: string, account?: string): Promise<AccountHeaders> => {
    if (!(await host.serves('accounts.lease'))) return undefined
    try {
      const asked = { provider, ...(account !== undefined && { account }) }
      const { headers, lease } = await host.call('accounts.lease', asked)
      await host.call('accounts.release', { lease })
      return headers
    } catch (error) {
      if (!(error instanceof Refusal) || (account !== undefined && error.reason === 'not-found')) throw error
      return undefined
    }
  }

  const defined = (provider: string): ProviderDefinition =>
    definitions.find(provider)
    ?? refuse('not-found', `there is no provider ${JSON.stringify(provider)}: GET /providers lists them`)

  /** Everything a turn can be asked to run on, each provider's models in its own order. */
  const choices = async (): Promise<Choice[]> =>
    (await Promise.all([running().then(all => all.flatMap(choicesOfAgent)), offered(), servers(), programs()])).flat()

  const offered = async (): Promise<Choice[]> => {
    const readinessOf = await readiness()
    const each = definitions.all.map(async definition => {
      const { models } = await catalogues.known(definition)
      const { ready, detail } = await readinessOf(definition)
      return models.map(model => {
        const price = priceOf(definition, model.id)
        const common = { provider: definition.id, providerLabel: definition.label, model, ...(price && { price }) }
        return { ...common, ready: ready === 'yes', ...(detail !== undefined && { reason: detail }) }
      })
    })
    return (await Promise.all(each)).flat()
  }

  const servers = async (): Promise<Choice[]> => {
    if (!(await host.serves('endpoints.choices'))) return []
    const { endpoints } = await host.call('endpoints.choices')
    return endpoints.flatMap(({ id, label, models, ready, reason, prices = {} }) =>
      models.map(model => ({
        provider: SERVER + id,
        providerLabel: label,
        model,
        ready,
        ...(reason !== undefined && { reason }),
        ...priced(prices[model.id] ?? prices['*']),
      })),
    )
  }

  const programs = async (): Promise<Choice[]> => {
    if (!(await host.serves('capabilities.records'))) return []
    const { capabilities } = await host.call('capabilities.records', { kind: 'agent' })
    return capabilities
      .filter(({ kind }) => kind === 'agent')
      .map(({ id, label }) => ({
        provider: `agent/${id}`,
        providerLabel: label,
        model: { id: 'default', label: 'Its own choice', efforts: [], badges: [] },
        ready: true,
      }))
  }

  await host.serve(providers, {
    'GET /providers': async (_input, { caller }) => ({
      providers: [...(await running()).map(rowOfAgent), ...(await rows())],
      problems: audits(caller) ? definitions.problems : [],
    }),
    'GET /providers/{provider}/models': async ({ provider, force, account }, { caller }) => {
      if (account !== undefined && !audits(caller))
        refuse('forbidden', 'account: only maintainers and the owner see what an account may use; leave it out')
      const definition = definitions.find(provider)
      if (!definition) {
        const own = (await running()).find(({ id }) => id === provider)
        if (own && account === undefined) {
          const models = own.models.map(plainRow)
          return { models, default: models[0]?.id ?? '', source: 'built-in' as const }
        }
      }
      const asked = defined(provider)
      if (account === undefined) return catalogues.current(asked, await credentialOf(provider), force !== undefined)
      if (!(await host.serves('accounts.lease'))) refuse('not-found', `${asked.label} has no account ${account}`)
      return catalogues.asSeenBy(asked, await credentialOf(provider, account))
    },
    'GET /providers/models': async asked => pageOf(await choices(), asked),
    'definitions.price': async ({ provider, model }) => {
      if (provider.startsWith(SERVER) && (await host.serves('endpoints.price')))
        return host.call('endpoints.price', { id: provider.slice(SERVER.length), model })
      const definition = definitions.find(provider)
      const price = definition && priceOf(definition, model)
      return price ? { price } : {}
    },
    'definitions.get': ({ provider }) => {
      const definition = definitions.find(provider)
      return definition ? { definition: structuredClone(definition) } : {}
    },
    'definitions.list': () => ({ definitions: structuredClone(definitions.all) }),
    'definitions.catalogue': ({ provider }) => catalogues.known(defined(provider)),
    'definitions.resolveModel': async ({ provider, model }) => {
      const definition = defined(provider)
      return { model: resolvedModel(definition.label, await catalogues.known(definition), model) }
    },
  })
}

const priced = (price: TokenPrice | undefined) => price && { price: structuredClone(price) }

/** What stands between a provider and its turns. */
type Readiness = Pick<ProviderRow, 'accounts' | 'ready' | 'detail' | 'reopensAt'>

/** What the own loop of a routed provider lacks, and how to get it. */
const lackOf = async ({ serving, harness }: ProviderDefinition): Promise<string | undefined> => {
  if (serving === 'native' || !harness) return undefined
  const [program = harness.program] = splitWords(harness.program) ?? []
  const found = await programNamed(program)
  return found === undefined ? `the program ${program} is not installed: ${harness.install}` : undefined
}

const priceOf = ({ models: { prices = {}, known = [] } }: ProviderDefinition, model: string) =>
  structuredClone(Object.hasOwn(prices, model) ? prices[model] : knownOf(known, model)?.price)

const plainRow = (id: string) => ({ id, label: id, efforts: [], badges: [] })

const choicesOfAgent = ({ id, label, models }: BuiltInProvider): Choice[] =>
  models.map(model => ({ provider: id, providerLabel: label, model: plainRow(model), ready: true }))

const rowOfAgent = ({ id, label, harnesses, models }: BuiltInProvider): ProviderRow => ({
  id,
  label,
  serving: 'script',
  harnesses: [...harnesses],
  flows: [],
  accounts: 0,
  ready: 'yes',
  default: models[0] ?? '',
  paid: false,
})

/** Whether a caller may see what concerns the deployment and its accounts. */
const audits = ({ kind, role }: Caller): boolean => kind === 'session' && (role === 'maintainer' || role === 'owner')

/** Where a browser comes back to when a definition says nothing: any port of this machine (RFC 8252, section 7.3). */
const COMES_BACK = 'http://127.0.0.1/callback'

/** What a person registers a client of their own with, where a provider knows none of the sandbox. */
const clientFor = ({ flows, grants, clientId, redirectUri = COMES_BACK }: DefinedAuth): Pick<ProviderRow, 'client'> =>
  clientId === undefined && grants !== 'key' && flows.some(flow => flow !== 'key') ? { client: { redirectUri } } : {}
