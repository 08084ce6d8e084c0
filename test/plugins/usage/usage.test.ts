import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { UsageBudget } from '../../../plugins/usage/contract.js'
import { walled } from '../../attack/support.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, makeWorkspace, type Support, type SupportOptions } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { stored } from '../activity/support.js'
import { openEvents } from '../system/stream/events-support.js'
import { admit, ledgerLines, recordTurn, totalsOf } from './support.js'

const ROUTES = [
  ['GET', '/usage/rollup'],
  ['GET', '/usage/budget'],
  ['POST', '/usage/budget'],
] as const
const DAILY: UsageBudget = {
  id: 'daily',
  scope: { kind: 'all' },
  period: 'day',
  limitUsd: 0.1,
  at: 'refuse',
  enabled: true,
}

const start = (t: Test, options?: SupportOptions): Promise<Support> => daemonWith(t, ['usage'], options)
const set = (daemon: Support, ...budgets: UsageBudget[]) => daemon.client.call('POST /usage/budget', { budgets })
/** The sums of rows, added by hand. */
const sumOf = (rows: readonly { [sum in 'turns' | 'inputTokens' | 'costUsd']: number }[]) => ({
  turns: rows.reduce((sum, { turns }) => sum + turns, 0),
  inputTokens: rows.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
  costUsd: Number(rows.reduce((sum, { costUsd }) => sum + costUsd, 0).toFixed(9)),
})

t.test('without a credential nothing is read or written', async t => {
  const daemon = await start(t)
  for (const [method, path] of ROUTES) {
    const sent = await fetch(daemon.url + path, {
      method,
      ...(method === 'POST' && { headers: { 'content-type': 'application/json' }, body: '{"budgets":[]}' }),
    })
    t.equal(sent.status, 401, `${method} ${path}`)
  }
})

t.test('no token and nobody below maintainer reads or writes any of it', async t => {
  const daemon = await daemonWith(t, ['usage', 'system', 'areas'])
  const people = [await joined(daemon, 'ann', 'collaborator'), await joined(daemon, 'vic', 'viewer')]
  const tokens = await Promise.all((['editor', 'read', 'drive', 'land'] as const).map(scope => daemon.token(scope)))
  for (const { client } of [...people, ...tokens]) {
    t.match(await refusalOf(() => client.call('GET /usage/rollup')), { status: 403 })
    t.match(await refusalOf(() => client.call('GET /usage/budget')), { status: 403 })
    t.match(await refusalOf(() => client.call('POST /usage/budget', { budgets: [DAILY] })), { status: 403 })
  }
  t.same((await daemon.client.call('GET /usage/budget')).budgets, [])
  const { client } = await joined(daemon, 'max', 'maintainer')
  t.match(await client.call('POST /usage/budget', { budgets: [DAILY] }), { budgets: exactly({ id: 'daily' }) })
})

t.test('bad input is refused by its field, and the stored list stays', async t => {
  const daemon = await start(t)
  await set(daemon, DAILY)
  const asked = async (query: string) => {
    const response = await daemon.fetch(`/usage/rollup?${query}`)
    return { status: response.status, body: await response.json() }
  }
  for (const [query, path] of [
    ['from=2024-13-01', 'from'],
    ['from=2024-02-30', 'from'],
    ['to=yesterday', 'to'],
    ['by=colour', 'by'],
    ['by=', 'by'],
    ['from=2024-02-03&to=2024-02-02', 'from'],
  ]) {
    t.match(await asked(query!), { status: 400, body: { errors: exactly({ path }) } }, query!)
  }
  const refused = async (...budgets: unknown[]) => {
    const response = await daemon.fetch('/usage/budget', { method: 'POST', body: JSON.stringify({ budgets }) })
    return { status: response.status, body: await response.json() }
  }
  for (const [budgets, path] of [
    [[DAILY, { ...DAILY, limitUsd: 2 }], 'budgets[1].id'],
    [[{ ...DAILY, limitUsd: 0 }], 'budgets[0].limitUsd'],
    [[{ ...DAILY, id: 'No' }], 'budgets[0].id'],
    [[{ ...DAILY, warnAt: 2 }], 'budgets[0].warnAt'],
    [[{ ...DAILY, scope: { kind: 'moon' } }], 'budgets[0].scope.kind'],
    [[{ ...DAILY, scope: { kind: 'run' } }], 'budgets[0].period'],
    [Array.from({ length: 51 }, (_, n) => ({ ...DAILY, id: `b-${n}` })), 'budgets'],
  ] as const) {
    t.match(await refused(...budgets), { status: 400, body: { errors: exactly({ path }) } }, path)
  }
  t.match(await daemon.client.call('GET /usage/budget'), { budgets: exactly({ id: 'daily', limitUsd: 0.1 }) })
})

t.test('a scope that names an unknown provider is refused', async t => {
  const daemon = await daemonWith(t, ['usage', 'agent'])
  const named = (provider: string): UsageBudget => ({ ...DAILY, scope: { kind: 'provider', provider } })
  t.match(await refusalOf(() => set(daemon, named('nobody'))), { status: 422, message: 'nobody' })
  t.same((await daemon.client.call('GET /usage/budget')).budgets, [])
  t.match(await set(daemon, named('script')), { budgets: exactly({ scope: { provider: 'script' } }) })
})

t.test('an agent with a shell neither finds nor changes the ledger', walled(), async t => {
  const { client, ...daemon } = await daemonWith(t, ['usage', 'agent'])
  const [, ledger] = [await runTurn(client, 'first', 'usage 110 25 0.75'), ledgerLines(daemon)]
  t.match(ledger, exactly({ costUsd: 0.75 }))
  const at = join(daemon.data, 'journals/usage/ledger')
  const [name] = readdirSync(at)
  const asked = [
    `run find . ${daemon.data} -name '*.jsonl'; echo searched`,
    `run cat ${at}/${name}`,
    `run echo '{"costUsd":0}' > ${at}/${name}`,
  ].join('\n')
  const frames = await runTurn(client, 'c', asked, { permissionMode: 'bypassPermissions' })
  const results = JSON.stringify(frames.filter(({ kind }) => kind === 'tool_call_update'))
  t.match(results, /searched/)
  t.notMatch(results, /0\.75|ledger\/\d+\.jsonl\\n/)
  t.same(ledgerLines(daemon).slice(0, 1), ledger)
})

t.test('what turns reported is summed exactly by every key, and equals the ledger read by hand', async t => {
  const daemon = await start(t)
  const at = Date.UTC(2026, 2, 31, 23, 59)
  for (const turn of [
    { at, persona: 'ada', model: 'big', conversationId: 'c-1', inputTokens: 1_000, costUsd: 0.1, account: 'a@x.org' },
    { at, persona: 'ada', model: 'small', conversationId: 'c-1', inputTokens: 20, costUsd: 0.2 },
    { at: at + 60_000, persona: 'bob', model: 'big', conversationId: 'c-2', inputTokens: 3, costUsd: 0.0004, turns: 7 },
  ])
    await recordTurn(daemon, turn)
  const ask = (by?: string) => daemon.client.call('GET /usage/rollup', by === undefined ? {} : { by })
  t.match(
    (await ask('persona')).rows,
    exactly(
      { persona: 'ada', turns: 2, inputTokens: 1_020, costUsd: 0.3 },
      { persona: 'bob', turns: 7, inputTokens: 3, costUsd: 0.0004 },
    ),
  )
  t.match(
    (await ask('model')).rows,
    exactly({ model: 'small', costUsd: 0.2 }, { model: 'big', turns: 8, inputTokens: 1_003, costUsd: 0.1004 }),
  )
  t.match(
    (await ask('day,conversation')).rows,
    exactly(
      { day: '2026-03-31', conversationId: 'c-1', costUsd: 0.3, turns: 2 },
      { day: '2026-04-01', conversationId: 'c-2', costUsd: 0.0004, turns: 7 },
    ),
    'oldest day first, and a turn counts on the day it ended',
  )
  const lines = ledgerLines(daemon)
  t.equal(lines.length, 3)
  for (const by of [
    'day',
    'provider',
    'account',
    'model',
    'harness',
    'conversation',
    'persona',
    'day,model',
    undefined,
  ]) {
    const { rows, total } = await ask(by)
    t.match(total, sumOf(rows), `rows by ${by}`)
    t.match(total, sumOf(lines), `lines by ${by}`)
  }
  const { rows, firstDay } = await ask()
  t.match(rows[1], { account: 'a@x.org', harness: 'native', provider: 'script', persona: 'ada' })
  t.equal(firstDay, '2026-03-31')
  const april = await daemon.client.call('GET /usage/rollup', { from: '2026-04-01', to: '2026-04-30', by: 'day' })
  t.match(april, { rows: exactly({ day: '2026-04-01' }), total: { turns: 7 }, firstDay: '2026-03-31' })
  const one = await daemon.client.call('GET /usage/rollup', { conversation: 'c-1', persona: 'ada', by: 'day' })
  t.match(one, { rows: exactly({ day: '2026-03-31', turns: 2 }), total: { costUsd: 0.3 } })
  t.match(await daemon.client.call('GET /usage/rollup', { provider: 'nobody' }), {
    rows: exactly(),
    total: { turns: 0 },
  })
})

t.test('what states no cost is priced by its tokens, and what has no price is counted as such', async t => {
  const price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }
  const daemon = await start(t, {
    fakes: { 'definitions.price': ({ model }) => (model === 'big' ? { price } : {}) },
  })
  const tokens = { inputTokens: 1_001, outputTokens: 77, cacheReadTokens: 12_345, cacheCreationTokens: 678 }
  await recordTurn(daemon, { model: 'big', ...tokens })
  await recordTurn(daemon, { model: 'odd', ...tokens })
  await recordTurn(daemon, { model: 'big', ...tokens, costUsd: 0 })
  const { rows, total } = await daemon.client.call('GET /usage/rollup', { by: 'model' })
  t.match(
    rows,
    exactly({ model: 'big', costUsd: 0.010404, turns: 2, unpriced: 0 }, { model: 'odd', costUsd: 0, unpriced: 1 }),
    'the reported 0 stays 0',
  )
  t.match(total, { costUsd: 0.010404, unpriced: 1 })
  t.same(
    ledgerLines(daemon).map(({ costFrom }) => costFrom),
    ['priced', 'unknown', 'reported'],
  )
  const running = { model: 'big', run: 'r-1', runningTokens: { input: 1_000_000, output: 1_000_000 } }
  await set(daemon, { ...DAILY, limitUsd: 18.0104 })
  t.match(await admit(daemon, running), { verdict: 'refuse' }, 'tokens of a running turn are priced too')
  t.match(await daemon.client.call('GET /usage/budget'), { budgets: exactly({ runningUsd: 18, spentUsd: 0.010404 }) })
})

t.test('a run and part has one line, also when it is reported at once and after a restart', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const first = await start(t, { workspace, data })
  const parts = [1, 2, 1, 2, undefined]
  await Promise.all(
    parts.map(part => recordTurn(first, { run: 'r-1', costUsd: 1, ...(part !== undefined && { part }) })),
  )
  await recordTurn(first, { run: 'r-2', costUsd: 1 })
  await first.stop()
  const second = await start(t, { workspace, data })
  await recordTurn(second, { run: 'r-1', part: 2, costUsd: 1 })
  await recordTurn(second, { run: 'r-2', part: 2, costUsd: 1 })
  await recordTurn(second, { costUsd: 1 })
  await recordTurn(second, { costUsd: 1 })
  t.match((await second.client.call('GET /usage/rollup')).total, { turns: 6, costUsd: 6 })
  t.equal(ledgerLines(second).length, 6)
})

t.test('the sums are the same after a restart, and after their index was lost or damaged', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const first = await start(t, { workspace, data })
  for (let n = 0; n < 50; n++) await recordTurn(first, { run: `r-${n}`, costUsd: 0.1, conversationId: `c-${n % 7}` })
  const before = await first.client.call('GET /usage/rollup')
  await first.stop()
  const index = join(data, 'usage', 'usage.sqlite')
  for (const harm of [() => {}, () => rmSync(index), () => writeFileSync(index, 'no database at all')]) {
    harm()
    const daemon = await start(t, { workspace, data })
    t.same(await daemon.client.call('GET /usage/rollup'), before)
    await recordTurn(daemon, { run: 'r-7', costUsd: 9 })
    t.match((await daemon.client.call('GET /usage/rollup')).total, { turns: 50, costUsd: 5 }, 'r-7 is known')
    await daemon.stop()
  }
})

t.test('a spent budget keeps the next turn from starting until it is raised, and says when it renews', async t => {
  const daemon = await daemonWith(t, ['usage', 'activity'])
  await set(daemon, DAILY)
  t.same(await admit(daemon, { run: 'r-1', conversationId: 'c-1' }), { verdict: 'ok' })
  await recordTurn(daemon, { run: 'r-1', conversationId: 'c-1', costUsd: 0.12 })
  const midnight = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000
  const asked = { run: 'r-2', conversationId: 'c-1' }
  t.match(await admit(daemon, asked), { verdict: 'refuse', budget: 'daily', renewsAt: midnight, message: '0.12 USD' })
  await admit(daemon, asked)
  t.match(await daemon.client.call('GET /usage/budget'), {
    budgets: exactly({ state: 'over', spentUsd: 0.12, runningUsd: 0, renewsAt: midnight }),
  })
  t.match(await set(daemon, { ...DAILY, limitUsd: 1 }), { budgets: exactly({ state: 'under', limitUsd: 1 }) })
  t.same(await admit(daemon, asked), { verdict: 'ok' })
  const { events } = await daemon.client.call('GET /activity', { type: 'budget.*' })
  t.match(
    events.map(({ type, extra }) => ({ type, extra })).reverse(),
    exactly(
      { type: 'budget.changed', extra: { ids: exactly('daily') } },
      { type: 'budget.over', extra: { id: 'daily', spentUsd: 0.12, limitUsd: 0.1 } },
      { type: 'budget.refused', extra: { id: 'daily', conversationId: 'c-1' } },
      { type: 'budget.changed' },
    ),
    'one entry for the turn that asked twice',
  )
})

t.test('budgets and what was announced of them survive a restart', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const first = await daemonWith(t, ['usage', 'activity'], { workspace, data })
  await set(first, DAILY, { ...DAILY, id: 'off', enabled: false })
  await recordTurn(first, { costUsd: 0.09 })
  await first.stop()
  const second = await daemonWith(t, ['usage', 'activity'], { workspace, data })
  t.match(await second.client.call('GET /usage/budget'), {
    budgets: exactly({ id: 'daily', state: 'near', spentUsd: 0.09 }, { id: 'off', state: 'off' }),
  })
  await second.stop()
  t.same(
    stored({ data }).flatMap(({ type }) => (type.startsWith('budget.') ? [type] : [])),
    ['budget.changed', 'budget.near'],
  )
})

t.test('watchers are notified of each budget that crossed a limit', async t => {
  const daemon = await daemonWith(t, ['usage', 'system'])
  const events = await openEvents(t, daemon, '')
  await set(daemon, DAILY, { ...DAILY, id: 'weekly', period: 'week', limitUsd: 100 })
  const keys = new Set<string>()
  const until = async (wanted: string) => {
    while (!keys.has(wanted)) {
      const event = await events.next()
      if (event.kind === 'runtimeChanged' && event.domains.includes('usage'))
        for (const key of event.keys ?? []) keys.add(key)
    }
  }
  await until('weekly')
  keys.clear()
  await recordTurn(daemon, { costUsd: 1 })
  await until('daily')
  t.same([...keys], ['daily'])
})

t.test('an account has its own totals', async t => {
  const daemon = await start(t)
  await recordTurn(daemon, { account: 'a', costUsd: 1, inputTokens: 5 })
  await recordTurn(daemon, { account: 'a', costUsd: 2, outputTokens: 4, turns: 3 })
  await recordTurn(daemon, { costUsd: 4 })
  const totals = (account?: string) => totalsOf(daemon, account)
  t.same(await totals('a'), { turns: 4, inputTokens: 105, outputTokens: 14, costUsd: 3 })
  t.same(await totals(), { turns: 1, inputTokens: 100, outputTokens: 10, costUsd: 4 })
  t.same(await totals('b'), { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 })
})
