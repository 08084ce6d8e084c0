import t from 'tap'
import { CallFigures } from '../../../kernel/http/call-figures.js'
import { billsOf, processBills } from '../../../plugins/system/metrics/bills.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { refusal } from '../agent/support.js'
import { runTurn } from '../../support/turns.js'

t.test('answers are counted by route and status, within bounds that add up', t => {
  const figures = new CallFigures()
  for (const [status, ms] of [
    [200, 1],
    [200, 80],
    [404, 3],
    [500, 20_000],
  ] as const)
    figures.took('GET /a/{id}', status, ms, false)
  figures.took('GET /events', 200, 60_000, true)
  figures.took('GET /a/{id}', 200, 60_000, true)
  const [calls, stream] = figures.all(call => (call === 'GET /events' ? 'system' : 'a'))
  t.match(
    calls,
    { call: 'GET /a/{id}', group: 'a', seconds: 20.084, timed: 4 },
    'a stream of the same route has no time',
  )
  t.match(calls?.statuses, exactly({ status: 200, count: 3 }, { status: 404, count: 1 }, { status: 500, count: 1 }))
  t.same(
    calls?.within.map(({ count }) => count),
    [2, 2, 3, 3, 3, 3],
    'what took longer is in no bound',
  )
  t.match(stream, { seconds: 0, timed: 0, statuses: exactly({ status: 200, count: 1 }) }, 'a stream has no time')
  t.same(billsOf(figures.all(call => (call === 'GET /events' ? 'system' : 'a'))), [
    { name: 'a', calls: 5, errors: 1, timed: 4, answerSeconds: 20.084 },
    { name: 'system', calls: 1, errors: 0, timed: 0, answerSeconds: 0 },
  ])
  t.end()
})

t.test('processes are added up by what they belong to, those of extensions one by one', t => {
  const seen = [
    [1, 0, 'init', 1, 1],
    [10, 1, 'node', 5, 100],
    [11, 10, 'git', 1, 10],
    [20, 10, 'node', 2, 50],
    [21, 20, 'sh', 1, 5],
    [30, 10, 'bash', 3, 7],
  ] as const
  const owned = [
    { pid: 20, origin: 'extension', session: 'acme.tracker main' },
    { pid: 30, origin: 'agent', conversationId: 'c-1' },
  ] as const
  t.same(
    processBills(
      seen.map(([pid, parent, name, cpuSeconds, rssBytes]) => ({
        pid,
        parent,
        name,
        cpuSeconds,
        rssBytes,
        began: '1',
      })),
      10,
      [...owned],
    ),
    [
      { origin: 'daemon', processes: 2, cpuSeconds: 6, rssBytes: 110 },
      { origin: 'extension', session: 'acme.tracker main', processes: 2, cpuSeconds: 3, rssBytes: 55 },
      { origin: 'agent', processes: 1, cpuSeconds: 3, rssBytes: 7 },
    ],
    'without those that are not of the sandbox, and without the id of a conversation',
  )
  t.end()
})

t.test('a monitoring system reads the figures with a read token', async t => {
  const daemon = await daemonWith(t, ['system', 'agent', 'agents', 'areas', 'settings'])
  const read = await daemon.token('read')
  const ask = (path: string, token?: string) =>
    fetch(daemon.url + path, { headers: token === undefined ? {} : { 'x-sandbox-control': token } })
  for (const path of ['/metrics', '/system/plugins']) {
    t.equal((await ask(path)).status, 401, `${path}: no credential`)
    t.equal((await ask(path, (await daemon.token('editor')).token)).status, 403, `${path}: a scope that does not reach`)
  }
  await runTurn(daemon.client, 'secret-name', 'say hidden words')
  await daemon.client.call('GET /agents/{id}', { id: 'secret-name' })
  await t.rejects(daemon.client.call('GET /agents/{id}', { id: 'nobody' }))
  const answer = await ask('/metrics', read.token)
  t.equal(answer.headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  const text = await answer.text()
  t.match(text, /^sandbox_calls_total\{group="agents",call="GET \/agents\/\{id\}",status="200"\} 1$/m)
  t.match(text, /^sandbox_calls_total\{group="agents",call="GET \/agents\/\{id\}",status="404"\} 1$/m)
  t.match(text, /^sandbox_calls_total\{group="system",call="GET \/metrics",status="401"\} 1$/m)
  t.match(text, /^sandbox_call_seconds_bucket\{group="agents",call="GET \/agents\/\{id\}",le="\+Inf"\} 2$/m)
  t.match(text, /^sandbox_call_seconds_count\{group="agents",call="GET \/agents\/\{id\}"\} 2$/m)
  t.match(text, /^sandbox_conversations\{state="settled"\} 1$/m)
  t.match(text, /^sandbox_messages_waiting 0$/m)
  t.match(text, /^sandbox_processes_memory_bytes\{origin="daemon"\} \d{6,}$/m)
  t.match(text, /\n# EOF\n$/)
  t.notMatch(text, /secret-name|hidden words|nobody/, 'no id and no word')
  const limited = {
    caller: { kind: 'session', actor: 'v@example.org', email: 'v@example.org', role: 'viewer', areas: ['docs'] },
    signal: new AbortController().signal,
    trusted: true,
  } as const
  t.match(await refusal(daemon.kernel.calls.answer('GET /metrics', {}, limited)), { status: 403 })
  t.match(await daemon.kernel.calls.answer('GET /system/plugins', {}, limited), { processes: exactly() })
  const { plugins, processes } = await daemon.client.call('GET /system/plugins')
  t.match(
    plugins.find(({ name }) => name === 'agents'),
    { calls: 2, errors: 0 },
  )
  t.ok(processes.some(({ origin }) => origin === 'daemon'))
})
