import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
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

for (const point of DISKS_POINTS)
  t.test(
    `killed at ${point}, nothing of that mount is left, and what was mounted stays so`,
    withMounts('rclone'),
    async t => {
      const { where, mounts, share } = await worldIn(t)
      let since: number | undefined
      await dies(t, where, `${point}:2`, async ({ once: client }) => {
        await addDisk(client, 'files', { ...share, link: 'files' })
        await mountDisk(client, 'files')
        since = (await diskIn(client, 'files')).since
        await addDisk(client, 'other', share)
        await mountDisk(client, 'other')
      })
      t.equal(execFileSync('cat', [join(mounts, 'files', 'hello.txt')], { encoding: 'utf8' }), 'hello\n')
      const { client } = await spawnDaemon(t, where)
      t.match(await diskIn(client, 'files'), { state: 'mounted', since: since!, via: 'rclone', link: 'files' })
      t.match(await diskIn(client, 'other'), { state: 'unmounted' })
      t.same(mountsBelow(mounts), [join(mounts, 'files')])
      t.notOk(existsSync(join(where.data, 'disks', 'credentials', 'other')))

      const { entries } = await client.call('GET /workspace/children', { path: '.' })
      t.match(
        entries.find(({ name }) => name === 'files'),
        { link: { state: 'outside' } },
        'the link is listed as one that leads out',
      )
      t.match((await mountDisk(client, 'other')).at(-1), { kind: 'result' })
      for (const id of ['files', 'other']) await client.call('POST /disks/{id}/unmount', { id })
      t.same(mountsBelow(mounts), [])
      t.notOk(existsSync(join(where.workspace, 'files')))
      for (const late = Date.now() + 10_000; processesWith(mounts).length > 0;)
        if (Date.now() > late) return t.fail('a carrier goes on')
      t.pass('no carrier is left')
    },
  )
