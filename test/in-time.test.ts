import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { inTime, tookLess } from './support/in-time.js'

t.test('a limit of time holds', async t => {
  t.ok(tookLess(9, 10))
  t.notOk(tookLess(10_000, 10), 'a thousand times the limit is too long anywhere')
  t.ok(inTime(performance.now(), 1000))
  t.notOk(inTime(performance.now() - 1_000_000, 1000))
})

t.test('a limit of time is longer by what other programs take of the processor', async t => {
  const [, processor = '0'] = /^Cpus_allowed_list:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  const pinned = ['-c', processor, process.execPath, '--input-type=module', '-e'] as const
  const others = [1, 2, 3].map(() =>
    spawn('taskset', [...pinned, 'process.stdout.write("on"); for (;;);'], { stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  t.teardown(() => others.map(other => other.kill('SIGKILL')))
  await Promise.all(others.map(({ stdout }) => once(stdout, 'data')))
  const ask =
    `import { tookLess } from ${JSON.stringify(new URL('support/in-time.js', import.meta.url).href)}; `
    + 'process.stdout.write(String(tookLess(15, 10)))'
  t.equal(execFileSync('taskset', [...pinned, ask], { encoding: 'utf8' }), 'true')
})
