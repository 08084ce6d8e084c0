import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { refuse } from '../../../sdk/index.js'
import { until } from '../../support/browser/browser.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { envelope, failure, issuesOf, newReporter, send } from './support.js'

const MIB = 1024 * 1024

t.test('the address that programs report to', async t => {
  const daemon = await daemonWith(t, ['issues', 'system'], {
    fakes: {
      'agent.start': () => refuse('unavailable', 'no turn is started here'),
      'agent.conversation': () => refuse('not-found', 'there is no conversation here'),
    },
  })
  const { client, url } = daemon
  const page = 'https://shop.example'

  await t.test('keys, origins and switches decide who may report', async t => {
    const reporter = await newReporter(client, { allowedOrigins: [page] })
    const open = await newReporter(client)
    const body = envelope([['event', failure('Error')]])
    const status = async (...args: [{ id: number; key: string }, { [name: string]: string }?]) =>
      (await send(daemon, args[0], body, args[1])).status
    t.equal(await status({ ...open, key: 'f'.repeat(32) }), 401)
    t.equal(await status({ ...open, id: 99 }), 401)
    t.equal(await status({ ...open, key: reporter.key }), 401)
    t.equal(await status(reporter, { origin: 'https://evil.example' }), 403)
    t.equal(await status(reporter), 403)
    t.equal(await status(reporter, { origin: page }), 200)
    t.equal(await status(open, { origin: 'null' }), 200)
    await newReporter(client, { id: open.id, label: 'Shop', enabled: false })
    t.equal(await status(open), 403)
    t.equal((await issuesOf(client, open))[0]?.count, 1)
  })

  await t.test('the key comes in a header, in the query or in the envelope', async t => {
    const { id, key, dsn } = await newReporter(client)
    const post = async (path: string, body: string) => (await fetch(url + path, { method: 'POST', body })).status
    const text = (header: object) => envelope([['event', failure('Error')]], header)
    t.equal(await post(`/ingest/api/${id}/envelope/?sentry_key=${key}`, text({})), 200)
    t.equal(await post(`/ingest/api/${id}/envelope?sentry_key=${key}`, text({})), 200)
    t.equal(await post(`/ingest/api/${id}/envelope/`, text({ dsn })), 200)
    t.equal(await post(`/ingest/api/${id}/envelope/`, text({})), 401)
    t.equal(await post(`/ingest/api/${id}/store/?sentry_key=${key}`, JSON.stringify(failure('Error'))), 200)
    t.equal(await post(`/ingest/api/${id}/store/?sentry_key=${key}`, 'nothing'), 400)
    t.equal((await issuesOf(client, { id }))[0]?.count, 4)
  })

  await t.test('pages of every origin may ask before they send, here alone', async t => {
    const { id } = await newReporter(client)
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const preflight = (path: string) => fetch(url + path, { method: 'OPTIONS', headers })
    const answer = await preflight(`/ingest/api/${id}/envelope/`)
    t.equal(answer.headers.get('access-control-allow-origin'), '*')
    t.equal(answer.headers.get('access-control-allow-headers'), 'content-type, x-sentry-auth')
    t.equal(answer.headers.get('access-control-allow-credentials'), null)
    t.equal((await preflight('/issues')).headers.get('access-control-allow-origin'), null)
  })

  await t.test('bodies come compressed, and a bomb is refused before it is unpacked', async t => {
    const reporter = await newReporter(client)
    const text = (type: string) => Buffer.from(envelope([['event', failure(type)]]))
    const sent = async (body: Uint8Array, coding: string) =>
      (await send(daemon, reporter, body, { 'content-encoding': coding })).status
    t.equal(await sent(gzipSync(text('A')), 'gzip'), 200)
    t.equal(await sent(deflateSync(text('B')), 'deflate'), 200)
    t.equal(await sent(brotliCompressSync(text('C')), 'br'), 200)
    t.equal(await sent(text('D'), 'zstd'), 415)
    t.equal(await sent(text('D'), 'gzip'), 400)
    const bomb = gzipSync(Buffer.alloc(256 * MIB))
    const before = process.memoryUsage.rss()
    t.equal(await sent(bomb, 'gzip'), 413)
    t.ok(process.memoryUsage.rss() - before < 64 * MIB)
    t.equal(await sent(Buffer.alloc(6 * MIB), 'identity'), 413)
    t.equal((await issuesOf(client, reporter)).length, 3)
  })

  await t.test('a broken item spoils no other one, and limits hold', async t => {
    const reporter = await newReporter(client)
    const [one, two] = [failure('One'), failure('Two')]
    const items = [
      ['event', one],
      ['event', '{broken'],
      ['event', two],
    ] as const
    const answer = await send(daemon, reporter, envelope(items))
    t.same([answer.status, await answer.json()], [200, { id: two.event_id }])
    t.same((await issuesOf(client, reporter)).map(({ type }) => type).sort(), ['One', 'Two'])
    const long = failure('Long', {}, { extra: { text: 'x'.repeat(900 * 1024) } })
    t.equal((await send(daemon, reporter, `{}\n{"type":"event"}\n${JSON.stringify(long)}`)).status, 200)
    const deep = '['.repeat(65) + ']'.repeat(65)
    for (const [body, status] of [
      ['nothing', 400],
      ['{}', 400],
      [envelope([['event', '{broken']]), 400],
      [`{"a":${deep}}\n`, 413],
      [`{"a":"${'x'.repeat(66_000)}"}\n`, 413],
      [envelope(Array.from({ length: 31 }, () => ['session', {}] as const)), 413],
    ] as const)
      t.equal((await send(daemon, reporter, body)).status, status, body.slice(0, 40))
    t.equal((await issuesOf(client, reporter)).length, 3)
  })

  await t.test('a reporter has its number of events a day', async t => {
    const reporter = await newReporter(client, { dailyMax: 2 })
    const sent = () => send(daemon, reporter, envelope([['event', failure('Error')]]))
    t.same([(await sent()).status, (await sent()).status], [200, 200])
    const refused = await sent()
    t.equal(refused.status, 429)
    t.ok(Number(refused.headers.get('retry-after')) > 0)
    const { reporters } = await client.call('GET /issues/reporters')
    t.match(reporters.find(({ id }) => id === reporter.id)?.today, { accepted: 2, limited: 1 })
  })

  await t.test('what waits for a person is counted until it was seen', async t => {
    const counted = async () => {
      for await (const event of await client.call('GET /events', {}))
        if (event.kind === 'attention') return event.issues
      return -1
    }
    await client.call('POST /issues/seen')
    await until(async () => (await counted()) === 0)
    const reporter = await newReporter(client)
    await send(daemon, reporter, envelope([['event', failure('Error')]]))
    await until(async () => (await counted()) === 1)
    t.match(await issuesOf(client, reporter), exactly({ isNew: true }))
    await client.call('POST /issues/seen')
    await until(async () => (await counted()) === 0)
    t.match(await issuesOf(client, reporter), exactly({ isNew: false }))
  })
})
