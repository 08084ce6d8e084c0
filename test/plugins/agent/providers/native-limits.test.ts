import t from 'tap'
import { HeardLimits, publishedLimits } from '../../../../plugins/agent/providers/native/heard-limits.js'
import { RequestPace, RequestPaces, waitForPace } from '../../../../plugins/agent/providers/native/pace.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { nativeRun } from './native-support.js'

const NOW = Date.parse('2026-05-01T12:00:00Z')
const anthropic = (left: number) => ({
  'anthropic-ratelimit-requests-limit': '50',
  'anthropic-ratelimit-requests-remaining': '49',
  'anthropic-ratelimit-requests-reset': '2026-05-01T12:00:01Z',
  'anthropic-ratelimit-input-tokens-limit': '1000',
  'anthropic-ratelimit-input-tokens-remaining': String(left),
  'anthropic-ratelimit-input-tokens-reset': '2026-05-01T12:01:00Z',
})
const openai = {
  'x-ratelimit-limit-requests': '500',
  'x-ratelimit-remaining-requests': '25',
  'x-ratelimit-reset-requests': '1m30s',
  'x-ratelimit-limit-tokens': '30000',
  'x-ratelimit-remaining-tokens': '30000',
  'x-ratelimit-reset-tokens': '850ms',
}

t.test('the limits that Anthropic and OpenAI publish are read from the headers of an answer', t => {
  t.same(publishedLimits(anthropic(250), NOW), [
    { kind: 'requests', label: 'requests', utilization: 2, resetsAt: NOW + 1_000, measuredAt: NOW },
    { kind: 'input-tokens', label: 'input tokens', utilization: 75, resetsAt: NOW + 60_000, measuredAt: NOW },
  ])
  t.same(publishedLimits(openai, NOW), [
    { kind: 'requests', label: 'requests', utilization: 95, resetsAt: NOW + 90_000, measuredAt: NOW },
    { kind: 'tokens', label: 'tokens', utilization: 0, resetsAt: NOW + 850, measuredAt: NOW },
  ])
  const odd = ['', '-1', '1e9', 'many', '0', '99999999999999999999']
  for (const limit of odd)
    t.same(
      publishedLimits({ ...openai, 'x-ratelimit-limit-requests': limit }, NOW).map(({ kind }) => kind),
      ['tokens'],
    )
  const beyond = ['999999999d', '0000-01-01T00:00:00Z']
  for (const reset of ['', 'soon', '-5s', '9'.repeat(40), '2026', 's', ...beyond])
    t.match(publishedLimits({ ...openai, 'x-ratelimit-reset-tokens': reset }, NOW)[1], { resetsAt: undefined })
  t.end()
})

t.test('a server that asks to wait for longer than a date can say names no moment', t => {
  const heard = (after: string) => {
    const limits = new HeardLimits()
    limits.hear({ 'retry-after': after }, 429, NOW)
    return [...limits.frames()]
  }
  t.match(heard('60'), exactly({ status: 'rejected', resetsAt: NOW + 60_000 }))
  t.match(heard('9'.repeat(15)), exactly({ status: 'rejected', resetsAt: undefined }))
  t.end()
})

t.test('a turn tells of limits once, and again when they moved or are nearly reached', async t => {
  const read = (left: number) => ({ calls: [{ name: 'Read', input: { path: 'a' } }], headers: anthropic(left) })
  const server = await modelServer(t, 'anthropic', [
    read(900),
    read(895),
    read(500),
    { text: ['ok'], headers: anthropic(50) },
  ])
  const world = await nativeRun(server.target())
  t.match(
    world.find('rate_limit_info'),
    exactly(
      { status: 'allowed', rateLimitType: 'input-tokens', utilization: 10 },
      { status: 'allowed_warning', rateLimitType: 'input-tokens', utilization: 95 },
    ),
  )
  t.same(
    world.find('account_usage').map(({ windows }) => windows.map(({ utilization }) => utilization)),
    [
      [2, 10],
      [2, 50],
      [2, 95],
    ],
  )
})

t.test('a limit that is reached is told with the moment it renews, before the turn fails', async t => {
  const server = await modelServer(t, 'openai', [
    { status: 429, headers: { ...openai, 'retry-after': '7200' }, body: '{"error":{"message":"slow down"}}' },
  ])
  const before = Date.now()
  const world = await nativeRun(server.target())
  t.match(world.find('rate_limit_info'), exactly({ status: 'rejected', rateLimitType: 'requests' }))
  t.ok(world.find('rate_limit_info')[0]!.resetsAt! >= before + 7_200_000)
  t.equal(world.kinds.at(-1), 'error')
})

t.test('a request waits exactly where the server says that it would refuse it, for a minute at most', t => {
  const asked = { requests: 1, 'input-tokens': 100, 'output-tokens': 1 }
  const cases = (Object.keys(asked) as (keyof typeof asked)[]).flatMap(kind =>
    [0, 1, 50, 99, 100, 999].flatMap(left =>
      [1, 59, 60, 3_600].flatMap(seconds => [200, 1_000].map(most => ({ kind, left, seconds, most }))),
    ),
  )
  for (const { kind, left, seconds, most } of cases) {
    const pace = new RequestPace()
    const name = `anthropic-ratelimit-${kind}`
    const headers = { [`${name}-limit`]: String(most), [`${name}-remaining`]: String(left) }
    pace.hear({ ...headers, [`${name}-reset`]: new Date(NOW + seconds * 1000).toISOString() }, NOW)
    const wait = pace.next(100, NOW)
    const held = left < asked[kind] && seconds < 60
    t.same(wait, held ? { ms: seconds * 1000 + 250, kind } : undefined, JSON.stringify({ kind, left, seconds, most }))
    t.equal(pace.next(100, NOW + seconds * 1000), undefined, 'it is whole again')
  }
  const small = new RequestPace()
  small.hear({ ...openai, 'x-ratelimit-limit-tokens': '50', 'x-ratelimit-remaining-tokens': '0' }, NOW)
  t.equal(small.next(100, NOW), undefined, 'what never fits is refused by the server')
  const shared = new RequestPaces()
  shared
    .of('acme', 'one')
    .hear({ ...openai, 'x-ratelimit-remaining-requests': '2', 'x-ratelimit-reset-requests': '5s' }, NOW)
  const next = (account: string) => shared.of('acme', account).next(1, NOW)?.ms
  t.same([next('one'), next('one'), next('one'), next('two')], [undefined, undefined, 5_250, undefined])
  t.end()
})

t.test('a turn waits for the reset in place of a refusal, and says so', async t => {
  const none = { ...openai, 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '700ms' }
  let renewsAt = 0
  const server = await modelServer(t, 'openai', ({ at }, nth) => {
    if (nth === 0) {
      renewsAt = at + 700
      return { calls: [{ name: 'Read', input: { path: 'a' } }], headers: none }
    }
    return at < renewsAt ? { status: 429, body: '{"error":{"message":"slow down"}}' } : { text: ['ok'] }
  })
  const world = await nativeRun(server.target(), { deps: { paces: new RequestPaces() } })
  t.equal(world.prose.trim(), 'ok')
  t.same(world.find('provider_retry'), [])
  t.match(world.find('notice'), exactly({ text: 'waiting 1 s: then the provider allows more requests again' }))
  t.equal(server.requests.length, 2)
})

t.test('a request waits a minute at most in all, whatever other turns take meanwhile', async t => {
  const waits = async (ms: number) => {
    const waited: number[] = []
    const gap = async (asked = 0) => (waited.push(asked), false)
    const pace = { next: () => ({ ms, kind: 'requests' }) }
    const notices = waitForPace(pace, 1, { gap, signal: new AbortController().signal })
    let told = 0
    for await (const { kind } of notices) if (kind === 'notice' && ++told > 100) break
    t.equal(told, waited.length)
    return waited
  }
  t.same(await waits(25_000), [25_000, 25_000])
  t.same(await waits(60_001), [])
  t.same(await waits(250), [250, 250, 250], 'nor does it say so on and on where a move leaves no wait')
})

t.test('a server that publishes no limits says nothing of them', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const world = await nativeRun(server.target())
  t.same([world.find('rate_limit_info'), world.find('account_usage'), world.find('fast_mode')], [[], [], []])
})

for (const [protocol, field, fast, usual] of [
  ['anthropic', 'speed', 'fast', 'standard'],
  ['openai', 'service_tier', 'priority', 'default'],
] as const)
  t.test(`fast asks ${protocol} for it, and says whether the answer came so`, async t => {
    const server = await modelServer(t, protocol, [
      { calls: [{ name: 'Read', input: { path: 'a' } }], speed: fast },
      { text: ['ok'], speed: usual },
    ])
    const world = await nativeRun(server.target(), { request: { fast: true } })
    t.equal(server.body(0)[field], fast === 'fast' ? 'fast' : 'priority')
    t.match(world.find('fast_mode'), exactly({ state: 'on' }, { state: 'off', reason: /usual speed/ }))
    const silent = await modelServer(t, protocol, [{ text: ['ok'] }])
    t.match(
      (await nativeRun(silent.target(), { request: { fast: true } })).find('fast_mode'),
      exactly({ state: 'off', reason: /does not say/ }),
    )
    const without = await modelServer(t, protocol, [{ text: ['ok'], speed: usual }])
    t.same((await nativeRun(without.target())).find('fast_mode'), [])
    t.notOk(field in without.body(0))
  })
