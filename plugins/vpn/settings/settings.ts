import { hash } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'
import type { KindEntry } from '../../capabilities/contract.js'
import type { VpnProvider } from '../contract.js'
import { isCidr } from './networks.js'
import { openvpnConf, type OpenvpnConf } from './openvpn-conf.js'
import { wireguardConf, type WireguardConf } from './wireguard-conf.js'

interface CommonSettings {
  readonly autoConnect: boolean
  /** Only these networks go through. */
  readonly only?: readonly string[]
  /** The networks that are known to go through before it is dialled. */
  readonly networks: readonly string[]
  readonly gateway?: string
  /** Every value that nobody may read. */
  readonly secrets: readonly string[]
}
export interface WireguardSettings extends CommonSettings {
  readonly provider: 'wireguard'
  readonly conf: WireguardConf
}
export interface OpenvpnSettings extends CommonSettings {
  readonly provider: 'openvpn'
  readonly conf: OpenvpnConf
  readonly username?: string
  readonly password?: string
  readonly keyPassphrase?: string
}
/** What a tunnel is dialled with, checked. */
export type VpnSettings = WireguardSettings | OpenvpnSettings

/** The providers that this sandbox dials. */
const DIALLED: readonly string[] = ['wireguard', 'openvpn'] satisfies VpnProvider[]
const FIELDS: { readonly [provider: string]: readonly string[] } = {
  wireguard: ['config'],
  openvpn: ['config', 'username', 'password', 'keyPassphrase'],
}
const LIMITS: { readonly [field: string]: number } = {
  username: 256,
  password: 1024,
  keyPassphrase: 1024,
  routedNetworks: 4096,
}

const bad = (field: string, expected: string, found?: unknown): never => {
  const there = found === undefined ? '' : `, found ${JSON.stringify(String(found).slice(0, 60))}`
  return refuse('unprocessable', `config.${field}: expected ${expected}${there}`, {
    errors: [{ path: `config.${field}`, expected }],
  })
}

/** The provider that a config names; undefined: none that is dialled here. */
export const dialledProvider = (config: KindEntry['config']): VpnSettings['provider'] | undefined =>
  DIALLED.includes(String(config.provider)) ? (config.provider as VpnSettings['provider']) : undefined

/** Whether a config says that the tunnel is dialled when the daemon starts. */
export const autoConnectOf = (config: KindEntry['config']): boolean => config.autoConnect !== 'off'

const networksIn = (text: string): string[] => {
  const networks = text.split(',').map(part => part.trim())
  const wrong = networks.find(network => !isCidr(network))
  return wrong === undefined
    ? networks.map(network => (network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`))
    : bad('routedNetworks', 'networks such as 10.0.0.0/8, with commas between them', wrong)
}

const secretValues = (secrets: KindEntry['secrets']): string[] => {
  const { config = '', ...others } = secrets
  const keys = config.split('\n').map(line => line.replace(/^\s*(PrivateKey|PresharedKey)\s*=/i, '').trim())
  return [...Object.values(others), ...keys.filter(key => /^\S{24,}$/.test(key))]
}

/** What a connection says. 422: it cannot be used, with the field, and the line of a configuration. */
export const vpnSettingsOf = ({ config, secrets }: KindEntry): VpnSettings => {
  const provider = dialledProvider(config) ?? bad('provider', DIALLED.join(' or '), config.provider ?? '')
  const { autoConnect, routedNetworks } = config
  if (autoConnect !== undefined && autoConnect !== 'on' && autoConnect !== 'off')
    bad('autoConnect', 'on or off', autoConnect)
  for (const [field, value] of Object.entries({ ...config, ...secrets })) {
    if (!['provider', 'autoConnect', 'routedNetworks', ...FIELDS[provider]!].includes(field))
      bad(field, `none for a tunnel of ${provider}`)
    if (typeof value !== 'string') bad(field, 'a text', value)
    if (String(value).length > (LIMITS[field] ?? Infinity))
      bad(field, `at most ${LIMITS[field]} characters`, `${String(value).length}`)
    if (field !== 'config' && /[\0\r\n]/.test(String(value))) bad(field, 'one line')
  }
  const text = secrets.config ?? bad('config', 'the whole configuration')
  if (text.length > (provider === 'wireguard' ? 65_536 : 262_144) || text.includes('\0'))
    bad('config', `a text of at most ${provider === 'wireguard' ? 65_536 : 262_144} characters`)
  const only = routedNetworks === undefined ? undefined : networksIn(String(routedNetworks))
  const shared = {
    autoConnect: autoConnectOf(config),
    secrets: secretValues(secrets),
    ...(only && { only }),
  }
  if (provider === 'wireguard') {
    const conf = wireguardConf(text, only)
    const gateway = conf.peers.find(({ endpoint }) => endpoint !== undefined)?.endpoint
    return { ...shared, provider, conf, networks: conf.networks, ...(gateway !== undefined && { gateway }) }
  }
  const conf = openvpnConf(text, only)
  const username = config.username === undefined ? undefined : String(config.username)
  const { password, keyPassphrase } = secrets
  if (conf.asksUser && (username === undefined || password === undefined))
    bad(username === undefined ? 'username' : 'password', 'a value, for the configuration has auth-user-pass')
  if (/^Enc(X)?\s+[0-9a-fA-F]{16,}$/.test(password ?? ''))
    bad('password', 'the password itself, found one that another program encrypted')
  return {
    ...shared,
    provider,
    conf,
    networks: conf.networks,
    ...(conf.gateway !== undefined && { gateway: conf.gateway }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(keyPassphrase !== undefined && { keyPassphrase }),
  }
}

/** The network interface of a tunnel. */
export const interfaceOf = (id: string): string =>
  id.length <= 15 ? id : `vpn-${hash('sha256', id, 'hex').slice(0, 11)}`
