import { lookup as resolve, type LookupAddress } from 'node:dns'
import { request as plainRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as secureRequest } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { connect as secured } from 'node:tls'
import { Refusal, refuse } from '../../refusal.js'
import { addressKind, barred, isHere, plainAddress } from './addresses.js'
import { isMetadataName } from './allow.js'
import { trustAuthorities } from './authority.js'
import { placeholdersIn, withValues, type BoundTraffic } from './bound-traffic.js'
import { encodingOf } from './filling.js'
import { normalHost } from './host-form.js'
import { CLOSED, SENTENCES } from './failure-words.js'
import { GrowingBytes } from '../growing-bytes.js'
import { lookupOf, soonFound } from './names.js'
import { HOST_FORM, isNearName, judge, judgeName, sentenceOf, type NetworkReach } from './policy.js'
import { refusedByProxy, deploymentProxy, upstreamOptions, type UpstreamProxy } from './upstream.js'

/** A request to a server outside, made for somebody else. */
export interface OutboundRequest {
  readonly url: string
  readonly method?: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string | Buffer
  readonly reach: NetworkReach
  readonly signal?: AbortSignal
  /** For everything together: names, redirects, the whole answer. */
  readonly timeoutMs: number
  /** How many redirects are followed; left out: 10. */
  readonly redirects?: number
  /** The most bytes of the answer's body that are read. */
  readonly maxBytes: number
}

export interface OutboundReply {
  /** Where the answer came from, after redirects. */
  readonly url: string
  readonly status: number
  readonly statusText: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body went on. */
  readonly truncated: boolean
}

const MOST_REDIRECTS = 10
const MOST_HEADERS = 64 * 1024
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Headers that are for every server; any other may hold what is for the one it was meant for alone. */
const COMMON = /^(?:accept|accept-language|content-type|content-length|range|user-agent)$/i

interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | Buffer
}

/** The address as it is asked; refused when it is none of the web. */
export const webAddress = (text: string, base?: URL): URL => {
  const shown = JSON.stringify(text.slice(0, 200))
  const url = URL.parse(text, base?.href) ?? refuse('invalid', `url: expected an http or https address, found ${shown}`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    refuse('invalid', `url: expected an http or https address, found one of ${url.protocol.slice(0, 40)}`)
  }
  if (url.username || url.password)
    refuse('invalid', 'url: expected an address without a name and password in it; send them as a header')
  return url
}

/**
 * Asks a server, following its redirects; a status of 400 and more is an answer too.
 *
 * Every address a name stands for is checked, at every redirect again, and the connection goes to one that was.
 */
export const askOutside = async (asked: OutboundRequest): Promise<OutboundReply> => {
  const { signal, timeoutMs, redirects: most = MOST_REDIRECTS } = asked
  const late = AbortSignal.timeout(timeoutMs)
  const over = signal ? AbortSignal.any([signal, late]) : late
  let hop: Hop = {
    url: webAddress(asked.url),
    method: asked.method ?? 'GET',
    headers: asked.headers ?? {},
    ...(asked.body !== undefined && { body: asked.body }),
  }
  let { reach } = asked
  try {
    for (let redirects = 0; ; redirects++) {
      const way = await wayTo(hop.url, reach, over)
      reach = reachOfRedirect(reach, hop.url, way)
      const own =
        way.addresses[0] && isOwnLoopback(way.addresses[0].address, asked.reach)
          ? await asked.reach.own!.dial(portOf(hop.url))
          : undefined
      const answer = await send(await filledHop(hop, asked.reach.own?.bound), way, over, own)
      const { location } = answer.headers
      if (!REDIRECTS.has(answer.statusCode ?? 0) || location === undefined)
        return await read(answer, hop.url, asked.maxBytes)
      answer.destroy()
      if (redirects === most) refuse('dependency', `${asked.url.slice(0, 200)} redirects more than ${most} times`)
      hop = redirected(hop, answer.statusCode!, webAddress(location, hop.url))
    }
  } catch (error) {
    signal?.throwIfAborted()
    if (late.aborted) return refuse('dependency', `${hop.url.host} did not answer within ${timeoutMs} ms`)
    if (error instanceof Refusal) throw error
    const { code, message } = error as NodeJS.ErrnoException
    return refuse('dependency', `${hop.url.host} could not be asked: ${SENTENCES[code ?? ''] ?? code ?? message}`, {
      cause: error,
    })
  }
}

/** How a server is reached: at addresses that were checked, or through the proxy of the deployment. */
export interface Way {
  /** Those of its addresses that may be asked; none: only the proxy knows its name. */
  readonly addresses: readonly LookupAddress[]
  readonly proxy?: UpstreamProxy
}

/** Whether a way leads to public addresses alone, as far as this machine knows. */
const isPublic = ({ hostname }: URL, { addresses }: Way): boolean =>
  addresses.length > 0
    ? addresses.every(({ address }) => addressKind(address) === 'public')
    : !isNearName(normalHost(hostname) ?? '')

/** Where a server may redirect: a public one to no private address, and one of another machine not to this one. */
export const reachOfRedirect = <T extends NetworkReach>(reach: T, url: URL, way: Way): T =>
  reach.own
    ? reach
    : {
        ...reach,
        near: reach.near && !isPublic(url, way),
        away: reach.away || !way.addresses.some(({ address }) => isHere(plainAddress(address) ?? '')),
      }

/** The host and port of an address; refused when the host has no normal form. */
const targetOf = (url: URL): { host: string; port: number } => ({
  host:
    normalHost(url.hostname)
    ?? refuse('invalid', `url: expected ${HOST_FORM} as host, found ${url.hostname.slice(0, 300)}`),
  port: portOf(url),
})

/** The way to a server; refused where nothing that may be asked is there. */
export const wayTo = async (url: URL, reach: NetworkReach, signal: AbortSignal): Promise<Way> => {
  const target = targetOf(url)
  const { host, port } = target
  const secure = url.protocol === 'https:'
  if (secure) trustAuthorities()
  const proxy = deploymentProxy(target, secure ? 'https:' : 'http:')
  if (!proxy) return { addresses: await addressesOf(url, reach, signal) }
  const family = isIP(host)
  const all = family ? [{ address: host, family }] : await soonFound(named(host, signal))
  signal.throwIfAborted()
  if (all.some(({ address }) => isHere(plainAddress(address) ?? '')))
    return { addresses: await addressesOf(url, reach, signal) }
  // The proxy looks the name up itself, so all that it is known to stand for must be open.
  const why = all.length
    ? all.map(({ address }) => refusalOf(host, address, port, reach)).find(each => each !== undefined)
    : refusalOfName(target, reach)
  if (why === undefined) return { addresses: all, proxy }
  reach.own?.refused(target, why)
  return refuse('forbidden', why)
}

/** The sentence of a name that only the proxy knows and that must not be asked. */
const refusalOfName = (target: { host: string; port: number }, reach: NetworkReach): string | undefined => {
  if (reach.own) {
    const why = judgeName(target, reach.own.rules)
    return why && sentenceOf(target, why)
  }
  const shown = `${target.host}:${target.port} is not asked`
  if (isMetadataName(target.host)) return `${shown}: it is where a machine is told its own secrets`
  return !reach.near && isNearName(target.host)
    ? `${shown}: it is a name of a private network, which this turn may not reach`
    : undefined
}

/** The addresses a host stands for, only those that may be asked. */
export const addressesOf = async (url: URL, reach: NetworkReach, signal: AbortSignal): Promise<LookupAddress[]> => {
  const { host, port } = targetOf(url)
  const family = isIP(host)
  const all = family ? [{ address: host, family }] : await named(host, signal)
  const loopback = all[0] !== undefined && isOwnLoopback(all[0].address, reach)
  const open = all.filter(
    ({ address }) => isOwnLoopback(address, reach) === loopback && refusalOf(host, address, port, reach) === undefined,
  )
  if (open.length > 0) return open
  const why =
    all[0] === undefined
      ? `${url.host} is not asked: it stands for no address`
      : refusalOf(host, all[0].address, port, reach)!
  reach.own?.refused({ host, port }, why)
  return refuse('forbidden', why)
}

/** A request with the values in it that may go to its host. */
const filledHop = async (hop: Hop, bound: BoundTraffic | undefined): Promise<Hop> => {
  const { url, method, headers } = hop
  const body = typeof hop.body === 'string' ? hop.body : ''
  const found = placeholdersIn([...Object.values(headers), body].join('\n'))
  if (!bound || found.length === 0) return hop
  const host = normalHost(url.hostname) ?? ''
  const values = await bound.fill(found, { host, port: portOf(url), method, secure: url.protocol === 'https:' })
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  return {
    ...hop,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, withValues(value, values)])),
    ...(body && { body: withValues(body, values, encodingOf(type)) }),
  }
}

const portOf = (url: URL): number => Number(url.port || (url.protocol === 'https:' ? 443 : 80))

/** Whether an address is the conversation's own loopback, not that of the machine. */
export const isOwnLoopback = (address: string, { own }: NetworkReach): boolean =>
  own !== undefined && addressKind(address) === 'loopback'

/** The sentence of an address that must not be asked. */
const refusalOf = (host: string, address: string, port: number, reach: NetworkReach): string | undefined => {
  if (isOwnLoopback(address, reach)) return undefined
  if (!reach.own) {
    const why = barred(address, port, reach)
    return why === undefined ? undefined : `${host.includes(':') ? `[${host}]` : host}:${port} is not asked: ${why}`
  }
  const why = judge({ host, port }, address, reach.own.rules)
  return why && sentenceOf({ host, port }, why)
}

const named = (host: string, signal: AbortSignal): Promise<LookupAddress[]> =>
  new Promise((found, failed) => {
    signal.throwIfAborted()
    const stop = () => failed(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    resolve(host, { all: true }, (error, addresses) => {
      signal.removeEventListener('abort', stop)
      if (error) failed(error)
      else found(addresses)
    })
  })

const send = (
  { url, method, headers, body }: Hop,
  { addresses, proxy }: Way,
  signal: AbortSignal,
  own?: Socket,
): Promise<IncomingMessage> =>
  new Promise((answered, failed) => {
    const secure = url.protocol === 'https:'
    const connection = own && {
      createConnection: () =>
        secure ? secured({ socket: own, servername: isIP(url.hostname) ? '' : url.hostname }) : own,
    }
    const through = proxy && upstreamOptions(url, proxy, 'once')
    const request = (secure ? secureRequest : plainRequest)(url, {
      method,
      lookup: lookupOf(addresses),
      signal,
      maxHeaderSize: MOST_HEADERS,
      ...(connection ?? { agent: false }),
      ...through,
      headers: {
        ...{ accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'sandbox' },
        ...headers,
        ...through?.headers,
      },
    })
    // It came paused, so that nothing of it is lost.
    request.once('socket', () => own?.resume())
    request.once('response', answer => {
      const refused = secure ? undefined : refusedByProxy(proxy, answer)
      if (refused) failed(refused)
      else answered(answer)
    })
    request.on('error', failed)
    request.once('close', () => failed(new Error(CLOSED)))
    request.end(body)
  })

const read = async (answer: IncomingMessage, url: URL, maxBytes: number): Promise<OutboundReply> => {
  const read = new GrowingBytes()
  for await (const piece of answer as AsyncIterable<Buffer>) {
    read.add(piece)
    if (read.size > maxBytes) break
  }
  answer.destroy()
  const { statusCode = 0, statusMessage = '', headers } = answer
  return {
    url: url.href,
    status: statusCode,
    statusText: statusMessage,
    headers,
    body: read.bytes.subarray(0, maxBytes),
    truncated: read.size > maxBytes,
  }
}

/** What a redirect asks for; what was private to the one server does not go to another. */
const redirected = (hop: Hop, status: number, url: URL): Hop => {
  const again = status === 307 || status === 308
  const method = again || hop.method === 'GET' || hop.method === 'HEAD' ? hop.method : 'GET'
  const keeps = (name: string) =>
    (url.origin === hop.url.origin || COMMON.test(name)) && (again || !/^content-/i.test(name))
  const headers = Object.fromEntries(Object.entries(hop.headers).filter(([name]) => keeps(name)))
  return { url, method, headers, ...(again && hop.body !== undefined && { body: hop.body }) }
}
