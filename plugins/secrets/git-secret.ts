import { isBoundTo } from '../../sdk/node/network/bound-traffic.js'
import type { StoredSecret } from './vault/vault.js'

const PRIVATE_KEY = /^\s*-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/

/** The value that a git server is told: the best of those that are bound to its host and to no persona. */
export const gitSecret = (
  secrets: readonly StoredSecret[],
  host: string,
  form: 'password' | 'key' = 'password',
): StoredSecret | undefined => {
  const rank = ({ name, hosts = [] }: StoredSecret): number =>
    (/GIT/i.test(name) ? 0 : 2) + (hosts.some(entry => entry.toLowerCase() === host.toLowerCase()) ? 0 : 1)
  return secrets
    .filter(({ kind, hosts, personas }) => kind !== 'field' && personas === undefined && isBoundTo(hosts ?? [], host))
    .filter(({ value }) => PRIVATE_KEY.test(value) === (form === 'key'))
    .sort((one, other) => rank(one) - rank(other) || (one.name < other.name ? -1 : 1))[0]
}
