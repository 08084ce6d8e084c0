import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { spread } from '../support/lists.js'
import type { Client } from '../../sdk/client.js'
import { until } from '../plugins/workspace/projects-support.js'
import { endTerminals, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { dies, whereIn, WORKSPACE_POINTS } from './failpoints/failpoints.js'

const FILES = { 'docs/a.md': 'a', 'docs/deep/b.md': 'b' }

/** The calls until the daemon is killed. */
const asks = async (client: Client): Promise<void> => {
  await client.call('POST /workspace/copy', { from: 'docs', to: 'copy' })
  const { trashId } = await client.call('DELETE /workspace/entry', { path: 'docs' })
  await client.call('POST /workspace/restore', { id: trashId!, to: 'back' })
}

const POINTS = spread(WORKSPACE_POINTS, 7)
const UPLOAD_POINTS = WORKSPACE_POINTS.filter(point => point.startsWith('workspace.upload.'))

/** Uploads a part of a file of six bytes. */
const upload = async (daemon: RunningDaemon, offset: number, bytes: string): Promise<{ received: number }> => {
  const query = new URLSearchParams({ path: 'file', size: '6', offset: String(offset) })
  const headers = { authorization: `Bearer ${daemon.session}`, 'content-type': 'application/octet-stream' }
  const response = await fetch(`${daemon.url}/workspace/upload?${query}`, { method: 'POST', body: bytes, headers })
  return (await response.json()) as { received: number }
}

t.jobs = 2
for (const point of POINTS.filter(each => UPLOAD_POINTS.includes(each))) {
  void t.test(
    `killed at ${point}, an upload resumes, the old file stays until then, and no ticket is valid`,
    async t => {
      const where = whereIn(t, { file: 'old' })
      const tickets: string[] = []
      await dies(t, where, point === 'workspace.upload.part' ? `${point}:2` : point, async daemon => {
        const media = await daemon.once.call('POST /workspace/media-ticket', { path: 'file' })
        const download = await daemon.once.call('POST /workspace/download-ticket', { paths: ['file'] })
        tickets.push(`media?ticket=${media.ticket}`, `download?ticket=${download.ticket}`)
        for (const ticket of tickets) t.equal((await fetch(`${daemon.url}/workspace/${ticket}`)).status, 200)
        await upload(daemon, 0, 'abc')
        await upload(daemon, 3, 'def')
      })
      t.equal(readFileSync(join(where.workspace, 'file'), 'utf8'), 'old')
      const next = await spawnDaemon(t, where)
      t.equal(tickets.length, 2)
      for (const ticket of tickets) t.equal((await fetch(`${next.url}/workspace/${ticket}`)).status, 401)
      const { received } = await upload(next, 0, '')
      if (received < 6) await upload(next, received, 'abcdef'.slice(received))
      t.equal(readFileSync(join(where.workspace, 'file'), 'utf8'), 'abcdef')
      t.same(readdirSync(join(where.workspace, '.sandbox/local/uploads')), [])
      await next.terminate()
    },
  )
}

const ARCHIVE_POINTS = ['workspace.archive.staged', 'workspace.unpack.staged']

for (const point of POINTS.filter(each => ARCHIVE_POINTS.includes(each))) {
  void t.test(`killed at ${point}, nothing of the archive is in the workspace`, async t => {
    const where = whereIn(t, { file: 'old' })
    execFileSync('tar', ['-czf', 'a.tgz', 'file'], { cwd: where.workspace })
    await dies(t, where, point, async ({ url, session, once }) => {
      if (point === 'workspace.unpack.staged') return once.call('POST /workspace/unpack', { path: 'a.tgz', to: 'new' })
      const headers = { authorization: `Bearer ${session}`, 'content-type': 'application/octet-stream' }
      const body = readFileSync(join(where.workspace, 'a.tgz'))
      return fetch(`${url}/workspace/upload-archive?to=new`, { method: 'POST', headers, body })
    })
    t.notOk(existsSync(join(where.workspace, 'new')))
    const { client, terminate } = await spawnDaemon(t, where)
    await client.call('POST /workspace/unpack', { path: 'a.tgz', to: 'new' })
    t.equal(readFileSync(join(where.workspace, 'new/file'), 'utf8'), 'old')
    t.same(readdirSync(join(where.workspace, '.sandbox/local/unpacking')), [])
    await terminate()
  })
}

const APP_POINTS = WORKSPACE_POINTS.filter(point => point.startsWith('workspace.apps.'))

for (const point of POINTS.filter(each => APP_POINTS.includes(each))) {
  void t.test(`killed at ${point}, all apps of the call are there or none, and nothing is left over`, async t => {
    const where = whereIn(t, { 'README.md': 'x' })
    const apps = ['one', 'two'].map(name => ({ template: 'node-server', name }))
    await dies(t, where, point, ({ once }) => once.call('POST /workspace/repos/{repo}/apps', { repo: 'root', apps }))
    const { client, terminate } = await spawnDaemon(t, where)
    await client.call('GET /workspace/repos/{repo}/apps', { repo: 'root' })
    const found = existsSync(join(where.workspace, 'apps')) ? readdirSync(join(where.workspace, 'apps')).sort() : []
    t.same(found, point === 'workspace.apps.staged' ? [] : ['one', 'two'])
    const next = { template: 'node-server', name: 'three' }
    await client.call('POST /workspace/repos/{repo}/apps', { repo: 'root', apps: [next] })
    for (const app of [...found, 'three'])
      t.ok(existsSync(join(where.workspace, 'apps', app, 'server.test.js')), `${app} is whole`)
    t.same(readdirSync(join(where.workspace, '.sandbox/local/apps')), [])
    await terminate()
  })
}

const INSTALL_POINTS = WORKSPACE_POINTS.filter(point => point.startsWith('workspace.install.'))

for (const point of POINTS.filter(each => INSTALL_POINTS.includes(each))) {
  const skip = existsSync('/usr/bin/npm') || existsSync('/usr/local/bin/npm') ? false : 'npm is not installed'
  void t.test(`killed at ${point}, every install that was acknowledged is done once`, { skip }, async t => {
    const manifest = { dependencies: { lib: 'file:../lib' }, scripts: { postinstall: 'echo x >> ../done.txt' } }
    const where = whereIn(t, {
      'lib/package.json': '{ "name": "lib", "version": "1.0.0" }',
      'a/package.json': JSON.stringify({ name: 'a', ...manifest }),
      'b/package.json': JSON.stringify({ name: 'b', ...manifest }),
    })
    t.teardown(() => endTerminals(where.data))
    await dies(t, where, point, ({ once }) => once.call('POST /workspace/setup/install', { dirs: ['a', 'b'] }))
    const { client, terminate } = await spawnDaemon(t, where)
    await until('both are ready', async () => {
      const { projects } = await client.call('GET /workspace/setup')
      return projects.filter(({ dir, state }) => 'ab'.includes(dir) && state === 'ready').length === 2
    })
    t.equal(readFileSync(join(where.workspace, 'done.txt'), 'utf8'), 'x\nx\n')
    await terminate()
  })
}

const OTHERS = [...UPLOAD_POINTS, ...ARCHIVE_POINTS, ...APP_POINTS, ...INSTALL_POINTS]

for (const point of POINTS.filter(each => !OTHERS.includes(each))) {
  void t.test(`killed at ${point}, every file exists once and nothing is left over`, async t => {
    const where = whereIn(t, FILES)
    await dies(t, where, point, ({ once }) => asks(once))
    const { client, terminate } = await spawnDaemon(t, where)
    const { items } = await client.call('GET /workspace/trash', {})
    const places = ['docs', 'back'].filter(path => existsSync(join(where.workspace, path)))
    t.equal(places.length + items.length, 1, `${places.join()} ${items.map(({ path }) => path).join()}`)
    if (items[0]) await client.call('POST /workspace/restore', { id: items[0].id })
    t.equal(readFileSync(join(where.workspace, places[0] ?? 'docs', 'deep/b.md'), 'utf8'), 'b')
    const trash = join(where.workspace, '.sandbox/local/trash')
    t.same(existsSync(trash) ? readdirSync(trash) : [], [])
    await client.call('GET /workspace/tree', {})
    t.notOk(
      readdirSync(where.workspace).some(name => name.startsWith('.sandbox-write-')),
      'no temporary name is left',
    )
    await terminate()
  })
}
