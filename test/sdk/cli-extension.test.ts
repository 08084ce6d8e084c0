import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { committed } from '../support/servers/git-server.js'
import { guides } from '../support/guides.js'
import { exactly } from '../support/lists.js'
import { runTurn } from '../support/turns.js'
import { sandbox, type RunOptions } from './cli/cli-process.js'

const folder = folderOf(t)
const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
makeWorkspace(workspace)
const daemon = await spawnDaemon(t, { workspace, data })
const extension = (args: readonly string[], options: RunOptions = {}) =>
  sandbox(['extension', ...args], { ...options, env: { SANDBOX_DATA: data } })
const EXTENSIONS = join(workspace, '.sandbox/config/workspace-extensions')
const origin = join(workspace, 'far')
const write = (manifest: object, word = 'one'): void => {
  mkdirSync(origin, { recursive: true })
  const base = { publisher: 'ada', name: 'far', version: '1.0.0', server: 'server.js' }
  writeFileSync(join(origin, 'intentic-extension.json'), JSON.stringify({ ...base, ...manifest }))
  writeFileSync(join(origin, 'server.js'), `export const activate = host => host.log.info('it says ${word}')\n`)
}

t.test('an extension is made, reviewed and approved from the command line', async t => {
  t.match(await extension([]), { code: 0, out: /^no extensions; sandbox extension create PUBLISHER NAME makes one\n$/ })
  t.match(await extension(['create', 'ada', 'notes']), {
    code: 0,
    out: /^made ada\.notes in .*workspace-extensions\/notes\n/,
  })
  t.match(await extension(['list']), {
    code: 0,
    out: /^ID +VERSION +FROM +STATE\nada\.notes +0\.1\.0 +workspace +\w+/,
  })
  t.match(await extension(['review', 'ada.notes']), { code: 0, out: /is approved; it declares:\n {2}nothing\n/ })
  const file = join(EXTENSIONS, 'notes/intentic-extension.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as object
  writeFileSync(file, JSON.stringify({ ...manifest, permissions: { daemon: ['GET /agents'] } }))
  t.match(await extension(['review', 'ada.notes']), {
    code: 0,
    out: /approval of:\n\+ calls GET \/agents of the sandbox\n[^]*digest [0-9a-f]{64}\nnext: .* approve ada\.notes\n$/,
  })
  t.match(await extension([]), {
    out: /ada\.notes +0\.1\.0 +workspace +waits[^]*next: sandbox extension review ada\.notes\n$/,
  })
  t.match(await extension(['approve', 'ada.notes']), {
    code: 2,
    err: /asks for:\n\+ calls GET \/agents of the sandbox\n[^]*expected --yes, because there is no terminal/,
  })
  t.match(await extension(['approve', 'ada.notes', '--yes']), { code: 0, out: 'approved ada.notes\n' })
  t.match(await extension(['approve', 'ada.notes', '-y']), { code: 0, out: 'ada.notes waits for nothing\n' })
  t.match(await extension(['review', 'ada.notes']), { out: /GET \/agents: never used\n/ })
  t.match(await extension(['disable', 'ada.notes']), { code: 0, out: 'ada.notes is off\n' })
  t.match(await extension(['enable', 'ada.notes']), { code: 0, out: 'ada.notes is on\n' })
  t.match(await extension(['review', 'no.such']), { code: 5, err: /there is no extension no\.such/ })
  t.match(await extension(['remove', 'ada.notes']), { code: 2, err: /deletes:\n- \S+notes: \d files/ })
  t.match(await extension(['remove', 'ada.notes', '--yes']), { code: 0, out: 'removed ada.notes\n' })
})

t.test('the steps of "An extension in ten minutes" do what the page says, in its order', async t => {
  const { text } = guides.find(({ path }) => path === 'sdk/README.md')!
  const cli = (line: string) => {
    t.ok(text.includes(`npx sandbox ${line}`), line)
    return (more: string[] = []) => sandbox([...line.split(' '), ...more], { env: { SANDBOX_DATA: data } })
  }
  t.match(await cli('extensions create ada hello')(), { code: 0 })
  const at = join(EXTENSIONS, 'hello')
  const { call } = daemon.client
  const { token } = await call('POST /system/control/tokens', { label: 'hello', scope: 'read' })
  const answers = async (expected: RegExp) => {
    for (const end = Date.now() + 15_000; ;) {
      const answer = await fetch(`${daemon.url}/x/ada.hello/hello`, { headers: { 'x-sandbox-control': token } })
      const found = `${answer.status} ${await answer.text()}`
      if (expected.test(found) || Date.now() > end) return t.match(found, expected)
    }
  }
  await answers(/^200 .*Hello from ada\.hello/)
  const server = /^```ts\n([^]*?)^```/m.exec(text)![1]!
  writeFileSync(join(at, 'server.ts'), server)
  // Without the entry the call is refused, by name.
  await answers(/^500 .*the manifest has no entry GET \/agents/)
  const file = join(at, 'intentic-extension.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as object
  const [, entry = ''] = /Add `("permissions": .*)` to/.exec(text)!
  writeFileSync(file, JSON.stringify({ ...manifest, ...(JSON.parse(`{${entry}}`) as object) }))
  await answers(/^409 .*approv/)
  const { out } = await cli('extension review ada.hello')()
  t.match(out, /\+ calls GET \/agents of the sandbox\n[^]*digest [0-9a-f]{64}\n/)
  t.match(await cli('extension approve ada.hello')(['--yes']), { code: 0, out: 'approved ada.hello\n' })
  await answers(/^200 .*0 conversations/)
  writeFileSync(join(at, 'server.ts'), server.replace('conversations', 'agents'))
  await answers(/^200 .*0 agents/)
  t.match(await cli('extensions readiness ada.hello')(), { code: 0 })
  t.match(await cli('extensions removal ada.hello')(), { code: 0 })
  await extension(['remove', 'ada.hello', '--yes'])
})

t.test('an extension is installed, updated and taken back', async t => {
  write({})
  inGit(origin, 'init', '-q', '-b', 'main')
  const first = committed(origin)
  write({ version: '2.0.0', permissions: { daemon: ['GET /agents'] } })
  const second = committed(origin)
  t.match(await extension(['install', 'far', 'main']), { code: 2, err: /expected a commit of 40/ })
  t.match(await extension(['install', 'far', first]), { code: 2, err: /ada\.far 1\.0\.0, 2 files, unlisted\n- runs a/ })
  t.match(await extension(['install', 'far', first, '--yes']), { code: 0, out: /^installed ada\.far, backend \w+\n$/ })
  t.match(await extension(['update', 'ada.far', second]), {
    code: 2,
    err: /1\.0\.0 to 2\.0\.0[^]*\+ calls GET \/agents/,
  })
  t.match(await extension(['update', 'ada.far', second, '--yes']), { code: 0, out: new RegExp(`is at ${second}\n`) })
  t.match(await extension(['revert', 'ada.far']), { code: 0, out: new RegExp(`^ada\\.far is at ${first}\n`) })
  t.match(JSON.parse((await extension(['list', '--json'])).out), { pending: exactly() })
})

t.test('dev runs a folder, loads each new build and prints the log', async t => {
  write({})
  t.match(await extension(['dev', 'ada.far', 'far', '--once']), { code: 0, out: /^ada\.far runs from far\n/ })
  let stage = 0
  const late = setTimeout(() => (stage = -1), 30_000)
  t.teardown(() => clearTimeout(late))
  const ran = await extension(['dev', 'ada.far', 'far'], {
    watch: (out, kill) => {
      if (stage < 0) kill('SIGINT')
      if (stage === 0 && /it says one/.test(out)) {
        stage = 1
        write({}, 'two')
      }
      if (stage === 1 && /it says two/.test(out)) {
        stage = 2
        kill('SIGINT')
      }
    },
  })
  t.equal(stage, 2, ran.err)
  t.equal(ran.code, 130)
  t.match(ran.err, /loaded the new build in \d+ ms/)
  write({ permissions: { daemon: ['GET /activity'] } })
  t.match(await extension(['dev', 'ada.far', 'far', '--once']), { code: 2, err: /adds: calls GET \/activity/ })
  t.match(await extension(['dev', 'ada.far', 'far', '--once', '--yes']), { code: 0, out: /runs from far/ })
  t.match(await extension([]), { out: /RUNS FROM\nada[^]* far\n/ })
  t.match(await extension(['dev', 'ada.far', '--end']), { code: 0, out: /runs its commit [0-9a-f]{40} again\n/ })
  const inCopy = ['dev', 'ada.far', 'far', '--conversation', 'copied', '--once']
  t.match(await extension(inCopy), { code: 5, err: /there is no conversation "copied"/ })
  await runTurn(daemon.client, 'copied', 'say hi', { agent: 'script', isolated: true })
  t.match(await extension([...inCopy, '--yes']), {
    code: 0,
    out: /^ada\.far runs from far in the private copy of copied\n/,
  })
  t.match(await extension([]), { out: /RUNS FROM\nada[^]* far in the private copy of copied/ })
})

t.test('pack makes the same archive of the same files', async t => {
  const hash = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
  mkdirSync(join(origin, 'node_modules'), { recursive: true })
  writeFileSync(join(origin, 'node_modules/x'), 'x')
  const packed = await extension(['pack', 'far', join(folder, 'one.tar.gz')], { cwd: workspace })
  t.match(packed, { code: 0, out: /^packed 2 files into \S+one\.tar\.gz/ })
  await extension(['pack', '.', join(folder, 'two.tar.gz')], { cwd: origin })
  t.equal(hash(join(folder, 'one.tar.gz')), hash(join(folder, 'two.tar.gz')))
  const names = execFileSync('tar', ['-tzf', join(folder, 'one.tar.gz')], { encoding: 'utf8' })
  t.equal(names, 'intentic-extension.json\nserver.js\n')
  t.match(await extension(['pack', folder]), { code: 1, err: /has no intentic-extension\.json/ })
  write({ server: 'dist/none.js' })
  t.match(await extension(['pack', 'far'], { cwd: workspace }), { code: 1, err: /not built: dist\/none\.js/ })
})

t.test('invalid arguments are refused with the expected form', async t => {
  for (const args of [
    ['what'],
    ['review'],
    ['approve', 'a', 'b'],
    ['install', 'x'],
    ['create', 'a'],
    ['dev', 'a.b'],
    ['list', 'x'],
  ])
    t.match(await extension(args), { code: 2, err: /expected extension list, review ID/ }, args.join(' '))
})
