import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { SHOWN_SERVER, shownServers } from '../../support/servers/shown-servers.js'
import { show, socketAt } from '../ports/support.js'
import { until } from '../workspace/projects-support.js'
import { workspaceWorld } from '../workspace/support.js'

const json = (value: object): string => JSON.stringify(value)
/** A package whose `dev` script runs a server. */
const dev = (order: string, more: object = {}): string =>
  json({ name: 'a', scripts: { dev: `${process.execPath} ${SHOWN_SERVER} '${order}'` }, ...more })
const ON_PORT = `{"listen":"127.0.0.1","port":'$PORT'}`

void t.test('panels', async t => {
  const { daemon, ask, as } = await workspaceWorld(t, {
    groups: ['panels', 'system', 'ports', 'activity'],
    files: { 'docs/a.md': 'a', 'notes.txt': 'a' },
  })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const repo = (path: string, files: { readonly [name: string]: string }) => makeWorkspace(join(workspace, path), files)
  repo('shop/web', { 'package.json': dev(ON_PORT), 'vitest.config.ts': '', 'docs/a.md': 'a', Dockerfile: '' })
  repo('fails', { 'package.json': json({ name: 'fails', scripts: { dev: 'echo it broke; exit 1' } }) })
  repo('six', { 'operator/package.json': dev('{"listen":"::1"}'), 'intent/a.md': 'a', 'package.json': json({}) })
  repo('none', { 'package.json': json({ workspaces: ['packages/*'] }), 'desired-state/a': '', 'user-stories/a': '' })
  const get = (name: string, wait?: 'healthy' | 'stopped') =>
    client.call('GET /panels/{repo}', { repo: name, ...(wait && { wait }) })
  const start = (name: string, more: object = {}) => client.call('POST /panels/{repo}/start', { repo: name, ...more })
  const stop = (name: string) => client.call('POST /panels/{repo}/stop', { repo: name })

  await t.test('without a credential and with too little of one nothing is read, started or ended', async t => {
    const drive = await daemon.token('drive')
    const editor = await daemon.token('editor')
    for (const [method, path] of [
      ['GET', '/panels'],
      ['GET', '/panels/shop%2Fweb'],
      ['POST', '/panels/shop%2Fweb/start'],
      ['POST', '/panels/shop%2Fweb/stop'],
    ] as const) {
      const send = async (headers: { [name: string]: string }) =>
        (await fetch(daemon.url + path, { method, headers })).status
      t.equal(await send({}), 401, `${method} ${path}`)
      t.equal(await send({ 'x-sandbox-control': editor.token }), 403, `${method} ${path} with an editor token`)
      t.equal(await send({ 'x-sandbox-control': drive.token }), method === 'GET' ? 200 : 403, `${method} ${path}`)
      if (method === 'POST') t.equal((await ask('col', path, 'POST')).status, 403, `${method} ${path}`)
    }
  })

  await t.test('bad input and unknown repositories are refused', async t => {
    t.equal((await ask('mai', '/panels/none?wait=ready')).status, 400)
    t.equal((await ask('mai', '/panels/none?wait=healthy&waitMs=60001')).status, 400)
    t.equal((await ask('mai', '/panels/none/start', 'POST', { restart: 'yes' })).status, 400)
    for (const path of ['gone', '..%2F..', 'docs', 'shop'])
      for (const method of ['GET', 'POST'] as const) {
        const at = `/panels/${path}${method === 'POST' ? '/start' : ''}`
        t.equal((await ask('mai', at, method)).status, 404, `${method} ${at}`)
      }
    t.match(await refusalOf(() => start('none')), { status: 409, message: /no package with a dev script/ })
  })

  await t.test('what repositories hold is listed, to people limited to areas what they reach', async t => {
    const { panels } = await client.call('GET /panels')
    t.match(
      panels,
      exactly(
        { repo: 'root', hasPanel: false, running: false, healthy: false, servers: exactly(), docs: true },
        { repo: 'fails', hasPanel: true, role: 'app', monorepo: false },
        { repo: 'none', hasPanel: false, role: 'desired-state', desiredState: true, monorepo: true, userStories: true },
        { repo: 'shop/web', hasPanel: true, deployConfig: true, vitest: true, docs: true, directoryUi: false },
        { repo: 'six', hasPanel: true, role: 'intent' },
      ),
    )
    t.same((await as('ann').call('GET /panels')).panels, [])
    t.equal((await ask('ann', '/panels/shop%2Fweb')).status, 404)
    t.equal((await ask('ann', '/panels/root')).status, 404)
  })

  await t.test('a server is started, waited for, shown with its sockets, and ended with all its processes', async t => {
    const started = await start('shop/web')
    t.match(started, { ok: true, session: 'panel-shop--web', previewUrl: /^http:\/\/preview-/ })
    const { port } = started
    const panel = await get('shop/web', 'healthy')
    t.match(panel, {
      ...{ running: true, healthy: true, port, session: 'panel-shop--web', previewUrl: started.previewUrl },
      servers: exactly({ url: `http://localhost:${port}`, session: 'panel-shop--web' }),
    })
    t.ok(panel.startedAt! <= Date.now())
    t.equal((await show(panel.previewUrl!)).text, 'hello')
    const socket = await socketAt(panel.previewUrl!)
    t.not(typeof socket, 'number', 'hot reloads reach it')
    if (typeof socket !== 'number') socket.socket.terminate()
    t.same(await start('shop/web'), started, 'it runs already')
    const again = await start('shop/web', { restart: true })
    t.same([again.port, again.previewUrl], [port, started.previewUrl], 'the same port and address')
    t.ok((await get('shop/web', 'healthy')).healthy)
    await stop('shop/web')
    const stopped = await get('shop/web')
    t.match(stopped, { running: false, healthy: false, servers: exactly() })
    t.same([stopped.port, stopped.previewUrl, stopped.exitCode], [undefined, undefined, undefined])
    const free = createServer()
    await new Promise<void>((resolve, reject) => free.once('error', reject).listen(port, '127.0.0.1', resolve))
    t.not((await start('shop/web')).port, port, 'something else listens on its port')
    free.close()
    await stop('shop/web')
    t.same(await stop('shop/web'), { ok: true }, 'it does not run')
    const types = (await client.call('GET /activity', {})).events.map(({ type }) => type)
    t.ok(types.includes('panel.started') && types.includes('panel.stopped') && !types.includes('panel.exited'))
  })

  await t.test('a script that fails says so at once', async t => {
    await start('fails')
    const began = performance.now()
    t.match(await get('fails', 'healthy'), { running: false, healthy: false, exitCode: 1 })
    t.ok(performance.now() - began < 25_000)
    await until('its end is in the record', async () =>
      (await client.call('GET /activity', {})).events.some(({ type }) => type === 'panel.exited'),
    )
  })

  await t.test('two that start together get ports of their own, and a server on IPv6 alone is found', async t => {
    const [one, other] = await Promise.all([start('shop/web'), start('six')])
    t.not(one.port, other.port)
    const [web, six] = await Promise.all([get('shop/web', 'healthy'), get('six', 'healthy')])
    t.ok(web.healthy && six.healthy)
    t.match(six.servers, exactly({ url: `http://localhost:${six.port}`, session: 'panel-six' }))
    await Promise.all([stop('shop/web'), stop('six')])
    t.match(await get('six', 'stopped'), { running: false })
  })

  await t.test('what somebody started by hand is found, also with a certificate of its own', async t => {
    const tls = join(workspace, '..', 'tls')
    mkdirSync(tls)
    const key = ['-keyout', 'key.pem', '-out', 'cert.pem', '-subj', '/CN=localhost', '-days', '2']
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...key], { cwd: tls, stdio: 'ignore' })
    mkdirSync(join(workspace, 'none', 'sub'))
    const servers = shownServers(t, join(workspace, 'none', 'sub'))
    const port = await servers.ask({ listen: '127.0.0.1', tls })
    const found = await until('it is listed', async () => {
      const panel = await get('none')
      return panel.healthy && panel
    })
    t.match(found, {
      ...{ running: false, healthy: true },
      servers: exactly({ url: `https://localhost:${port}`, dir: 'sub' }),
    })
    t.match(await get('root'), { healthy: false }, 'it belongs to the innermost repository')
    await stop('none')
    t.ok((await get('none')).healthy, 'it goes on')
    await servers.end()
  })

  await t.test('a caller waits 20 times at once', async t => {
    writeFileSync(join(workspace, 'fails', 'package.json'), json({ scripts: { dev: 'sleep 60' } }))
    await start('fails')
    const wait = () => client.call('GET /panels/{repo}', { repo: 'fails', wait: 'healthy', waitMs: 500 })
    const all = await Promise.allSettled(Array.from({ length: 21 }, wait))
    t.equal(all.filter(({ status }) => status === 'rejected').length, 1)
    t.match(
      all.find(({ status }) => status === 'rejected'),
      { reason: { reason: 'too-many' } },
    )
    await stop('fails')
  })

  await t.test('watchers learn when a panel starts, answers and ends', async t => {
    const over = new AbortController()
    const news = (async () => {
      let times = 0
      for await (const event of await client.call('GET /events', {}, { signal: over.signal })) {
        if (event.kind === 'hello') void start('shop/web')
        if (event.kind !== 'runtimeChanged' || !event.domains.includes('panels')) continue
        const { running, healthy } = await get('shop/web')
        if (running && healthy && times++ === 0) void stop('shop/web')
        if (times > 0 && !running) return 'ended'
      }
      return 'cut'
    })()
    t.equal(await news, 'ended')
    over.abort()
  })
})
