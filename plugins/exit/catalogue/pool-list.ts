import { openvpnConf, type OpenvpnConf } from '../../../sdk/node/tunnels/openvpn-conf.js'
import { normalHost } from '../../../sdk/node/network/host-form.js'
import { addressKind } from '../../../sdk/node/network/addresses.js'

/** A server of the pool. */
export interface PoolServer {
  readonly host: string
  readonly ip: string
  readonly country: string
  readonly score: number
  /** Its configuration as it came, in base64. */
  readonly packed: string
}

const FIELDS = 15
const MOST_SERVERS = 5000
const MOST_PACKED = 128 * 1024

/**
 * The servers of a list: a line `*`, one that begins with `#`, then rows of 15 fields. A row that is shorter, or has no
 * host, country or configuration, is left out.
 */
export const poolServers = (text: string): PoolServer[] => {
  const servers: PoolServer[] = []
  for (const line of text.split('\n')) {
    if (servers.length >= MOST_SERVERS) break
    const fields = line.trim().split(',')
    if (line.startsWith('*') || line.startsWith('#') || fields.length < FIELDS) continue
    const [host = '', ip = '', score = '', , , , country = ''] = fields
    const packed = fields[FIELDS - 1]!
    const isWhole =
      normalHost(host) !== undefined
      && ['public', 'private'].includes(addressKind(ip))
      && /^[A-Za-z]{2}$/.test(country)
      && packed.length <= MOST_PACKED
      && /^[A-Za-z0-9+/]+={0,2}$/.test(packed)
    if (!isWhole) continue
    servers.push({ host, ip, country: country.toUpperCase(), score: Number(score) || 0, packed })
  }
  return servers.sort((one, other) => other.score - one.score)
}

/**
 * The configuration of a server as a client gets it: known directives alone, with no route, no program and no file.
 *
 * @throws A refusal where it cannot be used.
 */
export const poolConf = ({ packed }: Pick<PoolServer, 'packed'>): OpenvpnConf => {
  const conf = openvpnConf(Buffer.from(packed, 'base64').toString('latin1'), { only: [], lenient: true })
  const [, cipher] = /^cipher ([A-Za-z0-9-]+)$/m.exec(conf.text) ?? []
  // Old servers agree on nothing, and speak the cipher of their configuration.
  const ciphers =
    cipher === undefined || /^data-ciphers /m.test(conf.text) ? '' : `data-ciphers AES-256-GCM:AES-128-GCM:${cipher}\n`
  return { ...conf, text: ciphers + conf.text }
}
