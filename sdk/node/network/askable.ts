import type { Agent } from 'node:http'
import type { LookupFunction } from 'node:net'
import { lookupOf } from './names.js'
import { reachOfRedirect, wayTo } from './outbound.js'
import type { MachineReach } from './addresses.js'
import { ownListeners } from './own-listeners.js'
import { upstreamOptions, type UpstreamProxy } from './upstream.js'

/** Where servers that a person named may be. */
type AskableReach = Omit<MachineReach, 'listeners'>

/** How a request to a server that a person named is sent. */
export interface AskableWay {
  readonly options: {
    readonly agent: Agent | false
    readonly lookup: LookupFunction
    readonly path?: string
    readonly headers: { readonly [name: string]: string }
  }
  /** The proxy of the deployment that takes it; left out: it is sent to the server itself. */
  readonly proxy?: UpstreamProxy
  /** Where the server may redirect. */
  readonly redirects: AskableReach
}

/**
 * The way to a server that a person named, at each connection anew: it may be anywhere near, but neither this daemon,
 * whatever it listens on by now, nor where a machine is told its own secrets. A request goes to what was checked.
 *
 * @param reach Where the server may be that another one redirects to; default: anywhere near.
 *
 * @throws A `Refusal` where it must not be asked, and the error of the lookup for a name that nobody knows.
 */
export const askableWay = async (
  url: URL,
  agent: Agent | false,
  signal: AbortSignal,
  reach: AskableReach = { near: true },
): Promise<AskableWay> => {
  const whole = { ...reach, listeners: ownListeners() }
  const way = await wayTo(url, whole, signal)
  const { addresses, proxy } = way
  const redirects = reachOfRedirect(whole, url, way)
  const lookup = lookupOf(addresses)
  return proxy
    ? { options: { lookup, ...upstreamOptions(url, proxy, agent ? 'kept' : 'once') }, proxy, redirects }
    : { options: { agent, lookup, headers: {} }, redirects }
}
