import t, { type Test } from 'tap'
import { openLoopback } from '../../../plugins/accounts/sign-in/loopback.js'
import { OAuth, signInPage } from '../../../plugins/accounts/sign-in/oauth.js'
import type { WireRequest } from '../../../plugins/accounts/provider-wire.js'
import type { ProviderDefinition } from '../../../plugins/providers/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { mustStaySecret } from '../../support/secret-search.js'
import { challengeOf } from '../../support/servers/account-server.js'
import { startKeyGrantServer } from '../../support/servers/key-grant-server.js'
import { accountWorld } from './support.js'

const router = { provider: 'router' } as const
const START = 'POST /accounts/{provider}/login/start'
const FINISH = 'POST /accounts/{provider}/login/finish'
const LIST = 'GET /accounts/{provider}'

const world = async (t: Test, folder?: string, server?: Awaited<ReturnType<typeof startKeyGrantServer>>) => {
  const router = server ?? (await startKeyGrantServer(t))
  const made = await accountWorld(t, {
    others: { router: router.definition('router') },
    ...(folder !== undefined && { folder }),
  })
  return { ...made, router }
}

t.test('the page gets an address and a challenge alone, and its code becomes a key that lasts', async t => {
  const { call, router: server, daemon } = await world(t)
  const { url, finish, handshake } = await call(START, { ...router, flow: 'redirect', label: 'Mine' })
  t.equal(finish, 'none')
  const asked = new URL(url)
  t.same([...asked.searchParams.keys()], ['callback_url', 'code_challenge', 'code_challenge_method'])
  const back = new URL(asked.searchParams.get('callback_url')!)
  t.match(back.href, /^http:\/\/localhost:\d+\/callback\/[\w-]{43}$/)
  const landed = await server.approve(url)
  t.equal((await fetch(landed.replace('localhost', '127.0.0.1'))).status, 200)
  const [{ type, body }] = server.exchanges as [(typeof server.exchanges)[number]]
  t.equal(type, 'application/json')
  t.same(Object.keys(body), ['code', 'code_verifier', 'code_challenge_method'])
  t.equal(challengeOf(String(body.code_verifier)), asked.searchParams.get('code_challenge'))
  const { accounts, signIns } = await call(LIST, router)
  t.match(accounts, exactly({ label: 'Mine', needsReauth: false }))
  t.match(signIns, exactly({ handshake, state: 'done', account: accounts[0]!.id }))
  mustStaySecret(daemon, [...server.keys, String(body.code_verifier)])
})

t.test('an address with another end is none of this sign-in, in the browser and pasted', async t => {
  const { call, router: server } = await world(t)
  const { url, handshake } = await call(START, { ...router, flow: 'redirect' })
  const landed = new URL((await server.approve(url)).replace('localhost', '127.0.0.1'))
  for (const path of ['/callback', '/callback/', `/callback/${'x'.repeat(43)}`, `${landed.pathname}/`]) {
    const forged = new URL(landed)
    forged.pathname = path
    t.equal((await fetch(forged)).status, 400, path)
    const pasted = { ...router, handshake, redirectUrl: forged.href }
    t.match(await refusalOf(() => call(FINISH, pasted)), { status: 422, message: /state/ }, path)
  }
  t.same(server.exchanges, [])
  await call(FINISH, { ...router, handshake, redirectUrl: landed.href })
  t.match((await call(LIST, router)).accounts, { length: 1 })
})

t.test('after the daemon ended in between, the address that the browser was sent to finishes it', async t => {
  const first = await world(t)
  const { url, handshake } = await first.call(START, { ...router, flow: 'redirect' })
  const landed = await first.router.approve(url)
  await first.daemon.stop()
  const second = await world(t, first.folder, first.router)
  t.match((await second.call(LIST, router)).signIns, exactly({ handshake, state: 'waiting' }))
  const account = await second.call(FINISH, { ...router, handshake, redirectUrl: landed })
  t.match((await second.call(LIST, router)).accounts, exactly({ id: account.id }))
  t.equal((await second.call(FINISH, { ...router, handshake, redirectUrl: landed })).id, account.id)
  t.equal(first.router.exchanges.length, 1)
})

t.test('an answer that grants nothing stores nothing', async t => {
  const { call, router: server } = await world(t)
  const { url, handshake } = await call(START, { ...router, flow: 'redirect' })
  const landed = await server.approve(url)
  for (const [status, body] of [
    [200, '{"key":"two\\r\\nx-more: lines"}'],
    [200, `{"key":"${'k'.repeat(5000)}"}`],
    [200, '{"key":{"value":"sk"}}'],
    [200, '{"key":""}'],
    [200, 'sk-or-v1-bare'],
    [200, '[]'],
    [201, '{"key":"sk-or-v1-of-nobody"}'],
    [403, '{"error":{"code":403,"message":"Invalid code or code_verifier"}}'],
    [500, ''],
  ] as const) {
    server.script.answer = { status, body }
    const refusal = await refusalOf(() => call(FINISH, { ...router, handshake, redirectUrl: landed }))
    t.equal(refusal.status, 424, body)
    t.match((await call(LIST, router)).signIns, exactly({ state: 'waiting', detail: /refused/ }))
  }
  t.same((await call(LIST, router)).accounts, [])
})

t.test('the prefixed calls begin in the way that needs nothing more, and list what came of it', async t => {
  const { daemon, call, router: server } = await world(t)
  const { url, handshake } = await call('POST /{provider}/login/start', router)
  await fetch((await server.approve(url)).replace('localhost', '127.0.0.1'))
  const { accounts } = await call('GET /{provider}/accounts', router)
  t.match(accounts, exactly({ label: 'Router 1' }))
  t.match((await call(LIST, router)).signIns, exactly({ handshake, state: 'done' }))
  const abandoned = await call('POST /{provider}/login/start', router)
  await call('POST /{provider}/login/cancel', { ...router, handshake: abandoned.handshake })
  const late = await fetch((await server.approve(abandoned.url)).replace('localhost', '127.0.0.1')).catch(
    () => undefined,
  )
  t.not(late?.status, 200)
  // What a provider gives keys alone for is finished in the console, which has no other way to know their page.
  const { url: place, handshake: key } = await call('POST /{provider}/login/start', { provider: 'groq' })
  t.equal(place, `${daemon.url}/#/accounts/groq/${key}`)
  const pages = async () => (await call(LIST, { provider: 'groq' })).signIns.map(({ page }) => page)
  t.match(await pages(), exactly('https://console.groq.com/keys'))
  await call('POST /{provider}/login/cancel', { provider: 'groq', handshake: key })
  t.same(await pages(), [undefined])
})

t.test('how much of the limit of a key is used is read from what the provider says of it', async t => {
  const { call, router: server } = await world(t)
  const { handshake } = await call(START, { ...router, flow: 'key' })
  await call(FINISH, { ...router, handshake, key: [...server.keys][0]! })
  const used = async (limit: number | null, remaining: number | null) => {
    Object.assign(server.script, { limit, remaining })
    const { limits } = await call('GET /accounts/{provider}/limits', { ...router, force: '1' })
    return limits.map(({ standing, room }) => [standing, room])
  }
  t.same(await used(null, null), [['unmeasured', 100]], 'a key without a limit')
  t.same(await used(50, 37.5), [['room', 75]])
  t.same(await used(50, 0), [['spent', 0]])
  t.same(await used(50, -3), [['spent', 0]])
})

t.test('a definition says what its page and its requests for tokens have beside what OAuth says', async t => {
  const asked: WireRequest[] = []
  const oauth = new OAuth(async request => {
    asked.push(request)
    return { status: 200, headers: {}, text: '', value: { access_token: 'at', refresh_token: 'rt' } }
  })
  const auth = {
    ...{ flows: ['redirect'], header: 'bearer', authorizeUrl: 'https://a.example/auth?x=1', clientId: 'id' },
    ...{ tokenUrl: 'https://a.example/token', clientSecret: 'told-to-everybody', scopes: ['models'] },
    parameters: { access_type: 'offline', state: 'fixed' },
  }
  const definition = (more: object = {}) => ({ auth: { ...auth, ...more } }) as unknown as ProviderDefinition
  const page = new URL(signInPage(definition(), { verifier: 'v', state: 's', redirectUri: 'http://localhost:1/cb' }))
  t.match(Object.fromEntries(page.searchParams), { x: '1', access_type: 'offline', state: 's', client_id: 'id' })
  await oauth.redeem(definition(), { code: 'c', verifier: 'v' })
  await oauth.renew(definition({ tokenBody: 'json' }), 'rt')
  await oauth.revoke(definition({ revokeUrl: 'https://a.example/revoke' }), { kind: 'bearer', value: 'at' })
  t.match(
    asked,
    exactly(
      {
        form: { grant_type: 'authorization_code', client_id: 'id', client_secret: 'told-to-everybody' },
        asJson: false,
      },
      { form: { grant_type: 'refresh_token', client_secret: 'told-to-everybody' }, asJson: true },
      { form: { token: 'at', client_id: 'id', client_secret: 'told-to-everybody' } },
    ),
  )
})

t.test('the address that a browser comes back to ends with the state, whatever it begins with', async t => {
  for (const registered of ['http://localhost', 'http://localhost/', 'http://127.0.0.1/back', 'http://localhost/a/']) {
    const listener = await openLoopback(registered, 'state', async () => ({ status: 200, title: 'Here', text: '' }))
    t.teardown(() => listener!.close())
    const back = listener!.redirectUri.replace('localhost', '127.0.0.1')
    t.match(back, /[^/]\/state$/, registered)
    t.equal((await fetch(`${back}?code=c`)).status, 200, registered)
  }
})
