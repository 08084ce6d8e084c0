import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseMountInfo } from '../../../plugins/disks/machine/mount-table.js'
import { listedFolders } from '../../../plugins/disks/servers/webdav.js'
import { tookLess } from '../../support/in-time.js'
import { exactly } from '../../support/lists.js'
import { runningCommands } from '../../support/running-commands.js'
import {
  davServer,
  mountsBelow,
  nfsServer,
  selfSigned,
  unusedPort,
  withMounts,
} from '../../support/servers/share-servers.js'
import { addDisk, diskIn, disksWorld, mountDisk } from './support.js'

const PASSWORD = 'Ge"heim\\ and long-7f3a'

t.test('the table of mounts is read with its escapes, and the last mount of a folder counts', async t => {
  const rows = parseMountInfo(
    [
      '36 35 98:0 / /mnt/one\\040two rw,nosuid - fuse.rclone disk{x}: rw,user_id=0',
      '37 35 98:0 / /mnt/a rw - tmpfs tmpfs rw',
      '38 35 98:0 / /mnt/a rw - fuse https://host/a\\040b ro,user_id=0',
      '39 35 98:0 / /mnt/b ro shared:3 - nfs4 host:/x rw',
      'not a mount',
    ].join('\n'),
  )
  t.match(rows.get('/mnt/one two'), { via: 'rclone', readOnly: false })
  t.match(rows.get('/mnt/a'), { via: 'davfs2', source: 'https://host/a b', readOnly: true })
  t.match(rows.get('/mnt/b'), { via: 'nfs', readOnly: true })
  t.equal(rows.size, 3)
})

t.test('the folders of a WebDAV listing are read whatever its prefixes are', async t => {
  const xml = `<D:multistatus xmlns:D="DAV:"><D:response><D:href>/dav/</D:href><D:resourcetype><D:collection/>
    </D:resourcetype></D:response><D:response><D:href>/dav/a%20b/</D:href><D:collection></D:collection></D:response>
    <D:response><D:href>/dav/file</D:href></D:response>
    <D:response><D:href>/dav/a/c/</D:href><D:collection/></D:response>
    <response><href>http://other.example/dav/z&amp;y</href><collection/></response></D:multistatus>`
  t.same(listedFolders(xml, new URL('http://host/dav/')), [{ name: 'a b' }, { name: 'z&y' }])
})

t.test('network disks', withMounts('rclone', 'mount.davfs', 'openssl'), async t => {
  const world = await disksWorld(t, ['activity'])
  const { daemon, mounts, folder, vault } = world
  const { client } = daemon
  const shared = folder('shared')
  writeFileSync(join(shared, 'hello.txt'), 'hello\n')
  mkdirSync(join(shared, 'photos'))
  const dav = await davServer(t, shared, { password: PASSWORD })
  const share = { provider: 'webdav', url: dav.url, username: 'ada', password: PASSWORD } as const

  await t.test('nobody without a credential, and no token of any scope, reaches a call', async t => {
    t.equal((await fetch(`${daemon.url}/disks`)).status, 401)
    const calls = [
      ['GET', '/disks'],
      ['GET', '/disks/x'],
      ['POST', '/disks/probe'],
      ['POST', '/disks/x/mount'],
      ['POST', '/disks/x/unmount'],
    ] as const
    for (const scope of ['read', 'land'] as const) {
      const { token } = await daemon.token(scope)
      for (const [method, path] of calls) {
        const headers = { 'x-sandbox-control': token, 'content-type': 'application/json' }
        t.equal((await fetch(daemon.url + path, { method, headers })).status, 403, `${scope} ${path}`)
      }
    }
  })

  await t.test('bad input is refused by the name of its field', async t => {
    const post = (path: string, body: object) => daemon.fetch(path, { method: 'POST', body: JSON.stringify(body) })
    for (const [body, field] of [
      [{ provider: 'ftp', server: 'a' }, 'provider'],
      [{ provider: 'smb', server: 'a', share: 'b', port: 0 }, 'port'],
      [{ provider: 'nfs', server: 'a', export: 'srv' }, 'export'],
    ] as const) {
      const answer = await post('/disks/probe', body)
      t.equal(answer.status, 400, field)
      const { errors } = (await answer.json()) as { errors: { path: string }[] }
      t.ok(
        errors.some(({ path }) => path.includes(field)),
        `${field} is named: ${JSON.stringify(errors)}`,
      )
    }
    const unusable = [
      [{ provider: 'webdav', url: 'http://ada:x@host/' }, /url: expected an address without a name/],
      [{ provider: 'smb', server: '-o x', share: 'b' }, /server: expected the name/],
      [{ provider: 'webdav', url: daemon.url }, /this sandbox|the daemon|itself/],
    ] as const
    for (const [target, message] of unusable)
      await t.rejects(client.call('POST /disks/probe', target), { reason: 'unprocessable', message })
    for (const call of ['GET /disks/{id}', 'POST /disks/{id}/unmount'] as const)
      await t.rejects(client.call(call, { id: 'nothing' }), {
        reason: 'not-found',
        message: /there is no share nothing/,
      })
    await t.rejects(addDisk(client, 'bad', { provider: 'nfs', server: 'a' }), { reason: 'invalid', message: /export/ })
    await t.rejects(addDisk(client, 'bad', { provider: 'nfs', server: 'a', export: '/x', password: 'secret-1' }), {
      reason: 'invalid',
      message: 'config.password: expected none for a share of nfs',
    })
    t.same(await client.call('GET /disks'), { disks: [] })
  })

  await t.test('a server says what it offers, and keeps nothing of it; a wrong password is an answer', async t => {
    const before = mountsBelow('/').length
    t.match(await client.call('POST /disks/probe', share), {
      reachable: true,
      auth: 'ok',
      shares: exactly({ name: 'photos' }),
      writable: true,
    })
    const wrong = await client.call('POST /disks/probe', { ...share, password: 'other-password' })
    t.match(wrong, { reachable: true, auth: 'refused', shares: exactly() })
    const began = performance.now()
    const closed = { provider: 'smb', server: '127.0.0.1', port: await unusedPort(), share: 'x' } as const
    t.match(await client.call('POST /disks/probe', closed), { reachable: false, detail: 'nothing is listening there' })
    t.ok(tookLess(performance.now() - began, 10_000))
    await nfsServer(t, '127.0.77.1')
    const nfs = { provider: 'nfs', server: '127.0.77.1', export: '/srv' } as const
    t.match(await client.call('POST /disks/probe', nfs), { reachable: true, auth: 'untested' })
    t.equal(mountsBelow('/').length, before)
    t.equal(vault.values.size, 0)
  })

  for (const [via, cache] of [
    ['davfs2', 'writes'],
    ['rclone', 'off'],
  ] as const)
    await t.test(`a WebDAV share is mounted with ${via}, written through and unmounted`, async t => {
      const at = join(mounts, via)
      t.match((await addDisk(client, via, { ...share, cache })).at(-1), {
        kind: 'result',
        status: { state: 'inactive' },
      })
      t.match(await diskIn(client, via), { state: 'unmounted', source: dav.url, mountPoint: at, autoMount: false })
      const lines = await mountDisk(client, via)
      t.match(lines.at(-1), { kind: 'result', ok: true, disk: { state: 'mounted', via, since: Number } })
      const before = readdirSync(shared)
      execFileSync('cp', [join(at, 'hello.txt'), join(at, `${via}.txt`)])
      const listed = execFileSync('ls', [at], { encoding: 'utf8' })
        .split('\n')
        .filter(name => name && name !== 'lost+found')
      t.match(listed.sort(), exactly(...[...before, `${via}.txt`].sort()))
      t.notOk(
        runningCommands().some(command => command.includes(PASSWORD)),
        'no argument has the password',
      )
      t.same(
        (await mountDisk(client, via)).map(({ kind }) => kind),
        ['log', 'result'],
        'it stays mounted',
      )
      t.equal((await client.call('GET /capabilities/{id}/status', { id: via })).state, 'active')
      await client.call('POST /disks/{id}/unmount', { id: via })
      t.equal(readFileSync(join(shared, `${via}.txt`), 'utf8'), 'hello\n')
      t.same(mountsBelow(mounts), [])
      t.same(readdirSync(at), [])
      t.notOk(existsSync(join(daemon.data, 'disks', 'credentials', via)))
      await client.call('POST /disks/{id}/unmount', { id: via })
      const { log, state } = await client.call('GET /disks/{id}', { id: via })
      t.match(log, `with ${via} at`)
      t.equal(state, 'unmounted')
    })

  await t.test('a share in use is unmounted and removed only by force, which says nothing more', async t => {
    await mountDisk(client, 'davfs2')
    const at = join(mounts, 'davfs2')
    const open = openSync(join(at, 'hello.txt'), 'r')
    const holder = spawn('sleep', ['1000'], { stdio: [open, 'ignore', 'ignore'] })
    t.teardown(() => holder.kill('SIGKILL'))
    await once(holder, 'spawn')
    closeSync(open)
    await t.rejects(client.call('POST /disks/{id}/unmount', { id: 'davfs2' }), {
      reason: 'conflict',
      message: new RegExp(`in use by .*sleep \\(pid ${holder.pid}\\)`),
    })
    await t.rejects(client.call('DELETE /capabilities/{id}', { id: 'davfs2' }), {
      reason: 'conflict',
      message: /in use by/,
    })
    t.match(
      (await client.call('GET /disks/{id}', { id: 'davfs2' })).users.find(({ pid }) => pid === holder.pid),
      {
        command: 'sleep',
        paths: 1,
      },
    )
    t.same(await client.call('POST /disks/{id}/unmount', { id: 'davfs2', force: true }), { ok: true })
    t.same(mountsBelow(mounts), [])
    holder.kill('SIGKILL')
  })

  await t.test(
    'what somebody unmounted in a shell is seen; a folder with something in it is not mounted over',
    async t => {
      await mountDisk(client, 'rclone')
      execFileSync('umount', [join(mounts, 'rclone')])
      const disk = await diskIn(client, 'rclone')
      t.match(disk, { state: 'unmounted' })
      t.equal(disk.since, undefined)
      writeFileSync(join(mounts, 'rclone', 'mine'), '')
      await t.rejects(mountDisk(client, 'rclone'), { reason: 'conflict', message: /is not empty/ })
      execFileSync('rm', [join(mounts, 'rclone', 'mine')])
    },
  )

  await t.test("a link leads to a mounted share, and takes nobody else's place", async t => {
    writeFileSync(join(daemon.workspace, 'taken'), '')
    for (const [link, reason, message] of [
      ['../outside', 'invalid', /segment \.\./],
      ['taken', 'conflict', /exists already/],
      ['no/where', 'unprocessable', /does not exist/],
    ] as const)
      await t.rejects(addDisk(client, 'linked', { ...share, link }), { reason, message })
    await addDisk(client, 'linked', { ...share, link: 'files', readOnly: 'on' })
    t.match((await mountDisk(client, 'linked')).at(-1), { disk: { link: 'files', readOnly: true } })
    t.equal(readlinkSync(join(daemon.workspace, 'files')), join(mounts, 'linked'))
    t.throws(() => execFileSync('touch', [join(daemon.workspace, 'files', 'x')], { stdio: 'ignore' }))
    await client.call('POST /disks/{id}/unmount', { id: 'linked' })
    t.throws(() => lstatSync(join(daemon.workspace, 'files')))
    writeFileSync(join(daemon.workspace, 'files'), '')
    await t.rejects(mountDisk(client, 'linked'), { reason: 'conflict', message: /link: files exists/ })
  })

  await t.test('a server with an untrusted certificate gets no password, unless it is the named one', async t => {
    const tls = selfSigned(folder('tls'))
    const { url } = await davServer(t, shared, { password: PASSWORD, tls })
    const asked = { ...share, url }
    t.match(await client.call('POST /disks/probe', asked), {
      reachable: true,
      auth: 'untested',
      certificate: { sha256: tls.sha256, trusted: false },
    })
    await addDisk(client, 'tls', asked)
    await t.rejects(mountDisk(client, 'tls'), { reason: 'dependency', message: new RegExp(`sha256:${tls.sha256}`) })
    t.match(await diskIn(client, 'tls'), { state: 'failed', detail: /certificate/ })
    t.notOk(existsSync(join(mounts, 'tls')))
    await addDisk(client, 'tls', { ...asked, trustedCert: `sha256:${tls.sha256}` })
    t.match((await mountDisk(client, 'tls')).at(-1), { disk: { state: 'mounted' } })
    t.match((await client.call('GET /disks/{id}', { id: 'tls' })).pin, { kind: 'certificate', sha256: tls.sha256 })
    await client.call('DELETE /capabilities/{id}', { id: 'tls' })
    t.same(mountsBelow(mounts), [])
    t.notOk(existsSync(join(mounts, 'tls')))
  })

  await t.test('a share that this kernel cannot mount is unavailable, and says what is missing', async t => {
    if (/\tnfs4?$/m.test(readFileSync('/proc/filesystems', 'utf8'))) return t.comment('this kernel has an NFS client')
    await addDisk(client, 'nfs', { provider: 'nfs', server: '127.0.77.2', export: '/srv' })
    t.match(await diskIn(client, 'nfs'), { state: 'unavailable', detail: /this kernel has no NFS client/ })
    t.match(
      (await client.call('GET /disks/{id}', { id: 'nfs' })).missing.find(({ what }) => what === 'kernel'),
      {
        name: 'nfs',
      },
    )
    await t.rejects(mountDisk(client, 'nfs'), {
      reason: 'missing-program',
      message: /nfs is not in \/proc\/filesystems/,
    })
  })

  await t.test('a locked store of secrets, and a second mount meanwhile, are refused', async t => {
    vault.open = false
    await t.rejects(mountDisk(client, 'rclone'), { reason: 'unavailable', message: /is not open/ })
    vault.open = true
    const both = await Promise.allSettled([mountDisk(client, 'rclone'), mountDisk(client, 'rclone')])
    // Either of the two may arrive first.
    t.equal(both.filter(({ status }) => status === 'fulfilled').length, 1)
    const refused = both.find(({ status }) => status === 'rejected')
    t.match(refused, { reason: { reason: 'conflict', message: /is mounting/ } })
    await client.call('POST /disks/{id}/unmount', { id: 'rclone' })
    await client.call('POST /capabilities/{id}/rename', { id: 'rclone', to: 'renamed' })
    t.match((await client.call('GET /disks/{id}', { id: 'renamed' })).log, 'with rclone')
  })

  await t.test('what happened is in the record, without the password', async t => {
    const { events } = await client.call('GET /activity', { limit: 100 })
    const types = new Set(events.map(({ type }) => type))
    for (const type of ['disk.mounted', 'disk.unmounted', 'disk.failed']) t.ok(types.has(type), type)
    t.notOk(JSON.stringify(events).includes(PASSWORD))
    t.notOk(daemon.logged.join('\n').includes(PASSWORD))
  })
})
