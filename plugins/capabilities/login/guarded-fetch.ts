import type { FetchLike } from '@modelcontextprotocol/client'
import { refuse } from '../../../sdk/index.js'
import type { Listener } from '../../../sdk/node/network/addresses.js'
import { namedAddress } from '../../../sdk/node/named-address.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'

const TIMEOUT_MS = 10_000
const MOST_BYTES = 1024 * 1024

/** Asks the addresses that a server names for signing in. */
export const guardedFetch =
  (server: URL, listeners: () => Promise<readonly Listener[]>): FetchLike =>
  async (target, init = {}) => {
    const { url, near } =
      namedAddress(server, String(target))
      ?? refuse('dependency', `the server names ${originOf(target)} for signing in: expected https`)
    const { status, statusText, headers, body } = await askOutside({
      url: url.href,
      method: init.method ?? 'GET',
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(init.body !== undefined && init.body !== null && { body: String(init.body) }),
      reach: { near, listeners: [...(await listeners())] },
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

const originOf = (target: string | URL): string => URL.parse(String(target))?.origin ?? 'no address'
