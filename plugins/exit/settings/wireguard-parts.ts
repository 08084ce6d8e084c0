import { hash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { refuse } from '../../../sdk/index.js'
import { wireguardConf, type WireguardConf } from '../../../sdk/node/tunnels/wireguard-conf.js'

/** One of the configurations of an exit. */
export interface WireguardPart {
  /** Names it, whatever stands around it. */
  readonly key: string
  /** The first gateway, as it is shown. */
  readonly server: string
  /** The country that its text names; left out: it is not known yet. */
  readonly country?: string
  /** The address of this machine in its tunnel. */
  readonly address: string
  readonly conf: WireguardConf
  readonly secrets: readonly string[]
}

const MOST_PARTS = 500
const SAID = /^\s*#\s*country\s*[:=]\s*([A-Za-z]{2})\s*$/im
const BEGINS = /^\s*#\s*([A-Z]{2})[-#]/m
/** A host whose name begins with the letters of a country, such as `de-fra-wg-001.example.org`. */
const HOST = /^([a-z]{2})\d*(?:-[a-z0-9]+){2,}(?:\.|$)/i

/** The country that the text of a configuration names, in capitals. */
export const countryLabelOf = (text: string, endpoint = ''): string | undefined =>
  (SAID.exec(text) ?? BEGINS.exec(text) ?? HOST.exec(endpoint))?.[1]?.toUpperCase()

interface Piece {
  /** The number of its first line. */
  readonly line: number
  readonly lines: readonly string[]
}

/** Splits a text at each `[Interface]`; comments right above one belong to it. */
const piecesOf = (text: string): Piece[] => {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const starts = lines.flatMap((line, at) => (/^\s*\[interface\]\s*(?:#.*)?$/i.test(line) ? [at] : []))
  const begins = starts.map((at, nth) => {
    let begin = at
    const least = nth === 0 ? 0 : starts[nth - 1]! + 1
    while (begin > least && /^\s*(?:#.*)?$/.test(lines[begin - 1]!)) begin--
    return nth === 0 ? 0 : begin
  })
  return begins.map((begin, nth) => ({ line: begin + 1, lines: lines.slice(begin, begins[nth + 1]) }))
}

const KEYS = /^\s*(?:PrivateKey|PresharedKey)\s*=\s*(\S{24,})/gim

/**
 * The configurations of a text, one after another. Each comes out without name servers, its own routes and the networks
 * beside its address, so that nothing but what is bound to that address goes into it. 422: one cannot be used, with its
 * line.
 */
export const wireguardParts = (text: string): WireguardPart[] => {
  const pieces = piecesOf(text)
  if (pieces.length === 0) refuse('unprocessable', 'config: expected at least one [Interface], found none')
  if (pieces.length > MOST_PARTS)
    refuse('unprocessable', `config: expected at most ${MOST_PARTS} configurations, found ${pieces.length}`)
  const known = new Set<string>()
  return pieces.flatMap(({ line, lines }) => {
    const own = lines.join('\n')
    const conf = wireguardConf(own, { bare: true, line })
    const address = conf.addresses.find(one => isIPv4(one))
    const [server] = conf.peers.flatMap(({ endpoint }) => endpoint ?? [])
    if (address === undefined || server === undefined)
      return refuse(
        'unprocessable',
        `config: line ${line}: expected ${address === undefined ? 'an Address of IPv4' : 'a peer with Endpoint'}`,
      )
    const key = hash('sha256', conf.text, 'hex').slice(0, 16)
    // Twice the same is one.
    if (known.has(key)) return []
    known.add(key)
    const country = countryLabelOf(own, server)
    const secrets = [...own.matchAll(KEYS)].map(([, secret = '']) => secret)
    return [{ key, server, address, conf, secrets, ...(country !== undefined && { country }) }]
  })
}
