import { refuse } from '../../../sdk/index.js'
import type { VpnImported } from '../contract.js'
import { elementsAt, parseXml, xmlTextAt, type XmlElement } from './xml.js'

const LARGEST = 1024 * 1024
const MOST = 200
const ENCRYPTED = /^EncX?\s/

const readable = (text: string | undefined): string | undefined =>
  text === undefined || ENCRYPTED.test(text) ? undefined : text.slice(0, 256)

/** A name as an id that nothing has. */
const idFor = (label: string, taken: Set<string>): string => {
  const plain = label
    .normalize('NFKD')
    .replace(/[^a-zA-Z0-9_-]+/g, '-')
    .replace(/^[-_]+|-+$/g, '')
    .slice(0, 50)
  const base = plain === '' ? 'vpn' : plain
  for (let count = 1; ; count++) {
    const id = count === 1 ? base : `${base}-${count}`
    if (taken.has(id)) continue
    taken.add(id)
    return id
  }
}

/** A server as `host`, `host:port` or an address with https. */
const serverOf = (text: string, standard: number): { server: string; port: number } => {
  const bare = text
    .split(';')[0]!
    .trim()
    .replace(/^https?:\/\//i, '')
    .replace(/\/.*$/, '')
  const [, host = bare, port] = /^(\[[^\]]+\]|[^:]*)(?::(\d{1,5}))?$/.exec(bare) ?? []
  const number = Number(port ?? standard)
  return { server: host.replace(/^\[(.*)\]$/, '$1').slice(0, 255), port: number <= 65_535 ? number : standard }
}

const isOn = (text: string | undefined): boolean => text === '1' || text?.toLowerCase() === 'on'

const sslConnection = (element: XmlElement, taken: Set<string>): VpnImported[] => {
  const label = xmlTextAt(element, 'name')
  const server = xmlTextAt(element, 'server')
  if (label === undefined || server === undefined) return []
  const username = readable(xmlTextAt(element, 'username'))
  const description = xmlTextAt(element, 'description')
  return [
    {
      id: idFor(label, taken),
      label: label.slice(0, 256),
      provider: 'fortinet',
      ...serverOf(server, 443),
      ...(username !== undefined && { username }),
      ...(description !== undefined && { description: description.slice(0, 500) }),
      needs: [...(username === undefined ? ['username'] : []), 'password'],
    },
  ]
}

const ipsecConnection = (element: XmlElement, taken: Set<string>): VpnImported[] => {
  const label = xmlTextAt(element, 'name')
  const server = xmlTextAt(element, 'ike_settings', 'server')
  if (label === undefined || server === undefined) return []
  const asksUser = isOn(xmlTextAt(element, 'ike_settings', 'xauth', 'enabled'))
  const username = readable(xmlTextAt(element, 'ike_settings', 'xauth', 'username'))
  const localId = readable(xmlTextAt(element, 'ike_settings', 'localid'))
  const mode = xmlTextAt(element, 'ike_settings', 'mode')
  const pfs = xmlTextAt(element, 'ipsec_settings', 'pfs')
  const dhGroup = xmlTextAt(element, 'ike_settings', 'dhgroup')?.split(/[;,]/)[0]?.trim()
  const description = xmlTextAt(element, 'description')
  return [
    {
      id: idFor(label, taken),
      label: label.slice(0, 256),
      provider: 'ipsec',
      ...serverOf(server, 500),
      ...(username !== undefined && { username }),
      ...(description !== undefined && { description: description.slice(0, 500) }),
      ...(localId !== undefined && { localId }),
      ...(mode !== undefined && { aggressive: mode.toLowerCase() === 'aggressive' }),
      ...(pfs !== undefined && { pfs: isOn(pfs) }),
      ...(dhGroup !== undefined && { dhGroup: dhGroup.slice(0, 10) }),
      needs: [
        'presharedKey',
        ...(asksUser && username === undefined ? ['username'] : []),
        ...(asksUser ? ['password'] : []),
      ],
    },
  ]
}

/** The connections of an exported file, each with an id that is not taken. */
export const importedConnections = (xml: string, known: Iterable<string>): VpnImported[] => {
  const size = Buffer.byteLength(xml)
  if (size > LARGEST) refuse('too-large', `xml: expected at most ${LARGEST} bytes, found ${size}`)
  const root = parseXml(xml)
  if (root.name !== 'forticlient_configuration')
    refuse('unprocessable', `xml: expected <forticlient_configuration>, found <${root.name.slice(0, 40)}>`)
  const taken = new Set(known)
  const at = (kind: string) => elementsAt(root, 'vpn', kind, 'connections', 'connection')
  return [
    ...at('sslvpn').flatMap(element => sslConnection(element, taken)),
    ...at('ipsecvpn').flatMap(element => ipsecConnection(element, taken)),
  ].slice(0, MOST)
}
