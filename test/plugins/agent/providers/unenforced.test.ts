import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { sandbox } from '../../../sdk/cli/cli-process.js'
import { runTurn } from '../../../support/turns.js'
import { spawnUnwalled, unwalled, WITHOUT_WALL } from '../../../support/unwalled.js'

t.test('without a wall the frame and the info say so, and a turn still begins in its own copy', unwalled(), async t => {
  const { client, workspace, data, terminate } = await spawnUnwalled(t, { 'a.txt': 'one\n' })
  const frames = await runTurn(client, 'u', 'append a.txt\n| two\nrun pwd; echo x > b.txt', { isolated: true })
  t.match(frames[0], { kind: 'worktree', branch: 'agent/u', unenforced: true })
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match(
    (await client.call('GET /info')).programs.find(({ name }) => name === 'bwrap'),
    { present: false },
  )
  t.equal((await client.call('GET /info')).wall, 'none')
  const copy = join(data, 'agent/checkouts/u')
  t.same([readFileSync(join(copy, 'a.txt'), 'utf8'), readFileSync(join(copy, 'b.txt'), 'utf8')], ['one\ntwo\n', 'x\n'])
  t.equal(inGit(workspace, 'status', '--porcelain'), '')
  t.match(await client.call('POST /agents/{id}/land', { id: 'u' }), { landed: true })
  t.equal(readFileSync(join(workspace, 'b.txt'), 'utf8'), 'x\n')
  await terminate()
})

t.test('without a wall the start is refused with what to install, and changes nothing', unwalled(), async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'a.txt': 'one\n' })
  const begin = (args: string[], env: NodeJS.ProcessEnv = { SANDBOX_NO_WALL: '' }) =>
    spawnDaemon(t, { ...where, args, env, starter: WITHOUT_WALL })
  const sentence =
    /sandbox: there is no wall: turns .*; install bubblewrap \(apt-get install bubblewrap\); with --no-wall/
  await t.rejects(begin([]), { message: new RegExp(`ended with 1: .*${sentence.source}[^\\n]*\\n$`) })
  const config = join(folder, 'config.json')
  writeFileSync(config, '{"wall":{"required":true}}')
  await t.rejects(begin(['--config', config]), { message: sentence })
  for (const [args, env] of [
    [['--no-wall'], {}],
    [[], { SANDBOX_NO_WALL: '1' }],
    [['--config', config], {}],
  ] as const) {
    writeFileSync(config, '{"wall":{"required":false}}')
    const daemon = await begin([...args], env)
    t.equal((await daemon.client.call('GET /info')).wall, 'none', args.join(' '))
    t.match(daemon.stderr(), /"level":"warn".*there is no wall: turns/)
    await daemon.terminate()
  }
})

t.test('without a wall every command of the command line says so', unwalled(), async t => {
  const { data, terminate } = await spawnUnwalled(t, { 'a.txt': 'one\n' })
  const env = { SANDBOX_DATA: data }
  const agents = await sandbox(['agents'], { env })
  t.match(agents, { code: 0, err: /^warning: there is no wall: turns and terminals can read and change everything/ })
  t.notMatch(await sandbox(['agents', '--json'], { env }), { err: /./ })
  await terminate()
})

t.test('without a wall dependencies are links into the main checkout, and are never committed', unwalled(), async t => {
  const { client, workspace, data, terminate } = await spawnUnwalled(t, {
    'a.txt': 'one\n',
    '.gitignore': 'node_modules/\n',
  })
  mkdirSync(join(workspace, 'node_modules/dep'), { recursive: true })
  writeFileSync(join(workspace, 'node_modules/dep/index.js'), 'dep\n')
  const frames = await runTurn(
    client,
    'u',
    'run cat node_modules/dep/index.js\nexpect dep\nwrite b.txt\n| b\nrun git add -A; git commit -qm own; true',
    { isolated: true },
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.ok(lstatSync(join(data, 'agent/checkouts/u/node_modules/dep')).isSymbolicLink())
  await runTurn(client, 'u', 'append b.txt\n| more')
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'u' })
  t.same(
    repos[0]!.changes.map(({ path }) => path),
    ['b.txt'],
  )
  t.match(await client.call('POST /agents/{id}/land', { id: 'u' }), { landed: true })
  t.notOk(lstatSync(join(workspace, 'node_modules')).isSymbolicLink())
  t.match(await client.call('POST /agents/{id}/discard', { id: 'u' }), { ok: true })
  t.ok(existsSync(join(workspace, 'node_modules/dep/index.js')), 'the target of the link is unchanged')
  await terminate()
})
