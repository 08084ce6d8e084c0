import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { mustStaySecret } from '../../support/secret-search.js'
import { challengeOf, startAccountServer } from '../../support/servers/account-server.js'
import { accountWorld, asGroup, rowsOf, stateOf, type AccountWorld } from './support.js'

const START = 'POST /accounts/{provider}/login/start'
const FINISH = 'POST /accounts/{provider}/login/finish'
const CANCEL = 'POST /accounts/{provider}/login/cancel'
const acme = { provider: 'acme' } as const

/** Everything that the server gave the daemon of these tests, and that nothing may show. */
const stayedSecret = async (t: Test, { daemon, server, shown }: AccountWorld): Promise<void> => {
  const { value } = await asGroup(daemon, 'accounts.lease', acme)
  const asked = server.tokens.flatMap(form => [form.code, form.code_verifier, form.device_code, form.refresh_token])
  const secrets = [value, ...asked.filter(each => each !== undefined)]
  // The search at the end of the test finds them in files, logs and errors.
  mustStaySecret(daemon, secrets)
  t.ok(shown.length > 0)
  t.same(
    secrets.filter(secret => shown.some(text => text.includes(secret))),
    [],
    'no answer, event or entry has one of them',
  )
}

const isListening = (port: number): Promise<boolean> =>
  new Promise(found => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => (socket.destroy(), found(true))).once('error', () => found(false))
  })

t.test('redirect: the browser comes back to the sandbox, which completes the sign-in alone', async t => {
  const world = await accountWorld(t)
  const { call, server, published, recorded } = world
  const started = await call(START, { ...acme, flow: 'redirect' })
  t.match(started, { flow: 'redirect', finish: 'none', expiresAt: Number })
  const landed = await server.approve(started.url, 'ada@example.org')
  t.match((await fetch(landed)).status, 200)
  const [row, ...others] = await rowsOf(world)
  t.same(others, [])
  t.match(row, { email: 'ada@example.org', label: 'ada@example.org', needsReauth: false, scope: /openid/ })
  t.match(await stateOf(world, started.handshake), { state: 'done', account: row!.id })
  t.match(server.challenges, exactly({ code_challenge_method: 'S256', client_id: 'sandbox' }))
  t.equal(server.tokens.length, 1)
  t.equal(challengeOf(server.tokens[0]!.code_verifier!), server.challenges[0]!.code_challenge)
  t.ok(published.some(args => args.includes('accounts') && args.includes('acme')))
  t.match(recorded, exactly({ type: 'account.connected' }))
  t.notOk(await isListening(Number(new URL(landed).port)), 'nothing listens there any more')
  await stayedSecret(t, world)
})

t.test('redirect: another state leaves the sign-in waiting, and the pasted address finishes it', async t => {
  const world = await accountWorld(t)
  const { call, server } = world
  const { url, handshake } = await call(START, { ...acme, flow: 'redirect' })
  const landed = new URL(await server.approve(url, 'ada@example.org'))
  const forged = new URL(landed)
  forged.searchParams.set('state', 'x'.repeat(43))
  t.equal((await fetch(forged)).status, 400)
  const finish = (redirectUrl: URL) => call(FINISH, { ...acme, handshake, redirectUrl: redirectUrl.href })
  t.match(await refusalOf(() => finish(forged)), { status: 422, message: /state/ })
  const row = await finish(landed)
  t.match(row, { email: 'ada@example.org' })
  t.match(await finish(landed), { id: row.id }, 'the same again answers the same account')
  await stayedSecret(t, world)
})

t.test('redirect: a fixed port that is in use is refused', async t => {
  const server = await startAccountServer(t)
  const redirectUri = `http://127.0.0.1:${new URL(server.url).port}/callback`
  const { call } = await accountWorld(t, { server, acme: { auth: { redirectUri } } })
  const refusal = await refusalOf(() => call(START, { ...acme, flow: 'redirect' }))
  t.match(refusal, { status: 409, message: /is in use/ })
})

t.test('device: the row appears once it is approved, also over a restart of the daemon', async t => {
  const first = await accountWorld(t)
  first.server.script.answers = [{ status: 400, body: { error: 'slow_down' } }]
  const { url, code, finish, handshake } = await first.call(START, { ...acme, flow: 'device' })
  t.equal(finish, 'none')
  t.ok(url.includes(code!), 'the address has the code')
  await until(() => first.server.tokens.length === 1)
  const slowedAt = Date.now()
  t.match(
    await refusalOf(() => first.call(FINISH, { ...acme, handshake, code: 'x' })),
    { status: 409 },
    'there is nothing to finish',
  )
  await first.daemon.stop()
  const second = await accountWorld(t, { server: first.server, folder: first.folder })
  await first.server.approve(url, 'dev@example.org')
  await rowsOf(second)
  await until(async () => (await rowsOf(second)).length === 1)
  t.ok(Date.now() - slowedAt > 9_000, 'it polls less often')
  t.match(await rowsOf(second), exactly({ email: 'dev@example.org' }))
  t.match(await stateOf(second, handshake), { state: 'done' })
  await stayedSecret(t, second)
})

t.test('code: a wrong state is 422, a wrong code 424 and the attempt waits; the right one connects', async t => {
  const server = await startAccountServer(t)
  const other = await accountWorld(t, { server, acme: { auth: { redirectUri: `${server.url}/shown` } } })
  const { url, handshake, finish } = await other.call(START, { ...acme, flow: 'code', label: 'Mine' })
  t.equal(finish, 'code')
  const landed = new URL(await server.approve(url, 'ada@example.org'))
  const [code, state] = [landed.searchParams.get('code')!, landed.searchParams.get('state')!]
  const give = (text: string) => other.call(FINISH, { ...acme, handshake, code: text })
  t.match(await refusalOf(() => give(`${code}#${'x'.repeat(43)}`)), { status: 422 })
  t.match(await refusalOf(() => give(`wrong-code#${state}`)), { status: 424, message: /refused/ })
  t.match(await stateOf(other, handshake), { state: 'waiting', detail: /refused/ })
  const row = await give(`${code}#${state}`)
  t.match(row, { label: 'Mine', email: 'ada@example.org' })
  t.match(await give(`${code}#${state}`), { id: row.id })
  const unknown = { ...acme, handshake: 'x'.repeat(32), code }
  t.match(await refusalOf(() => other.call(FINISH, unknown)), { status: 404 })
  for (const input of [{}, { code, key: 'k' }, { key: 'k' }])
    t.match(await refusalOf(() => other.call(FINISH, { ...acme, handshake, ...input })), { status: 400 })
  await stayedSecret(t, other)
})

t.test('key: it is tried once, and only one that works is stored', async t => {
  const world = await accountWorld(t)
  const { call, server } = world
  const { url, handshake, finish } = await call(START, { ...acme, flow: 'key' })
  t.match({ url, finish }, { url: `${server.url}/keys`, finish: 'key' })
  const wrong = 'plain-words-of-nobody'
  const refusal = await refusalOf(() => call(FINISH, { ...acme, handshake, key: wrong }))
  t.match(refusal, { status: 424, message: /refused the key/ })
  t.notOk(refusal.message.includes(wrong), 'the words of the provider do not repeat it')
  t.match(await stateOf(world, handshake), { state: 'waiting' })
  const row = await call(FINISH, { ...acme, handshake, key: [...server.keys][0]! })
  t.match(row, { label: 'ACME 1', needsReauth: false })
  t.equal(server.used.length, 2)
  t.match(await world.key(), { id: row.id }, 'the same key again is the same account')
  t.match(await rowsOf(world), exactly({ id: row.id }))
  await stayedSecret(t, world)
})

t.test('an abandoned attempt stores nothing, and its port is closed', async t => {
  const world = await accountWorld(t)
  const { call, server } = world
  const { url, handshake } = await call(START, { ...acme, flow: 'redirect' })
  const landed = await server.approve(url, 'ada@example.org')
  t.ok(await isListening(Number(new URL(landed).port)))
  await call(CANCEL, { ...acme, handshake })
  await call(CANCEL, { ...acme, handshake })
  t.notOk(await isListening(Number(new URL(landed).port)))
  t.match(await refusalOf(() => call(FINISH, { ...acme, handshake, redirectUrl: landed })), { status: 409 })
  t.same(await rowsOf(world), [])
  t.equal(server.tokens.length, 0)
  t.match(await refusalOf(() => call(CANCEL, { ...acme, handshake: 'x'.repeat(22) })), { status: 404 })
  const done = await call(START, { ...acme, flow: 'key' })
  await call(FINISH, { ...acme, handshake: done.handshake, key: [...server.keys][0]! })
  t.match(await refusalOf(() => call(CANCEL, { ...acme, handshake: done.handshake })), { status: 409 })
})

t.test('a newer attempt abandons the one before, and one left alone expires', async t => {
  const world = await accountWorld(t)
  const { call } = world
  const first = await call(START, { ...acme, flow: 'key' })
  const second = await call(START, { ...acme, flow: 'code' })
  t.match(await stateOf(world, first.handshake), { state: 'abandoned' })
  t.match(await stateOf(world, second.handshake), { state: 'waiting' })
  const now = Date.now()
  const { files } = world.daemon.kernel
  const stored = await files.under('accounts').read<object>(`pending/${second.handshake}`)
  await world.daemon.stop()
  await files.under('accounts').write(`pending/${second.handshake}`, { ...stored, expiresAt: now + 1500 })
  const later = await accountWorld(t, { server: world.server, folder: world.folder })
  t.match(await stateOf(later, second.handshake), { state: 'waiting' })
  await delay(1600)
  t.match(await stateOf(later, second.handshake), { state: 'expired' })
  t.match(await refusalOf(() => later.call(FINISH, { ...acme, handshake: second.handshake, code: 'c' })), {
    status: 409,
    message: /expired/,
  })
})

t.test('a provider that knows no client of the sandbox takes one of the person, who is renewed with it', async t => {
  const world = await accountWorld(t, { acme: { auth: { clientId: undefined } } })
  const { call, server, daemon } = world
  const row = async () => (await call('GET /providers')).providers.find(({ id }) => id === 'acme')
  t.match(await row(), { client: { redirectUri: 'http://127.0.0.1/callback' } })
  for (const flow of ['redirect', 'device'] as const) {
    t.match(await refusalOf(() => call(START, { ...acme, flow })), { status: 422, message: /clientId/ })
    const { url } = await call(START, { ...acme, flow, clientId: 'sandbox' })
    const landed = await server.approve(url, `${flow}@example.org`)
    if (flow === 'redirect') t.equal((await fetch(landed)).status, 200)
    await until(async () => (await rowsOf(world)).some(({ email }) => email === `${flow}@example.org`))
    const account = (await rowsOf(world)).find(({ email }) => email === `${flow}@example.org`)!.id
    const lent = await asGroup(daemon, 'accounts.lease', { ...acme, account })
    const asked = { ...acme, account, lease: lent.lease, refused: lent.value }
    t.not((await asGroup(daemon, 'accounts.renew', asked)).value, lent.value)
    await call('POST /accounts/{provider}/disconnect', { ...acme, id: account })
  }
  t.same([...new Set(server.tokens.map(({ client_id }) => client_id))], ['sandbox'])
  t.equal(server.revoked.length, 4, 'both tokens of each')
  t.match(await call(START, { ...acme, flow: 'key', clientId: 'unused' }), { finish: 'key' })
  const known = await accountWorld(t, { server })
  t.notOk((await known.call('GET /providers')).providers.some(({ client }) => client !== undefined))
  t.match(await refusalOf(() => known.call(START, { ...acme, flow: 'redirect', clientId: 'other' })), { status: 422 })
})

t.test('what cannot begin is refused', async t => {
  const world = await accountWorld(t, {
    others: {
      plain: {
        id: 'plain',
        label: 'Plain',
        serving: 'native',
        protocol: 'openai',
        baseUrl: 'https://models.example.org/v1',
        auth: {
          flows: ['device'],
          header: 'bearer',
          deviceUrl: 'https://models.example.org/device',
          tokenUrl: 'https://models.example.org/token',
        },
        models: { builtIn: [] },
      },
    },
  })
  const start = (input: object) => refusalOf(() => world.call(START, { ...acme, ...input } as never))
  t.match(await start({ provider: 'nobody' }), { status: 404 })
  t.match(await start({ account: 'nothing' }), { status: 404 })
  t.match(await start({ provider: 'anthropic', flow: 'device' }), { status: 422, message: /expected one of key/ })
  t.match(await start({ provider: 'plain' }), { status: 422, message: /auth\.clientId in plain\.json/ })
  for (let count = 0; count < 10; count++) await start({ flow: 'key' }).catch(() => {})
  t.match(await start({ flow: 'key' }), { status: 429 })
})
