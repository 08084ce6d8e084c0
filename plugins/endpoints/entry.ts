import type { CapabilityRecord } from '../capabilities/contract.js'
import { isModelPrices, type ModelPrices, type WireProtocol } from './contract.js'

/** A model server as it is stored, without secret values. */
export interface ServerEntry {
  readonly id: string
  readonly label: string
  readonly protocol: WireProtocol
  readonly baseUrl: string
  readonly hasKey: boolean
  readonly hasHeaders: boolean
  readonly prices?: ModelPrices
  /** What its list of models depends on, where that is not its address. */
  readonly identity?: string
}

/** The kind of capability that a model server is stored as. */
export const SERVER_KIND = 'endpoint'

const PROTOCOLS: readonly string[] = ['openai', 'anthropic', 'ollama'] satisfies WireProtocol[]

/** The model server of a capability; undefined when its record does not describe one. */
export const serverOf = ({ id, label, config, secrets }: CapabilityRecord): ServerEntry | undefined => {
  const { protocol, baseUrl } = config
  if (typeof protocol !== 'string' || !PROTOCOLS.includes(protocol)) return undefined
  if (typeof baseUrl !== 'string' || !/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) return undefined
  const prices = pricesIn(config.prices)
  return {
    id,
    label: label || id,
    protocol: protocol as WireProtocol,
    baseUrl,
    hasKey: secrets.includes('apiKey'),
    hasHeaders: secrets.includes('headers'),
    ...(prices && { prices }),
  }
}

/** The prices in a record, which people edit; undefined: there are none, or they cannot be read. */
const pricesIn = (text: unknown): ModelPrices | undefined => {
  try {
    const prices: unknown = JSON.parse(String(text))
    return isModelPrices(prices) && Object.keys(prices).length > 0 ? prices : undefined
  } catch {
    return undefined
  }
}

/** The price of a model of a server. */
export const priceIn = ({ prices = {} }: Pick<ServerEntry, 'prices'>, model: string): ModelPrices[string] | undefined =>
  [model, '*'].flatMap(name => (Object.hasOwn(prices, name) ? [structuredClone(prices[name]!)] : []))[0]

/** What a list of models depends on: another server's list does not count. */
export const fingerprintOf = ({
  protocol,
  baseUrl,
  identity = `${protocol} ${baseUrl}`,
}: Pick<ServerEntry, 'protocol' | 'baseUrl' | 'identity'>): string => identity
