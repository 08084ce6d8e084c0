import t, { type Test } from 'tap'
import { inTime } from '../../support/in-time.js'
import { ranked } from '../../../plugins/accounts/limits/choice.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { until } from '../../support/browser/browser.js'
import { startAccountServer } from '../../support/servers/account-server.js'
import { mustStaySecret } from '../../support/secret-search.js'
import { accountWorld, asGroup, rowsOf, type AccountWorld } from './support.js'

const acme = { provider: 'acme' } as const
const LIMITS = [{ kind: 'week', label: 'A week', percent: 'week.used', resetsAt: 'week.opens' }]

/** A world with one account that was signed in to, whose token lasts so many seconds. */
const signedIn = async (t: Test, lifetime: number): Promise<AccountWorld> => {
  const world = await accountWorld(t)
  world.server.script.lifetime = lifetime
  const { url } = await world.call('POST /accounts/{provider}/login/start', { ...acme, flow: 'redirect' })
  await fetch(await world.server.approve(url, 'ada@example.org'))
  return world
}

const renewals = ({ server }: AccountWorld) => server.tokens.filter(form => form.grant_type === 'refresh_token')

/** A world with three keys, whose limits the provider tells. */
const measured = async (t: Test) => {
  const server = await startAccountServer(t)
  const limits = { from: 'get', url: `${server.url}/limits`, windows: LIMITS }
  const world = await accountWorld(t, { server, acme: { limits } })
  const keys = ['sk-one-of-three-accounts', 'sk-two-of-three-accounts', 'sk-three-of-three-accounts']
  for (const key of keys) world.server.keys.add(key)
  const ids: string[] = []
  for (const key of keys) ids.push((await world.key(key)).id)
  return { ...world, keys, ids }
}

t.test('fifty turns that ask while the token is due cause one renewal, and all get the new one', async t => {
  const world = await signedIn(t, 1)
  const first = (await asGroup(world.daemon, 'accounts.lease', acme)).value
  world.server.script.lifetime = 3600
  await new Promise(resolve => setTimeout(resolve, 600))
  const before = renewals(world).length
  const lent = await Promise.all(Array.from({ length: 50 }, () => asGroup(world.daemon, 'accounts.lease', acme)))
  t.equal(renewals(world).length - before, 1)
  const [one, ...others] = [...new Set(lent.map(({ value }) => value))]
  t.same(others, [])
  t.not(one, first)
  t.match(lent[0], { kind: 'bearer', headers: { authorization: `Bearer ${one}` } })
  mustStaySecret(
    world.daemon,
    world.server.tokens.flatMap(form => form.refresh_token ?? []),
  )
})

t.test('a token that a provider refused is renewed once for all who hold it', async t => {
  const world = await signedIn(t, 3600)
  const { lease, account, value } = await asGroup(world.daemon, 'accounts.lease', acme)
  const renew = () => asGroup(world.daemon, 'accounts.renew', { ...acme, lease, account, refused: value })
  const [one, two] = await Promise.all([renew(), renew()])
  t.equal(renewals(world).length, 1)
  t.equal(one.value, two.value)
  t.not(one.value, value)
})

t.test('a sign-in that the provider ended is not tried again', async t => {
  const world = await signedIn(t, 3600)
  const { lease, account, value } = await asGroup(world.daemon, 'accounts.lease', acme)
  const ended = { status: 400, body: { error: 'invalid_grant', error_description: 'the grant was ended' } }
  world.server.script.answers = [ended]
  const renew = () =>
    refusalOf(() => asGroup(world.daemon, 'accounts.renew', { ...acme, lease, account, refused: value }))
  t.match(await renew(), { status: 409, message: /the grant was ended; sign in/ })
  t.match(await renew(), { status: 409 })
  t.match(await refusalOf(() => asGroup(world.daemon, 'accounts.lease', acme)), { status: 409, message: /new sign-in/ })
  t.equal(renewals(world).length, 1)
  t.match(await rowsOf(world), exactly({ needsReauth: true, detail: /the grant was ended/ }))
  t.ok(world.recorded.some(({ type }) => type === 'account.needs-reauth'))
  t.match(
    (await world.call('GET /providers')).providers.find(({ id }) => id === 'acme'),
    { ready: 'needs-reauth' },
  )
  const { url } = await world.call('POST /accounts/{provider}/login/start', { ...acme, flow: 'redirect', account })
  await fetch(await world.server.approve(url, 'ada@example.org'))
  t.match(await rowsOf(world), exactly({ id: account, needsReauth: false, detail: undefined }))
})

t.test('a failure of the provider changes nothing, and is waited out', async t => {
  const world = await signedIn(t, 3600)
  const { lease, account, value } = await asGroup(world.daemon, 'accounts.lease', acme)
  world.server.script.answers = [{ status: 503, body: {} }]
  const renew = () =>
    refusalOf(() => asGroup(world.daemon, 'accounts.renew', { ...acme, lease, account, refused: value }))
  t.match(await renew(), { status: 424 })
  t.match(await renew(), { status: 424 })
  t.equal(renewals(world).length, 1, 'the next attempt waits')
  t.match(await rowsOf(world), exactly({ needsReauth: false }))
  t.match(await asGroup(world.daemon, 'accounts.lease', acme), { value })
})

t.test('the account with most room comes first, and none when all are spent', async t => {
  const world = await measured(t)
  const { call, server, keys, ids } = world
  const set = async (...percents: (number | undefined)[]) => {
    for (const [at, key] of keys.entries()) {
      const percent = percents[at]
      if (percent === undefined) server.script.limits.delete(key)
      else server.script.limits.set(key, percent)
    }
    return call('GET /accounts/{provider}/limits', { ...acme, force: '1' })
  }
  t.match(await set(90, 20, undefined), {
    next: ids[1],
    publishes: true,
    limits: exactly({ room: 80 }, { room: 10 }, {}),
  })
  t.match(await set(90, 100, undefined), { next: ids[0] })
  t.match(await set(100, 100, undefined), { next: ids[2] })
  const spent = await set(100, 100, 100)
  t.match(spent, {
    next: undefined,
    limits: exactly({ standing: 'spent' }, { standing: 'spent' }, { standing: 'spent' }),
  })
  t.ok(Math.abs(spent.reopensAt! - server.script.resetsAt) < 1000)
  t.match(
    (await call('GET /providers')).providers.find(({ id }) => id === 'acme'),
    {
      ready: 'spent',
      accounts: 3,
      reopensAt: spent.reopensAt!,
    },
  )
  t.match(await refusalOf(() => asGroup(world.daemon, 'accounts.lease', acme)), { status: 429, message: /spent until/ })
  await set(90, 20, 50)
  world.daemon.kernel.events.emit('provider.refused', {
    provider: 'acme',
    account: ids[1],
    kind: 'entitlement',
    message: 'this seat is switched off',
  })
  const limits = () => call('GET /accounts/{provider}/limits', acme)
  await until(async () => (await limits()).limits.some(({ standing }) => standing === 'refused'))
  t.match(await limits(), { next: ids[2], refusal: { kind: 'entitlement', account: ids[1] } })
  t.match((await rowsOf(world))[1], { detail: 'this seat is switched off' })
  world.daemon.kernel.events.emit('provider.answered', { provider: 'acme', account: ids[1] })
  await until(async () => (await limits()).next === ids[1])
})

t.test('accounts are ranked by what they can still do', t => {
  const now = Date.now()
  const window = (utilization: number, resetsAt: number) => ({ kind: 'w', utilization, resetsAt, measuredAt: now })
  const account = (id: string, more: object = {}) => ({
    id,
    label: id,
    connectedAt: 1,
    needsReauth: false,
    windows: [],
    ...more,
  })
  const refusal = (kind: 'auth' | 'limit') => ({ refusal: { at: now, kind, message: 'no', until: now + 500 } })
  const { limits, next, reopensAt } = ranked([
    account('ended', { needsReauth: true }),
    account('refused', refusal('auth')),
    account('later', { windows: [window(100, now + 900)] }),
    account('sooner', { windows: [window(100, now + 300)] }),
    account('limited', refusal('limit')),
  ])
  t.same(
    limits.map(each => each.account),
    ['sooner', 'limited', 'later', 'refused', 'ended'],
  )
  t.same([next, reopensAt], [undefined, now + 300])
  t.equal(ranked([account('refused', refusal('auth')), account('ended', { needsReauth: true })]).next, 'refused')
  const two = ranked([account('younger', { connectedAt: 2 }), account('older')])
  t.same([two.next, two.limits.length], ['older', 2])
  t.end()
})

t.test('a limit endpoint that hangs does not delay the list', async t => {
  const world = await measured(t)
  const { call, server, keys } = world
  for (const key of keys) server.script.limits.set(key, 30)
  const read = await call('GET /accounts/{provider}', { ...acme, force: '1' })
  t.match(read.accounts[0], { usage: { windows: exactly({ kind: 'week', label: 'A week', utilization: 30 }) } })
  for (const key of keys) server.script.limits.set(key, 'hang')
  await world.daemon.stop()
  const later = await accountWorld(t, {
    server,
    folder: world.folder,
    acme: { limits: { from: 'get', url: `${server.url}/limits`, windows: LIMITS } },
  })
  const began = performance.now()
  const { accounts } = await later.call('GET /accounts/{provider}', acme)
  t.ok(inTime(began, 2000))
  t.equal(accounts[0]!.usage!.windows[0]!.utilization, 30, 'the last reading')
})

t.test('limits in the headers of answers count', async t => {
  const world = await accountWorld(t, {
    acme: {
      limits: { from: 'headers', windows: [{ kind: 'week', percent: 'X-Week-Used', resetsAt: 'x-week-opens' }] },
    },
  })
  const { id } = await world.key()
  const headers = { 'x-week-used': '42', 'x-week-opens': '3600' }
  await asGroup(world.daemon, 'limits.heard', { ...acme, account: id, headers })
  const { limits } = await world.call('GET /accounts/{provider}/limits', acme)
  t.match(limits, exactly({ room: 58, standing: 'room', windows: exactly({ kind: 'week', utilization: 42 }) }))
  t.ok(limits[0]!.windows[0]!.resetsAt! > Date.now() + 3_500_000)
})
