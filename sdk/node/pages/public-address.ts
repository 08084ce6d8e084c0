import type { Host } from '../../host.js'
import type { HttpFacts } from '../../types.js'

/** Where public files and pages are found. */
export interface PublicAddress {
  /** The beginning of their addresses, without a slash at its end; undefined: serving is switched off. */
  readonly base?: string
  /** Whether the address answers from outside, on this machine alone, or nowhere. */
  readonly reach: 'public' | 'machine' | 'none'
}

const HERE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|.*\.localhost)$/

/** The present address of public files and pages, as links name it. */
export const publicAddress = async (
  host: Pick<Host, 'call' | 'place'>,
  http?: Pick<HttpFacts, 'base'>,
): Promise<PublicAddress> => {
  const { serve = 'on', host: own, url } = host.place.publicPages
  if (serve === 'off') return { reach: 'none' }
  const asked = new URL(url ?? http?.base ?? (await ownListener(host)))
  const base = own === undefined ? asked.origin : `${asked.protocol}//${own}`
  return { base, reach: HERE.test(new URL(base).hostname) ? 'machine' : 'public' }
}

const ownListener = async (host: Pick<Host, 'call'>): Promise<string> => {
  const [first] = (await host.call('kernel.listeners')).listeners
  const name = first?.host.includes(':') ? `[${first.host}]` : first?.host
  return `http://${name ?? '127.0.0.1'}:${first?.port ?? 0}`
}
