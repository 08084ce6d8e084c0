import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { shellTurn, walled } from '../../attack/support.js'
import { until } from '../../support/browser/browser.js'
import { davServer, unusedPort, withMounts } from '../../support/servers/share-servers.js'
import { addDisk, diskIn, disksWorld, mountDisk } from './support.js'

t.test(
  'turns see the shares that their persona has, and a tunnel that comes up mounts what failed',
  { ...walled(), ...withMounts('rclone') },
  async t => {
    const world = await disksWorld(t, ['agent', 'agents', 'settings', 'skills', 'personas'])
    const { daemon, mounts, folder } = world
    const { client } = daemon
    const shared = folder('shared')
    writeFileSync(join(shared, 'hello.txt'), 'from far away\n')
    const dav = await davServer(t, shared)
    await addDisk(client, 'nas', { provider: 'webdav', url: dav.url, cache: 'off' })
    await addDisk(client, 'kept', { provider: 'webdav', url: dav.url, cache: 'off', readOnly: 'on' })
    const file = (id: string) => join(mounts, id, 'hello.txt')
    const look = (conversation: string, more: object = {}) =>
      shellTurn(
        client,
        conversation,
        [`cat ${file('nas')}`, `cat ${file('kept')}`, `echo new > ${join(mounts, 'kept', 'new.txt')} && echo wrote`],
        more,
      )

    await t.test('a share that is not mounted is not shown', async t => {
      const [nas] = await look('before')
      t.notMatch(nas, /from far away/)
    })
    await mountDisk(client, 'nas')
    await mountDisk(client, 'kept')
    await t.test('a turn without a persona sees each, as it is mounted', async t => {
      const [nas, kept, wrote] = await look('anybody')
      t.match(nas, /from far away/)
      t.match(kept, /from far away/)
      t.notMatch(wrote, /^wrote/m)
      const [written] = await shellTurn(client, 'writes', [
        `echo by hand > ${join(mounts, 'nas', 'w.txt')} && echo wrote`,
      ])
      t.match(written, /wrote/)
      await until(() => readFileSync(join(shared, 'w.txt'), 'utf8') === 'by hand\n')
    })
    await t.test('a persona sees those of its card alone', async t => {
      await client.call('POST /personas', { id: 'nobody', label: 'Nobody', capabilities: [] })
      await client.call('POST /personas', { id: 'keeper', label: 'Keeper', capabilities: ['kept'] })
      for (const seen of await look('nobody', { actsAs: 'nobody' })) t.notMatch(seen, /from far away|^wrote/m)
      const [nas, kept] = await look('keeper', { actsAs: 'keeper' })
      t.notMatch(nas, /from far away/)
      t.match(kept, /from far away/)
    })

    await t.test('what failed is mounted again when a tunnel comes up, unless it is mounted by hand', async t => {
      const port = await unusedPort()
      const url = `http://127.0.0.1:${port}`
      for (const [id, autoMount] of [
        ['office', 'on'],
        ['byhand', 'off'],
      ] as const) {
        await addDisk(client, id, { provider: 'webdav', url, cache: 'off', autoMount }).catch(() => [])
        const { capabilities } = await client.call('GET /capabilities')
        t.ok(
          capabilities.some(one => one.id === id),
          `${id} is recorded`,
        )
        await t.rejects(mountDisk(client, id))
        t.equal((await diskIn(client, id)).state, 'failed')
      }
      await davServer(t, shared, { port })
      daemon.kernel.events.emit('vpn.connected', { id: 'tunnel' })
      await until(async () => (await diskIn(client, 'office')).state === 'mounted')
      t.equal((await diskIn(client, 'byhand')).state, 'failed')
      t.match(readFileSync(file('office'), 'utf8'), /from far away/)
    })
  },
)
