import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { folderOf, makeWorkspace, root, spawnDaemon } from '../support/daemon.js'
import { packageVersion } from '../../sdk/node/programs/package.js'
import { runTurn } from '../support/turns.js'

const folders = (t: Test): { workspace: string; data: string } => {
  const folder = folderOf(t)
  makeWorkspace(join(folder, 'workspace'))
  writeFileSync(join(folder, 'file'), '')
  return { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
}

/** Starts the program, which must fail, and returns its error. */
const fails = (args: string[]): Promise<{ code: unknown; stderr: string; stdout: string }> =>
  new Promise(resolve => {
    execFile(
      process.execPath,
      [join(root, 'bundle', 'kernel', 'main.js'), '--port', '0', ...args],
      (error, stdout, stderr) => resolve({ code: error?.code, stderr, stdout }),
    )
  })

t.test('the daemon reports when it is ready, locks its data folder, and stops cleanly', async t => {
  const { workspace, data } = folders(t)
  const daemon = await spawnDaemon(t, { workspace, data })
  t.match(await (await fetch(`${daemon.url}/health`)).json(), { ok: true, sandboxId: /^[0-9a-f]{32}$/ })
  t.equal(statSync(data).mode & 0o777, 0o700)
  t.match(JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')), { url: daemon.url, pid: daemon.pid, workspace })
  const second = await fails(['--workspace', workspace, '--data', data])
  t.equal(second.code, 1)
  t.match(second.stderr, /^sandbox: the data folder .* is in use by another daemon \(process \d+\)[^\n]*\n$/)
  t.equal(await daemon.terminate(), 0)
  t.notOk(existsSync(join(data, 'daemon.json')))
  t.notOk(existsSync(join(data, 'daemon.lock')))
})

t.test('a data folder of a newer program is refused, and one of before is taken on', async t => {
  const { workspace, data } = folders(t)
  const first = await spawnDaemon(t, { workspace, data })
  t.equal(await first.terminate(), 0)
  const note = join(data, 'format.json')
  const written = readFileSync(note, 'utf8')
  t.same(JSON.parse(written), { format: 1, version: packageVersion(root), workspace })

  const newer = JSON.stringify({ format: 2, version: '9.1.0' })
  writeFileSync(note, newer)
  const { code, stderr } = await fails(['--workspace', workspace, '--data', data])
  t.equal(code, 1)
  t.match(stderr, /^sandbox: the data folder .* was written by sandbox 9\.1\.0, which is newer than this one[^\n]*\n$/)
  t.equal(readFileSync(note, 'utf8'), newer, 'nothing is written')
  t.notOk(existsSync(join(data, 'daemon.lock')))

  for (const before of ['', JSON.stringify({ format: 1, version: '0.0.9' })]) {
    writeFileSync(note, before)
    const next = await spawnDaemon(t, { workspace, data })
    t.equal(await next.terminate(), 0)
    t.equal(readFileSync(note, 'utf8'), written)
  }
})

t.test('another data folder that has conversations of the workspace is named at the start', async t => {
  const { workspace, data } = folders(t)
  const env = { XDG_STATE_HOME: folderOf(t) }
  const first = await spawnDaemon(t, { workspace, data, env })
  t.notMatch(first.stderr(), /of this workspace too/)
  const second = await spawnDaemon(t, { workspace, data: `${data}-two`, env })
  t.equal(await second.terminate(), 0)
  t.ok(second.stderr().includes(`the data folder ${data} is of this workspace too`))
  t.equal(await first.terminate(), 0)
  makeWorkspace(`${workspace}-two`)
  const elsewhere = await spawnDaemon(t, { workspace: `${workspace}-two`, data: `${data}-three`, env })
  t.notMatch(elsewhere.stderr(), /of this workspace too/)
})

t.test('a killed daemon leaves nothing that prevents the next start', async t => {
  const { workspace, data } = folders(t)
  const first = await spawnDaemon(t, { workspace, data })
  const { sandboxId } = (await (await fetch(`${first.url}/health`)).json()) as { sandboxId: string }
  await first.kill9()
  const second = await spawnDaemon(t, { workspace, data })
  t.match(await (await fetch(`${second.url}/health`)).json(), { sandboxId }, 'it is the same sandbox')
})

t.test('a port in use is one message and changes nothing', async t => {
  const { workspace, data } = folders(t)
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as { port: number }
  const { code, stderr } = await fails(['--workspace', workspace, '--data', data, '--port', String(port)])
  t.equal(code, 1)
  t.match(stderr, new RegExp(`^sandbox: port ${port} of 127\\.0\\.0\\.1 is in use by another program[^\\n]*\\n$`))
  t.notOk(existsSync(join(data, 'daemon.lock')))
})

t.test('a value that does not fit is one message and exit code 2, and nothing is begun', async t => {
  const { workspace, data } = folders(t)
  const broken = join(workspace, '..', 'broken.json')
  writeFileSync(broken, '{')
  const values: readonly (readonly [flags: string[], says: RegExp])[] = [
    [['--workspace', join(workspace, 'none')], /the workspace .*none cannot be read: ENOENT/],
    [['--workspace', broken], /the workspace .*broken\.json is not a folder/],
    [['--data', join(workspace, 'inside')], /the data folder .*inside is inside the workspace/],
    [['--port', 'x'], /--port expects a number from 0 to 65535, found x/],
    [['--preview-port', '99999'], /--preview-port expects a number from 0 to 65535, found 99999/],
    [['--public-url', 'ftp://a'], /--public-url expects an address such as https:.*, found ftp:\/\/a/],
    [['--config', broken], /the configuration .*broken\.json is not JSON/],
    [['--config', `${broken}-none`], /the configuration .* cannot be read: ENOENT/],
    [['--store', 'file://a:secret@b'], /store: expected an address such as sqlite:/],
    [['--unknown'], /Unknown option '--unknown'/],
  ]
  for (const [flags, says] of values) {
    const { code, stderr } = await fails(['--workspace', workspace, '--data', data, ...flags])
    t.equal(code, 2, flags.join(' '))
    t.match(stderr, says)
    t.match(stderr, /^sandbox: [^\n]*\n$/, 'one line')
    t.notMatch(stderr, 'secret')
    t.notOk(existsSync(join(data, 'daemon.lock')), 'nothing holds the folder')
  }
})

t.test('a data folder that cannot be written is one message', async t => {
  const { workspace } = folders(t)
  const { code, stderr } = await fails(['--workspace', workspace, '--data', join(workspace, '..', 'file', 'data')])
  t.equal(code, 1)
  t.match(stderr, /^sandbox: the data folder .* cannot be written: ENOTDIR\n$/)
})

t.test('a log line never contains a credential', async t => {
  const { workspace, data } = folders(t)
  const daemon = await spawnDaemon(t, { workspace, data })
  const { token } = await daemon.client.call('POST /system/control/tokens', { label: 'ci', scope: 'read' })
  await fetch(`${daemon.url}/agents`, { headers: { 'x-sandbox-control': token } })
  await fetch(`${daemon.url}/agents`, { headers: { 'x-sandbox-control': `${token}x` } })
  await daemon.terminate()
  t.notMatch(daemon.stderr(), token.split('.')[1]!)
})

t.test('a daemon whose output nobody reads any more works, and reports no error', async t => {
  const { workspace, data } = folders(t)
  const daemon = await spawnDaemon(t, { workspace, data })
  daemon.process.stdout?.destroy()
  daemon.process.stderr?.destroy()
  await runTurn(daemon.client, 'c', 'say x')
  t.equal(await daemon.terminate(), 0)
  const log = readFileSync(join(data, 'logs', 'daemon.log'), 'utf8')
  t.match(log, 'a turn started')
  t.notMatch(log, 'EPIPE')
  t.notOk(existsSync(join(data, 'logs', 'crash')), 'no crash is reported')
})
