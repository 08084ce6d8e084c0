import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_OWN_NETWORK, withGateways } from './peer.js'

const childFile = (name: string): string => fileURLToPath(new URL(`${name}-child.js`, import.meta.url))

t.test('tunnels to real gateways are dialled and dropped', { ...withGateways() }, async t => {
  for (const name of ['tunnels', 'ipsec', 'fortinet'])
    await t.spawn(
      'unshare',
      [...IN_OWN_NETWORK, process.execPath, childFile(name)],
      {},
      `${name} in a network of its own`,
    )
})
