import { lookup } from 'node:dns'
import type { Agent } from 'node:http'
import { isIP, type LookupFunction } from 'node:net'
import { barred } from './addresses.js'
import { trustAuthorities } from './authority.js'
import { normalHost } from './host-form.js'
import { wayTo } from './outbound.js'
import { deploymentProxy, upstreamOptions, type UpstreamProxy } from './upstream.js'

/** Servers that people name may be anywhere near, but nowhere a machine is told its own secrets. */
const NEAR = { near: true, listeners: [] }

const refusal = (host: string, why = 'it is no name or address of a host'): Error =>
  new Error(`${host.slice(0, 300)} is not asked: ${why}`)

/** Why a server that a person named is not asked by its address; undefined: it is, or its name is looked up. */
export const unaskable = ({ hostname, port }: URL): Error | undefined => {
  const host = normalHost(hostname)
  if (host === undefined) return refusal(hostname)
  const why = isIP(host) ? barred(host, Number(port), NEAR) : undefined
  return why === undefined ? undefined : refusal(host, why)
}

/** Looks up the name of a server that a person named, at each connection anew: only addresses that may be asked. */
export const askableLookup: LookupFunction = (host, options, found) =>
  lookup(host, { ...options, all: true }, (error, all) => {
    if (error) return found(error, [])
    const open = all.filter(({ address }) => barred(address, 0, NEAR) === undefined)
    if (open.length === 0) return found(refusal(host, all[0] && barred(all[0].address, 0, NEAR)), [])
    if (options.all) found(null, open)
    else found(null, open[0]!.address, open[0]!.family)
  })

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
}

/**
 * The way to a server that a person named.
 *
 * @throws Where it must not be asked.
 */
export const askableWay = async (url: URL, agent: Agent | false, signal: AbortSignal): Promise<AskableWay> => {
  const wrong = unaskable(url)
  if (wrong) throw wrong
  const secure = url.protocol === 'https:'
  if (secure) trustAuthorities()
  const target = { host: normalHost(url.hostname)!, port: Number(url.port || (secure ? 443 : 80)) }
  const behind = deploymentProxy(target, secure ? 'https:' : 'http:')
  const proxy = behind && (await wayTo(url, NEAR, signal)).proxy
  return proxy
    ? { options: { lookup: askableLookup, ...upstreamOptions(url, proxy, agent ? 'kept' : 'once') }, proxy }
    : { options: { agent, lookup: askableLookup, headers: {} } }
}
