import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { sandbox } from '../cli-process.js'

t.test('sandbox wall lists readable, writable and closed paths with reasons', async t => {
  const folder = realpathSync(folderOf(t))
  const [workspace, data, tools, config] = ['workspace', 'data', 'tools', 'config.json'].map(name =>
    join(folder, name),
  ) as [string, string, string, string]
  makeWorkspace(workspace)
  mkdirSync(tools)
  writeFileSync(config, JSON.stringify({ wall: { read: [tools, join(folder, 'missing')] } }))
  await spawnDaemon(t, { workspace, data, args: ['--config', config] })
  const { code, out } = await sandbox(['wall'], { env: { SANDBOX_DATA: data } })
  t.equal(code, 0)
  for (const row of [
    ['write', workspace, 'workspace'],
    ['write', '/tmp', 'temporary files'],
    ['read', '/usr', 'system'],
    ['read', tools, 'wall.read'],
    ['read', '/etc', 'system, without what other users may not read'],
  ]) {
    t.match(out, new RegExp(`^${row.join(' +')}$`, 'm'))
  }
  t.notMatch(out, 'missing')
  const { rows } = JSON.parse((await sandbox(['wall', '--json'], { env: { SANDBOX_DATA: data } })).out) as {
    rows: { path: string; access: string }[]
  }
  t.equal(rows.find(({ path }) => path === workspace)?.access, 'write')
})

t.test("a deployment cannot open the sandbox's own paths", async t => {
  const folder = realpathSync(folderOf(t))
  const [workspace, data, config] = ['workspace', 'data', 'config.json'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  makeWorkspace(workspace)
  const start = (wall: object) => {
    writeFileSync(config, JSON.stringify({ wall }))
    return sandbox(['serve', '--workspace', workspace, '--data', data, '--config', config, '--port', '0'])
  }
  t.match(await start({ write: [folder] }), { code: 1, err: /wall\.write: .* contains files of the sandbox itself/ })
  t.match(await start({ write: ['/usr/local'] }), { code: 1, err: /wall\.write: \/usr\/local is part of the system/ })
  t.match(await start({ write: [config] }), { code: 1, err: /wall\.write/ })
  t.match(await start({ read: ['relative'] }), { code: 2, err: /wall\.read\[0\]: expected/ })
})
