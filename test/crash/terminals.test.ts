import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { attach, linesOf } from '../plugins/system/terminals/terminals-support.js'
import { endTerminals, folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'

const numbers = (text: string): number[] => [...text.matchAll(/count-(\d+)\b/g)].map(([, n]) => Number(n))

t.test('a counter continues while the daemon is killed and restarted, and none of its output is missing', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  t.teardown(() => endTerminals(where.data))
  const first = await spawnDaemon(t, where)
  await first.client.call('POST /system/terminals', {
    name: 'web-count',
    label: 'counter',
    command: 'n=0; while :; do n=$((n+1)); echo count-$n; sleep 0.05; done',
  })
  const before = await attach(t, first, 'web-count')
  await before.shows(/count-10\r/)
  await first.kill9()
  await before.closed

  const second = await spawnDaemon(t, where)
  const { sessions } = await second.client.call('GET /system/terminals')
  t.match(sessions, exactly({ name: 'web-count', label: 'counter', running: true, attached: 0 }))
  const after = await attach(t, second, 'web-count')
  const last = numbers(before.text()).at(-1)!
  await after.shows(new RegExp(`count-${last + 40}\r`))
  const seen = numbers((await linesOf(after.text())).join('\n'))
  t.same(
    seen,
    Array.from({ length: seen.length }, (_, at) => at + 1),
    'each number once, in order',
  )
  const { text } = await second.client.call('GET /system/terminals/{name}/scrollback', { name: 'web-count' })
  const kept = numbers(text)
  t.same(
    kept,
    Array.from({ length: kept.length }, (_, at) => at + 1),
  )
  t.ok(kept.length >= last + 40)
  const log = join(where.data, 'logs', 'terminals', 'web-count.log')
  const written = () => readFileSync(log, 'utf8')
  // How far it counted without a daemon depends on how long the second one took to start.
  while (!numbers(written()).some(number => number >= last + 40)) await delay(20)
  t.match(
    written(),
    /the terminal begins\]\n[^]*count-1\n[^]*the daemon restarted: output from the meantime is missing here\]\n/,
  )
  const [before9, after9] = written().split('the daemon restarted').map(numbers) as [number[], number[]]
  t.same(
    before9,
    Array.from({ length: before9.length }, (_, at) => at + 1),
    'each line once, in order',
  )
  t.ok(before9.length >= 5)
  t.same(
    after9,
    Array.from({ length: after9.length }, (_, at) => after9[0]! + at),
  )
  t.ok(after9[0]! > before9.at(-1)!)

  // On a busy machine a shell that is just forking can lose the interrupt, so it is sent again.
  const again = setInterval(() => after.type('\x03'), 3_000)
  t.teardown(() => clearInterval(again))
  after.type('\x03')
  await after.shows(/\^C[^]*[#$] $/)
  clearInterval(again)
  after.type('exit 5\r')
  t.equal(await after.exit(), 5)
  t.match((await second.client.call('GET /system/terminals')).sessions, exactly({ running: false, exitCode: 5 }))
  await second.client.call('DELETE /system/terminals/{name}', { name: 'web-count' })
  t.same((await second.client.call('GET /system/terminals')).sessions, [])
  // Its last line is written once its output has ended.
  while (!written().endsWith('the terminal has ended]\n')) await delay(20)
  t.match(written(), /\nexit\n[^]*the terminal has ended\]\n$/)
  t.same(
    readdirSync(join(where.data, 'system', 'terminals')).filter(name => name.endsWith('.pipe')),
    [],
    'no pipe is left',
  )
  t.equal(await second.terminate(), 0)
})
