import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_OWN_NETWORK, withPrograms } from '../vpn/peer.js'

const child = fileURLToPath(new URL('tunnels-child.js', import.meta.url))
const programs = ['unshare', 'ip', 'wg', 'wireguard-go', 'openvpn', 'openssl', 'tcpdump', 'curl']

t.test('exits through tunnels of servers of our own', withPrograms(...programs), async t => {
  await t.spawn('unshare', [...IN_OWN_NETWORK, process.execPath, child], {}, 'in a network of its own')
})
