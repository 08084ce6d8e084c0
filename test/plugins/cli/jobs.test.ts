import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { applyOf } from '../../../plugins/cli/applies.js'
import { lastLines, cliLineOf } from '../../../plugins/cli/jobs/cli-lines.js'
import { followLines, withHeartbeats } from '../../../plugins/cli/jobs/line-file.js'
import { maskOf } from '../../../plugins/cli/jobs/mask.js'
import { allOf } from '../../support/all-of.js'
import { folderOf } from '../../support/daemon.js'

t.test('a line that is no object with a kind is a text, cut at 64 KiB', t => {
  t.same(cliLineOf('{"kind":"log","message":"a"}'), { kind: 'log', message: 'a' })
  for (const text of ['plain', '[1]', 'null', '{"a":1}', '{"kind":1}', '{'])
    t.same(cliLineOf(text), { kind: 'text', text })
  t.equal(String(cliLineOf('x'.repeat(70_000)).text).length, 65_536)
  t.equal(lastLines('1\n2\n3\n4\n\n', 2), '3\n4')
  t.end()
})

t.test('a secret is masked whole, by its lines and the values in them, and as JSON has it', t => {
  const mask = maskOf(['first line\nNAME=the "value"\nxyz'])
  t.equal(mask('said first line and the "value"'), 'said *** and ***')
  t.equal(mask(JSON.stringify({ a: 'first line\nNAME=the "value"\nxyz' })), '{"a":"***"}')
  t.equal(mask('xyz stays, since so short a word is everywhere'), 'xyz stays, since so short a word is everywhere')
  t.equal(maskOf(['abcd', 'abcd-efgh'])('abcd-efgh'), '***', 'the longest first')
  t.end()
})

t.test('how an apply stands follows from its lines, and whether its job runs', t => {
  const kept = { id: 'i', startedAt: 1, by: 'a@example.org', session: 'job-deployment', endedAt: 9 }
  const start = (command: string) => ({ kind: 'start', command })
  const end = (code: number) => ({ kind: 'ended', code, errors: '' })
  const table = [
    [[], true, { state: 'running' }],
    [[start('deploy resolve')], true, { state: 'running', command: 'resolve' }],
    [[start('deploy resolve'), start('deploy apply')], false, { state: 'interrupted', command: 'apply', endedAt: 9 }],
    [[start('deploy apply'), end(1)], false, { state: 'failed', command: 'apply', code: 1, endedAt: 9 }],
    [[start('deploy adopt'), end(0)], true, { state: 'succeeded', command: 'adopt', code: 0 }],
  ] as const
  for (const [lines, isRunning, expected] of table) t.match(applyOf(kept, lines, isRunning), expected)
  t.equal(applyOf(kept, [], true).endedAt, undefined)
  t.end()
})

t.test('a file is followed to its end: whole lines once, and what came just before the end', async t => {
  const file = join(folderOf(t), 'lines')
  writeFileSync(file, '{"kind":"a"}\n{"kind":')
  let looks = 0
  const over = () => {
    looks += 1
    if (looks === 2) appendFileSync(file, '"b"}\n')
    if (looks === 4) appendFileSync(file, '{"kind":"c"}\n')
    return looks >= 4
  }
  const all = await allOf(followLines({ file, over, signal: new AbortController().signal }))
  t.same(
    all.flatMap(line => (line ? [line.kind] : [])),
    ['a', 'b', 'c'],
  )
  const gone = followLines({ file: `${file}-gone`, over: () => true, signal: new AbortController().signal })
  t.same(await allOf(gone), [], 'a file that is gone has no lines')
})

t.test('a reader gets a heartbeat after 15 s without a line', async t => {
  let now = 0
  async function* silence() {
    for (const at of [1000, 14_999, 15_000, 16_000]) {
      now = at
      yield undefined
    }
    yield { kind: 'log' }
  }
  t.same(
    (await allOf(withHeartbeats(silence(), () => now))).map(({ kind }) => kind),
    ['heartbeat', 'log'],
  )
})
