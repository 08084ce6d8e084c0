import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { startModelServer } from '../../plugins/endpoints/model-lists.js'
import { sandbox } from './cli-process.js'

t.test('secrets are stored from standard input, listed, imported and removed from the command line', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const { client } = await spawnDaemon(t, { workspace, data })
  const secret = (args: string[], input = '') =>
    sandbox(['secret', ...args], { env: { SANDBOX_DATA: data }, input, cwd: folder })
  const valueOf = async (key: string) => (await client.call('POST /secrets/reveal', { key })).value

  t.match(await secret([]), { code: 0, out: /^no secrets; .*secret set NAME stores one\n$/ })
  t.match(await secret(['set', 'A'], 'one line\n'), {
    code: 0,
    out: 'stored A: use it as {{secret:A}}\n',
    err: /^made a store of secrets: .*; sandbox secrets set-store changes that\n$/,
  })
  t.match((await secret(['--help'])).out, /secrets set-store kind=vault unlock=passphrase/)
  t.match(await secret(['set', 'B'], 'two\nlines\n'), { code: 0, err: '' })
  t.equal(await valueOf('A'), 'one line')
  t.equal(await valueOf('B'), 'two\nlines\n')
  writeFileSync(join(folder, '.env'), 'A=other\nC=3\n1X=2\n')
  t.match(await secret(['import', '.env']), {
    code: 0,
    out: /^stored C\nskipped A: it is already stored \(--replace .*\)\nskipped 1X: its name is not valid .*\n$/,
  })
  t.match(await secret(['import', '-', '--replace'], 'A=third'), { code: 0, out: 'replaced A\n' })
  t.match(await secret(['list']), {
    code: 0,
    out: /^NAME +KIND +STATUS +USED +KEPT IN\nA +env +set +never +the sandbox's encrypted store\nB .*\nC .*\n$/,
  })
  t.match(await secret(['remove', 'A']), { code: 0, out: 'removed A\n' })
  t.match(await secret(['remove', 'A']), { code: 5, out: '', err: /^sandbox: no secret is named A; / })
  t.same(await client.call('GET /secrets'), { keys: ['B', 'C'] })
  t.match(await secret(['set', '1X'], 'hidden value'), { code: 2, err: /^sandbox: key: expected/ })
  t.match(await secret(['import', 'gone.env']), { code: 2, err: /import: gone.env cannot be read \(ENOENT\)/ })
})

t.test('the key of a model server, stored first, makes the store and is used', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const { client } = await spawnDaemon(t, { workspace, data })
  const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }], key: 'k-not-shown' })
  const options = { env: { SANDBOX_DATA: data }, input: 'k-not-shown\n', cwd: folder }
  const add = (name: string) =>
    sandbox(['model', 'add', name, '--protocol', 'openai', '--url', server.url, '--key-stdin'], options)
  t.match(await add('lab'), { code: 0, out: /^saved lab: ready, 1 model/, err: /^made a store of secrets: .*\n$/ })
  t.match(await add('desk'), { code: 0, out: /^saved desk: ready, 1 model/, err: '' })
  t.match(await client.call('GET /secrets/store'), { configured: true, kind: 'vault', unlock: 'file' })
})

t.test('a value is never an argument, and invalid arguments are refused', async t => {
  for (const args of [['set'], ['set', 'A', 'value'], ['what'], ['remove'], ['import'], ['list', 'x']])
    t.match(await sandbox(['secret', ...args]), { code: 2, err: /expected (sandbox )?secret / }, args.join(' '))
})
