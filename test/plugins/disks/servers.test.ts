import { execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, lstatSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { tookLess } from '../../support/in-time.js'
import { exactly } from '../../support/lists.js'
import { runningCommands } from '../../support/running-commands.js'
import { familyOf, mountsBelow, processesWith, smbServer, withMounts } from '../../support/servers/share-servers.js'
import { sshKey, sshServer } from '../../support/ssh-server.js'
import { addDisk, diskIn, disksWorld, mountDisk } from './support.js'

const PASSWORD = 'smb-geheim-51c9'

t.test('shares of other servers', withMounts('rclone', 'smbd', 'smbclient', 'sshfs', 'sshd'), async t => {
  const { daemon, mounts, folder } = await disksWorld(t)
  const { client } = daemon
  const shared = folder('shared')
  writeFileSync(join(shared, 'hello.txt'), 'hello\n')

  await t.test('an SMB share is listed, mounted and written through; a wrong password leaves nothing', async t => {
    const server = await smbServer(t, shared, PASSWORD)
    const target = {
      provider: 'smb',
      server: '127.0.0.1',
      port: server.port,
      share: 'files',
      username: 'root',
    } as const
    t.match(await client.call('POST /disks/probe', { ...target, password: PASSWORD }), {
      reachable: true,
      auth: 'ok',
      shares: exactly({ name: 'files', comment: 'the files' }),
    })
    await t.rejects(addDisk(client, 'smb', { ...target, password: 'wrong-password' }), {
      reason: 'dependency',
      message: /refused the sign-in: .*NT_STATUS_LOGON_FAILURE/,
    })
    await addDisk(client, 'smb', { ...target, password: PASSWORD })
    const lines = await mountDisk(client, 'smb')
    const via = /\tcifs$/m.test(readFileSync('/proc/filesystems', 'utf8')) ? 'cifs' : 'rclone'
    t.match(lines.at(-1), { kind: 'result', disk: { state: 'mounted', via, source: '//127.0.0.1/files' } })
    t.notOk(runningCommands().some(command => command.includes(PASSWORD)))
    writeFileSync(join(mounts, 'smb', 'new.txt'), 'written\n')
    await client.call('POST /disks/{id}/unmount', { id: 'smb' })
    t.equal(readFileSync(join(shared, 'new.txt'), 'utf8'), 'written\n')
    t.same(readdirSync(shared).sort(), ['hello.txt', 'new.txt'], 'nothing else was left on the share')

    server.setPassword('another-password')
    await t.rejects(mountDisk(client, 'smb'), { reason: 'dependency', message: /logon|LOGON|denied/ })
    t.match(await diskIn(client, 'smb'), { state: 'failed', detail: /logon|LOGON|denied/ })
    t.notOk(existsSync(join(mounts, 'smb')))
    t.notOk(existsSync(join(daemon.data, 'disks', 'credentials', 'smb')))
    t.same(processesWith(join(mounts, 'smb')), [])
    await client.call('DELETE /capabilities/{id}', { id: 'smb' })
    t.same((await client.call('GET /disks')).disks, [])
  })

  await t.test(
    'a folder over ssh: its key is pinned, a dead server makes it stale, another key is refused',
    async t => {
      const keys = folder('ssh')
      const key = sshKey(keys, 'me')
      const server = await sshServer(t, keys, [key.public])
      const user = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim()
      const target = { provider: 'sshfs', host: '127.0.0.1', port: server.port, user, path: shared } as const
      const secret = { privateKey: key.private }
      const other = sshKey(keys, 'other')
      t.match(await client.call('POST /disks/probe', { ...target, privateKey: other.private }), { auth: 'refused' })
      const probe = await client.call('POST /disks/probe', { ...target, ...secret })
      t.match(probe, { reachable: true, auth: 'ok', writable: true, hostKey: /^ssh-ed25519 AAAA/ })
      await addDisk(client, 'ssh', { ...target, ...secret, link: 'files' })
      const lines = await mountDisk(client, 'ssh')
      const first = hash('sha256', Buffer.from(probe.hostKey!.split(' ')[1]!, 'base64'))
      t.ok(
        lines.some(line => line.kind === 'log' && line.message.includes(first)),
        'the pinned key is shown',
      )
      t.match(lines.at(-1), { disk: { state: 'mounted', via: 'sshfs', totalBytes: Number, freeBytes: Number } })
      writeFileSync(join(mounts, 'ssh', 'from-here.txt'), 'written\n')
      t.equal(readFileSync(join(shared, 'from-here.txt'), 'utf8'), 'written\n')

      const linked = () => lstatSync(join(daemon.workspace, 'files'), { throwIfNoEntry: false }) !== undefined
      t.ok(linked())
      const sessions = familyOf(server.pid()).slice(1)
      t.ok(sessions.length > 0)
      const signal = (name: NodeJS.Signals) => sessions.forEach(pid => process.kill(pid, name))
      signal('SIGSTOP')
      try {
        const began = performance.now()
        const [stale, health] = await Promise.all([diskIn(client, 'ssh'), fetch(`${daemon.url}/health`)])
        t.match(stale, { state: 'stale', detail: /did not answer within 3 s/, since: Number })
        t.equal(health.status, 200)
        t.ok(tookLess(performance.now() - began, 4_000))
        // The next look at what is mounted takes the link away, which reading the workspace would follow.
        while (linked()) await delay(100)
      } finally {
        signal('SIGCONT')
      }
      for (let state = 'stale'; state !== 'mounted';) ({ state } = await diskIn(client, 'ssh'))
      while (!linked()) await delay(100)
      t.pass('the link is there again')

      const open = openSync(join(mounts, 'ssh', 'hello.txt'), 'r')
      const holder = spawn('sleep', ['1000'], { stdio: [open, 'ignore', 'ignore'] })
      closeSync(open)
      t.teardown(() => holder.kill('SIGKILL'))
      await t.rejects(client.call('POST /disks/{id}/unmount', { id: 'ssh' }), {
        reason: 'conflict',
        message: new RegExp(`\\(pid ${holder.pid}\\)`),
      })
      t.same(await client.call('POST /disks/{id}/unmount', { id: 'ssh', force: true }), { ok: true })
      t.same(mountsBelow(mounts), [])
      holder.kill('SIGKILL')

      await server.replace()
      const next = (await client.call('POST /disks/probe', target)).hostKey!
      const second = hash('sha256', Buffer.from(next.split(' ')[1]!, 'base64'))
      await t.rejects(mountDisk(client, 'ssh'), {
        reason: 'dependency',
        message: new RegExp(`SHA-256 ${first}, found one with ${second}`),
      })
      t.match(await diskIn(client, 'ssh'), { state: 'failed', detail: new RegExp(second) })
      t.same((await client.call('GET /disks/{id}', { id: 'ssh' })).pin?.sha256, first, 'the old key stays pinned')
      await addDisk(client, 'ssh', { ...target, ...secret, hostKey: next })
      t.match((await mountDisk(client, 'ssh')).at(-1), { disk: { state: 'mounted' } })
      await client.call('POST /disks/{id}/unmount', { id: 'ssh' })
      t.notOk(existsSync(join(daemon.data, 'disks', 'credentials', 'ssh')))
    },
  )
})
