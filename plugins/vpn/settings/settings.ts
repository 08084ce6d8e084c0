import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { refuse } from '../../../sdk/index.js'
import type { KindEntry } from '../../capabilities/contract.js'
import type { VpnProvider } from '../contract.js'
import { DH_GROUPS, type IpsecConf } from './ipsec-conf.js'
import { isCidr, isEverything } from '../../../sdk/node/tunnels/networks.js'
import { openvpnConf, type OpenvpnConf } from '../../../sdk/node/tunnels/openvpn-conf.js'
import { wireguardConf, type WireguardConf } from '../../../sdk/node/tunnels/wireguard-conf.js'

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
export interface IpsecSettings extends CommonSettings {
  readonly provider: 'ipsec'
  readonly conf: IpsecConf
}
export interface FortinetSettings extends CommonSettings {
  readonly provider: 'fortinet'
  readonly server: string
  readonly port: number
  readonly username: string
  readonly password: string
  readonly realm?: string
  /** The SHA-256 of its certificate, as `sha256:` and hex. */
  readonly trustedCert?: string
}
/** What a tunnel is dialled with, checked. */
export type VpnSettings = WireguardSettings | OpenvpnSettings | IpsecSettings | FortinetSettings

/** The providers that this sandbox dials. */
const DIALLED: readonly string[] = ['wireguard', 'openvpn', 'fortinet', 'ipsec'] satisfies VpnProvider[]
/** The fields of each way to dial, beside those of every tunnel. */
export const TUNNEL_FIELDS: { readonly [provider: string]: readonly string[] } = {
  wireguard: ['config'],
  openvpn: ['config', 'username', 'password', 'keyPassphrase'],
  fortinet: ['server', 'port', 'username', 'password', 'trustedCert', 'realm'],
  ipsec: [
    ...['server', 'presharedKey', 'localId', 'remoteId', 'username', 'password', 'ikeVersion', 'pfs', 'dhGroup'],
    'aggressive',
  ],
}
const LIMITS: { readonly [field: string]: number } = {
  username: 256,
  password: 1024,
  keyPassphrase: 1024,
  server: 255,
  presharedKey: 1024,
  localId: 255,
  remoteId: 255,
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
  const provider = dialledProvider(config) ?? bad('provider', DIALLED.join(', '), config.provider ?? '')
  const { autoConnect, routedNetworks } = config
  if (autoConnect !== undefined && autoConnect !== 'on' && autoConnect !== 'off')
    bad('autoConnect', 'on or off', autoConnect)
  for (const [field, value] of Object.entries({ ...config, ...secrets })) {
    if (!['provider', 'autoConnect', 'routedNetworks', ...TUNNEL_FIELDS[provider]!].includes(field))
      bad(field, `none for a tunnel of ${provider}`)
    if (typeof value !== 'string' && !(field === 'port' && typeof value === 'number')) bad(field, 'a text', value)
    if (String(value).length > (LIMITS[field] ?? Infinity))
      bad(field, `at most ${LIMITS[field]} characters`, `${String(value).length}`)
    if (field !== 'config' && /[\0\r\n]/.test(String(value))) bad(field, 'one line')
  }
  if (provider === 'fortinet') return fortinetSettings({ config, secrets })
  if (provider === 'ipsec') return ipsecSettings({ config, secrets })
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
    const conf = wireguardConf(text, { ...(only && { only }) })
    const gateway = conf.peers.find(({ endpoint }) => endpoint !== undefined)?.endpoint
    return { ...shared, provider, conf, networks: conf.networks, ...(gateway !== undefined && { gateway }) }
  }
  const conf = openvpnConf(text, { ...(only && { only }) })
  const username = config.username === undefined ? undefined : String(config.username)
  const { password, keyPassphrase } = secrets
  if (conf.asksUser && (username === undefined || password === undefined))
    bad(username === undefined ? 'username' : 'password', 'a value, for the configuration has auth-user-pass')
  assertPlain('password', password)
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

/** Refuses a value as FortiClient exports it. */
const assertPlain = (field: string, value = ''): void => {
  if (/^EncX?\s+[0-9a-fA-F]{8,}$/.test(value)) bad(field, 'the value itself, found one that another program encrypted')
}

const assertIpv4 = (networks: readonly string[], provider: VpnProvider): void => {
  const six = networks.find(network => network.includes(':'))
  if (six !== undefined) bad('routedNetworks', `networks of IPv4 for a tunnel of ${provider}`, six)
}

const ipsecSettings = ({ config, secrets }: Pick<KindEntry, 'config' | 'secrets'>): IpsecSettings => {
  const given = (field: string): string | undefined => (config[field] === undefined ? undefined : String(config[field]))
  const oneOf = <T extends string>(field: string, values: readonly T[], usual: T): T => {
    const value = given(field) ?? usual
    return values.find(one => one === value) ?? bad(field, values.join(', '), value)
  }
  const identity = (field: string): string | undefined => {
    const value = given(field)
    return value === undefined || /^[\w.:@-]+$/.test(value) ? value : bad(field, 'letters, digits and . : @ - _', value)
  }
  const server = serverOf(given('server'))
  const { presharedKey = bad('presharedKey', 'the key that both ends share'), password } = secrets
  const username = given('username')
  if ((username === undefined) !== (password === undefined))
    bad(username === undefined ? 'username' : 'password', 'a value, for a user signs in with both')
  // The sign that follows a type of identity begins bytes in hex.
  if (username?.startsWith('#')) bad('username', 'a name that does not begin with #', username)
  for (const [field, value] of Object.entries({ presharedKey, password })) assertPlain(field, value)
  const version = oneOf('ikeVersion', ['1', '2'], '1')
  if (version === '2' && config.aggressive !== undefined) bad('aggressive', 'none with IKE version 2')
  const networks = config.routedNetworks === undefined ? ['0.0.0.0/0'] : networksIn(String(config.routedNetworks))
  assertIpv4(networks, 'ipsec')
  const [localId, remoteId] = [identity('localId'), identity('remoteId')]
  return {
    ...{ provider: 'ipsec', autoConnect: autoConnectOf(config), gateway: server, networks },
    secrets: Object.values(secrets),
    ...(isEverything(networks) ? {} : { only: networks }),
    conf: {
      ...{ server, presharedKey, version, networks },
      pfs: oneOf('pfs', ['on', 'off'], 'on') === 'on',
      group: DH_GROUPS[oneOf('dhGroup', Object.keys(DH_GROUPS), '14')]!,
      aggressive: oneOf('aggressive', ['on', 'off'], 'on') === 'on',
      ...(localId !== undefined && { localId }),
      ...(remoteId !== undefined && { remoteId }),
      ...(username !== undefined && password !== undefined && { sign: { username, password } }),
    },
  }
}

const fortinetSettings = ({ config, secrets }: Pick<KindEntry, 'config' | 'secrets'>): FortinetSettings => {
  const { port = '443', realm, trustedCert, username } = config
  const server = serverOf(config.server === undefined ? undefined : String(config.server))
  const { password = bad('password', 'the password of the user') } = secrets
  if (username === undefined || username === '') bad('username', 'the name of the user')
  if (!/^\d{1,5}$/.test(String(port)) || Number(port) < 1 || Number(port) > 65_535)
    bad('port', 'a port from 1 to 65535', port)
  if (realm !== undefined && !/^[\w.-]{1,128}$/.test(String(realm))) bad('realm', 'letters, digits and . - _', realm)
  const pinned = trustedCert === undefined ? undefined : String(trustedCert).toLowerCase()
  if (pinned !== undefined && !/^sha256:[0-9a-f]{64}$/.test(pinned))
    bad('trustedCert', 'sha256: and the 64 digits of the hash of a certificate in hex', trustedCert)
  assertPlain('password', password)
  const only = config.routedNetworks === undefined ? undefined : networksIn(String(config.routedNetworks))
  assertIpv4(only ?? [], 'fortinet')
  return {
    ...{ provider: 'fortinet', autoConnect: autoConnectOf(config), server, port: Number(port), password },
    ...{ username: String(username), gateway: `${server}:${port}`, networks: only ?? [], secrets: [password] },
    ...(only && { only }),
    ...(realm !== undefined && { realm: String(realm) }),
    ...(pinned !== undefined && { trustedCert: pinned }),
  }
}

/** A host as it is written into files of other programs. */
const serverOf = (server = ''): string =>
  isIP(server) || /^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$/.test(server)
    ? server
    : bad('server', 'the name or address of a host', server)

/** The network interface of a tunnel. */
export const interfaceOf = (id: string): string =>
  id.length <= 15 ? id : `vpn-${hash('sha256', id, 'hex').slice(0, 11)}`
