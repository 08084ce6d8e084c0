import { appendFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Applies, applyOf } from '../../../plugins/cli/applies.js'
import { keptLines, lastLines, cliLineOf } from '../../../plugins/cli/jobs/cli-lines.js'
import { followLines, withHeartbeats } from '../../../plugins/cli/jobs/line-file.js'
import { maskedLine, maskOf } from '../../../plugins/cli/jobs/mask.js'
import { allOf } from '../../support/all-of.js'
import { exactly } from '../../support/lists.js'
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

t.test('a reader gets a heartbeat in silence, whether or not anybody looks for lines meanwhile', async t => {
  for (const looks of [true, false]) {
    const next = Promise.withResolvers<void>()
    async function* silence() {
      while (looks && !(await Promise.race([next.promise.then(() => true), delay(5)]))) yield undefined
      await next.promise
      yield { kind: 'log' }
    }
    const kinds: string[] = []
    for await (const { kind } of withHeartbeats(silence(), 50)) {
      if (kinds.push(kind) === 2) next.resolve()
    }
    t.same(kinds, ['heartbeat', 'heartbeat', 'log'])
  }
  async function* failing(): AsyncGenerator<undefined> {
    await delay(60)
    throw new Error('the words of the failure')
  }
  await t.rejects(allOf(withHeartbeats(failing(), 20)), { message: 'the words of the failure' })
})

t.test('words of the program stay readable where a secret is the same word', t => {
  const mask = maskOf(['LOG_LEVEL=error\nMODE=apply\nPORT=8080\n', 'hunter22'])
  const error = { kind: 'error', message: 'error: hunter22 does not fit' }
  t.same(maskedLine(error, mask), { kind: 'error', message: '***: *** does not fit' })
  const start = { kind: 'start', command: 'deploy apply', startedAt: 1764438080123 }
  t.same(maskedLine(start, mask), start)
  const node = { kind: 'node', phase: 'apply', state: 'failed', id: 'node.hunter22', detail: 'hunter22' }
  t.same(maskedLine(node, mask), { ...node, id: 'node.***', detail: '***' })
  const result = { kind: 'result', answer: { hunter22: ['at hunter22', 1, null] } }
  t.same(maskedLine(result, mask), { kind: 'result', answer: { '***': ['at ***', 1, null] } })
  t.end()
})

t.test('the end of an apply is noted although that failed at first, and lines of others are removed', async t => {
  const folder = folderOf(t)
  for (const name of ['apply-old.jsonl', 'apply-own.jsonl', 'other.jsonl']) writeFileSync(join(folder, name), '')
  let kept: unknown = { id: 'own', startedAt: 1, by: 'a@example.org', session: 'job-deployment' }
  const warned: string[] = []
  const host = {
    place: { folder },
    signal: new AbortController().signal,
    log: { warn: (what: string) => void warned.push(what) },
    serves: async () => true,
    call: async (call: string) => (call === 'terminals.running' ? { sessions: [] } : { ok: true }),
    store: {
      get: async () => kept,
      set: async (_: string, value: unknown) => {
        if (warned.length === 0) throw new Error('no space left')
        kept = value
      },
    },
  } as unknown as Parameters<typeof Applies.open>[0]
  const applies = await Applies.open(host, {
    file: '',
    commands: { facts: async () => ({ version: '', commands: [] }) },
  })
  t.same(readdirSync(folder).sort(), ['apply-own.jsonl', 'other.jsonl'])
  for (let looks = 0; looks < 200 && (kept as { endedAt?: number }).endedAt === undefined; looks++) await delay(50)
  t.match(kept, { id: 'own', endedAt: Number })
  t.same(warned, ['noting the end of an apply failed'])
  t.match(await applies.state(), { state: 'interrupted' })
})

t.test('of what is said on the way a job keeps so much, and all of what is done', t => {
  const kept = keptLines(10)
  const said = (message: string) => ({ kind: 'log', message })
  t.same(kept(said('12345')), [said('12345')])
  t.same(kept({ kind: 'text', text: '67890' }), [{ kind: 'text', text: '67890' }])
  t.match(kept(said('more')), exactly({ kind: 'log', level: 'warn', message: /more than is kept/ }))
  t.same(kept(said('more')), [])
  t.same(kept({ kind: 'node', id: 'app.shop' }), [{ kind: 'node', id: 'app.shop' }])
  t.end()
})
