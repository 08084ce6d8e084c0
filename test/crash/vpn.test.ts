import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_OWN_NETWORK, withGateways } from '../plugins/vpn/peer.js'
import { VPN_POINTS } from './failpoints/failpoints.js'

t.setTimeout(300_000)

const CHILD = fileURLToPath(new URL('vpn-child.js', import.meta.url))
const CLIENTS = fileURLToPath(new URL('vpn-clients-child.js', import.meta.url))

t.test('tunnels of a killed daemon', { ...withGateways() }, async t => {
  t.same(VPN_POINTS, ['vpn.dial.connected', 'vpn.dial.noted'], 'each point has its case')
  await t.spawn('unshare', [...IN_OWN_NETWORK, process.execPath, CHILD], {}, 'in a network of their own')
})

t.test(
  'tunnels with clients of their own, of a daemon that is killed in each state',
  { ...withGateways() },
  async t => {
    await t.spawn('unshare', [...IN_OWN_NETWORK, process.execPath, CLIENTS], {}, 'in a network of their own')
  },
)
