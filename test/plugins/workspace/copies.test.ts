import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { walled } from '../../attack/support.js'

t.test('a private copy is read by its conversation, and what it lacks in the shared tree', walled(), async t => {
  const daemon = await daemonWith(t, [], { files: { '.gitignore': 'made/\n', 'a.md': 'shared\n' } })
  const { client, workspace } = daemon
  await runTurn(client, 'c', 'write a.md\n| copy\nwrite new.md\n| new', { isolated: true })
  await runTurn(client, 's', 'say x')
  mkdirSync(join(workspace, 'made'))
  writeFileSync(join(workspace, 'made/b.md'), 'made\n')

  const file = (path: string, agent?: string) => client.call('GET /workspace/file', { path, ...(agent && { agent }) })
  t.match(await file('a.md', 'c'), { content: 'copy\n', shared: false })
  t.match(await file('a.md'), { content: 'shared\n', shared: true })
  t.match(await file('a.md', 's'), { content: 'shared\n', shared: true }, 'it works in the shared tree')
  t.match(await file('made/b.md', 'c'), { content: 'made\n', shared: true })
  t.same(await file('new.md'), { path: 'new.md' })

  const names = async (agent?: string) =>
    (await client.call('GET /workspace/tree', agent === undefined ? {} : { agent })).tree.map(({ path }) => path)
  t.ok((await names('c')).includes('new.md'))
  t.notOk((await names('c')).includes('made'), 'trees are never mixed')
  t.notOk((await names()).includes('new.md'))
  t.same(await client.call('GET /workspace/resolve', { path: 'new.md:1', agent: 'c' }), { path: 'new.md' })
  t.match(await refusalOf(() => file('.git', 'c')), { status: 404 })

  const { ticket } = await client.call('POST /workspace/media-ticket', { path: 'a.md', agent: 'c' })
  t.equal(await (await fetch(`${daemon.url}/workspace/media?ticket=${ticket}`)).text(), 'copy\n')
  t.match(await refusalOf(() => file('a.md', 'nobody')), { status: 404 })
})
