import type { Examples } from '../../sdk/contract.js'
import type { VpnCalls, VpnLink } from './contract.js'

const OFFICE: VpnLink = {
  id: 'office',
  provider: 'wireguard',
  state: 'connected',
  gateway: 'vpn.example.org:51820',
  interface: 'office',
  address: '10.8.0.2/24',
  routes: ['10.8.0.0/24', '10.20.0.0/16'],
  dns: [],
  since: 1_760_000_000_000,
  autoConnect: true,
}

/** One use of each call. */
export const examples = (): Examples<VpnCalls> => ({
  'GET /vpn': { output: { links: [OFFICE] } },
  'GET /vpn/{id}': {
    input: { id: 'office' },
    output: {
      ...OFFICE,
      fullTunnel: false,
      rxBytes: 18_204,
      txBytes: 9_320,
      handshakeAt: 1_760_000_060_000,
      missing: [],
      log: 'ip link add office type wireguard\nthe gateway exchanged keys',
      logAt: 1_760_000_000_000,
    },
  },
  'POST /vpn/{id}/connect': {
    input: { id: 'office' },
    output: { message: { kind: 'log', message: 'dialling vpn.example.org:51820' }, done: { link: OFFICE } },
  },
  'POST /vpn/{id}/disconnect': { input: { id: 'office' }, output: { ok: true } },
  'POST /vpn/import-forticlient': {
    input: { xml: '<forticlient_configuration><vpn/></forticlient_configuration>' },
    output: { connections: [] },
  },
})
