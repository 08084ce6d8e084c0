import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { bar, bytesWords } from '../../../../sdk/sizes.js'
import { startedAnew } from '../../../plugins/system/bundles/bundles-support.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { runTurn } from '../../../support/turns.js'
import { sandbox } from '../cli-process.js'

t.test('machine shows the load of the machine, as a table or as JSON', async t => {
  const folder = folderOf(t)
  makeWorkspace(join(folder, 'workspace'))
  const { data } = await spawnDaemon(t, { workspace: join(folder, 'workspace'), data: join(folder, 'data') })
  const { code, out } = await sandbox(['machine', '--data', data])
  t.equal(code, 0)
  for (const line of [
    /^processors +[█░]{20}  \d+ % of \d+, load /m,
    /^memory +[█░]{20}  .* of /m,
    /^workspace disk /m,
    /^daemon +.* ms late, process \d+$/m,
    /^PID +CPU +MEMORY +OF +PROGRAM$/m,
  ])
    t.match(out, line)
  t.match(JSON.parse((await sandbox(['machine', '--data', data, '--json'])).out), {
    machine: { cpus: Number, recent: { length: 0 } },
  })
})

t.test('bundle packs the sandbox into a file, lists and removes backups, and restores one', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'a.txt': 'packed\n' })
  const daemon = await spawnDaemon(t, where)
  await runTurn(daemon.client, 'said', 'say something')
  const ask = (args: string[], env = {}) => sandbox([...args, '--data', where.data], { cwd: folder, env })
  t.match(await ask(['bundle']), { code: 0, out: /no bundles; make one with sandbox bundle FILE/ })
  t.match(await ask(['bundle', '--encrypt']), { code: 2, err: /--encrypt: expected bundle FILE or bundle make/ })
  const made = await ask(['bundle', 'backup.tar.gz'])
  t.match(made, { code: 0, err: '', out: /\/backup\.tar\.gz  [\d.]+ KiB\n$/ })
  t.equal(statSync(join(folder, 'backup.tar.gz')).mode & 0o777, 0o600)
  t.match(await ask(['bundle', 'backup.tar.gz']), { code: 5, err: /already exists/ })
  t.match(await ask(['bundle', 'list']), { out: /^NAME +STATE +SIZE +MADE +SECRETS\nsandbox-\S+ +ready/ })
  const [{ name }] = (JSON.parse((await ask(['bundle', 'list', '--json'])).out) as { exports: [{ name: string }] })
    .exports
  t.ok(readFileSync(join(where.data, 'system/exports', name)).equals(readFileSync(join(folder, 'backup.tar.gz'))))
  t.match(await ask(['bundle', 'remove', name]), { code: 0, out: `removed ${name}\n` })
  t.match(await ask(['bundle', 'remove', name]), { code: 5, err: /there is no bundle/ })

  writeFileSync(join(where.workspace, 'a.txt'), 'changed\n')
  t.match(await ask(['bundle', 'restore', 'backup.tar.gz', '--check']), {
    code: 0,
    out: /^would bring back 1 file and 1 conversation of \d{4}-/,
  })
  t.equal(readFileSync(join(where.workspace, 'a.txt'), 'utf8'), 'changed\n')
  const asked = Date.now()
  t.match(await ask(['bundle', 'restore', 'backup.tar.gz']), {
    code: 0,
    out: /^brings back 1 file and 1 conversation [^]*the sandbox restarts now\n$/,
  })
  const again = await startedAnew(daemon, asked)
  await again.client.call('GET /agents')
  t.equal(readFileSync(join(where.workspace, 'a.txt'), 'utf8'), 'packed\n')
  t.same(
    readdirSync(join(where.workspace, '.sandbox')).filter(file => file.startsWith('incoming')),
    [],
  )
})

t.test('a passphrase is never an argument, and a wrong one opens nothing', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  await spawnDaemon(t, where)
  const ask = (args: string[], env = {}) => sandbox([...args, '--data', where.data], { cwd: folder, env })
  t.match(await ask(['bundle', 'b.sealed', '--encrypt']), { code: 2, err: /SANDBOX_PASSPHRASE/ })
  t.match(await ask(['bundle', 'b.sealed', '--encrypt'], { SANDBOX_PASSPHRASE: 'short' }), {
    code: 2,
    err: /at least 12/,
  })
  t.match(await ask(['bundle', 'b.sealed', '--secrets'], { SANDBOX_PASSPHRASE: 'a long passphrase' }), { code: 0 })
  t.match(await ask(['bundle', 'restore', 'b.sealed', '--check']), { code: 5, err: /give its passphrase/ })
  t.match(await ask(['bundle', 'restore', 'b.sealed', '--check'], { SANDBOX_PASSPHRASE: 'another passphrase' }), {
    code: 5,
    err: /does not open/,
  })
  t.match(await ask(['bundle', 'restore', 'b.sealed', '--check'], { SANDBOX_PASSPHRASE: 'a long passphrase' }), {
    code: 0,
  })
  t.match(await ask(['bundle', 'restore', 'none', '--check']), { code: 1, err: /there is no file none/ })
  t.match(await ask(['bundle', 'restore']), { code: 2, err: /expected bundle list, bundle FILE/ })
  t.match(await ask(['bundle', 'one', 'two']), { code: 2 })
  t.match(await ask(['bundle', 'x', '--since', 'never']), { code: 2, err: /--since/ })
  t.notOk(existsSync(join(folder, 'x')))
})

t.test('sizes and bars are printed as text', async t => {
  t.same([0, 1, 1023, 1024, 1536, 150 * 1024 ** 2, 3 * 1024 ** 4].map(bytesWords), [
    '0 B',
    '1 B',
    '1023 B',
    '1.0 KiB',
    '1.5 KiB',
    '150 MiB',
    '3.0 TiB',
  ])
  t.same([bar(0, 4), bar(0.5, 4), bar(1, 4), bar(7, 4), bar(-1, 4)], ['░░░░', '██░░', '████', '████', '░░░░'])
})
