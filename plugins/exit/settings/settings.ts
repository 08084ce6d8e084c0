import { hash } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'
import type { KindEntry } from '../../capabilities/contract.js'
import type { ExitProvider } from '../contract.js'
import { wireguardParts, type WireguardPart } from './wireguard-parts.js'

interface CommonSettings {
  /** The country of the configuration; left out: the provider chooses. */
  readonly country?: string
  readonly autoStart: boolean
  /** Every value that nobody may read. */
  readonly secrets: readonly string[]
}
export interface OnionSettings extends CommonSettings {
  readonly provider: 'onion_router'
}
export interface PoolSettings extends CommonSettings {
  readonly provider: 'public_vpn_pool'
}
export interface WireguardExitSettings extends CommonSettings {
  readonly provider: 'wireguard'
  readonly parts: readonly WireguardPart[]
}
/** What an exit is set up with, checked. */
export type ExitSetup = OnionSettings | PoolSettings | WireguardExitSettings

const PROVIDERS: readonly string[] = ['onion_router', 'public_vpn_pool', 'wireguard'] satisfies readonly ExitProvider[]
const MOST_TEXT = 262_144
const FIRST_PORT = 19_000
const PORTS = 1000

const bad = (field: string, expected: string, found?: unknown): never => {
  const there = found === undefined ? '' : `, found ${JSON.stringify(String(found).slice(0, 60))}`
  return refuse('unprocessable', `config.${field}: expected ${expected}${there}`, {
    errors: [{ path: `config.${field}`, expected }],
  })
}

/** The provider that a config names; undefined: none. */
export const exitProviderOf = (config: KindEntry['config']): ExitProvider | undefined =>
  PROVIDERS.includes(String(config.provider)) ? (config.provider as ExitProvider) : undefined

/** Whether a config says that the exit is started with the daemon. */
export const autoStartOf = (config: KindEntry['config']): boolean => config.autoStart === 'on'

/** The country that a config names, in capitals. */
export const countryOf = (config: KindEntry['config']): string | undefined =>
  config.country === undefined || config.country === '' ? undefined : String(config.country).toUpperCase()

/** What a connection says. 422: it cannot be used, with the field, and the line of a configuration. */
export const exitSettingsOf = ({ config, secrets }: KindEntry): ExitSetup => {
  const provider = exitProviderOf(config) ?? bad('provider', PROVIDERS.join(', '), config.provider ?? '')
  const country = countryOf(config)
  if (country !== undefined && !/^[A-Z]{2}$/.test(country)) bad('country', 'the two letters of a country', country)
  if (config.autoStart !== undefined && config.autoStart !== 'on' && config.autoStart !== 'off')
    bad('autoStart', 'on or off', config.autoStart)
  for (const field of Object.keys({ ...config, ...secrets }))
    if (!['provider', 'country', 'autoStart', ...(provider === 'wireguard' ? ['config'] : [])].includes(field))
      bad(field, `none for an exit of ${provider}`)
  const shared = { autoStart: autoStartOf(config), ...(country !== undefined && { country }) }
  if (provider !== 'wireguard') return { ...shared, provider, secrets: [] }
  const text = secrets.config ?? bad('config', 'one or more configurations of WireGuard')
  if (text.length > MOST_TEXT || text.includes('\0')) bad('config', `a text of at most ${MOST_TEXT} characters`)
  const parts = wireguardParts(text)
  return { ...shared, provider, parts, secrets: parts.flatMap(part => part.secrets) }
}

/** The port of an exit's proxy, fixed by its id. */
export const exitPortOf = (id: string): number =>
  FIRST_PORT + (Number.parseInt(hash('sha256', id, 'hex').slice(0, 8), 16) % PORTS)

/** The tables that the system keeps for itself: default, main, local. */
const SYSTEM_TABLES: ReadonlySet<number> = new Set([253, 254, 255])

/** The number of an exit's route table, fixed by its port. */
export const exitTableOf = (id: string): number => {
  const table = 100 + exitPortOf(id) - FIRST_PORT
  return SYSTEM_TABLES.has(table) ? table + PORTS : table
}

/** The network interface of an exit. */
export const exitInterface = (id: string): string =>
  id.length < 15 ? `x${id}` : `x-${hash('sha256', id, 'hex').slice(0, 13)}`
