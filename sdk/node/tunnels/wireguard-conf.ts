import { isIP, isIPv4 } from 'node:net'
import { refuse } from '../../index.js'
import { common, isCidr } from './networks.js'

/** A peer of a tunnel. */
export interface WireguardPeer {
  readonly publicKey: string
  readonly endpoint?: string
  /** In seconds; 0: none. */
  readonly keepalive: number
}
/** What a WireGuard configuration says, and the text that `wg-quick` is given. */
export interface WireguardConf {
  readonly peers: readonly WireguardPeer[]
  readonly networks: readonly string[]
  /** The addresses of this machine in it. */
  readonly addresses: readonly string[]
  readonly dns: readonly string[]
  readonly text: string
}

const PROGRAMS: ReadonlySet<string> = new Set(['preup', 'postup', 'predown', 'postdown'])
const KEY = /^[A-Za-z0-9+/]{43}=$/
const ENDPOINT = /^(?:\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?):\d{1,5}$/
const NAME = /^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$/

const listOf = (value: string): string[] =>
  value
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
const isNumber = (least: number, most: number) => (value: string) =>
  /^\d{1,10}$/.test(value) && Number(value) >= least && Number(value) <= most
const isKey = (value: string): boolean => KEY.test(value)
const isList = (fits: (part: string) => boolean) => (value: string) => listOf(value).every(fits)
const isMark = (value: string): boolean => value === 'off' || /^(0x[0-9a-fA-F]{1,8}|\d{1,10})$/.test(value)

interface KeyRule {
  readonly name: string
  readonly fits: (value: string) => boolean
  readonly expected: string
}
const rule = (name: string, fits: (value: string) => boolean, expected: string): [string, KeyRule] => [
  name.toLowerCase(),
  { name, fits, expected },
]
const BASE64 = 'a key of 44 characters in base64'
const INTERFACE: ReadonlyMap<string, KeyRule> = new Map([
  rule('PrivateKey', isKey, BASE64),
  rule('Address', isList(isCidr), 'addresses such as 10.8.0.2/24'),
  rule('ListenPort', isNumber(0, 65_535), 'a port'),
  rule(
    'DNS',
    isList(part => isIP(part) !== 0 || NAME.test(part)),
    'addresses of name servers, or names',
  ),
  rule('MTU', isNumber(576, 65_535), 'a number of bytes from 576'),
  rule('Table', value => /^(auto|off|\d{1,10})$/.test(value), 'auto, off or a number'),
  rule('FwMark', isMark, 'off or a number'),
  rule('SaveConfig', value => /^(true|false)$/.test(value), 'true or false'),
])
const PEER: ReadonlyMap<string, KeyRule> = new Map([
  rule('PublicKey', isKey, BASE64),
  rule('PresharedKey', isKey, BASE64),
  rule('AllowedIPs', isList(isCidr), 'networks such as 10.0.0.0/8'),
  rule('Endpoint', value => ENDPOINT.test(value), 'a host with its port, such as vpn.example.org:51820'),
  rule('PersistentKeepalive', value => value === 'off' || isNumber(0, 65_535)(value), 'off or a number of seconds'),
])

type Section = { readonly kind: 'interface' | 'peer'; readonly keys: Map<string, string> }

const wrong = (line: number, message: string): never => refuse('unprocessable', `config: line ${line}: ${message}`)

const sectionsOf = (text: string, first: number): Section[] => {
  const sections: Section[] = []
  for (const [at, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.replace(/#.*$/, '').trim()
    const number = at + first
    if (line === '') continue
    const header = /^\[(interface|peer)\]$/i.exec(line)?.[1]?.toLowerCase()
    if (header) {
      sections.push({ kind: header as Section['kind'], keys: new Map() })
      continue
    }
    const [, name = '', value = ''] = /^([A-Za-z]+)\s*=\s*(.*)$/.exec(line) ?? []
    const key = name.toLowerCase()
    const section = sections.at(-1)
    if (PROGRAMS.has(key)) wrong(number, `${name} runs a program, which the sandbox does not do: remove the line`)
    if (!section || name === '') return wrong(number, 'expected [Interface], [Peer] or a key with its value')
    const known = (section.kind === 'interface' ? INTERFACE : PEER).get(key)
    if (!known) return wrong(number, `${name.slice(0, 40)} is no key of [${titleOf(section.kind)}] that is known`)
    if (!known.fits(value)) wrong(number, `${known.name}: expected ${known.expected}`)
    const before = section.keys.get(known.name)
    const adds = before !== undefined && LISTS.has(known.name)
    if (before !== undefined && !adds) wrong(number, `${known.name} is there twice in this section`)
    section.keys.set(known.name, adds ? `${before}, ${value}` : value)
  }
  return sections
}

const LISTS: ReadonlySet<string> = new Set(['Address', 'DNS', 'AllowedIPs'])
const titleOf = (kind: Section['kind']): string => (kind === 'interface' ? 'Interface' : 'Peer')

const written = ({ kind, keys }: Section): string =>
  [`[${titleOf(kind)}]`, ...[...keys].map(([name, value]) => `${name} = ${value}`), ''].join('\n')

/** How the text that `wg-quick` is given differs from the one that is read. */
export interface WireguardHow {
  /** The networks to which the peers are limited. */
  readonly only?: readonly string[]
  /** It sets no name servers and no routes, and its addresses come without their networks. */
  readonly bare?: boolean
  /** The number of its first line in what a person gave. */
  readonly line?: number
}

/**
 * Reads a configuration of one tunnel. 422: it cannot be used, with the line.
 *
 * @param how How its text is changed.
 */
export const wireguardConf = (text: string, { only, bare, line = 1 }: WireguardHow = {}): WireguardConf => {
  const sections = sectionsOf(text, line)
  const [own, ...more] = sections.filter(({ kind }) => kind === 'interface')
  const peers = sections.filter(({ kind }) => kind === 'peer')
  if (!own || more.length > 0)
    return refuse('unprocessable', `config: expected one [Interface], found ${own ? more.length + 1 : 0}`)
  if (!own.keys.has('PrivateKey')) refuse('unprocessable', 'config: expected PrivateKey in [Interface], found none')
  if (!own.keys.has('Address')) refuse('unprocessable', 'config: expected Address in [Interface], found none')
  if (peers.length === 0) refuse('unprocessable', 'config: expected at least one [Peer], found none')
  for (const { keys } of peers)
    if (!keys.has('PublicKey')) refuse('unprocessable', 'config: expected PublicKey in each [Peer]')
  own.keys.delete('SaveConfig')
  for (const { keys } of only ? peers : []) {
    const left = common(listOf(keys.get('AllowedIPs') ?? ''), only ?? [])
    if (left.length > 0) keys.set('AllowedIPs', left.join(', '))
    else keys.delete('AllowedIPs')
  }
  const addresses = listOf(own.keys.get('Address')!).map(each => each.replace(/\/.*/, ''))
  const dns = listOf(own.keys.get('DNS') ?? '').filter(part => isIP(part) !== 0)
  if (bare) {
    for (const key of ['DNS', 'FwMark']) own.keys.delete(key)
    own.keys.set('Table', 'off')
    own.keys.set(
      'Address',
      addresses
        .filter(isIPv4)
        .map(each => `${each}/32`)
        .join(', '),
    )
    if (own.keys.get('Address') === '') own.keys.delete('Address')
  }
  const networks = peers.flatMap(({ keys }) => listOf(keys.get('AllowedIPs') ?? ''))
  if (only && networks.length === 0)
    refuse('unprocessable', 'routedNetworks: expected networks within the AllowedIPs of a peer, found none')
  return {
    peers: peers.map(({ keys }) => {
      const endpoint = keys.get('Endpoint')
      const keepalive = Number(keys.get('PersistentKeepalive')) || 0
      return { publicKey: keys.get('PublicKey')!, keepalive, ...(endpoint !== undefined && { endpoint }) }
    }),
    networks: own.keys.get('Table') === 'off' ? [] : networks,
    addresses,
    dns,
    text: sections.map(written).join('\n'),
  }
}
