import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import { makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { endOf, shownIn, until } from './projects-support.js'
import { workspaceWorld } from './support.js'

const json = (value: object): string => JSON.stringify(value)

if (!(await ownProgram('npm'))) {
  if (process.env.CI) throw new Error('npm is not installed, and nothing may be left out here')
  console.error('npm is not installed: nothing is installed with it')
}
const skip = (await ownProgram('npm')) ? false : 'npm is not installed'

void t.test('projects are found by their files, the topmost of each language in each repository', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, {
    groups: ['system'],
    files: {
      'package.json': json({ name: 'top', workspaces: ['packages/*'], dependencies: { a: '1' } }),
      'packages/one/package.json': json({ name: 'one', dependencies: { b: '1' } }),
      'tools/package.json': json({ name: 'tools', dependencies: { c: '1' } }),
      'service/requirements.txt': 'Requests>=2 # web\n-r other.txt\nfoo.bar; python_version < "3"\n\n',
      'docs/package.json': json({ name: 'docs', packageManager: 'pnpm@9.1.0' }),
      'a/b/c/d/e/go.mod': 'module deep\n\nrequire x.org/y v1.0.0\n',
      '.gitignore': 'ignored/\n',
      'ignored/package.json': '{}',
    },
  })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const at = (path: string) => join(workspace, path)
  makeWorkspace(at('lib'), {
    'package.json': json({ name: 'lib', dependencies: { d: '2' } }),
    'yarn.lock': '# yarn lockfile v1\nd@2:\n  version "2.0.0"\n',
    'native/Cargo.toml': '[package]\nname = "native"\n[dependencies]\nserde = "1"\n',
    'native/Cargo.lock': '',
    'plain/Cargo.toml': '[package]\nname = "plain"\n',
    'mod/go.mod': 'module example.org/mod\n\nrequire x.org/y v1.0.0\n',
    'java/pom.xml': '<project/>',
    'site/composer.json': '{}',
    'gems/Gemfile': '',
    'broken/package.json': '{',
  })

  await t.test('callers need a credential and a scope that reads', async t => {
    const { token } = await daemon.token('editor')
    const headers = { 'x-sandbox-control': token, 'content-type': 'application/json' }
    for (const [method, path] of [
      ['GET', 'setup'],
      ['POST', 'setup/install'],
      ['GET', 'templates'],
      ['POST', 'repos/root/apps'],
      ['GET', 'repos/root/apps'],
      ['POST', 'repos/root/apps/a/start'],
      ['POST', 'repos/root/apps/a/stop'],
      ['POST', 'repos/root/tests'],
    ] as const) {
      const url = `${daemon.url}/workspace/${path}`
      t.equal((await fetch(url, { method })).status, 401, path)
      t.equal((await fetch(url, { method, headers, ...(method === 'POST' && { body: '{}' }) })).status, 403, path)
    }
    t.equal((await ask('vic', '/workspace/setup/install', 'POST', { dirs: [''] })).status, 403)
    t.equal((await ask('vic', '/workspace/repos/root/tests', 'POST', { session: 'a', dirs: [''] })).status, 403)
    t.equal((await ask('col', '/workspace/repos/root/apps/a/start', 'POST')).status, 403)
  })

  await t.test('bad input and unknown folders are refused, and nothing is queued', async t => {
    for (const [body, status, message] of [
      [{ dirs: [] }, 400, /^dirs/],
      [{ dirs: ['../x'] }, 400, /segment/],
      [{ dirs: ['/etc'] }, 400, /absolute/],
      [{ dirs: ['x'.repeat(501)] }, 400, /^dirs/],
      [{ dirs: ['nowhere'] }, 404, /no folder "nowhere"/],
      [{ dirs: ['packages/one'] }, 404, /no project/],
      [{ dirs: ['.git'] }, 404, /nothing/],
    ] as const) {
      const answer = await ask('col', '/workspace/setup/install', 'POST', body)
      t.equal(answer.status, status, json(body).slice(0, 40))
      t.match(((await answer.json()) as { message: string }).message, message)
    }
    t.same((await client.call('GET /system/terminals')).sessions, [])
  })

  await t.test('each has its manager, its command and the file that decided', async t => {
    const { projects } = await client.call('GET /workspace/setup')
    const found = projects.map(({ dir, manager, command, evidence }) => [dir, manager, command, evidence])
    t.same(found, [
      ['', 'npm', 'npm install', 'package.json'],
      ['lib', 'yarn', 'yarn install --frozen-lockfile', 'yarn.lock'],
      ['lib/gems', 'bundler', 'bundle config set --local path vendor/bundle && bundle install', 'Gemfile'],
      ['lib/java', 'maven', 'mvn -B dependency:resolve', 'pom.xml'],
      ['lib/mod', 'go', 'go mod download', 'go.mod'],
      ['lib/native', 'cargo', 'cargo fetch --locked', 'Cargo.lock'],
      ['lib/plain', 'cargo', 'cargo fetch', 'Cargo.toml'],
      ['lib/site', 'composer', 'composer install --no-interaction', 'composer.json'],
      [
        'service',
        'pip',
        'python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt',
        'requirements.txt',
      ],
    ])
    const of = (dir: string) => projects.find(each => each.dir === dir)!
    t.equal(of('').missing, 2, 'of the workspace of packages and its packages')
    t.equal(of('service').missing, 1)
    t.equal(of('lib/plain').state, 'ready', 'it declares nothing')
    t.match((await as('ann').call('GET /workspace/setup')).projects, exactly({ dir: 'docs', manager: 'pnpm' }))
  })
})

void t.test('dependencies are installed in a terminal, and counted as they are on the disk', { skip }, async t => {
  const { daemon, as, ask } = await workspaceWorld(t, {
    groups: ['system', 'activity'],
    files: {
      'lib/package.json': json({ name: 'lib', version: '1.0.0' }),
      'docs/package.json': json({ name: 'docs', dependencies: { inner: 'file:./inner' } }),
      'docs/inner/package.json': json({ name: 'inner', version: '1.0.0' }),
      'shop/package.json': json({ name: 'shop', dependencies: { lib: 'file:../lib' } }),
      'bad/package.json': json({
        name: 'bad',
        dependencies: { lib: 'file:../lib' },
        scripts: { preinstall: 'echo ghp_abcdefghijklmnopqrstuvwxyz0123456789; exit 5' },
      }),
      'README.md': 'x',
    },
  })
  const { client, workspace } = daemon
  const heard: object[] = []
  for (const event of ['deps.broken', 'deps.fixed'] as const)
    daemon.kernel.events.on(event, 'test', async (_, input) => heard.push((input as { data: object }).data))
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const stateOf = async (dir: string) =>
    (await client.call('GET /workspace/setup')).projects.find(each => each.dir === dir)!

  await t.test('a project is installed, and says so', async t => {
    t.match(await stateOf('shop'), { state: 'needs-setup', missing: 1, command: 'npm install' })
    const answer = await client.call('POST /workspace/setup/install', { dirs: ['shop', 'shop', 'lib'] })
    t.same(answer, { queued: ['shop'], sessions: [{ dir: 'shop', session: 'panel-shop--install' }] })
    t.equal((await stateOf('shop')).state, 'installing')
    t.same((await client.call('POST /workspace/setup/install', { dirs: ['shop'] })).queued, [])
    const { exitCode, kind } = await endOf(client, 'panel-shop--install')
    t.equal(exitCode, 0, await shownIn(client, 'panel-shop--install'))
    t.equal(kind, 'panel')
    t.match(await shownIn(client, 'panel-shop--install'), /\$ npm install/)
    t.ok(existsSync(join(workspace, 'shop/node_modules/lib/package.json')))
    await until('ready', async () => (await stateOf('shop')).state === 'ready')
    t.match(await stateOf('shop'), { command: 'npm ci', evidence: 'package-lock.json' })
    t.same((await client.call('POST /workspace/setup/install', { dirs: ['shop'] })).queued, [], 'nothing to do')
    const { events } = await client.call('GET /activity', { type: 'workspace.install' })
    t.match(events, exactly({ type: 'workspace.install', actor: 'owner@sandbox.local' }))
  })

  await t.test('missing packages make an install stale, and a lock file of another manifest is not forced', async t => {
    rmSync(join(workspace, 'shop/node_modules/lib'))
    t.match(await stateOf('shop'), { state: 'stale', missing: 1, command: 'npm ci' })
    const manifest = { name: 'shop', dependencies: { lib: 'file:../lib', inner: 'file:../docs/inner' } }
    writeFileSync(join(workspace, 'shop/package.json'), json(manifest))
    t.match(await stateOf('shop'), { state: 'stale', missing: 2, command: 'npm install' })
    const { sessions } = await client.call('POST /workspace/setup/install', { dirs: ['shop'] })
    t.equal((await endOf(client, sessions[0]!.session)).exitCode, 0)
    await until('ready', async () => (await stateOf('shop')).state === 'ready')
    const lock = join(workspace, 'shop/package-lock.json')
    const text = readFileSync(lock, 'utf8')
    writeFileSync(lock, text.replace('"node_modules/lib": {', '"node_modules/lib": {\n      "version": "9.9.9",'))
    t.match(await stateOf('shop'), { state: 'stale' }, 'npm noted another version')
  })

  await t.test('installs of one manager run one after another, and a failed one is reported', async t => {
    const { queued } = await client.call('POST /workspace/setup/install', { dirs: ['bad', 'docs'] })
    t.same(queued, ['bad', 'docs'])
    const terminals = (await client.call('GET /system/terminals')).sessions.map(({ name }) => name)
    t.ok(terminals.includes('panel-bad--install'))
    t.notOk(terminals.includes('panel-docs--install'), 'it waits')
    t.equal((await endOf(client, 'panel-bad--install')).exitCode, 5)
    t.equal((await endOf(client, 'panel-docs--install')).exitCode, 0)
    await until('over', async () => (await stateOf('bad')).state !== 'installing')
    t.match(heard, exactly({ project: 'bad', command: 'npm install', exitCode: 5, attempt: 1, logTail: /preinstall/ }))
    t.notMatch(JSON.stringify(heard), /abcdefgh/)
    t.equal((await stateOf('bad')).state, 'stale')
    writeFileSync(join(workspace, 'bad/package.json'), json({ name: 'bad', dependencies: { lib: 'file:../lib' } }))
    await client.call('POST /workspace/setup/install', { dirs: ['bad'] })
    await until('mended', async () => heard.length > 1)
    t.equal((await stateOf('bad')).state, 'ready')
    t.match(heard.slice(1), exactly({ project: 'bad', attempt: 1 }))
  })

  await t.test('a member of an area installs in it, and its programs see nothing else', async t => {
    rmSync(join(workspace, 'docs/node_modules'), { recursive: true })
    const script = `require('fs').writeFileSync('seen.txt', require('fs').readdirSync('..').join())`
    writeFileSync(
      join(workspace, 'docs/package.json'),
      json({ name: 'docs', dependencies: { inner: 'file:./inner' }, scripts: { postinstall: `node -e "${script}"` } }),
    )
    t.equal((await ask('ann', '/workspace/setup/install', 'POST', { dirs: ['shop'] })).status, 404)
    t.equal((await ask('ann', '/workspace/setup/install', 'POST', { dirs: [''] })).status, 404)
    const { queued, sessions } = await as('ann').call('POST /workspace/setup/install', { dirs: ['docs'] })
    t.same(queued, ['docs'])
    const { exitCode } = await endOf(client, sessions[0]!.session)
    t.equal(exitCode, 0, await shownIn(client, sessions[0]!.session))
    t.equal(readFileSync(join(workspace, 'docs/seen.txt'), 'utf8'), 'docs')
    t.match((await as('ann').call('GET /system/terminals')).sessions, exactly({ name: 'panel-docs--install' }))
    t.equal((await ask('ann', '/system/terminals/panel-shop--install/scrollback')).status, 404)
  })
  mkdirSync(join(workspace, 'empty'))
})

void t.test('the tests of folders run one after another in one terminal', { skip }, async t => {
  const { daemon, as, ask } = await workspaceWorld(t, {
    groups: ['system', 'activity'],
    files: {
      'good/package.json': json({ name: 'good', scripts: { test: 'echo fine' } }),
      'bad/package.json': json({ name: 'bad', scripts: { test: 'echo wrong; exit 3' } }),
      'slow/package.json': json({ name: 'slow', scripts: { test: 'echo begun; sleep 60' } }),
      'none/package.json': json({ name: 'none', scripts: { test: 'echo "Error: no test specified" && exit 1' } }),
      "it's $(odd)/package.json": json({ name: 'odd', scripts: { test: 'pwd' } }),
      'php/phpunit.xml': '<phpunit/>',
      'docs/package.json': json({ name: 'docs', scripts: { test: 'ls .. && echo CI=$CI' } }),
    },
  })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const run = (session: string, dirs: string[]) =>
    client.call('POST /workspace/repos/{repo}/tests', { repo: 'root', session, dirs })

  await t.test('invalid runs are refused, and nothing is started', async t => {
    for (const [body, status, message] of [
      [{ session: 'A', dirs: ['good'] }, 400, /^session/],
      [{ session: '', dirs: ['good'] }, 400, /^session/],
      [{ session: 'a', dirs: [] }, 400, /^dirs/],
      [{ session: 'a', dirs: ['../x'] }, 400, /segment/],
      [{ session: 'a', dirs: ['good', 'gone'] }, 404, /no folder/],
      [{ session: 'a', dirs: ['none'] }, 422, /no test command is known for "none"/],
      [{ session: 'a', dirs: [''] }, 422, /no test command/],
      [{ session: 'a', dirs: ['php'] }, 501, /program phpunit/],
    ] as const) {
      const answer = await ask('col', '/workspace/repos/root/tests', 'POST', body)
      t.equal(answer.status, status, json(body))
      t.match(((await answer.json()) as { message: string }).message, message)
    }
    t.equal((await ask('col', '/workspace/repos/nope/tests', 'POST', { session: 'a', dirs: [''] })).status, 404)
    t.same((await client.call('GET /system/terminals')).sessions, [])
  })

  await t.test('a failing test does not stop the next one, and its exit code is that of the terminal', async t => {
    const odd = "it's $(odd)"
    const { session, commands } = await run('unit', ['bad', 'good', odd])
    t.equal(session, 'panel-unit')
    t.same(commands, [
      { dir: 'bad', command: 'npm run test' },
      { dir: 'good', command: 'npm run test' },
      { dir: odd, command: 'npm run test' },
    ])
    t.equal((await endOf(client, session)).exitCode, 3)
    t.match(await shownIn(client, session), new RegExp(`wrong[^]*fine[^]*${join(workspace, "it's .\\(odd\\)")}`))
    const { events } = await client.call('GET /activity', { type: 'workspace.tests' })
    t.match(events, exactly({ type: 'workspace.tests' }))
  })

  await t.test('a running run of that name is returned, and a finished one starts again', async t => {
    const { session } = await run('slow', ['slow'])
    await until('it runs', async () => /begun/.test(await shownIn(client, session)))
    t.same(await run('slow', ['slow']), {
      ok: true,
      session,
      commands: [{ dir: 'slow', command: 'npm run test' }],
    })
    t.equal((await client.call('GET /system/terminals')).sessions.filter(({ name }) => name === session).length, 1)
    await client.call('DELETE /system/terminals/{name}', { name: session })
    t.equal((await run('unit', ['good'])).session, 'panel-unit')
    t.equal((await endOf(client, 'panel-unit')).exitCode, 0)
    t.notMatch(await shownIn(client, 'panel-unit'), /wrong/)
  })

  await t.test('tests of a member of an area see nothing else', async t => {
    makeWorkspace(join(workspace, 'docs'), {})
    t.equal((await ask('ann', '/workspace/repos/root/tests', 'POST', { session: 'a', dirs: ['docs'] })).status, 404)
    const { session } = await as('ann').call('POST /workspace/repos/{repo}/tests', {
      repo: 'docs',
      session: 'a',
      dirs: [''],
    })
    t.equal(session, 'panel-docs--a')
    t.equal((await endOf(client, session)).exitCode, 0, await shownIn(client, session))
    t.match(await shownIn(client, session), /\ndocs\nCI=true/)
    t.notMatch(await shownIn(client, session), /good/)
  })
})
