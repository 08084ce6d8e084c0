import fc from 'fast-check'
import t from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { plainOutput } from '../../../../plugins/console/web/run/ansi.js'
import { GrowingBlocks, safeHref } from '../../../../plugins/console/web/run/blocks.js'
import { findRows } from '../../../../plugins/console/web/run/find.js'
import { lineDiff } from '../../../../plugins/console/web/run/line-diff.js'
import { RunRows } from '../../../../plugins/console/web/run/rows.js'

const FRAMES: readonly Frame[] = [
  { kind: 'init', model: 'm', provider: 'script' },
  { kind: 'thinking', text: 'I ' },
  { kind: 'thinking', text: 'look' },
  { kind: 'delta', text: 'One ' },
  { kind: 'delta', text: 'answer' },
  { kind: 'text_end' },
  { kind: 'tool_call', id: 'a', name: 'Read', category: 'read', status: 'pending', target: 'x.ts' },
  { kind: 'tool_call_update', id: 'a', status: 'completed', content: [{ type: 'text', text: 'found' }] },
  { kind: 'tool_call', id: 'b', name: 'Task', category: 'other', status: 'in_progress' },
  { kind: 'subagent', id: 'b', subagentKind: 'subagent', description: 'looks around' },
  { kind: 'delta', text: 'below', parentToolUseId: 'b' },
  { kind: 'tool_call', id: 'c', name: 'Grep', category: 'search', status: 'pending', parentToolUseId: 'b' },
  { kind: 'tool_call_update', id: 'c', status: 'failed' },
  { kind: 'subagent_update', id: 'b', status: 'completed', summary: 'nothing there' },
  { kind: 'permission', requestId: 'p', toolName: 'Shell', description: 'rm -rf build' },
  { kind: 'resolved', requestId: 'p', reply: { kind: 'permission', requestId: 'p', decision: 'once' }, by: 'ada' },
  { kind: 'error', message: 'it broke' },
  { kind: 'done', reason: 'failed' },
]

const rowsOf = (frames: readonly Frame[]) => {
  const rows = new RunRows('r', { text: 'do it', sentAt: 1 })
  for (const [at, frame] of frames.entries()) rows.add(at + 1, frame)
  return rows
}

t.test('frames become rows: texts grow, calls change in place, subagents are below their call', async t => {
  const { rows, standing, done } = rowsOf(FRAMES)
  t.same(
    rows.map(({ type }) => type),
    ['user', 'thinking', 'prose', 'tool', 'tool', 'card', 'line', 'line'],
  )
  t.match(rows[1], { text: 'I look' })
  t.match(rows[2], { text: 'One answer', settled: true })
  t.match(rows[3], { status: 'completed', target: 'x.ts' })
  const [, , , , task] = rows
  t.equal(task?.type === 'tool' && task.children.map(({ type }) => type).join(), 'prose,tool')
  t.match(task, { subagent: { about: 'looks around', status: 'completed', summary: 'nothing there' } })
  t.match(rows[5], { open: false, by: 'ada', reply: { decision: 'once' } })
  t.equal(done, 'failed')
  t.equal(standing.model, 'm')
})

t.test('frames that are sent again after a reconnect do not change the rows', async t => {
  const whole = JSON.stringify(rowsOf(FRAMES).rows)
  fc.assert(
    fc.property(fc.array(fc.nat(FRAMES.length), { maxLength: 6 }), cuts => {
      const rows = new RunRows('r', { text: 'do it', sentAt: 1 })
      let reached = 0
      for (const cut of [...cuts.sort((a, b) => a - b), FRAMES.length]) {
        const from = Math.max(0, reached - 3)
        for (let at = from; at < cut; at++) rows.add(at + 1, FRAMES[at]!)
        reached = Math.max(reached, cut)
      }
      return JSON.stringify(rows.rows) === whole
    }),
  )
  t.pass()
})

t.test('a frame of an unknown kind is one grey line, and the others continue', async t => {
  const { rows } = rowsOf([{ kind: 'hologram' } as never, { kind: 'delta', text: 'on' }])
  t.match(rows[1], { type: 'line', level: 'quiet', text: /hologram/ })
  t.match(rows[2], { type: 'prose', text: 'on' })
})

t.test('a card that nobody answered is closed when its turn ends', async t => {
  const { rows } = rowsOf([
    { kind: 'plan', requestId: 'q', text: 'do' },
    { kind: 'done', reason: 'stopped' },
  ])
  t.match(rows[1], { type: 'card', open: false })
})

const TEXT =
  '# One\n\nA *paragraph*\nof two lines\n\n- a\n- b\n\n```ts\nconst a = 1\n\nconst b = 2\n```\n\n> quoted\n\nend'

t.test('a text that grows in any pieces has the blocks of the whole text', async t => {
  const wholly = new GrowingBlocks().update(TEXT).map(({ raw }) => raw.trim())
  t.equal(wholly.length, 6)
  fc.assert(
    fc.property(fc.array(fc.nat(TEXT.length), { maxLength: 12 }), cuts => {
      const blocks = new GrowingBlocks()
      for (const cut of cuts.sort((a, b) => a - b)) blocks.update(TEXT.slice(0, cut))
      return (
        blocks
          .update(TEXT)
          .map(({ raw }) => raw.trim())
          .join('\u0000') === wholly.join('\u0000')
      )
    }),
  )
})

t.test('a block that is followed by another is the same object from then on', async t => {
  const blocks = new GrowingBlocks()
  const [first] = blocks.update('one\n\ntwo')
  t.equal(blocks.update('one\n\ntwo and more')[0], first)
})

t.test('hostile texts are parsed in bounded time', async t => {
  const texts = [
    '>'.repeat(10_000),
    '['.repeat(20_000),
    '`'.repeat(50_000),
    `${'- '.repeat(5_000)}x`,
    '*a '.repeat(20_000),
  ]
  for (const text of texts) {
    const began = performance.now()
    new GrowingBlocks().update(text)
    t.ok(performance.now() - began < 5_000, text.slice(0, 4))
  }
})

t.test('only web and mail links can be followed', async t => {
  for (const href of [
    'javascript:alert(1)',
    ' JavaScript:alert(1)',
    'data:text/html,x',
    '//x',
    '/x',
    'file:///x',
    'vbscript:x',
  ])
    t.equal(safeHref(href), undefined, href)
  for (const href of ['https://example.org', 'HTTP://example.org', 'mailto:ada@example.org'])
    t.equal(safeHref(href), href)
})

t.test('output of a terminal is shown without its control sequences', async t => {
  t.equal(plainOutput('\u001b[31mred\u001b[0m\n10 %\r50 %\r100 %\r\n\u001b]0;title\u0007end'), 'red\n100 %\nend')
})

t.test(
  'the kept and removed lines of a comparison are the text before, the kept and added ones the text after',
  async t => {
    const line = fc.constantFrom('a', 'b', 'c', 'd')
    fc.assert(
      fc.property(fc.array(line), fc.array(line), (before, after) => {
        const lines = lineDiff(before.join('\n'), after.join('\n'))
        const side = (without: string) => lines.filter(({ kind }) => kind !== without).map(({ text }) => text)
        return side('added').join('\n') === before.join('\n') && side('removed').join('\n') === after.join('\n')
      }),
    )
    t.equal(
      lineDiff('a\nb\nc', 'a\nx\nc')
        .map(({ kind }) => kind[0])
        .join(''),
      'sras',
    )
  },
)

t.test('words are found in all texts of a row, ignoring case', async t => {
  const { rows } = rowsOf(FRAMES)
  t.same(findRows(rows, 'ANSWER'), [2])
  t.same(findRows(rows, 'nothing there'), [])
  t.same(findRows(rows, 'below'), [4])
  t.same(findRows(rows, ' '), [])
})
