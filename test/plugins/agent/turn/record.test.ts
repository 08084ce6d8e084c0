import t from 'tap'
import { Changes } from '../../../../plugins/agent/conversations/changes.js'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { RunRecord } from '../../../../plugins/agent/turn/run-record.js'
import { Transcripts } from '../../../../plugins/agent/conversations/transcripts.js'
import { journalsIn } from '../../../support/journals.js'
import { exactly } from '../../../support/lists.js'

const folded = (frames: Frame[]) => {
  const record = new RunRecord({ run: 'r-1', text: 'words', sentAt: 1, by: 'ada@example.org', messageId: 'm-1' })
  for (const frame of frames) record.add(frame)
  return record
}
const say = (text: string): Frame[] => [{ kind: 'delta', text }, { kind: 'text_end' }]
const call = (id: string, parentToolUseId?: string): Frame => ({
  kind: 'tool_call',
  id,
  name: 'Read',
  category: 'read',
  status: 'pending',
  ...(parentToolUseId && { parentToolUseId }),
})
const finish = (id: string, status: 'completed' | 'failed' = 'completed'): Frame => ({
  kind: 'tool_call_update',
  id,
  status,
  content: [{ type: 'text', text: status }],
})

t.test('each block of prose is a row, with the calls that follow it', t => {
  const { rows } = folded([
    call('c0'),
    finish('c0'),
    ...say('one'),
    call('c1'),
    call('c2'),
    finish('c2', 'failed'),
    finish('c1'),
    { kind: 'thinking', text: 'hm' },
    { kind: 'delta', text: 'tw' },
    { kind: 'delta', text: 'o' },
  ])
  t.match(
    rows,
    exactly(
      { role: 'user', text: 'words' },
      { text: '', tools: exactly({ id: 'c0' }) },
      { text: 'one', tools: exactly({ id: 'c1', status: 'completed' }, { id: 'c2', status: 'failed' }) },
      { text: 'two', thinking: 'hm' },
    ),
  )
  t.end()
})

t.test('steered messages, errors and restarts are separate rows', t => {
  const { rows } = folded([
    ...say('before'),
    { kind: 'steer', text: 'left', sentAt: 2, by: 'bob@example.org', messageId: 'm-2' },
    { kind: 'resumed', reason: 'restart', attempt: 2 },
    ...say('after'),
    { kind: 'error', message: 'broken' },
    { kind: 'done', reason: 'failed' },
  ])
  t.same(
    rows.map(({ role, text }) => [role, text]),
    [
      ['user', 'words'],
      ['assistant', 'before'],
      ['user', 'left'],
      ['notice', 'went on after a restart'],
      ['assistant', 'after'],
      ['notice', 'broken'],
    ],
  )
  t.end()
})

t.test('the calls of a subagent are below the call that started it', t => {
  const { rows, toolUses } = folded([
    call('h'),
    { kind: 'delta', text: 'not mine', parentToolUseId: 'h' },
    call('h1', 'h'),
    { kind: 'thinking', text: 'deep', parentToolUseId: 'h' },
    finish('h1'),
    finish('h'),
  ])
  t.match(rows[1], {
    text: '',
    tools: exactly({ id: 'h', thinking: 'deep', children: exactly({ id: 'h1', status: 'completed' }) }),
  })
  t.equal(toolUses, 2)
  t.end()
})

t.test('notes and answers are in the right rows', t => {
  const card = { kind: 'plan' as const, requestId: 'r-1.1', text: 'a plan' }
  const record = folded([
    { kind: 'checkpoint', id: 'branch:abc', index: 0 },
    { kind: 'preamble', notes: [{ title: 'T', text: 'x' }] },
    card,
    {
      kind: 'resolved',
      requestId: 'r-1.1',
      reply: { kind: 'plan', requestId: 'r-1.1', approve: true },
      by: 'ada@example.org',
    },
  ])
  t.match(
    record.rows,
    exactly(
      { notes: exactly({ title: 'T' }) },
      { cards: exactly({ card, reply: { approve: true }, by: 'ada@example.org' }) },
    ),
  )
  t.same(record.openCards, [])
  t.end()
})

t.test('a record is paged by index, contains each run once, and drops a torn last line', async t => {
  const journals = journalsIn(t)
  const transcripts = new Transcripts(journals)
  for (const n of [1, 2, 3])
    await transcripts.add('c', `r-${n}`, [
      { role: 'user', text: `${n}` },
      { role: 'assistant', text: `a${n}` },
    ])
  await transcripts.add('c', 'r-3', [{ role: 'user', text: 'again' }])
  const page = await transcripts.page('c', 2, 5)
  t.match(page, { total: 6, messages: exactly({ index: 3, text: 'a2' }, { index: 4, text: '3' }) })
  t.equal((await new Transcripts(journals).page('c')).messages.length, 6)
  t.equal(await new Transcripts(journals).count('c'), 6)
  t.match((await new Transcripts(journals).history('c')).at(-1), { index: 5, text: 'a3' })
  t.same(await transcripts.page('nobody'), { messages: [], total: 0 })
})

t.test('an adapter gets as many of the newest rows as fit', async t => {
  const transcripts = new Transcripts(journalsIn(t))
  for (let n = 0; n < 60; n++)
    await transcripts.add('c', `r-${n}`, [{ role: 'user', text: `${n}`.padEnd(10_000, '.') }])
  const history = await transcripts.history('c')
  t.equal(history.length, 12)
  t.match(history.at(-1), { index: 59 })
})

t.test('the first change is announced at once, further ones together', async t => {
  const told: string[] = []
  const last = Promise.withResolvers<void>()
  const changes = new Changes(id => {
    told.push(id)
    if (told.length === 3) last.resolve()
  })
  for (let n = 0; n < 100; n++) changes.changed('c')
  changes.changed('d')
  t.same(told, ['c', 'd'])
  const alive = setTimeout(() => {}, 5000)
  await last.promise
  clearTimeout(alive)
  t.same(told, ['c', 'd', 'c'])
})
