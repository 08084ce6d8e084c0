import t, { type Test } from 'tap'
import type { Conversation, TurnInput } from '../../../../plugins/agent/contract.js'
import type { WaitingMessage } from '../../../../plugins/agent/queue/lines.js'
import { Queue } from '../../../../plugins/agent/queue/queue.js'
import type { Resumable } from '../../../../plugins/agent/turn/run-entry.js'
import type { RunMessage } from '../../../../plugins/agent/turn/run-entry.js'
import type { Journals } from '../../../../sdk/index.js'
import { journalsIn } from '../../../support/journals.js'
import { exactly } from '../../../support/lists.js'

const message = (n: number, prompt = `say ${n}`): RunMessage => ({
  run: `r-${n}`,
  conversationId: 'c',
  messageId: `m-${n}`,
  input: { prompt } as TurnInput,
  by: 'ada@example.org',
  attended: true,
  at: Date.now(),
})
const start = (
  queue: Queue,
  { run, messageId, conversationId, at }: RunMessage,
  of: RunMessage,
  opened?: Conversation,
) =>
  queue.accept({
    row: { run, messageId, conversationId, delivery: 'started', at },
    message: of,
    ...(opened && { opened }),
  })
const wait = (queue: Queue, of: RunMessage) => {
  const waiting: WaitingMessage = { ...of, why: 'parked' }
  return queue.accept({
    row: { run: of.run, messageId: of.messageId, conversationId: 'c', delivery: 'queued', at: of.at },
    message: waiting,
  })
}
const opened = async (journals: Journals) => {
  const queue = new Queue(journals, async () => {})
  return { queue, opened: await queue.load() }
}
const runs = (queue: Queue) => queue.waiting('c').map(({ run }) => run)

t.test('accepted messages exist after a restart, in order and with their answers', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  const conversation = { id: 'c', title: 'kept' } as Conversation
  await start(queue, message(1), message(1), conversation)
  for (const n of [2, 3]) await wait(queue, message(n))
  const again = await opened(journals)
  t.same(again.opened, [conversation])
  t.equal(again.queue.current('c')?.run, 'r-1')
  t.same(runs(again.queue), ['r-2', 'r-3'])
  t.match(again.queue.known('m-2'), { run: 'r-2', delivery: 'queued' })
})

t.test('an ended run is neither started nor queued again', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  await start(queue, message(1), message(1))
  await wait(queue, message(2))
  await wait(queue, message(3))
  await queue.ended('c', 'r-1', { paused: false })
  t.equal(queue.take('c')?.run, 'r-2')
  await queue.ended('c', 'r-2', { paused: true })
  const again = await opened(journals)
  t.equal(again.queue.current('c'), undefined)
  t.same(runs(again.queue), ['r-3'])
  t.equal(again.queue.paused('c'), true)
  t.ok(again.queue.known('m-1'))
})

t.test('a message that a budget holds is first in the queue with the reason, also after a restart', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  await start(queue, message(1), message(1))
  await wait(queue, message(2))
  await wait(queue, message(3))
  await queue.ended('c', 'r-1', { paused: true, unaffordable: true })
  for (const held of [queue, (await opened(journals)).queue]) {
    t.strictSame(
      held.waiting('c').map(({ run, why }) => [run, why]),
      [
        ['r-2', 'budget'],
        ['r-3', 'parked'],
      ],
    )
    t.equal(held.paused('c'), true)
  }
})

t.test('a message that starts ends the pause, also after a restart', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  await start(queue, message(1), message(1))
  await wait(queue, message(2))
  await queue.ended('c', 'r-1', { paused: true })
  await start(queue, message(3), message(3))
  const again = await opened(journals)
  t.equal(again.queue.paused('c'), false)
  t.equal(again.queue.current('c')?.run, 'r-3')
  t.same(runs(again.queue), ['r-2'])
})

t.test('a run that was interrupted by a restart is removed from the queue', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  await wait(queue, message(1))
  await wait(queue, message(2))
  queue.take('c')
  const again = await opened(journals)
  t.same(runs(again.queue), ['r-1', 'r-2'])
  again.queue.adopt('c', 'r-1')
  t.same(runs(again.queue), ['r-2'])
  t.equal(again.queue.current('c')?.run, 'r-1')
})

t.test('a torn last line is a message that was never answered', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  await start(queue, message(1), message(1))
  await t.rejects(
    new Queue({ ...journals, append: () => Promise.reject(new Error('killed')) }, async () => {}).accept({
      row: { ...message(2), delivery: 'started' },
    }),
  )
  t.equal((await opened(journals)).queue.known('m-2'), undefined)
})

t.test('a journal of finished messages is compacted while new ones arrive, and keeps every answer', async t => {
  const journals = journalsIn(t)
  let stored = 0
  const queue = new Queue(journals, async () => void stored++)
  await queue.load()
  await start(queue, message(0), message(0))
  await wait(queue, message(1))
  await queue.accept({
    row: { ...message(2), delivery: 'said' },
    said: { run: 'r-0', messageId: 'm-2', text: 'words', attachments: [], by: 'x', at: 1 },
  })
  const big = 'x'.repeat(1024 * 1024)
  const other = async (n: number) => {
    const of = { ...message(n, big), conversationId: `c-${n}` }
    await start(queue, of, of)
    await queue.ended(of.conversationId, of.run, { paused: false })
  }
  for (let n = 10; n < 60; n += 5) await Promise.all([0, 1, 2, 3, 4].map(step => other(n + step)))
  t.ok(stored > 0, 'the conversations were stored before their lines went')
  const { entries = 0 } = (await journals.stat('queue')) ?? {}
  t.ok(entries < 100, `${entries} lines`)
  const again = await opened(journals)
  for (let n = 10; n < 60; n++) t.ok(again.queue.known(`m-${n}`), `m-${n}`)
  t.equal(again.queue.current('c')?.run, 'r-0')
  t.same(runs(again.queue), ['r-1'])
  t.match(again.queue.said('c', 'r-0'), exactly({ text: 'words' }))
})

t.test('a run that an outage ended is kept until a turn begins, across restarts and compactions', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  const next = (n: number): Resumable => ({
    failedAt: 1,
    at: 2,
    message: { ...message(n), run: `r-${n}-2`, resumed: { from: `r-${n}`, attempt: 2, tries: 1, since: 1 } },
  })
  const died = async (id: string, n: number) => {
    const of = { ...message(n), conversationId: id }
    await start(queue, of, of)
    await queue.ended(id, of.run, {
      paused: false,
      resumable: { ...next(n), message: { ...next(n).message, conversationId: id } },
    })
  }
  await died('kept', 1)
  await died('again', 2)
  await died('message', 3)
  await died('forgone', 4)
  await died('dropped', 5)
  const { message: again } = queue.resumable('again')!
  await queue.accept({ row: queue.known('m-2')!, message: again })
  const instead = { ...message(6), conversationId: 'message' }
  await start(queue, instead, instead)
  await queue.resume('forgone')
  await queue.drop('dropped')
  const left = (of: Queue) => [
    of.resumables.map(
      ([
        id,
        {
          message: { run },
          at,
        },
      ]) => [id, run, at],
    ),
    of.busy.map(id => of.current(id)?.run).toSorted(),
  ]
  const whole = [[['kept', 'r-1-2', 2]], ['r-2-2', 'r-6']]
  t.same(left(queue), whole)
  t.same(left((await opened(journals)).queue), whole)
  const big = 'x'.repeat(1024 * 1024)
  for (let n = 10; n < 50; n++) {
    const of = { ...message(n, big), conversationId: `c-${n}` }
    await start(queue, of, of)
    await queue.ended(of.conversationId, of.run, { paused: false })
  }
  t.ok(((await journals.stat('queue'))?.entries ?? 0) < 80, 'the journal was compacted')
  const { queue: last } = await opened(journals)
  t.same(left(last), whole)
  t.match(
    [last.known('m-2'), last.current('again')?.resumed],
    exactly({ run: 'r-2' }, { from: 'r-2' }),
    'a message keeps its first answer while another run of it is active',
  )
})

t.test('of a dropped conversation only its answers are kept', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  await start(queue, message(1), message(1), { id: 'c' } as Conversation)
  await wait(queue, message(2))
  await queue.drop('c')
  const again = await opened(journals)
  t.same([again.opened, runs(again.queue), again.queue.busy], [[], [], []])
  t.ok(again.queue.known('m-2'))
})

t.test('old answers are removed only beyond the newest twenty thousand', async (t: Test) => {
  const journals = journalsIn(t)
  const old = Date.now() - 31 * 24 * 3_600_000
  const rows = Array.from({ length: 20_010 }, (_, n) => ({
    line: 'row',
    row: { run: `r-${n}`, conversationId: 'c', messageId: `m-${n}`, delivery: 'started', at: n < 5 ? old : Date.now() },
  }))
  await journals.append('queue', rows)
  const { queue } = await opened(journals)
  t.equal(queue.known('m-0'), undefined)
  t.ok(queue.known('m-5'), 'not old')
  t.ok(queue.known('m-20009'))
})

t.test('a message that is being written during a compaction is in the compacted journal', async t => {
  const lines: object[] = []
  const held: { until?: Promise<void> } = {}
  const rewritten = Promise.withResolvers<void>()
  // Like the real journals: lines are written in the order of the calls, and acknowledged later.
  const journals = {
    append: async (_: string, entries: readonly object[]) => {
      lines.push(...entries)
      await held.until
      return lines.length
    },
    read: async () => lines.slice(),
    rewrite: async (_: string, entries: readonly object[]) => {
      lines.splice(0, Infinity, ...entries)
      rewritten.resolve()
    },
  } as unknown as Journals
  const { queue } = await opened(journals)
  await start(queue, message(1), message(1))
  await wait(queue, message(2, 'x'.repeat(40 * 1024 * 1024)))
  const release = Promise.withResolvers<void>()
  const withdrawn = queue.withdraw('c', 'm-2')
  held.until = release.promise
  const accepted = wait(queue, message(3))
  await withdrawn
  await new Promise(resolve => setImmediate(resolve))
  release.resolve()
  await Promise.all([accepted, rewritten.promise])
  const again = await opened(journals)
  t.same(runs(again.queue), ['r-3'])
  t.equal(again.queue.current('c')?.run, 'r-1')
})

t.test('what a start reads stays small, and the first answers stay the same', async t => {
  const journals = journalsIn(t)
  const { queue } = await opened(journals)
  const odd = { ...message(0), messageId: 'm "0"\n ü' }
  const all = [odd, ...Array.from({ length: 2_100 }, (_, n) => ({ ...message(n + 1), conversationId: `c-${n + 1}` }))]
  await wait(queue, message(9_999))
  await queue.withdraw('c', 'm-9999')
  await Promise.all(
    all.map(async each => {
      await start(queue, each, each)
      await queue.ended(each.conversationId, each.run, { paused: false })
    }),
  )
  await start(queue, message(10_000), message(10_000))
  t.ok((await journals.read('queue')).length < 300, 'ended messages are no lines any more')
  for (const known of [queue, (await opened(journals)).queue]) {
    t.match(known.known(odd.messageId), { run: 'r-0', conversationId: 'c', delivery: 'started', at: odd.at })
    t.match(known.known('m-2100'), { run: 'r-2100', conversationId: 'c-2100', messageId: 'm-2100' })
    t.match(known.known('m-9999'), { delivery: 'queued', withdrawn: true })
    t.equal(known.known('m-1')?.withdrawn, undefined)
    t.equal(known.current('c')?.run, 'r-10000')
    t.equal(known.known('m-77777'), undefined)
  }
})
