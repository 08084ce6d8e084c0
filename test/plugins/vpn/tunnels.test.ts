import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_OWN_NETWORK, withGateways } from './peer.js'

const CHILD = fileURLToPath(new URL('tunnels-child.js', import.meta.url))

t.test('tunnels to real gateways are dialled and dropped', { ...withGateways() }, async t => {
  await t.spawn('unshare', [...IN_OWN_NETWORK, process.execPath, CHILD], {}, 'in a network of their own')
})
