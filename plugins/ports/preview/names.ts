import { randomBase32 } from '../../../sdk/node/access/random-name.js'

const RANDOM = 16
/** The longest label of a host name (RFC 1035, section 2.3.4). */
const LONGEST = 63

/** The random end of a name: 80 bits in base32. */
export const randomName = (): string => randomBase32(RANDOM)

/** Where names of previews are. */
export interface NameZone {
  /** The address of the deployment's zone; absent: names are below `localhost`. */
  readonly zone?: string
  readonly sandboxId: string
}

/**
 * The first label of the host name of a preview: what people read is cut where it would be too long, and in a zone that
 * several sandboxes share the id of the sandbox follows.
 */
export const hostLabel = (readable: string, random: string, { zone, sandboxId }: NameZone): string => {
  const end = `-${random}${zone === undefined ? '' : `-${sandboxId}`}`
  const plain = readable.toLowerCase().replace(/[^a-z0-9-]/g, '-')
  return `${plain.slice(0, LONGEST - end.length).replace(/-+$/, '')}${end}`
}

/** The host name of a preview, without a port. */
export const hostName = (label: string, { zone }: NameZone): string =>
  `${label}.${zone === undefined ? 'localhost' : new URL(zone).hostname}`

/** The address of a preview. */
export const previewUrl = (label: string, zone: NameZone, port: number): string => {
  const name = hostName(label, zone)
  if (zone.zone === undefined) return `http://${name}:${port}`
  const { protocol, port: outside } = new URL(zone.zone)
  return `${protocol}//${name}${outside ? `:${outside}` : ''}`
}
