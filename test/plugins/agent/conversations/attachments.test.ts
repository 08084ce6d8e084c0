import t from 'tap'
import { ATTACHMENTS } from '../../../../plugins/agent/conversations/attachments.js'
import { Transcripts } from '../../../../plugins/agent/conversations/transcripts.js'
import type { Row } from '../../../../plugins/agent/turn/run-record.js'
import type { Journals } from '../../../../sdk/index.js'
import { journalsIn } from '../../../support/journals.js'

const [OWN, SHARED, LATER] = ['a/own.md', 'b/shared.md', 'c/later.md'].map(name => `${ATTACHMENTS}/${name}`) as [
  string,
  string,
  string,
]
const row = (...attachments: string[]): Row => ({ role: 'user', text: 'x', attachments })

/** The records of a sandbox as one start of the daemon sees them, and which were read to find the files of one. */
const opened = (journals: Journals) => {
  const transcripts = new Transcripts(journals)
  const read: string[] = []
  return {
    transcripts,
    unshared: async (id: string, ...others: string[]) => [
      ...(await transcripts.attachments.of(id, others, async each => {
        read.push(each)
        return (await transcripts.lines(each, 0)).flatMap(({ rows }) => rows)
      })),
    ],
    read,
  }
}

const filled = async (journals: Journals): Promise<void> => {
  const { transcripts } = opened(journals)
  await transcripts.add('one', 'r-1', [row(OWN, SHARED, 'notes/plan.md')])
  await transcripts.add('two', 'r-2', [row(SHARED)])
}

t.test('which files a record alone refers to is known without reading a record', async t => {
  const journals = journalsIn(t)
  await opened(journals).transcripts.attachments.begin()
  await filled(journals)
  const { unshared, transcripts, read } = opened(journals)
  t.same(await unshared('one', 'two'), [OWN])
  await transcripts.add('two', 'r-3', [row(LATER)])
  await transcripts.add('one', 'r-4', [row(LATER)])
  await transcripts.remove('two')
  t.same(await unshared('one'), [OWN, SHARED, LATER], 'a deleted record refers to nothing')
  t.same(read, [])
  const next = opened(journals)
  t.same(await next.unshared('one'), [OWN, SHARED, LATER], 'after the next start neither')
  t.same(next.read, [])
})

t.test('references that are lost, damaged or older than this index are read from the records, once', async t => {
  for (const [what, damage] of [
    ['lost', (journals: Journals) => journals.remove('attachments')],
    ['incomplete', (journals: Journals) => journals.rewrite('attachments', [{ id: 'one', paths: [OWN] }])],
  ] as const) {
    const journals = journalsIn(t)
    await opened(journals).transcripts.attachments.begin()
    await filled(journals)
    await damage(journals)
    const { unshared, read } = opened(journals)
    t.same(await unshared('one', 'two'), [OWN], what)
    t.same(read, ['one', 'two'])
    const next = opened(journals)
    t.same(await next.unshared('two', 'one'), [], what)
    t.same(next.read, [])
  }
})

t.test('a reference is stored before its row, so that a crash between them keeps the file', async t => {
  const journals = journalsIn(t)
  await opened(journals).transcripts.attachments.begin()
  await filled(journals)
  const cut = opened({
    ...journals,
    append: async (name, entries, options) => {
      if (name.startsWith('transcripts/')) throw new Error('killed')
      return journals.append(name, entries, options)
    },
  })
  await t.rejects(cut.transcripts.add('two', 'r-5', [row(OWN)]), { message: 'killed' })
  t.same(await opened(journals).unshared('one', 'two'), [])
})

t.test('the journal of references stays short while records come and go', async t => {
  const journals = journalsIn(t)
  await opened(journals).transcripts.attachments.begin()
  for (let start = 0; start < 4; start++) {
    const { transcripts, unshared } = opened(journals)
    await unshared('none')
    for (let n = 0; n < 40; n++) {
      await transcripts.add(`c-${start}-${n}`, 'r-1', [row(`${ATTACHMENTS}/${start}/${n}`)])
      await transcripts.remove(`c-${start}-${n}`)
    }
  }
  t.same(await opened(journals).unshared('none'), [])
  t.match(await journals.stat('attachments'), { entries: 1 })
})
