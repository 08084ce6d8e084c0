import t from 'tap'
import { BoardStream } from '../../../../plugins/system/stream/board.js'
import type { LiveFrame } from '../../../../sdk/kernel.js'
import { TestClock } from '../../../kernel/streams/support.js'
import { cardOf } from './events-support.js'
import { exactly } from '../../../support/lists.js'

t.test('the board is read at most once a second, one read at a time, and not without watchers', async t => {
  const clock = new TestClock()
  let [readings, rev] = [0, 0]
  const shown: LiveFrame[][] = []
  const held: (() => void)[] = []
  let hold = false
  const board = new BoardStream({
    read: async () => {
      readings += 1
      if (hold) await new Promise<void>(resolve => held.push(resolve))
      return { agents: [cardOf('c1', { updatedAt: rev })], rev, held: [] }
    },
    show: async frames => shown.push(frames),
    failed: error => t.fail(String(error)),
    after: (ms, run) => clock.after(ms, run),
  })
  const settled = () => new Promise(setImmediate)
  const leave = await board.watched()
  t.equal(readings, 0, 'not before the groups have started')
  board.ready()
  await settled()
  t.match([readings, shown.splice(0)], exactly(1, exactly(exactly({ data: { kind: 'agents' } }))))
  for (let n = 0; n < 10; n++) {
    rev += 1
    board.changed()
  }
  await settled()
  t.equal(readings, 1)
  clock.pass(1_000)
  await settled()
  t.match([readings, shown.splice(0).length], exactly(2, 1))
  clock.pass(1_000)
  board.changed()
  await settled()
  t.match([readings, shown.splice(0)], exactly(3, { length: 0 }), 'nothing changed, so nothing is sent')
  hold = true
  const arriving = [board.watched(), board.watched(), board.watched()]
  await settled()
  const late = board.watched()
  clock.pass(2_000)
  for (const one of [...arriving, late]) (await one)()
  t.equal(readings, 4, 'they share a read, and wait at most 2 s for it')
  hold = false
  held.splice(0).forEach(resolve => resolve())
  await settled()
  t.equal(readings, 5, 'a watcher that came meanwhile gets the next one')
  leave()
  clock.pass(5_000)
  board.changed()
  await settled()
  t.equal(readings, 5)
})

t.test('a single changed card is read alone, and the whole board again after a time', async t => {
  const clock = new TestClock()
  const readings: (string | string[])[] = []
  const shown: LiveFrame[][] = []
  const cards = new Map(['c1', 'c2', 'c3'].map((id, at) => [id, cardOf(id, { updatedAt: at })]))
  let [rev, fails, serves] = [0, false, true]
  const board = new BoardStream({
    read: async () => {
      readings.push('all')
      return { agents: [...cards.values()], rev: ++rev, held: [] }
    },
    some: async ids => {
      if (!serves) return undefined
      readings.push(ids)
      if (fails) throw new Error('not now')
      return { agents: ids.flatMap(id => cards.get(id) ?? []), gone: ids.filter(id => !cards.has(id)), rev: ++rev }
    },
    show: async frames => shown.push(frames),
    failed: () => {},
    after: (ms, run) => clock.after(ms, run),
  })
  const settled = () => new Promise(setImmediate)
  const told = async (...ids: (string | undefined)[]) => {
    for (const id of ids) board.changed(id)
    await settled()
    clock.pass(1_000)
    await settled()
    return [readings.splice(0), shown.splice(0)]
  }
  board.ready()
  cards.set('c1', cardOf('c1', { updatedAt: 5 }))
  board.changed('c1')
  const leave = await board.watched()
  t.same(readings.splice(0), ['all'], 'changes without watchers are read with the whole board')
  shown.splice(0)
  cards.set('c2', cardOf('c2', { updatedAt: 9 }))
  t.match(
    await told('c2'),
    exactly(
      exactly(exactly('c2')),
      exactly(
        exactly(
          { data: { kind: 'agent', rev: 2, agent: { id: 'c2', updatedAt: 9 } }, mode: 'delta' },
          { data: { kind: 'agents', rev: 2, agents: exactly({ id: 'c2' }, { id: 'c1' }, { id: 'c3' }) } },
        ),
      ),
    ),
  )
  cards.delete('c3')
  t.match(
    await told('c1', 'c3', 'c1', 'c2'),
    exactly(
      exactly(exactly('c1', 'c3', 'c2')),
      exactly(exactly({ data: { kind: 'agent', removed: 'c3' } }, { data: { agents: { length: 2 } } })),
    ),
  )
  t.same(await told('c1', undefined), [['all'], []], 'a change that may affect any card reads all')
  fails = true
  t.same(await told('c1'), [[['c1']], []])
  fails = false
  t.same(await told('c2'), [['all'], []], 'a failed read is repeated')
  serves = false
  t.same(await told('c2'), [['all'], []])
  serves = true
  clock.pass(10_000)
  t.same(await told('c1'), [['all'], []], 'a change only in git is sent eventually')
  t.same(await told('c1'), [[['c1']], []])
  leave()
})
