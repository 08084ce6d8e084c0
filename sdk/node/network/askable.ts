import type { LookupFunction } from 'node:net'
import { addressesOf } from './outbound.js'
import { ownListeners } from './own-listeners.js'

/**
 * Looks up a server that a person named, at each connection anew, for a request that goes to what was checked: it may
 * be anywhere near, but neither this daemon, whatever it listens on by now, nor where a machine is told its own
 * secrets.
 *
 * Throws a `Refusal` for another server, and the error of the lookup for a name that nobody knows.
 */
export const askableLookup = async (url: URL, signal: AbortSignal): Promise<LookupFunction> => {
  const addresses = await addressesOf(url, { near: true, listeners: ownListeners() }, signal)
  return (_, { all }, found) =>
    all ? found(null, addresses) : found(null, addresses[0]!.address, addresses[0]!.family)
}
