import { isIP } from 'node:net'

/** What an IPsec tunnel is dialled with, checked. */
export interface IpsecConf {
  readonly server: string
  readonly presharedKey: string
  readonly localId?: string
  readonly remoteId?: string
  readonly sign?: { readonly username: string; readonly password: string }
  readonly version: '1' | '2'
  readonly pfs: boolean
  readonly group: string
  readonly aggressive: boolean
  readonly networks: readonly string[]
}

/** The groups of Diffie and Hellman by their numbers, as strongSwan names them. */
export const DH_GROUPS: { readonly [group: string]: string } = {
  ...{ 2: 'modp1024', 5: 'modp1536', 14: 'modp2048', 15: 'modp3072', 16: 'modp4096', 19: 'ecp256', 20: 'ecp384' },
}
/** The connection of every tunnel: each has a charon of its own. */
export const IPSEC_CONNECTION = 'sandbox'
/** The socket on which charon is spoken to, in the folder of the tunnel. */
export const VICI = 'charon.vici'

const PLUGINS = [
  ...['random', 'nonce', 'drbg', 'aes', 'sha1', 'sha2', 'md4', 'md5', 'des', 'hmac', 'kdf', 'xcbc', 'gmp', 'openssl'],
  ...['kernel-libipsec', 'kernel-netlink', 'socket-default', 'vici', 'xauth-generic', 'eap-identity', 'eap-md5'],
  'eap-mschapv2',
]

/**
 * The settings of charon: the plugins that a tunnel needs and none that runs programs or writes name servers, a port
 * that is free, and packets of ESP in user space, through an interface of its own.
 */
export const charonSettings = (): string =>
  [
    'charon-systemd {',
    ...['  load_modular = no', `  load = ${PLUGINS.join(' ')}`, '  port = 0', '  port_nat_t = 0'],
    ...['  install_routes = no', '  retransmit_tries = 3', '  retransmit_timeout = 2'],
    `  plugins { vici { socket = unix://${VICI} } }`,
    ...['  filelog { log { path = charon.log', '    append = no', '    default = 0 } }', '}', ''],
  ].join('\n')

/** A value in the words of swanctl's file: nothing in it ends the value. */
export const quotedValue = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`

/** A secret as base64: none is taken for another form. */
const secretValue = (text: string): string => `0s${Buffer.from(text).toString('base64')}`

/** An identity with its type, which charon would guess otherwise. */
const identityOf = (text: string): string =>
  quotedValue(isIP(text) ? text : `${text.includes('@') ? 'email' : 'fqdn'}:${text}`)

const userOf = (username: string): string => quotedValue(`fqdn:${username}`)

/** The names of the children that are brought up: IKEv1 agrees on one network for each. */
export const ipsecChildren = ({ version, networks }: Pick<IpsecConf, 'version' | 'networks'>): string[] =>
  version === '1' ? networks.map((_, at) => `net${at}`) : ['net0']

const childLines = (conf: IpsecConf): string[] => {
  const { version, networks, pfs, group } = conf
  const esp = ['aes256-sha256', 'aes128-sha256', 'aes256-sha1', 'aes128-sha1']
  const proposals = esp.map(one => (pfs ? `${one}-${group}` : one)).join(',')
  return ipsecChildren(conf).flatMap((name, at) => [
    `${name} {`,
    `remote_ts = ${version === '1' ? networks[at] : networks.join(',')}`,
    `esp_proposals = ${proposals}`,
    'dpd_action = clear',
    '}',
  ])
}

/** The connection and its secrets, as `swanctl` reads them. */
export const swanctlText = (conf: IpsecConf): string => {
  const { server, presharedKey, localId, remoteId, sign, version, group, aggressive } = conf
  const ike = ['aes256-sha256', 'aes128-sha256', 'aes256-sha1', 'aes128-sha1'].map(one => `${one}-${group}`).join(',')
  const extended =
    version === '1' && sign ? ['local-x {', 'auth = xauth', `xauth_id = ${userOf(sign.username)}`, '}'] : []
  const auth = version === '2' && sign ? ['auth = eap', `eap_id = ${userOf(sign.username)}`] : ['auth = psk']
  return [
    ...['connections {', `${IPSEC_CONNECTION} {`, `version = ${version}`, `remote_addrs = ${server}`, 'vips = 0.0.0.0'],
    ...(version === '1' ? [`aggressive = ${aggressive ? 'yes' : 'no'}`] : []),
    ...[`proposals = ${ike}`, 'dpd_delay = 20s', 'dpd_timeout = 90s'],
    ...['local {', ...auth, ...(localId === undefined ? [] : [`id = ${identityOf(localId)}`]), '}'],
    ...extended,
    ...['remote {', 'auth = psk', `id = ${remoteId === undefined ? '%any' : identityOf(remoteId)}`, '}'],
    ...['children {', ...childLines(conf), '}', '}', '}'],
    ...['secrets {', 'ike0 {', `secret = ${secretValue(presharedKey)}`, '}'],
    ...(sign
      ? [
          `${version === '1' ? 'xauth0' : 'eap0'} {`,
          ...[`id = ${userOf(sign.username)}`, `secret = ${secretValue(sign.password)}`, '}'],
        ]
      : []),
    ...['}', ''],
  ].join('\n')
}
