import t from 'tap'
import { Masker } from '../../../sdk/node/access/masker.js'
import { declaredNeeds } from '../../../plugins/pipelines/logs/definitions.js'
import { logWindow, plainLog } from '../../../plugins/pipelines/logs/log-text.js'

const plain = (text: string): string => plainLog(text, new Masker([]))

t.test('a log shows what a screen would, without the marks of forges', async t => {
  t.equal(plain('\u001b[31mred\u001b[0m\r\n10 %\r99 %\rdone\r\n'), 'red\ndone\n')
  t.equal(plain('\uFEFF2026-01-31T12:00:00.1234567Z ##[group]Run tests\n'), 'Run tests\n')
  t.equal(plain('2026-01-31T12:00:00.123456Z 00O hello\n2026-01-31T12:00:00.123456Z 01E+there\n'), 'hello\nthere\n')
  t.equal(
    plain('section_start:1700000000:build\r\u001b[0Kbuilding\nsection_end:1700000001:build\r\u001b[0K'),
    'building\n',
  )
  t.equal(plain('curl -H "authorization: Bearer abcdefghijklmnop"').includes('abcdefghijklmnop'), false)
})

t.test('a part of a log is cut between characters, and found by what looks like the failure', async t => {
  const log = `${'fine\n'.repeat(40)}0 failed\nError: é is missing\n${'later\n'.repeat(40)}`
  const found = logWindow(log, { bytes: 60, find: 'failure' })
  t.match(found.text, /Error: é is missing/)
  t.equal(found.truncated, true)
  for (let offset = 0; offset < Buffer.byteLength(log); offset += 7)
    t.notMatch(logWindow(log, { bytes: 10, offset }).text, /\uFFFD/)
  t.match(logWindow('short', { bytes: 100 }), { text: 'short', offset: 0, sizeBytes: 5, truncated: false })
  t.match(logWindow('short', { bytes: 100, offset: 99 }), { text: '', offset: 5, truncated: true })
})

t.test('a definition says which jobs wait for which, and a broken one nothing', async t => {
  const workflow = 'jobs:\n  a: {}\n  b: { name: Bee, needs: [a] }\n  c: { needs: b }\n'
  t.same(Object.fromEntries(declaredNeeds(workflow, false)), { a: [], Bee: ['a'], c: ['Bee'] })
  const pipeline = 'stages: [x]\na: { script: x }\nb: { script: x, needs: [{ job: a }] }\nc: { script: x, needs: [] }\n'
  t.same(Object.fromEntries(declaredNeeds(pipeline, true)), { b: ['a'], c: [] })
  for (const broken of ['[', 'jobs: 3', '', 'a: &a [*a]']) t.same([...declaredNeeds(broken, false)], [])
})
