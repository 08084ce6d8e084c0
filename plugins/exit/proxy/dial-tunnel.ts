import { Resolver } from 'node:dns/promises'
import { connect, isIP, isIPv4, type Socket } from 'node:net'
import { ignored } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { Dial } from '../../../sdk/node/network/policy.js'
import { assertOutside, noTunnel } from './targets.js'

const CONNECT_MS = 30_000
const LOOKUP_MS = 5_000
const TRIES = 2
/** Name servers of a tunnel that names none. */
const USUAL = ['1.1.1.1', '9.9.9.9']
/** Failures that mean that the address of the tunnel is gone. */
const GONE: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'ENETUNREACH', 'ENETDOWN', 'EINVAL'])
const UNKNOWN: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA'])

/** Connects to targets from the address of a tunnel, and has names looked up from there too. */
export const tunnelDial = (address: string, dns: readonly string[], isUp: () => Promise<boolean>): Dial => {
  const resolver = new Resolver({ timeout: LOOKUP_MS, tries: TRIES })
  const servers = dns.filter(isIPv4)
  resolver.setServers(servers.length > 0 ? servers : USUAL)
  resolver.setLocalAddress(address)
  const addressesOf = async (host: string): Promise<string[]> => {
    if (isIP(host)) return [host]
    return resolver.resolve4(host).catch(async (error: unknown) => {
      if (!(await isUp())) throw noTunnel()
      const code = UNKNOWN.has(codeOf(error) ?? '') ? 'ENOTFOUND' : 'EAI_AGAIN'
      throw Object.assign(new Error(`${host} was not found`), { code })
    })
  }
  return async ({ host, port }) => {
    assertOutside(host)
    const [found] = (await addressesOf(host)).filter(isIPv4)
    if (found === undefined) throw Object.assign(new Error('the tunnel has no IPv6'), { code: 'EHOSTUNREACH' })
    assertOutside(found)
    return connected(connect({ host: found, port, localAddress: address, allowHalfOpen: true, noDelay: true }))
  }
}

/** The socket once it is connected, paused. */
const connected = (socket: Socket): Promise<Socket> =>
  new Promise((done, failed) => {
    const late = setTimeout(
      () => socket.destroy(Object.assign(new Error('it does not answer'), { code: 'ETIMEDOUT' })),
      CONNECT_MS,
    )
    socket.once('error', error => {
      clearTimeout(late)
      failed(GONE.has(codeOf(error) ?? '') ? noTunnel() : error)
    })
    socket.once('connect', () => {
      clearTimeout(late)
      socket.removeAllListeners('error')
      socket.on('error', ignored('its close follows'))
      done(socket.pause())
    })
  })
