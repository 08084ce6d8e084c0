import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_OWN_NETWORK, withPrograms } from '../../plugins/vpn/peer.js'
import { EXIT_POINTS } from '../failpoints/failpoints.js'

t.setTimeout(300_000)
const child = fileURLToPath(new URL('exit-child.js', import.meta.url))
const programs = ['unshare', 'ip', 'wg', 'wireguard-go', 'openvpn', 'openssl', 'python3', 'curl']

t.test('exits of a daemon that is killed in each state', withPrograms(...programs), async t => {
  t.same(EXIT_POINTS, ['exit.start.noted', 'exit.start.proven'], 'each point has its case')
  await t.spawn('unshare', [...IN_OWN_NETWORK, process.execPath, child], {}, 'in a network of its own')
})
