import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { addDisk, diskIn, mountDisk } from '../../plugins/disks/support.js'
import { spawnDaemon } from '../../support/daemon.js'
import { davServer, detachAll, mountsBelow, processesWith, withMounts } from '../../support/servers/share-servers.js'
import { dies, DISKS_POINTS, whereIn, type Where } from '../failpoints/failpoints.js'

interface MountedWhere {
  readonly where: Where
  readonly mounts: string
  readonly share: object
}

const worldIn = async (t: Test): Promise<MountedWhere> => {
  const plain = whereIn(t)
  const base = dirname(plain.data)
  const [mounts, shared, config] = ['mnt', 'shared', 'config.json'].map(name => join(base, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(config, JSON.stringify({ mounts: { root: mounts } }))
  mkdirSync(shared)
  writeFileSync(join(shared, 'hello.txt'), 'hello\n')
  const { url } = await davServer(t, shared)
  t.teardown(() => detachAll(mounts))
  return { where: { ...plain, args: ['--config', config] }, mounts, share: { provider: 'webdav', url, cache: 'off' } }
}

t.test('a share stays mounted while its daemon is killed, and the next one finds it', withMounts('rclone'), async t => {
  const { where, mounts, share } = await worldIn(t)
  const first = await spawnDaemon(t, where)
  await addDisk(first.client, 'files', { ...share, link: 'files' })
  await mountDisk(first.client, 'files')
  const { since } = await diskIn(first.client, 'files')
  await first.kill9()
  t.equal(execFileSync('cat', [join(mounts, 'files', 'hello.txt')], { encoding: 'utf8' }), 'hello\n')
  const { client } = await spawnDaemon(t, where)
  t.match(await diskIn(client, 'files'), { state: 'mounted', since, via: 'rclone', link: 'files' })
  t.equal(readFileSync(join(where.workspace, 'files', 'hello.txt'), 'utf8'), 'hello\n')
  await client.call('POST /disks/{id}/unmount', { id: 'files' })
  t.same(mountsBelow(mounts), [])
  t.notOk(existsSync(join(where.workspace, 'files')))
})

for (const point of DISKS_POINTS)
  t.test(`killed at ${point}, nothing of the mount is left, and it can be mounted`, withMounts('rclone'), async t => {
    const { where, mounts, share } = await worldIn(t)
    await dies(t, where, point, async ({ once }) => {
      await addDisk(once, 'files', share)
      await mountDisk(once, 'files')
    })
    const { client } = await spawnDaemon(t, where)
    t.match(await diskIn(client, 'files'), { state: 'unmounted' })
    t.same(mountsBelow(mounts), [])
    t.notOk(existsSync(join(where.data, 'disks', 'credentials', 'files')))
    t.match((await mountDisk(client, 'files')).at(-1), { kind: 'result' })
    await client.call('POST /disks/{id}/unmount', { id: 'files' })
    for (const late = Date.now() + 10_000; processesWith(mounts).length > 0;)
      if (Date.now() > late) return t.fail('a carrier goes on')
    t.pass('no carrier is left')
  })
