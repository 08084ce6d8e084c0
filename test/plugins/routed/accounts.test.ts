import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { asPerson, routedWorld, type Access, type RoutedWorld } from './support.js'

const LIMITS = {
  limits: { from: 'headers', windows: [{ kind: 'week', percent: 'x-week-used', resetsAt: 'x-week-opens' }] },
}

const ask = async ({ baseUrl, bearer, model }: Access, more: object = {}) => {
  const response = await fetch(`${baseUrl}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': bearer },
    body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: 'user', content: 'x' }], ...more }),
  })
  const text = await response.text()
  return { status: response.status, wait: response.headers.get('retry-after'), text }
}

const limitsOf = async (it: RoutedWorld) => it.call('GET /accounts/{provider}/limits', { provider: 'acme' })
/** The credential that the last request used. */
const lastUsed = ({ server }: RoutedWorld) => server.used.at(-1)!
const refusal = (status: number, headers: { [name: string]: string } = {}) => ({
  ...{ status, headers },
  body: { error: { message: 'nothing is left for the credential' } },
})

t.test('accounts are connected, listed and disconnected as the routed view has them', async t => {
  const it = await routedWorld(t, { providers: { acme: {}, other: {} } })
  const asked = { provider: 'acme' } as const
  t.same(await it.call('GET /translator/accounts'), { acme: [], other: [] })
  t.same(await it.call('GET /translator'), {
    ...{ state: 'stopped', restarts: 0, serves: [] },
    requests: { total: 0, failed: 0, retried: 0, inFlight: 0 },
  })
  const started = await it.call('POST /translator/{provider}/connect', asked)
  t.match(started, { flow: 'redirect', code: '', url: /code_challenge/ })
  const { state } = started
  const complete = (redirectUrl: string, more: object = {}) =>
    refusalOf(() => it.call('POST /translator/{provider}/complete', { ...asked, redirectUrl, state, ...more }))
  t.match(await complete('no address'), { status: 400 })
  t.match(await complete('http://127.0.0.1/callback?error=access_denied'), { status: 400, message: /access_denied/ })
  t.match(await complete('http://127.0.0.1/callback?code=x&state=another'), { status: 422 })
  t.match(await complete('http://127.0.0.1/callback?code=x', { state: 'short' }), { status: 404 })
  t.match(await complete('http://127.0.0.1/callback?code=x', { provider: 'nosuch' }), { status: 404 })
  const redirectUrl = await it.server.approve(started.url, 'ada@example.org')
  t.same(await it.call('POST /translator/{provider}/complete', { ...asked, redirectUrl, state }), { ok: true })
  t.same(await it.call('POST /translator/{provider}/complete', { ...asked, redirectUrl, state }), { ok: true }, 'again')
  const { acme } = await it.call('GET /translator/accounts')
  t.match(acme, exactly({ label: 'ada@example.org', name: String }))
  await until(async () => (await it.call('GET /translator')).state === 'running')
  t.match(await it.call('GET /translator'), {
    serves: exactly({ provider: 'acme', protocol: 'openai', accounts: 1, models: 1 }),
    messages: /^http:\/\/127\.0\.0\.1:\d+$/,
    chatCompletions: /\/v1$/,
  })
  const name = acme![0]!.name
  const disconnect = (provider: string) => it.call('POST /translator/{provider}/disconnect', { provider, name })
  t.match(await refusalOf(() => disconnect('other')), { status: 409, message: /one of acme/ })
  t.match(await refusalOf(() => disconnect('nosuch')), { status: 404 })
  t.same(await disconnect('acme'), { ok: true })
  t.same(await disconnect('acme'), { ok: true }, 'it is gone already')
  t.same((await it.call('GET /translator/accounts')).acme, [])
  t.match(await refusalOf(() => it.access('acme')), { status: 404 })
  const actor = 'owner@sandbox.local'
  t.match(
    it.recorded.filter(({ type }) => type.startsWith('account.')),
    exactly({ type: 'account.connected', actor }, { type: 'account.disconnected', actor }),
  )
})

t.test('who may see and change what', async t => {
  const it = await routedWorld(t, { providers: { acme: { auth: { flows: ['key'] } } } })
  const status = (work: () => Promise<unknown>) => refusalOf(work).then(({ status: found }) => found)
  const [viewer, collaborator, maintainer] = [
    asPerson(it, 'viewer'),
    asPerson(it, 'collaborator'),
    asPerson(it, 'maintainer'),
  ]
  t.equal((await viewer.call('GET /translator')).state, 'stopped')
  t.equal(await status(() => viewer.call('GET /translator/accounts')), 403)
  t.same(await collaborator.call('GET /translator/accounts'), { acme: [] })
  const connect = { provider: 'acme' }
  t.equal(await status(() => collaborator.call('POST /translator/{provider}/connect', connect)), 403)
  t.match(await refusalOf(() => maintainer.call('POST /translator/{provider}/connect', connect)), {
    status: 422,
    message: /neither a sign-in by device/,
  })
  for (const scope of ['read', 'drive', 'land'] as const) {
    const { client } = await it.daemon.token(scope)
    t.equal((await client.call('GET /translator')).state, 'stopped')
    t.equal(await status(() => client.call('GET /translator/accounts')), 403)
    t.equal(await status(() => client.call('POST /translator/{provider}/connect', connect)), 403)
    const complete = { ...connect, redirectUrl: 'http://x/', state: 'x' }
    t.equal(await status(() => client.call('POST /translator/{provider}/complete', complete)), 403)
    t.equal(await status(() => client.call('POST /translator/{provider}/disconnect', { ...connect, name: 'x' })), 403)
  }
})

t.test('a request goes to the next account, five at most, and only before its answer', async t => {
  const it = await routedWorld(t, { providers: { acme: LIMITS } })
  for (let nth = 1; nth <= 3; nth++) await it.key('acme', `sk-key-number-${nth}-of-three`)
  const access = await it.access('acme')
  t.equal((await ask(access)).status, 200)
  it.server.script.refuses.set(lastUsed(it), refusal(429, { 'retry-after': '3600' }))
  t.equal((await ask(access)).status, 200, 'the next account answers')
  const { limits } = await limitsOf(it)
  t.match(
    limits.filter(({ standing }) => standing === 'spent'),
    exactly({ refusal: { kind: 'limit', message: /nothing is left/ } }),
  )
  t.match((await it.call('GET /translator')).requests, { total: 2, failed: 0, retried: 1, inFlight: 0 })
  const spent = limits.find(({ standing }) => standing === 'spent')!.account
  const named = await it.access('acme', { account: spent })
  t.match(await ask(named), { status: 429, wait: '3600' }, 'a named account alone is asked')
})

t.test('a request that six accounts would refuse is sent to five', async t => {
  const it = await routedWorld(t, { providers: { acme: {} } })
  for (let nth = 1; nth <= 6; nth++) await it.key('acme', `sk-key-number-${nth}-of-six`)
  const access = await it.access('acme')

  const before = it.server.used.length
  it.server.script.refusesAll = refusal(429, { 'retry-after': '60' })
  const refused = await ask(access)
  t.match(refused, { status: 429, wait: /^(59|60)$/, text: /rate_limit_error.*nothing is left/ })
  t.equal(it.server.used.length - before, 5)
})

t.test('a refused bearer is renewed once, and credentials are in no answer', async t => {
  const it = await routedWorld(t, { providers: { acme: {} } })
  await it.signIn('acme')
  const access = await it.access('acme')
  t.equal((await ask(access)).status, 200)
  const first = lastUsed(it)
  it.server.script.refuses.set(first, refusal(401))
  t.equal((await ask(access)).status, 200)
  t.not(lastUsed(it), first)
  t.match((await it.call('GET /translator')).requests, { retried: 1, failed: 0 })
  const second = lastUsed(it)
  it.server.script.refuses.set(second, { status: 403, body: { error: { message: `no seat for ${second}` } } })
  const refused = await ask(access)
  t.match(refused, { status: 403, text: /no seat for \*\*\*/ })
  t.notMatch(refused.text, second)
})

t.test('the account of a running answer may be disconnected: it ends, and nothing begins on it', async t => {
  const it = await routedWorld(t, { providers: { acme: {} } })
  const name = await it.signIn('acme')
  const access = await it.access('acme')
  let go = () => {}
  it.server.script.holds = new Promise<void>(resolve => (go = resolve))
  const asked = ask(access)
  await until(async () => (await it.call('GET /translator')).requests.inFlight === 1)
  await until(() => it.server.used.length > 0)
  await it.call('POST /translator/{provider}/disconnect', { provider: 'acme', name })
  t.match(await ask(access), { status: 403 })
  go()
  t.match(await asked, { status: 200, text: /Hello\./ })
})

t.test('no provider is the daemon itself', async t => {
  const it = await routedWorld(t, { providers: { acme: {} } })
  await it.key('acme', 'sk-a-key-of-this-test')
  const definition = it.server.definition('acme', { serving: 'routed', baseUrl: `${it.daemon.url}/v1` })
  writeFileSync(join(it.folder, 'definitions', 'acme.json'), JSON.stringify(definition))
  let answer = { status: 0, text: '' }
  await until(async () => (answer = await ask(await it.access('acme'))).status === 502)
  t.match(answer.text, /it is this sandbox itself/)
})
