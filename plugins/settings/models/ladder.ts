import { refuse, type Host } from '../../../sdk/index.js'
import type { ProviderStanding } from '../../accounts/contract.js'
import type { TokenPrice } from '../../endpoints/contract.js'
import type { Settings } from '../contract.js'
import type { ModelLadder, ModelRung, RoleModels } from './contract.js'

type ModelHost = Pick<Host, 'call' | 'serves'>
type Lists = Pick<Settings, 'quickModel' | 'agentRunModels' | 'autoFastModels'>
type List = keyof Lists

/** Small jobs, which `quickModel` is for: one answer, or a short run. */
const QUICK_ROLES = ['commit-message', 'session-title', 'safety-judge', 'loop-verdict', 'model-router'] as const
/** Runs of agents, which `agentRunModels` is for. */
const RUN_ROLES = [
  'pipeline-fix',
  'deployment-fix',
  'maintenance-chore',
  'documentation-run',
  'acceptance-run',
  'approval-queue',
  'extension-review',
  'loop-iteration',
] as const
/** Every automatic job: the three settings, then the roles of runs. */
export const MODEL_ROLES: readonly string[] = [
  ...['quickModel', 'agentRunModels', 'autoFastModels'],
  ...QUICK_ROLES,
  ...RUN_ROLES,
]

const MOST_PRICES = 200
const SERVER = 'endpoint/'
const PROGRAM = 'agent/'
const STANDINGS: { readonly [ready in ProviderStanding['ready']]: string } = {
  yes: '',
  'no-account': 'no account of it is connected',
  'needs-reauth': 'its account must sign in again',
  spent: 'the allowance of its accounts is used up',
  refused: 'it refused its accounts lately',
}

const listOf = (role: string): List | undefined => {
  if (role === 'autoFastModels') return 'autoFastModels'
  if (role === 'quickModel' || QUICK_ROLES.some(one => one === role)) return 'quickModel'
  return MODEL_ROLES.includes(role) ? 'agentRunModels' : undefined
}

/** The models that a job is tried on, in order. */
export const ladderOf = async (
  host: ModelHost,
  settings: Lists,
  role: string,
  models?: readonly string[],
): Promise<RoleModels> => {
  const list = listOf(role) ?? refuse('unprocessable', `role: expected ${MODEL_ROLES.join(', ')}`)
  const configured = [...(models?.length ? models : settings[list])]
  const quick = list === 'quickModel'
  const connected = await connectedNow(host)
  if (configured.length > 0) {
    const resolved = await Promise.all(configured.map(key => rungOf(host, connected, key, quick)))
    return { role, from: 'list', configured, resolved }
  }
  if (!quick) return { role, from: list === 'autoFastModels' ? 'none' : 'composer', configured, resolved: [] }
  const resolved = await cheapestFirst(host, connected)
  return { role, from: resolved.some(({ usable }) => usable) ? 'auto' : 'none', configured, resolved }
}

/** The same with the effort that runs of agents have. */
export const ladderWithEffort = async (
  host: ModelHost,
  settings: Lists & Pick<Settings, 'agentRunEffort'>,
  role: string,
  models?: readonly string[],
): Promise<ModelLadder> => {
  const { agentRunEffort: effort } = settings
  const found = await ladderOf(host, settings, role, models)
  return { ...found, ...(effort && listOf(role) === 'agentRunModels' && { effort }) }
}

/** What is connected now. */
interface Connected {
  readonly servers: Awaited<ReturnType<typeof serversOf>>
  readonly standings: readonly ProviderStanding[]
}

const serversOf = async (host: ModelHost) =>
  (await host.serves('endpoints.choices')) ? (await host.call('endpoints.choices')).endpoints : []

const connectedNow = async (host: ModelHost): Promise<Connected> => ({
  servers: await serversOf(host),
  standings: (await host.serves('accounts.standing')) ? (await host.call('accounts.standing')).providers : [],
})

/** Whether one model could be used now. */
const rungOf = async (host: ModelHost, connected: Connected, key: string, quick: boolean): Promise<ModelRung> => {
  const at = key.indexOf(':')
  const [provider, model] = [key.slice(0, at), key.slice(at + 1)]
  if (at < 1) return { provider: key, model: '', usable: false, reason: 'expected <provider>:<model>' }
  const reason = await whyNot(host, connected, { provider, model, quick })
  return { provider, model, usable: reason === undefined, ...(reason !== undefined && { reason }) }
}

interface AskedModel {
  readonly provider: string
  readonly model: string
  /** It is to give single answers. */
  readonly quick: boolean
}

const whyNot = async (
  host: ModelHost,
  { servers, standings }: Connected,
  { provider, model, quick }: AskedModel,
): Promise<string | undefined> => {
  if (provider.startsWith(SERVER)) {
    const server = servers.find(({ id }) => SERVER + id === provider)
    if (!server) return 'no such model server is connected'
    if (!server.ready) return server.reason ?? 'the server cannot be used now'
    return missingIn(server.models, model)
  }
  if (provider.startsWith(PROGRAM)) {
    if (quick) return 'an agent program gives no single answers'
    if (!(await host.serves('capabilities.records'))) return 'agent programs are not served here'
    const { capabilities } = await host.call('capabilities.records', { kind: 'agent' })
    return capabilities.some(({ id }) => PROGRAM + id === provider) ? undefined : 'no such agent program is connected'
  }
  const builtIn = await builtInOf(host, provider)
  if (builtIn) {
    if (quick) return 'it is built in and gives no single answers'
    return builtIn.includes(model) ? undefined : `it does not offer ${model}`
  }
  if (!(await host.serves('definitions.get'))) return 'no such provider is known'
  const { definition } = await host.call('definitions.get', { provider })
  if (!definition) return 'no such provider is known'
  if (definition.serving !== 'native') return `${definition.label} cannot be reached here yet`
  const standing = standings.find(one => one.provider === provider)
  if (!standing) return STANDINGS['no-account']
  if (standing.ready !== 'yes') return standing.detail ?? STANDINGS[standing.ready]
  return missingIn((await host.call('definitions.catalogue', { provider })).models, model)
}

const builtInOf = async (host: ModelHost, provider: string): Promise<readonly string[] | undefined> => {
  if (!(await host.serves('agent.providers'))) return undefined
  return (await host.call('agent.providers')).providers.find(({ id }) => id === provider)?.models
}

/** Why a model of a catalogue cannot be used; a catalogue without models does not name its own. */
const missingIn = (
  models: readonly { readonly id: string; readonly availableAt?: number }[],
  model: string,
): string | undefined => {
  const found = models.find(({ id }) => id === model)
  if (!found) return models.length > 0 ? `it does not offer ${model}` : undefined
  const { availableAt = 0 } = found
  return availableAt > Date.now() ? `it is used up until ${new Date(availableAt).toISOString()}` : undefined
}

/** One model of each server and provider: the cheapest where prices are known, else the usual one. */
const cheapestFirst = async (host: ModelHost, { servers, standings }: Connected): Promise<ModelRung[]> => {
  const ofServers = servers.flatMap(({ id, ready, reason = 'the server cannot be used now', ...server }) => {
    const { models, default: usual, prices } = server
    const priced = models.flatMap(model => {
      const price = prices?.[model.id] ?? prices?.['*']
      return price ? [{ id: model.id, cost: costOf(price) }] : []
    })
    const { id: model, cost } = cheapest(priced) ?? { id: usual || (models[0]?.id ?? ''), cost: 0 }
    return model || !ready ? [{ provider: SERVER + id, model, cost, ...(!ready && { reason }) }] : []
  })
  const held = standings.filter(({ ready }) => ready !== 'no-account')
  const ofAccounts = await Promise.all(held.map(standing => accountChoice(host, standing)))
  return [...ofServers, ...ofAccounts.flat()]
    .sort((one, other) => one.cost - other.cost)
    .map(({ provider, model, reason }) => ({
      provider,
      model,
      usable: reason === undefined,
      ...(reason && { reason }),
    }))
}

interface PricedModel {
  readonly id: string
  /** Of a million tokens each way, in US dollars. */
  readonly cost: number
}

const costOf = ({ input, output }: TokenPrice): number => input + output

const cheapest = (models: readonly PricedModel[]): PricedModel | undefined =>
  models.reduce<PricedModel | undefined>((best, one) => (best && best.cost <= one.cost ? best : one), undefined)

const accountChoice = async (
  host: ModelHost,
  { provider, ready, detail }: ProviderStanding,
): Promise<{ provider: string; model: string; cost: number; reason?: string }[]> => {
  const { definition } = await host.call('definitions.get', { provider })
  if (definition?.serving !== 'native') return []
  const { models, default: usual } = await host.call('definitions.catalogue', { provider })
  const prices = await Promise.all(
    models
      .slice(0, MOST_PRICES)
      .map(async ({ id }) => ({ id, price: (await host.call('definitions.price', { provider, model: id })).price })),
  )
  const best = cheapest(prices.flatMap(({ id, price }) => (price ? [{ id, cost: costOf(price) }] : [])))
  // A price that nobody knows is taken for the highest.
  const { id: model, cost } = best ?? { id: usual, cost: Number.MAX_VALUE }
  const reason = ready === 'yes' ? undefined : (detail ?? STANDINGS[ready])
  return model || reason !== undefined ? [{ provider, model, cost, ...(reason !== undefined && { reason }) }] : []
}
