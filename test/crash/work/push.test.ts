import t from 'tap'
import { spawnDaemon } from '../../support/daemon.js'
import { dies, PUSH_POINTS, whereIn } from '../failpoints/failpoints.js'

// An address for documentation (RFC 5737): it is looked at, and never asked.
const DEVICE = {
  kind: 'relay',
  url: 'https://203.0.113.9/',
  deviceId: 'phone',
  secret: 'a-secret-of-the-relay',
} as const

for (const point of PUSH_POINTS)
  void t.test(
    `a device is registered or removed whole, and the key stays, if the daemon is killed at ${point}`,
    async t => {
      const where = whereIn(t)
      let key = ''
      await dies(t, where, point, async ({ once: client }) => {
        key = (await client.call('GET /push/config', {})).publicKey
        await client.call('POST /push/subscribe', DEVICE)
        await client.call('POST /push/unsubscribe', { id: 'phone' })
      })
      const { client } = await spawnDaemon(t, where)
      t.same(await client.call('GET /push/config', { id: 'phone' }), {
        publicKey: key,
        subscribed: point === 'push.registered',
      })
      await client.call('POST /push/subscribe', DEVICE)
      t.match(await client.call('GET /push/config', { id: 'phone' }), { subscribed: true })
    },
  )
