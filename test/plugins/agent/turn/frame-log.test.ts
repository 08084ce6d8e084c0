import t from 'tap'
import type { Frame, FrameEvent } from '../../../../plugins/agent/contract.js'
import { FrameLog, framesOf } from '../../../../plugins/agent/turn/frames/frame-log.js'
import { capped } from '../../../../plugins/agent/turn/frames/frame-caps.js'
import type { Journals } from '../../../../sdk/index.js'
import { journalsIn } from '../../../support/journals.js'

const logged = async (journals: Journals, run = 'r-1') =>
  (await journals.read<FrameEvent>(framesOf(run))).map(({ event }) => event)
const quiet = { onFrame: () => {}, onBroken: () => {} }
const delta = (text: string): Frame => ({ kind: 'delta', text })

t.test('deltas that arrive together are one frame, in their order', async t => {
  const journals = journalsIn(t)
  const log = new FrameLog(journals, 'r-1', quiet)
  for (const word of ['one ', 'two ', 'three']) log.push(delta(word))
  log.push({ kind: 'text_end' })
  log.push(delta('four'))
  await log.settled()
  t.same(await logged(journals), [delta('one two three'), { kind: 'text_end' }, delta('four')])
  t.equal(log.seq, 3)
})

t.test('a frame that arrives just after the last write is written too', async t => {
  const journals = journalsIn(t)
  const log = new FrameLog(journals, 'r-1', quiet)
  log.push({ kind: 'text_end' })
  await log.opened
  log.push({ kind: 'thinking', text: 'then' })
  await log.settled()
  t.same(await logged(journals), [{ kind: 'text_end' }, { kind: 'thinking', text: 'then' }])
})

t.test('deltas of another block are not merged, and a long one is cut between characters', async t => {
  const journals = journalsIn(t)
  const log = new FrameLog(journals, 'r-1', quiet)
  log.push(delta('mine'))
  log.push({ kind: 'delta', text: 'helper', parentToolUseId: 'c1' })
  log.push(delta('€'.repeat(5000)))
  await log.settled()
  const [, , ...long] = (await logged(journals)) as { text: string }[]
  t.ok(long.every(({ text }) => Buffer.byteLength(text) <= 8192))
  t.equal(long.map(({ text }) => text).join(''), '€'.repeat(5000))
})

t.test('every frame is numbered from 1, also after a restart', async t => {
  const journals = journalsIn(t)
  const before = new FrameLog(journals, 'r-1', quiet)
  for (let n = 0; n < 1000; n++) before.push({ kind: 'thinking', text: `${n}` })
  await before.settled()
  const after = new FrameLog(journals, 'r-1', { ...quiet, seq: before.seq })
  await after.write({ kind: 'done', reason: 'completed' })
  const events = await journals.read<FrameEvent>(framesOf('r-1'))
  t.same(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
  )
  t.equal(events.length, 1001)
})

t.test('a failed write to the journal is repeated, and nothing is lost or duplicated', async t => {
  const journals = journalsIn(t)
  let failures = 2
  const flaky: Journals = {
    ...journals,
    append: async (name, entries, options) => {
      // The first failure comes before any write, the second after half of it.
      if (failures-- === 2) throw new Error('no space')
      if (failures === 0) {
        await journals.append(name, entries.slice(0, 1), options)
        throw new Error('no space')
      }
      return journals.append(name, entries, options)
    },
  }
  const log = new FrameLog(flaky, 'r-1', quiet)
  for (let n = 0; n < 5; n++) log.push({ kind: 'thinking', text: `${n}` })
  await log.settled()
  const events = await journals.read<FrameEvent>(framesOf('r-1'))
  t.same(
    events.map(({ seq, event }) => [seq, (event as { text: string }).text]),
    [
      [1, '0'],
      [2, '1'],
      [3, '2'],
      [4, '3'],
      [5, '4'],
    ],
  )
})

t.test('a journal that keeps failing is reported once, and a retry writes the waiting frames', async t => {
  const journals = journalsIn(t)
  let broken = true
  let told = 0
  const log = new FrameLog(
    { ...journals, append: (...args) => (broken ? Promise.reject(new Error('no space')) : journals.append(...args)) },
    'r-1',
    { ...quiet, onBroken: () => told++ },
  )
  log.push({ kind: 'thinking', text: 'kept' })
  await log.settled()
  t.equal(log.broken, true)
  t.equal(told, 1)
  broken = false
  log.retry()
  await log.write({ kind: 'done', reason: 'failed' })
  t.same(await logged(journals), [
    { kind: 'thinking', text: 'kept' },
    { kind: 'done', reason: 'failed' },
  ])
})

t.test('a run that reaches its size limit continues without prose and tool output, and says so once', async t => {
  const journals = journalsIn(t)
  const kept: Frame[] = []
  const most = { frames: 1000, bytes: 1024 * 1024 }
  const log = new FrameLog(journals, 'r-1', { ...quiet, most, onFrame: frame => kept.push(frame) })
  const output = 'x'.repeat(32 * 1024)
  for (let n = 0; n < 50; n++)
    log.push({ kind: 'tool_call_update', id: `c${n}`, status: 'completed', content: [{ type: 'text', text: output }] })
  log.push({ kind: 'thinking', text: 'dropped' })
  await log.write({ kind: 'done', reason: 'completed' })
  t.equal(kept.filter(({ kind }) => kind === 'notice').length, 1)
  t.notOk(kept.some(({ kind }) => kind === 'thinking'))
  t.same(kept.at(-2), { kind: 'tool_call_update', id: 'c49', status: 'completed' })
  t.same(kept.at(-1), { kind: 'done', reason: 'completed' })
})

t.test('contents and whole frames are cut at their size limits', t => {
  const text = `${'a'.repeat(40_000)}${'é'.repeat(40_000)}`
  const tool = capped({
    kind: 'tool_call_update',
    id: 'c1',
    content: [
      { type: 'text', text },
      { type: 'diff', path: 'a', oldText: text, newText: 'small' },
    ],
  })
  const [first, second] = (tool as unknown as { content: { text: string; oldText: string; truncated: boolean }[] })
    .content
  t.ok(Buffer.byteLength(first!.text) <= 32 * 1024)
  t.match(first!.text, /^a{1000}[^]*bytes cut[^]*é{1000}$/)
  t.ok(second!.truncated && Buffer.byteLength(second!.oldText) <= 64 * 1024)
  const huge = capped({
    kind: 'question',
    requestId: 'q',
    questions: [
      { question: text.repeat(4), header: 'h', multiSelect: false, options: [{ label: 'l', description: text }] },
    ],
  })
  t.ok(Buffer.byteLength(JSON.stringify(huge)) <= 256 * 1024)
  t.match(huge, { kind: 'question', requestId: 'q' })
  t.end()
})
