import type { CapabilityRecord } from '../capabilities/contract.js'
import type { WireProtocol } from './contract.js'

/** A model server as it is stored, without secret values. */
export interface ServerEntry {
  readonly id: string
  readonly label: string
  readonly protocol: WireProtocol
  readonly baseUrl: string
  readonly hasKey: boolean
  readonly hasHeaders: boolean
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
  return {
    id,
    label: label || id,
    protocol: protocol as WireProtocol,
    baseUrl,
    hasKey: secrets.includes('apiKey'),
    hasHeaders: secrets.includes('headers'),
  }
}

/** What a list of models depends on: another server's list does not count. */
export const fingerprintOf = ({
  protocol,
  baseUrl,
  identity = `${protocol} ${baseUrl}`,
}: Pick<ServerEntry, 'protocol' | 'baseUrl' | 'identity'>): string => identity
