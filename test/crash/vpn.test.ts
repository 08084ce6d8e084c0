import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_OWN_NETWORK, withGateways } from '../plugins/vpn/peer.js'
import { VPN_POINTS } from './failpoints/failpoints.js'

const CHILD = fileURLToPath(new URL('vpn-child.js', import.meta.url))

t.test('tunnels of a killed daemon', { ...withGateways() }, async t => {
  t.same(VPN_POINTS, ['vpn.dial.connected', 'vpn.dial.noted'], 'each point has its case')
  await t.spawn('unshare', [...IN_OWN_NETWORK, process.execPath, CHILD], {}, 'in a network of their own')
})
