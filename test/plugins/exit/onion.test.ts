import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_OWN_NETWORK, withPrograms } from '../vpn/peer.js'

t.setTimeout(300_000)
const child = fileURLToPath(new URL('onion-child.js', import.meta.url))

t.test('exits through a private onion network', withPrograms('unshare', 'ip', 'tor', 'curl'), async t => {
  await t.spawn('unshare', [...IN_OWN_NETWORK, process.execPath, child], {}, 'in a network of its own')
})
