import { Agent as PlainAgent, request as plainRequest, type IncomingMessage } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import { refuse } from '../../refusal.js'
import { CLOSED } from './failure-words.js'
import { normalHost } from './host-form.js'
import { lookupOf } from './names.js'
import { wayTo, webAddress } from './outbound.js'
import type { NetworkReach } from './policy.js'
import { refusedByProxy, upstreamOptions } from './upstream.js'

const MOST_REDIRECTS = 5
const REDIRECTS = new Set([307, 308])
const BODILESS = new Set([204, 205, 304])

/**
 * What may be sent twice (RFC 9110, section 9.2.2). Only these use a connection that was kept: it may close before the
 * server reads a request, which nobody can tell from one that the server read and did.
 */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

const kept = { 'http:': new PlainAgent({ keepAlive: true }), 'https:': new SecureAgent({ keepAlive: true }) }

/** What a library asks a server with, as it asks `fetch`. */
export type CheckedFetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/**
 * A `fetch` for a server that somebody named: each connection goes to an address that was checked, and redirects are
 * followed within the server's origin alone. A request that changes something anew each time, such as a POST, is sent
 * once.
 */
export const checkedFetch =
  (reach: () => Promise<NetworkReach>): CheckedFetch =>
  async (target, init = {}) => {
    const asked = new Request(target, init)
    const body = init.body === undefined || init.body === null ? undefined : Buffer.from(await asked.arrayBuffer())
    const start = webAddress(asked.url)
    for (let url = start, hops = 0; ; hops++) {
      const answer = await send(url, asked, body, await reach())
      const { statusCode: status = 0, headers } = answer
      if (!REDIRECTS.has(status) || headers.location === undefined) return responseOf(answer)
      answer.destroy()
      const to = URL.parse(headers.location, url.href)
      if (to?.origin !== start.origin || hops === MOST_REDIRECTS)
        return refuse(
          'dependency',
          `${start.origin} redirects to ${(to?.origin ?? 'no address').slice(0, 200)}, which is not followed: give `
            + 'that address itself if it is the right one',
        )
      url = to
    }
  }

const send = async (
  url: URL,
  asked: Request,
  body: Buffer | undefined,
  reach: NetworkReach,
): Promise<IncomingMessage> => {
  const { method, headers, signal } = asked
  const connections = IDEMPOTENT.has(method) ? 'kept' : 'once'
  const { addresses, proxy } = await wayTo(url, reach, signal)
  const secure = url.protocol === 'https:'
  const host = normalHost(url.hostname) ?? ''
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const through = proxy && upstreamOptions(url, proxy, connections)
  const options = {
    method,
    signal,
    lookup: lookupOf(addresses),
    agent: connections === 'kept' && kept[secure ? 'https:' : 'http:'],
    ...through,
    headers: {
      ...Object.fromEntries(headers),
      'accept-encoding': 'identity',
      ...(body && { 'content-length': body.length }),
      ...through?.headers,
    },
  }
  const request = secure
    ? secureRequest(url, { ...options, ...(!isIP(host) && { servername: host }) })
    : plainRequest(url, options)
  request.once('response', answer => {
    const refused = secure ? undefined : refusedByProxy(proxy, answer)
    if (refused) reject(refused)
    else resolve(answer)
  })
  // A server that switches the protocol makes no other event.
  request.once('close', () => reject(new Error(CLOSED)))
  request.on('error', reject).end(body)
  return promise.catch((error: NodeJS.ErrnoException) => {
    // The server had closed the connection before it heard of the request.
    if (request.reusedSocket && error.code === 'ECONNRESET') return send(url, asked, body, reach)
    throw error
  })
}

const responseOf = (answer: IncomingMessage): Response => {
  const { statusCode: status = 0, headers } = answer
  const kept = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as [string, string]],
  )
  if (BODILESS.has(status)) answer.resume()
  // Node types the stream of a web with its own name.
  const body = BODILESS.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
  return new Response(body, { status, headers: kept })
}
