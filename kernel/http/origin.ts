import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { readBearer, readHead, type CredentialHead } from '../auth/credential.js'
import type { Deployment } from '../config/deployment.js'
import { refuse } from '../../sdk/refusal.js'
import type { HttpFacts } from '../../sdk/types.js'

/** Where a request comes from and which host it names; checked before anything else. */
export interface Arrival extends HttpFacts {
  /** The headers that decide access; each occurs at most once. */
  readonly head: CredentialHead
  /** Whether `Host` is a name of this sandbox. */
  readonly ownHost: boolean
  /** The origin that may read the answer; absent if the request has none or it is not allowed. */
  readonly origin?: string
  /** Why a request of a foreign origin is refused. */
  readonly foreign?: string
}

const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|localhost)(:\d{1,5})?$/i
const FORWARDING = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** Checks Host, Origin and transport against the deployment's lists, against DNS rebinding and cross-site requests. */
export const createArrival = (
  http: NonNullable<Deployment['http']>,
  publicHost?: string,
): ((req: IncomingMessage) => Arrival) => {
  const hosts = new Set((http.hosts ?? []).map(host => host.toLowerCase()))
  const patterns = (http.origins ?? []).map(originPattern)
  const proxies = new Set(http.trustedProxies ?? [])

  return req => {
    const peer = plainAddress(req.socket.remoteAddress)
    const proxied = proxies.has(peer)
    const head = readHead(req.rawHeaders)
    const host = head.get('host') ?? refuse('invalid', 'expected one Host header, found none')
    const loopbackName = LOOPBACK.test(host)
    const near = isLoopback(peer)
    const forwarded = FORWARDING.some(name => name in req.headers)
    const local = near && !forwarded && loopbackName
    const tls =
      (req.socket as TLSSocket).encrypted === true || (proxied && req.headers['x-forwarded-proto'] === 'https')
    const base = `${tls ? 'https' : 'http'}://${host}`
    const isPublic = publicHost !== undefined && host.toLowerCase() === publicHost
    const ownHost =
      isPublic || (loopbackName && isLoopback(plainAddress(req.socket.localAddress))) || hosts.has(host.toLowerCase())
    const origin = head.get('origin')
    const allowed =
      origin !== undefined
      && origin !== 'null'
      // What is published is other people's code.
      && URL.parse(origin)?.host !== publicHost
      && (origin === base || patterns.some(pattern => pattern.test(origin)))
    const address = proxied ? (clientOf(req, proxies) ?? peer) : peer
    return {
      head,
      address,
      base: http.publicUrl ?? base,
      ownHost,
      publicHost: isPublic || undefined,
      local,
      nearPort: near ? req.socket.remotePort : undefined,
      forwarded: forwarded || undefined,
      plain: (!local && !tls && !http.allowPlain && !isLoopback(address)) || undefined,
      bearer: readBearer(head),
      userAgent: req.headers['user-agent'],
      origin: allowed ? origin : undefined,
      foreign: foreignOf(req, origin, allowed),
    }
  }
}

/** Refuses a credential sent over plain HTTP from another machine. */
export const refusePlain = ({ plain }: Arrival): void => {
  if (plain)
    refuse(
      'forbidden',
      'a credential was sent over plain HTTP: use https through a trusted proxy, or set http.allowPlain on a '
        + 'private network',
    )
}

const foreignOf = (req: IncomingMessage, origin: string | undefined, allowed: boolean): string | undefined => {
  // Browsers do not apply CORS to WebSockets: any page could read the frames.
  const reading = ['GET', 'HEAD', 'OPTIONS'].includes(req.method ?? '') && req.headers.upgrade === undefined
  if (allowed || (reading && origin !== 'null')) return undefined
  if (origin !== undefined)
    return (
      `pages of ${origin === 'null' ? 'an opaque origin' : origin} may not call this sandbox: add the `
      + 'origin to http.origins'
    )
  return req.headers['sec-fetch-site'] === 'cross-site'
    ? 'a page of another site may not call this sandbox: add its origin to http.origins'
    : undefined
}

/** The last address of `x-forwarded-for` that is not a trusted proxy. */
const clientOf = (req: IncomingMessage, proxies: ReadonlySet<string>): string | undefined =>
  String(req.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
    .findLast(part => !proxies.has(part))

const plainAddress = (address = ''): string => address.replace(/^::ffff:/, '')

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')

/** `https://*.example.org`: the star stands for exactly one label. */
const originPattern = (origin: string): RegExp =>
  new RegExp(`^${origin.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '[a-z0-9-]+')}$`, 'i')
