import t, { type Test } from 'tap'
import { Budgets } from '../../../plugins/usage/budgets.js'
import type { AdmissionAsked, UsageBudget, BudgetScope } from '../../../plugins/usage/contract.js'
import { utcDayOf, type LedgerLine } from '../../../plugins/usage/line.js'
import { periodAt } from '../../../plugins/usage/period.js'
import { UsageIndex } from '../../../plugins/usage/usage-index.js'
import { folderOf } from '../../support/daemon.js'
import { memoryStore } from '../../support/journals.js'
import { exactly } from '../../support/lists.js'
import { turnOf } from './support.js'

const NANOS = 1_000_000_000
const budget = (scope: BudgetScope, more: Partial<UsageBudget> = {}): UsageBudget => ({
  id: scope.kind,
  scope,
  period: 'total',
  limitUsd: 1,
  at: 'refuse',
  enabled: true,
  ...more,
})
const ASKED: AdmissionAsked = { provider: 'script', model: 'script-1', unattended: false }

/** Budgets on an index of their own, with a clock that the test sets. */
const world = (t: Test, at = Date.UTC(2026, 10, 23, 12)) => {
  const folder = folderOf(t)
  const index = new UsageIndex(folder)
  t.teardown(() => index.close())
  const clock = { now: at }
  const files = new Map<string, unknown>()
  const crossed: string[] = []
  const store = memoryStore()
  const budgets = new Budgets({
    index,
    store,
    files: {
      read: async <T>(name: string) => files.get(name) as T | undefined,
      write: async (name, value) => void files.set(name, value),
    },
    now: () => clock.now,
    crossed: async ({ id, state }) => void crossed.push(`${id} ${state}`),
    changed: ids => void crossed.push(`changed ${ids.join()}`),
  })
  let lines = 0
  const spend = (costUsd: number, more: Partial<LedgerLine> = {}) => {
    const turn = { ...turnOf({ at: clock.now }), ...more }
    const line: LedgerLine = { ...turn, day: utcDayOf(turn.at), costUsd, costFrom: 'reported' }
    index.add([line], { journal: 1, lines: ++lines })
    budgets.added([line])
  }
  return { budgets, clock, crossed, index, spend }
}

t.test('periods follow the calendar in UTC, and weeks begin on Monday', async t => {
  const at = Date.UTC(2026, 10, 22, 23, 59, 59, 999)
  t.same(periodAt('day', at), { start: Date.UTC(2026, 10, 22), end: Date.UTC(2026, 10, 23) })
  t.same(
    periodAt('week', at),
    { start: Date.UTC(2026, 10, 16), end: Date.UTC(2026, 10, 23) },
    'a Sunday is its last day',
  )
  t.same(periodAt('week', at + 1), { start: Date.UTC(2026, 10, 23), end: Date.UTC(2026, 10, 30) })
  t.same(periodAt('month', Date.UTC(2026, 11, 31, 23)), { start: Date.UTC(2026, 11), end: Date.UTC(2027, 0) })
  t.same(periodAt('total', at), { start: 0 })
})

t.test('a budget renews at midnight and on Monday, and says once in each period that it was exceeded', async t => {
  const { budgets, clock, crossed, spend } = world(t, Date.UTC(2026, 10, 21, 20))
  const [day, week] = [
    budget({ kind: 'all' }, { id: 'day', period: 'day' }),
    budget({ kind: 'all' }, { id: 'week', period: 'week' }),
  ]
  await budgets.replace([day, week])
  const states = async () => {
    await budgets.check()
    return budgets.states.map(({ state }) => state)
  }
  t.same(await states(), ['under', 'under'])
  spend(0.85)
  t.same(await states(), ['near', 'near'])
  spend(0.5)
  t.same(await states(), ['over', 'over'])
  t.same(await states(), ['over', 'over'])
  t.equal(budgets.renewsAt, Date.UTC(2026, 10, 22))
  clock.now = Date.UTC(2026, 10, 22)
  t.same(await states(), ['under', 'over'], 'Sunday')
  spend(1)
  t.same(await states(), ['over', 'over'])
  clock.now = Date.UTC(2026, 10, 23)
  t.same(await states(), ['under', 'under'], 'Monday')
  t.same(crossed, [
    'day near',
    'week near',
    'changed day,week',
    'day over',
    'week over',
    'changed day,week',
    'changed day',
    'day over',
    'changed day',
    'changed day,week',
  ])
})

t.test('each scope counts its own turns', async t => {
  const { budgets, spend } = world(t)
  const scopes: BudgetScope[] = [
    { kind: 'provider', provider: 'script' },
    { kind: 'account', provider: 'script', account: 'a' },
    { kind: 'persona', persona: 'ada' },
    { kind: 'conversation', conversationId: 'c-1' },
    { kind: 'unattended' },
  ]
  await budgets.replace(scopes.map(scope => budget(scope)))
  const inside = { account: 'a', persona: 'ada', conversationId: 'c-1', unattended: true }
  spend(2, { provider: 'other', account: 'a' })
  t.same(
    budgets.states.map(({ spentUsd }) => spentUsd),
    [0, 0, 0, 0, 0],
  )
  t.same(budgets.admit({ ...ASKED, ...inside }, 0), { verdict: 'ok' })
  spend(1, inside)
  t.same(
    budgets.states.map(({ state }) => state),
    scopes.map(() => 'over'),
  )
  const kept = (more: Partial<AdmissionAsked>) => budgets.admit({ ...ASKED, provider: 'x', ...more }, 0).budget
  t.equal(kept({ persona: 'ada' }), 'persona')
  t.equal(kept({ conversationId: 'c-1' }), 'conversation')
  t.equal(kept({ unattended: true }), 'unattended', 'a scheduled turn waits')
  t.equal(kept({ account: 'a' }), undefined, 'an account of another provider')
  t.equal(kept({}), undefined, 'a turn that somebody watches runs')
  t.equal(budgets.admit(ASKED, 0).budget, 'provider')
})

t.test('what running turns have reported counts at once, and only until they are in the ledger', async t => {
  const { budgets, spend } = world(t)
  await budgets.replace([budget({ kind: 'all' })])
  t.equal(budgets.admit({ ...ASKED, run: 'r-1' }, 0.6 * NANOS).verdict, 'ok')
  t.equal(budgets.admit({ ...ASKED, run: 'r-1' }, 0.7 * NANOS).verdict, 'ok', 'the newest report of a run counts')
  t.equal(budgets.admit({ ...ASKED, run: 'r-2' }, 0.3 * NANOS).verdict, 'refuse', 'two runs together reach it')
  t.match(budgets.states, exactly({ spentUsd: 0, runningUsd: 1, state: 'over' }))
  spend(0.7, { run: 'r-1' })
  t.match(budgets.states, exactly({ spentUsd: 0.7, runningUsd: 0.3, state: 'over' }))
  budgets.settled('r-2')
  t.match(budgets.states, exactly({ spentUsd: 0.7, runningUsd: 0, state: 'under' }))
})

t.test('a budget of runs holds each run with its subagents and over its parts, and no other run', async t => {
  const { budgets, spend } = world(t)
  await budgets.replace([budget({ kind: 'run' }, { at: 'hold' })])
  spend(5, { run: 'r-0' })
  spend(0.4, { run: 'r-1', part: 1 })
  t.equal(budgets.admit({ ...ASKED, run: 'r-1' }, 0.3 * NANOS).verdict, 'ok')
  const subagent = budgets.admit({ ...ASKED, run: 'r-1:h-1' }, 0.3 * NANOS)
  t.match(subagent, {
    verdict: 'hold',
    budget: 'run',
    message: /^the budget run of 1\.00 USD a run is used up: 1\.00 USD/,
  })
  t.notHas(subagent, 'renewsAt')
  t.equal(budgets.admit({ ...ASKED, run: 'r-1' }, 0.3 * NANOS).verdict, 'hold')
  t.equal(budgets.admit({ ...ASKED, run: 'r-2' }, 0.9 * NANOS).verdict, 'ok')
  t.match(budgets.states, exactly({ spentUsd: 0.4, runningUsd: 0.6, state: 'over' }))
  budgets.settled('r-1')
  t.match(budgets.states, exactly({ spentUsd: 0, runningUsd: 0.9 }))
})

t.test('of several budgets at their limit the strictest decides, and one that is off decides nothing', async t => {
  const { budgets, spend } = world(t)
  const all = (id: string, at: UsageBudget['at'], enabled = true) => budget({ kind: 'all' }, { id, at, enabled })
  spend(1)
  await budgets.replace([all('a', 'warn'), all('b', 'hold'), all('c', 'refuse', false), all('d', 'warn')])
  t.match(budgets.admit(ASKED, 0), { verdict: 'hold', budget: 'b' })
  await budgets.replace([all('d', 'warn'), all('c', 'refuse', false)])
  t.match(budgets.admit(ASKED, 0), { verdict: 'warn', budget: 'd' })
  await budgets.replace([all('c', 'refuse', false)])
  t.same(budgets.admit(ASKED, 0), { verdict: 'ok' })
})

t.test('a list that could not be stored is not in force', async t => {
  const index = new UsageIndex(folderOf(t))
  t.teardown(() => index.close())
  const budgets = new Budgets({
    index,
    store: memoryStore(),
    files: { read: async () => undefined, write: () => Promise.reject(new Error('full')) },
    now: Date.now,
    crossed: async () => {},
    changed: () => {},
  })
  await t.rejects(budgets.replace([budget({ kind: 'all' })]), { message: 'full' })
  t.same(budgets.states, [])
})
