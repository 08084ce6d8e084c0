import type { FetchLike } from '@modelcontextprotocol/client'
import { refuse } from '../../../sdk/index.js'
import { addressKind, type Listener } from '../../../sdk/node/network/addresses.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'

const TIMEOUT_MS = 10_000
const MOST_BYTES = 1024 * 1024

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** Whether an address is one of this machine for itself. */
export const isLoopback = (url: URL): boolean =>
  hostOf(url) === 'localhost' || hostOf(url).endsWith('.localhost') || addressKind(hostOf(url)) === 'loopback'

/**
 * Asks the addresses that a server names for signing in, which are outside content: over https, and on no private
 * address but that of the server itself.
 */
export const guardedFetch =
  (server: URL, listeners: () => Promise<readonly Listener[]>): FetchLike =>
  async (target, init = {}) => {
    const url = new URL(target)
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(server) && isLoopback(url)))
      refuse('dependency', `the server names ${url.origin} for signing in: expected https`)
    const { status, statusText, headers, body } = await askOutside({
      url: url.href,
      method: init.method ?? 'GET',
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(init.body !== undefined && init.body !== null && { body: String(init.body) }),
      reach: { near: hostOf(url) === hostOf(server), listeners: [...(await listeners())] },
      ...(init.signal && { signal: init.signal }),
      timeoutMs: TIMEOUT_MS,
      redirects: 0,
      maxBytes: MOST_BYTES,
    })
    const kept = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as [string, string]],
    )
    const empty = status === 204 || status === 205 || status === 304
    return new Response(empty ? null : new Uint8Array(body), { status, statusText, headers: kept })
  }
