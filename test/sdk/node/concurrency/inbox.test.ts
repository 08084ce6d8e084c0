import t from 'tap'
import { Inbox } from '../../../../sdk/node/concurrency/inbox.js'

t.test('items are taken in the order of arrival, including later ones and the rest at the end', async t => {
  const inbox = new Inbox<number>({ full: 10_000, room: 1, pause: () => {}, resume: () => {} })
  const taken: number[] = []
  const reading = (async () => {
    for await (const item of inbox) taken.push(item)
  })()
  for (let n = 0; n < 3_000; n++) inbox.put(n)
  await new Promise(setImmediate)
  for (let n = 3_000; n < 3_100; n++) inbox.put(n)
  inbox.end()
  inbox.put(9_999)
  await reading
  t.same(
    taken,
    Array.from({ length: 3_100 }, (_, n) => n),
  )
})

t.test('a producer is paused when too much is queued, and resumed when there is space', async t => {
  const told: string[] = []
  const inbox = new Inbox<string>({
    weigh: text => text.length,
    full: 10,
    room: 4,
    pause: () => told.push('pause'),
    resume: () => told.push('resume'),
  })
  for (const text of ['aaaa', 'bbbb', 'cccc', 'dddd']) inbox.put(text)
  t.same(told, ['pause'])
  const reader = inbox[Symbol.asyncIterator]()
  for (const expected of ['aaaa', 'bbbb', 'cccc']) t.equal((await reader.next()).value, expected)
  t.same(told, ['pause'])
  await reader.next()
  t.same(told, ['pause', 'resume'])
  await reader.return()
})
