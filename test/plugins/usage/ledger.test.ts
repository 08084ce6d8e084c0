import { appendFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Ledger, type LedgerDeps } from '../../../plugins/usage/ledger.js'
import { utcDayOf, type LedgerLine } from '../../../plugins/usage/line.js'
import { rollup } from '../../../plugins/usage/rollup.js'
import { UsageIndex } from '../../../plugins/usage/usage-index.js'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import { folderOf } from '../../support/daemon.js'
import { inTime } from '../../support/in-time.js'
import { turnOf } from './support.js'

const lineOf = (n: number, more: Partial<LedgerLine> = {}): LedgerLine => {
  const turn = turnOf({ run: `r-${n}`, at: Date.UTC(2026, 0, 1 + (n % 300)), conversationId: `c-${n % 500}` })
  return { ...turn, day: utcDayOf(turn.at), costUsd: 0.01, costFrom: 'reported', ...more }
}

/** The journals of a folder, as the group sees them. */
const journalsOf = (t: Test, folder: string): LedgerDeps['journals'] => {
  const store = new JournalStore(join(folder, 'journals'))
  t.teardown(() => store.shutdown())
  return {
    append: (name, entries, options) => store.append(`usage/${name}`, entries, options),
    read: (name, after) => store.read(`usage/${name}`, after),
    stat: name => store.stat(`usage/${name}`),
    list: async prefix => (await store.list(`usage/${prefix}`)).map(name => name.slice('usage/'.length)),
  }
}

const world = (t: Test, more: Partial<LedgerDeps> = {}, folder = folderOf(t)) => {
  const index = new UsageIndex(folder)
  t.teardown(() => index.close())
  const journals = journalsOf(t, folder)
  const log: string[] = []
  const told = (message: string) => void log.push(message)
  const deps = { index, journals, log: { warn: told, error: told }, added: () => {}, recounted: () => {}, ...more }
  return { ledger: new Ledger(deps), index, journals, folder, log }
}

const turnsIn = async (index: UsageIndex) => (await rollup(index, {})).total.turns

t.test('the ledger goes on in a new journal, and lines of the older ones are known by their run', async t => {
  const { ledger, index, journals, folder } = world(t, { most: 3 })
  for (let n = 0; n < 8; n++) await ledger.record(lineOf(n))
  t.same(await journals.list('ledger/'), ['ledger/000001', 'ledger/000002', 'ledger/000003'])
  for (const n of [0, 4, 7]) await ledger.record(lineOf(n))
  t.equal(await turnsIn(index), 8)
  index.close()
  const next = world(t, { most: 3 }, folder)
  await next.ledger.current()
  t.same(next.index.mark, { journal: 3, lines: 2 })
  await next.ledger.record(lineOf(8))
  t.same(next.index.mark, { journal: 3, lines: 3 })
})

t.test('a torn last line is left out, and the next one begins on a line of its own', async t => {
  const folder = folderOf(t)
  const first = world(t, {}, folder)
  await first.ledger.record(lineOf(1))
  first.index.close()
  const [name] = readdirSync(join(folder, 'journals', 'usage', 'ledger'))
  appendFileSync(join(folder, 'journals', 'usage', 'ledger', name!), '{"at":1,"provider":"scr')
  const { ledger, index, journals } = world(t, {}, folder)
  await ledger.record(lineOf(2))
  t.equal(await turnsIn(index), 2)
  t.same(
    (await journals.read<LedgerLine>('ledger/000001')).map(({ run }) => run),
    ['r-1', 'r-2'],
  )
})

t.test('lines that the index could not take are in it before the next answer, once', async t => {
  const folder = folderOf(t)
  let failing = true
  class Failing extends UsageIndex {
    override add(...given: Parameters<UsageIndex['add']>): void {
      if (failing) throw new Error('no space')
      super.add(...given)
    }
  }
  const index = new Failing(folder)
  t.teardown(() => index.close())
  let recounted = 0
  const { ledger, log } = world(t, { index, recounted: () => void recounted++ }, folder)
  await ledger.record(lineOf(1))
  t.same(log, ['the sums of the ledger could not be written'])
  await t.rejects(ledger.record(lineOf(2)), { message: 'no space' }, 'who cannot know what is there writes nothing')
  failing = false
  await ledger.current()
  t.equal(await turnsIn(index), 1)
  await ledger.record(lineOf(1))
  await ledger.record(lineOf(2))
  t.equal(await turnsIn(index), 2)
  t.equal(recounted, 2)
})

t.test('an index that knows more than the ledger holds is made anew', async t => {
  const { ledger, index, log } = world(t)
  index.add([lineOf(1), lineOf(2)], { journal: 1, lines: 2 })
  await ledger.record(lineOf(3))
  t.equal(await turnsIn(index), 1)
  t.same(log, ['the sums of the ledger do not fit it and are made anew'])
})

t.test('a year of 100,000 lines is summed in less than a second, the same after a restart', async t => {
  const { index, journals, folder } = world(t)
  for (let at = 0; at < 100_000; at += 10_000) {
    const lines = Array.from({ length: 10_000 }, (_, n) => lineOf(at + n))
    await journals.append('ledger/000001', lines)
  }
  const { ledger } = world(t, { index, journals }, folder)
  await ledger.current()
  const year = { from: '2026-01-01', to: '2026-12-31' }
  const began = performance.now()
  const found = await rollup(index, year)
  t.ok(inTime(began, 1_000), `${(performance.now() - began).toFixed(0)} ms`)
  t.match(found.total, { turns: 100_000, costUsd: 1_000 })
  index.close()
  const next = world(t, {}, folder)
  await next.ledger.current()
  t.same(await rollup(next.index, year), found)
})

t.test('more rows than anybody reads are refused', async t => {
  const { index } = world(t)
  for (let month = 0; month < 2; month++) {
    const at = Date.UTC(2026, month)
    const lines = Array.from({ length: 60_000 }, (_, n) =>
      lineOf(n, { day: utcDayOf(at), conversationId: `c-${month}-${n}` }),
    )
    index.add(lines, { journal: 1, lines: 60_000 * (month + 1) })
  }
  await t.rejects(rollup(index, {}), { reason: 'unprocessable', message: /^more than 100000 rows/ })
  t.equal((await rollup(index, { by: 'day' })).rows.length, 2)
})
