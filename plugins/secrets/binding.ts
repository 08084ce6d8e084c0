import type { KnownSecret } from './open-store.js'

/**
 * Why a value that is bound to hosts may not go into a text: a proxy would have to put it into the requests to these
 * hosts alone. Undefined for a value without a binding.
 */
export const boundRefusal = ({ name, hosts = [] }: KnownSecret): string | undefined =>
  hosts.length === 0
    ? undefined
    : `{{secret:${name}}} is bound to ${hosts.slice(0, 5).join(', ')}${hosts.length > 5 ? ' and others' : ''}, and `
      + 'this network is shared or has no proxy that puts it into requests to these hosts alone: it was not used'
