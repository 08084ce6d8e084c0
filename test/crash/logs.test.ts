import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { runTurn } from '../support/turns.js'

t.test('the log names the command that ran when the daemon was killed, and its lines are complete', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const path = join(where.data, 'logs', 'runs', 'long', 'commands.log')
  const first = await spawnDaemon(t, where)
  await first.client.call('POST /agent', { conversationId: 'long', prompt: 'run echo before\nrun sleep 612' })
  while (!existsSync(path) || !readFileSync(path, 'utf8').includes('sleep 612')) await delay(20)
  await first.kill9()

  const second = await spawnDaemon(t, where)
  await runTurn(second.client, 'long', 'run echo after')
  t.equal(await second.terminate(), 0)
  const lines = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as { message: string; command: string; exit?: number })
  t.same(
    lines.map(({ message, command, exit }) => [message, command, exit]),
    [
      ['a command begins', 'echo before', undefined],
      ['a command has ended', 'echo before', 0],
      ['a command begins', 'sleep 612', undefined],
      ['a command begins', 'echo after', undefined],
      ['a command has ended', 'echo after', 0],
    ],
  )
})
