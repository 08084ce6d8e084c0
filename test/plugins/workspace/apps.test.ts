import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { acceptConfig } from '../../../sdk/node/files/accepted-config.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { bareCopy, gitServer, trustedAuthority } from '../../support/servers/git-server.js'
import { endOf, shownIn, until } from './projects-support.js'
import { workspaceWorld } from './support.js'

const json = (value: object): string => JSON.stringify(value)
const server = (port: string, host = '127.0.0.1'): string =>
  `require('node:http').createServer((_, r) => { r.statusCode = 404; r.end('hello') }).listen(${port}, '${host}')\n`
const dev = (name: string, more: object = {}): string => json({ name, scripts: { dev: 'node server.cjs' }, ...more })

void t.test('apps are listed, started on a port that is found, and ended with all their processes', async t => {
  const { daemon, ask, as } = await workspaceWorld(t, {
    groups: ['system'],
    files: { 'lib/package.json': json({ name: 'lib', version: '1.0.0' }), 'docs/a.md': 'a' },
  })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  makeWorkspace(join(workspace, 'clients/shop'), {
    'apps/web/package.json': dev('web', {
      scripts: { dev: 'node server.cjs & node other.cjs; wait' },
      devDependencies: { vite: 'file:../../vite' },
    }),
    'vite/package.json': json({ name: 'vite', version: '1.0.0' }),
    'apps/web/server.cjs': server('process.env.PORT'),
    'apps/web/other.cjs': server('0', '::1'),
    'apps/odd/package.json': dev('odd', { scripts: { start: 'node server.cjs' } }),
    'apps/odd/server.cjs': server('0', '::1'),
    'apps/quiet/package.json': dev('quiet', { scripts: { dev: 'echo no server; exit 4' } }),
    'apps/stubborn/package.json': dev('stubborn', {
      scripts: { dev: "trap '' TERM HUP; node -e 'process.on(\"SIGTERM\", () => {}); setInterval(() => {}, 1e6)'" },
    }),
    'apps/nothing/package.json': json({ name: 'nothing' }),
    'apps/Not A Name/package.json': dev('bad'),
  })
  const repo = 'clients/shop'
  const list = async () => (await client.call('GET /workspace/repos/{repo}/apps', { repo })).apps
  const appOf = async (app: string) => (await list()).find(each => each.app === app)!
  const start = (app: string) => client.call('POST /workspace/repos/{repo}/apps/{app}/start', { repo, app })
  const stop = (app: string) => client.call('POST /workspace/repos/{repo}/apps/{app}/stop', { repo, app })

  await t.test('an unknown app is not found and not started', async t => {
    const at = '/workspace/repos/clients%2Fshop/apps'
    for (const [path, status] of [
      [`${at}/nothing/start`, 404],
      [`${at}/gone/start`, 404],
      [`${at}/gone/stop`, 404],
      [`${at}/A/start`, 400],
      [`${at}/a%3Bb/start`, 400],
      ['/workspace/repos/nope/apps/web/start', 404],
    ] as const)
      t.equal((await ask('mai', path, 'POST')).status, status, path)
    t.equal((await ask('ann', at)).status, 404)
    t.equal((await ask('mai', '/workspace/repos/nope/apps')).status, 404)
    t.same((await client.call('GET /system/terminals')).sessions, [])
    t.same(await list(), [
      { app: 'odd', running: false, healthy: false },
      { app: 'quiet', running: false, healthy: false },
      { app: 'stubborn', running: false, healthy: false },
      { app: 'web', running: false, healthy: false, kind: 'vite' },
    ])
    t.same((await as('ann').call('GET /workspace/setup')).projects, [])
  })

  await t.test('an app is started with its dependencies, on the port it was given', async t => {
    const { session, port } = await start('web')
    t.equal(session, 'panel-clients--shop--web')
    const found = await until('it answers', async () => {
      const app = await appOf('web')
      return app.healthy && app.port === port && app
    }).catch(async error => {
      throw new Error(await shownIn(client, session), { cause: error })
    })
    t.same(found, { app: 'web', kind: 'vite', running: true, healthy: true, port, session })
    t.ok(existsSync(join(workspace, 'clients/shop/apps/web/node_modules/vite/package.json')))
    t.same(await start('web'), { ok: true, session, port }, 'it runs already')
    t.equal(await (await fetch(`http://127.0.0.1:${port}`)).text(), 'hello')
    await stop('web')
    t.same(await appOf('web'), { app: 'web', kind: 'vite', running: false, healthy: false })
    const again = createServer()
    await new Promise<void>((resolve, reject) => again.once('error', reject).listen(port, '127.0.0.1', resolve))
    again.close()
    t.same(await stop('web'), { ok: true }, 'it does not run')
  })

  await t.test('a server that chooses its port, and listens on IPv6 alone, is found', async t => {
    const { session } = await start('odd')
    const app = await until('it answers', async () => {
      const each = await appOf('odd')
      return each.healthy && each
    })
    t.equal(await (await fetch(`http://[::1]:${app.port}`)).text(), 'hello')
    t.equal((await start('odd')).port, app.port)
    await client.call('DELETE /system/terminals/{name}', { name: session })
    t.equal((await appOf('odd')).running, false)
  })

  await t.test('an app that ended is not running, and its terminal says why', async t => {
    const { session } = await start('quiet')
    t.equal((await endOf(client, session)).exitCode, 4)
    t.match(await shownIn(client, session), /no server/)
    t.same(await appOf('quiet'), { app: 'quiet', running: false, healthy: false })
  })

  await t.test('an app that ignores SIGTERM is ended', async t => {
    await start('stubborn')
    await stop('stubborn')
    t.equal((await appOf('stubborn')).running, false)
  })

  await t.test('a terminal that runs something else is not taken for an app', async t => {
    writeFileSync(join(workspace, 'clients/shop/package.json'), json({ scripts: { test: 'sleep 60' } }))
    await client.call('POST /workspace/repos/{repo}/tests', { repo, session: 'odd', dirs: [''] })
    t.equal((await ask('mai', '/workspace/repos/clients%2Fshop/apps/odd/start', 'POST')).status, 409)
    t.same(await stop('odd'), { ok: true })
    t.match((await client.call('GET /system/terminals')).sessions, { 0: { name: /odd|quiet/ } })
    t.ok(
      (await client.call('GET /system/terminals')).sessions.some(each => each.name.endsWith('--odd') && each.running),
    )
  })
})

/** The templates once their source was read: no read does that. */
const whenRead = async <T>(list: () => Promise<T>): Promise<T> => {
  for (;;)
    try {
      return await list()
    } catch (error) {
      if ((error as { reason?: string }).reason !== 'unavailable') throw error
      await new Promise(resolve => setTimeout(resolve, 50))
    }
}

void t.test('apps are made of templates, all of a call or none', async t => {
  const { daemon, ask } = await workspaceWorld(t, { groups: ['system'], files: { 'apps/old/package.json': '{}' } })
  const { client, workspace, data } = daemon
  const add = (apps: { template: string; name: string }[], repo = 'root') =>
    client.call('POST /workspace/repos/{repo}/apps', { repo, apps })
  const apps = () => readdirSync(join(workspace, 'apps')).sort()

  await t.test('the built-in templates are listed', async t => {
    t.match(await client.call('GET /workspace/templates'), {
      source: 'built-in',
      templates: exactly({ key: 'node-server' }, { key: 'static-site' }, { key: 'vite' }),
    })
  })

  await t.test('a bad name, an unknown template and a name that is taken make nothing', async t => {
    const one = { template: 'node-server', name: 'api' }
    for (const [body, status, message] of [
      [{ apps: [] }, 400, /^apps/],
      [{ apps: [{ ...one, name: 'A' }] }, 400, /name/],
      [{ apps: [{ ...one, name: '../x' }] }, 400, /name/],
      [{ apps: [one, one] }, 400, /found api twice/],
      [{ apps: [one, { ...one, template: 'none', name: 'b' }] }, 404, /no template is named none/],
      [{ apps: [one, { ...one, name: 'old' }] }, 409, /"apps\/old" exists already/],
    ] as const) {
      const answer = await ask('mai', '/workspace/repos/root/apps', 'POST', body)
      t.equal(answer.status, status, json(body))
      t.match(((await answer.json()) as { message: string }).message, message)
    }
    t.equal((await ask('mai', '/workspace/repos/nope/apps', 'POST', { apps: [one] })).status, 404)
    t.same(apps(), ['old'])
  })

  await t.test('they are there with the answer, run, and are tested', async t => {
    const { session } = await add([
      { template: 'node-server', name: 'api' },
      { template: 'static-site', name: 'site' },
    ])
    t.equal(session, 'panel-add_apps')
    t.same(apps(), ['api', 'old', 'site'])
    t.equal((await endOf(client, session)).exitCode, 0)
    t.match(await shownIn(client, session), /server\.js/)
    t.equal(
      (JSON.parse(readFileSync(join(workspace, 'apps/api/package.json'), 'utf8')) as { name: string }).name,
      'api',
    )
    t.same(readdirSync(join(workspace, '.sandbox/local/apps')), [])
    for (const app of ['api', 'site']) {
      const { port } = await client.call('POST /workspace/repos/{repo}/apps/{app}/start', { repo: 'root', app })
      const answer = await until('it answers', () => fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))
      t.match(await answer.text(), app === 'api' ? /"path":"\/"/ : /<h1>Hello/)
      await client.call('POST /workspace/repos/{repo}/apps/{app}/stop', { repo: 'root', app })
    }
    const tests = await client.call('POST /workspace/repos/{repo}/tests', {
      repo: 'root',
      session: 'unit',
      dirs: ['apps/api'],
    })
    t.equal((await endOf(client, tests.session)).exitCode, 0, await shownIn(client, tests.session))
    t.equal(
      (await ask('mai', '/workspace/repos/root/apps', 'POST', { apps: [{ template: 'vite', name: 'api' }] })).status,
      409,
    )
  })

  await t.test('templates of a git repository replace the built-in ones', async t => {
    const source = join(workspace, 'sources/apps')
    makeWorkspace(source, {
      'templates.json': json({
        templates: [
          { key: 'mine', label: 'Mine', description: 'ours', kind: 'app', path: 'mine' },
          { key: 'whole', label: 'Whole', description: 'a repository', kind: 'repo', path: '.' },
        ],
      }),
      'mine/package.json': json({ name: 'x', scripts: { dev: 'node x' } }),
      'mine/deep/a.txt': 'a',
    })
    symlinkSync('/etc/passwd', join(source, 'mine/leak'))
    inGit(source, 'add', '-A')
    inGit(source, 'commit', '-qm', 'a link')
    inGit(source, 'tag', 'v1')
    mkdirSync(join(workspace, '.sandbox/config'), { recursive: true })
    const config = async (value: object) => {
      writeFileSync(join(workspace, '.sandbox/config/templates.json'), json(value))
      await acceptConfig(data, '.sandbox/config/templates.json', value)
    }
    await config({ source: 'sources/apps', ref: 'v1' })
    t.same(await whenRead(() => client.call('GET /workspace/templates')), {
      source: 'sources/apps',
      ref: 'v1',
      templates: [{ key: 'mine', label: 'Mine', description: 'ours', kind: 'app' }],
    })
    await endOf(client, (await add([{ template: 'mine', name: 'ours' }])).session)
    t.same(readdirSync(join(workspace, 'apps/ours')).sort(), ['deep', 'package.json'])
    t.match(readFileSync(join(workspace, 'apps/ours/package.json'), 'utf8'), /"name": "ours"/)
    writeFileSync(join(source, 'templates.json'), '{')
    inGit(source, 'commit', '-qam', 'broken')
    t.equal((await client.call('GET /workspace/templates')).templates.length, 1, 'it is read once')
    for (const [value, status, message] of [
      [{ source: 'sources/apps' }, 422, /not JSON/],
      [{ source: 'sources/apps', ref: 'gone' }, 424, /refused/],
      [{ source: 'sources/none' }, 422, /templates\.json: source: expected a repository/],
      [{ source: '/etc' }, 422, /absolute path/],
      [{ source: 'ext::sh -c true' }, 422, /expected https/],
      [{ source: 5 }, 422, /templates\.json/],
      [{ other: 'x' }, 422, /templates\.json/],
    ] as const) {
      await config(value)
      t.match(
        await refusalOf(() => whenRead(() => client.call('GET /workspace/templates'))),
        { status, message },
        json(value),
      )
    }
  })
})

t.test('templates come from a repository that asks for a token, which is a stored secret', async t => {
  const token = 'ghp_templates%correct/horse'
  const authority = await trustedAuthority(t)
  const { client, workspace, data, logged } = await daemonWith(t, [])
  const needs = `x-access-token:${token}`
  const server = await gitServer(t, folderOf(t), { secure: authority, needs })
  const plain = await gitServer(t, folderOf(t), { needs })
  const made = join(folderOf(t), 'apps')
  makeWorkspace(made, {
    'templates.json': json({
      templates: [{ key: 'mine', label: 'Mine', description: 'ours', kind: 'app', path: 'mine' }],
    }),
    'mine/a.txt': 'a',
  })
  bareCopy(made, join(server.folder, 'apps.git'))
  bareCopy(made, join(plain.folder, 'apps.git'))
  mkdirSync(join(workspace, '.sandbox/config'), { recursive: true })
  const source = `${server.url}/apps.git`
  writeFileSync(join(workspace, '.sandbox/config/templates.json'), json({ source }))
  t.match(await client.call('GET /workspace/templates'), { source: 'built-in' }, 'the file may have come with the code')
  t.match(await client.call('GET /system/manifest-problems'), exactly({ problems: exactly({ kind: 'unaccepted' }) }))
  t.same(server.requests, [])
  const templates = async (value: object) => {
    writeFileSync(join(workspace, '.sandbox/config/templates.json'), json(value))
    await acceptConfig(data, '.sandbox/config/templates.json', value)
    return whenRead(() => client.call('GET /workspace/templates'))
  }
  const refused = async (value: object, status: number, message: RegExp) =>
    t.match(await refusalOf(() => templates(value)), { status, message }, json(value))
  await refused({ source }, 424, /refused/)
  await refused({ source, secret: 'FORGE' }, 424, /no stored secret FORGE/)
  await refused({ source, secret: 7 }, 422, /"secret"\?: text/)
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'ELSEWHERE', value: token, hosts: ['example.org'] })
  await refused({ source, secret: 'ELSEWHERE' }, 424, /ELSEWHERE/)
  await client.call('POST /secrets', { key: 'FORGE', value: token, hosts: ['localhost'] })
  await refused(
    { source: `${plain.url}/apps.git`, secret: 'FORGE' },
    422,
    /secret: expected only with an https address/,
  )
  t.same(
    [...server.requests, ...plain.requests].filter(({ authorization }) => authorization !== undefined),
    [],
    'no server was told the value yet',
  )
  t.match(await templates({ source, secret: 'FORGE' }), { source, templates: exactly({ key: 'mine' }) })
  const { uses } = await client.call('GET /secrets/uses', {})
  t.match(uses[0], { name: 'FORGE', lane: 'code', detail: 'reading templates' })
  t.notMatch(logged.join('\n'), /correct/)
  const { stdout } = spawnSync('grep', ['-rlF', 'correct/horse', data, workspace], { encoding: 'utf8' })
  t.equal(stdout, '', 'the value is in no file')
})
