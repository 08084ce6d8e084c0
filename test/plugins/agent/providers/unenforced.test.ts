import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { wallKind } from '../../../../sdk/node/wall/wall.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { withChromium } from '../../../support/browser/browser.js'
import { launchBrowser } from '../../../support/browser/console.js'
import { sandbox } from '../../../sdk/cli/cli-process.js'
import { runTurn } from '../../../support/turns.js'

/** Hides the programs that build walls, only from the given program. */
const UNWALLED = [
  'unshare',
  '--map-root-user',
  '--mount',
  'sh',
  '-c',
  'for p in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do for n in bwrap setpriv; do [ ! -e '
    + '$p/$n ] || mount --bind /dev/null $p/$n || exit; done; done; exec "$@"',
  'sh',
]

const NO_WALL = (await wallKind()) === 'none'
const [PROGRAM = '', ...ARGS] = UNWALLED
/** Leaves the reason out where there is none, so that it does not undo another. */
const hidden = (): { skip?: string } => {
  const { skip } = options()
  return skip ? { skip } : {}
}
const options = () => ({
  skip: !NO_WALL && spawnSync(PROGRAM, [...ARGS, 'true']).status !== 0 && 'programs cannot be hidden on this machine',
})

/** The real program on a machine that can build no wall. */
const started = async (t: Test, files: { [path: string]: string }) => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, files)
  return spawnDaemon(t, { ...where, args: ['--no-wall'], starter: NO_WALL ? [] : UNWALLED })
}

t.test('without a wall the frame and the info say so, and a turn still begins in its own copy', options(), async t => {
  const { client, workspace, data, terminate } = await started(t, { 'a.txt': 'one\n' })
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

t.test('without a wall the start is refused with what to install, unless somebody says so', options(), async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'a.txt': 'one\n' })
  const begin = (args: string[], env: NodeJS.ProcessEnv = { SANDBOX_NO_WALL: '' }) =>
    spawnDaemon(t, { ...where, args, env, starter: NO_WALL ? [] : UNWALLED })
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

t.test('without a wall every command of the command line says so', options(), async t => {
  const { data, terminate } = await started(t, { 'a.txt': 'one\n' })
  const env = { SANDBOX_DATA: data }
  const agents = await sandbox(['agents'], { env })
  t.match(agents, { code: 0, err: /^warning: there is no wall: turns and terminals can read and change everything/ })
  t.notMatch(await sandbox(['agents', '--json'], { env }), { err: /./ })
  await terminate()
})

t.test('without a wall the console shows it on every page', { ...withChromium(), ...hidden() }, async t => {
  const { data, terminate } = await started(t, { 'a.txt': 'one\n' })
  const { out } = await sandbox(['login'], { env: { SANDBOX_DATA: data } })
  const page = await (await launchBrowser(t)).newPage()
  await page.goto(out.trim())
  const banner = page.getByText('There is no wall: agents can read and change everything')
  await banner.waitFor()
  await page.evaluate('location.hash = "#/settings"')
  await page.getByRole('heading', { name: 'Settings' }).first().waitFor()
  t.ok(await banner.isVisible())
  await terminate()
})

t.test('without a wall dependencies are links into the main checkout, and are never committed', options(), async t => {
  const { client, workspace, data, terminate } = await started(t, {
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
