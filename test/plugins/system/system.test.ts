import { cpSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Caller, Host } from '../../../sdk/index.js'
import type { OpenedSession, Program } from '../../../sdk/kernel.js'
import { mintToken, revokeSessions } from '../../../plugins/system/access/credentials.js'
import { Budget } from '../../../sdk/node/access/budget.js'
import { plainValue } from '../../../plugins/system/access/plain.js'
import { Programs } from '../../../plugins/system/info/programs.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, makeWorkspace, spawnDaemon, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const CONTEXT = { signal: new AbortController().signal, trusted: false }

const CALLS = [
  'GET /info',
  'POST /system/sessions/revoke',
  'POST /system/control/tokens',
  'GET /system/control/tokens',
  'DELETE /system/control/tokens/x',
]

const bare = async ({ url }: Support, call: string, { body, ...headers }: { [name: string]: string } = {}) => {
  const [method, path] = call.split(' ') as [string, string]
  const sent = method === 'GET' ? {} : { body: body ?? '{}' }
  const response = await fetch(url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...sent,
  })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as { [key: string]: unknown; message: string },
  }
}

const openSession = (daemon: Support, input: object, headers: { [name: string]: string } = {}) =>
  bare(daemon, 'POST /system/session', { ...headers, body: JSON.stringify(input) })

const signIn = async (daemon: Support): Promise<OpenedSession> =>
  (await openSession(daemon, { login: await daemon.auth.mintLogin() })).body as unknown as OpenedSession

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

t.test('without a credential only the sign-in options and a proof are answered', async t => {
  const daemon = await daemonWith(t, ['system'])
  for (const call of CALLS) t.equal((await bare(daemon, call)).status, 401, call)
  t.equal((await bare(daemon, 'GET /system/sign-in')).status, 200)
})

t.test('a control token reaches only the info, by its scope', async t => {
  const daemon = await daemonWith(t, ['system'])
  for (const scope of ['read', 'drive', 'land', 'editor'] as const) {
    const { token } = await daemon.token(scope)
    for (const call of CALLS) {
      const { status, body } = await bare(daemon, call, { 'x-sandbox-control': token })
      if (call === 'GET /info' && scope !== 'editor')
        t.match([status, body], exactly(200, { me: { kind: 'token', scope } }))
      else t.match([status, body.message], exactly(403, `found scope ${scope}`), `${scope} ${call}`)
    }
  }
})

t.test('the info describes this daemon and the caller', async t => {
  const daemon = await daemonWith(t, ['system'])
  const info = await daemon.client.call('GET /info')
  t.match(info, {
    contract: '1',
    base: daemon.url,
    boot: { ready: true },
    me: { actor: 'owner@sandbox.local', kind: 'session', role: 'owner' },
  })
  t.ok(info.routes.includes('system.info'))
  const { headers } = await daemon.fetch('/info')
  t.equal((await daemon.fetch('/info', { headers: { 'if-none-match': headers.get('etag')! } })).status, 304)
})

t.test('the info names the image that names itself', async t => {
  const folder = folderOf(t)
  const before = process.env.SANDBOX_IMAGE
  t.teardown(() => (before === undefined ? delete process.env.SANDBOX_IMAGE : (process.env.SANDBOX_IMAGE = before)))
  delete process.env.SANDBOX_IMAGE
  const daemon = await daemonWith(t, ['system'])
  t.notOk('image' in (await daemon.client.call('GET /info')))
  for (const wrong of ['', 'two words', '-v', 'a'.repeat(301), 'a\nb']) {
    process.env.SANDBOX_IMAGE = wrong
    t.notOk('image' in (await daemon.client.call('GET /info')), JSON.stringify(wrong.slice(0, 9)))
  }
  const [workspace, data] = [join(folder, 'w'), join(folder, 'd')]
  makeWorkspace(workspace)
  const image = 'registry.example.org:5000/sandbox:0.1.0'
  const { client } = await spawnDaemon(t, { workspace, data, env: { SANDBOX_IMAGE: image } })
  t.match(await client.call('GET /info'), { image })
})

t.test('the sign-in options say whether there is an owner and have a nonce', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { body } = await bare(daemon, 'GET /system/sign-in')
  t.match(body, { claimed: false, local: true, providers: { length: 0 } })
  await signIn(daemon)
  const again = await bare(daemon, 'GET /system/sign-in')
  t.equal(again.body.claimed, true)
  t.not(again.body.nonce, body.nonce)
  t.notMatch(JSON.stringify(again.body), 'owner@')
  const forwarded = await bare(daemon, 'GET /system/sign-in', { 'x-forwarded-for': '203.0.113.9' })
  t.equal(forwarded.body.local, false, 'not through a tunnel')
})

t.test('an address gets the sign-in options 120 times a minute', async t => {
  const clock = { now: 0 }
  const budget = new Budget(120, () => clock.now)
  for (let n = 0; n < 120; n++) budget.spend('a')
  t.match(await refusalOf(() => budget.spend('a')), { status: 429, detail: { retryAfter: 60 } })
  budget.spend('b')
  clock.now = 60_000
  budget.spend('a')
})

t.test('a login code opens a session of the owner, once', async t => {
  const daemon = await daemonWith(t, ['system'])
  const login = await daemon.auth.mintLogin()
  const first = await openSession(daemon, { login, device: ' my\u202e laptop ' })
  t.match(
    [first.status, first.body],
    exactly(200, { email: 'owner@sandbox.local', role: 'owner', renewed: false, token: /^sbs_/ }),
  )
  t.match(await bare(daemon, 'GET /info', bearer(String(first.body.token))), {
    status: 200,
    body: { me: { sessionId: first.body.id } },
  })
  t.match(await openSession(daemon, { login }), { status: 401, body: { message: /unknown, used or expired/ } })
})

t.test('a login code is refused over plain HTTP from elsewhere, and stays valid', async t => {
  const daemon = await daemonWith(t, ['system'], { deployment: { http: { hosts: ['sandbox.example'] } } })
  const login = await daemon.auth.mintLogin()
  t.match(await openSession(daemon, { login }, { 'x-forwarded-for': '203.0.113.9' }), { status: 403 })
  const named = await new Promise<{ status?: number; body: string }>((resolve, reject) => {
    const headers = { host: 'sandbox.example', 'content-type': 'application/json' }
    const sent = request(`${daemon.url}/system/session`, { method: 'POST', headers }, async response =>
      resolve({ ...(response.statusCode && { status: response.statusCode }), body: await text(response) }),
    )
    sent.on('error', reject).end(JSON.stringify({ login }))
  })
  t.match(named, { status: 403, body: /HTTPS/ })
  t.equal((await openSession(daemon, { login })).status, 200)
})

t.test('over HTTPS through a trusted proxy a login code is accepted', async t => {
  const daemon = await daemonWith(t, ['system'], { deployment: { http: { trustedProxies: ['127.0.0.1'] } } })
  const login = await daemon.auth.mintLogin()
  t.equal(
    (await openSession(daemon, { login }, { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' })).status,
    200,
  )
})

t.test('a session presented is renewed: same id, new token', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { token, id } = await signIn(daemon)
  const { status, body } = await openSession(daemon, {}, bearer(token))
  t.match([status, body], exactly(200, { id, renewed: true }))
  t.not(body.token, token)
})

t.test('every invalid proof is refused with its reason', async t => {
  const daemon = await daemonWith(t, ['system'])
  const one = /unknown, used or expired/
  t.match(await openSession(daemon, {}), { status: 401, body: { message: 'expected a proof' } })
  t.match(await openSession(daemon, { device: 'x' }), { status: 401 })
  t.match(await openSession(daemon, { login: '' }), { status: 400, body: { errors: exactly({ path: 'login' }) } })
  t.match(await openSession(daemon, { login: 'x'.repeat(129) }), { status: 400 })
  for (const code of [{ login: 'x' }, { invite: 'x', name: 'Ada' }, { claim: 'x' }])
    t.match(await openSession(daemon, code), { status: 401, body: { message: one } })
  t.match(
    await openSession(daemon, { invite: await daemon.auth.mintLogin(), name: 'Ada' }),
    { status: 401 },
    'a login code is not an invitation',
  )
  t.match(await openSession(daemon, {}, bearer('eyJh.eyJp.c2ln')), {
    status: 401,
    body: { message: 'no identity provider is configured' },
  })
  await signIn(daemon)
  t.match(await openSession(daemon, { claim: 'x' }), { status: 409, body: { message: 'already has an owner' } })
})

t.test('wrong codes of every kind lock out no caller', async t => {
  const daemon = await daemonWith(t, ['system'])
  for (let n = 0; n < 30; n++) {
    for (const code of [{ login: 'x' }, { invite: 'x', name: 'Ada' }])
      t.equal((await openSession(daemon, code)).status, 401)
  }
  t.equal((await openSession(daemon, { login: await daemon.auth.mintLogin() })).status, 200)
})

t.test('a session is ended by itself, by id, by person, or with all others', async t => {
  const daemon = await daemonWith(t, ['system'])
  const revoke = async (token: string, input: object) =>
    bare(daemon, 'POST /system/sessions/revoke', { ...bearer(token), body: JSON.stringify(input) })
  const [a, b, c, d] = [await signIn(daemon), await signIn(daemon), await signIn(daemon), await signIn(daemon)]
  t.match(await revoke(a.token, { current: true }), { status: 200, body: { ok: true, revoked: 1 } })
  t.equal((await revoke(a.token, { current: true })).status, 401)
  t.match(await revoke(b.token, { id: c.id }), { body: { revoked: 1 } })
  t.match(await revoke(b.token, { id: c.id }), { body: { revoked: 0 } })
  t.match(await revoke(b.token, { email: 'nobody@sandbox.local' }), { body: { revoked: 0 } })
  t.match(
    await revoke(b.token, { email: 'Owner@Sandbox.local' }),
    { body: { revoked: 3 } },
    'this one, another, and that of the socket',
  )
  t.equal((await revoke(d.token, {})).status, 401)
  const e = await signIn(daemon)
  t.match(await revoke(e.token, {}), { body: { revoked: 1 } })
})

t.test('more than one of the three parameters is refused and ends nothing', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { token, id, email } = await signIn(daemon)
  const bodies = [
    { current: true, id },
    { id, email },
    { current: true, email },
    { current: true, id, email },
    { current: false },
    { id: '' },
  ]
  for (const body of bodies) {
    t.equal(
      (await bare(daemon, 'POST /system/sessions/revoke', { ...bearer(token), body: JSON.stringify(body) })).status,
      400,
      JSON.stringify(body),
    )
  }
  t.equal((await bare(daemon, 'GET /info', bearer(token))).status, 200)
})

t.test('a token is minted with a visible label, listed without its value, and revoked', async t => {
  const daemon = await daemonWith(t, ['system'])
  const heard: unknown[] = []
  daemon.kernel.events.on(
    'token.minted',
    'test',
    async (_, input) => void heard.push((input as { data: unknown }).data),
  )
  const { id, token } = await daemon.client.call('POST /system/control/tokens', {
    label: ' e\u0301di\u200btor \u202e',
    scope: 'read',
  })
  t.match(await bare(daemon, 'GET /info', { 'x-sandbox-control': token }), {
    body: { me: { actor: 'token:\u00e9ditor' } },
  })
  const { tokens } = await daemon.client.call('GET /system/control/tokens')
  t.match(tokens, exactly({ id, label: '\u00e9ditor', scope: 'read', createdBy: 'owner@sandbox.local' }))
  t.notMatch(JSON.stringify(tokens), token.split('.')[1])
  t.strictSame(heard, [{ id, label: '\u00e9ditor', scope: 'read', by: 'owner@sandbox.local' }])
  t.strictSame(await daemon.client.call('DELETE /system/control/tokens/{id}', { id }), { ok: true })
  t.equal((await bare(daemon, 'GET /info', { 'x-sandbox-control': token })).status, 401)
  t.match(await refusalOf(() => daemon.client.call('DELETE /system/control/tokens/{id}', { id })), { status: 404 })
  t.notMatch(daemon.logged.join('\n'), token.split('.')[1])
})

t.test('an invisible label, a missing or wrong scope and an expiry in the past are refused', async t => {
  const daemon = await daemonWith(t, ['system'])
  const bodies = [
    { label: ' \u200b\u2066 ', scope: 'read' },
    { label: '', scope: 'read' },
    { label: 'a\nb', scope: 'read' },
    { label: 'x'.repeat(61), scope: 'read' },
    { label: 'x' },
    { label: 'x', scope: 'owner' },
    { label: 'x', scope: 'read', expiresAt: 1 },
    { label: 'x', scope: 'read', expiresAt: -1 },
    { scope: 'read' },
  ]
  for (const body of bodies) {
    const { status } = await daemon.fetch('/system/control/tokens', { method: 'POST', body: JSON.stringify(body) })
    t.equal(status, 400, JSON.stringify(body))
  }
  t.strictSame(await daemon.client.call('GET /system/control/tokens'), { tokens: [] })
})

t.test('a person who is not the owner ends only their own sessions', async t => {
  const caller: Caller = { kind: 'session', actor: 'ada@b.c', role: 'maintainer', email: 'ada@b.c', sessionId: 's' }
  const asked: unknown[] = []
  const host = {
    serves: async () => false,
    call: async (_: string, input: unknown) => (asked.push(input), { revoked: 1, lasting: 0 }),
  } as unknown as Host
  const revoke = (input: { current?: true; id?: string; email?: string }) =>
    revokeSessions(host, input, { ...CONTEXT, caller })
  for (const others of [{}, { email: 'bob@b.c' }]) t.match(await refusalOf(() => revoke(others)), { status: 403 })
  t.strictSame(asked, [])
  for (const own of [{ current: true as const }, { id: 's' }, { id: 'x' }, { email: 'Ada@b.c' }]) await revoke(own)
  t.strictSame(
    asked,
    [{ id: 's' }, { id: 's' }, { id: 'x', email: 'ada@b.c' }, { email: 'ada@b.c' }],
    'the kernel refuses x when it is not of ada',
  )
})

t.test('only a session of the owner mints tokens', async t => {
  const host = {
    call: () => t.fail('nothing is asked of the kernel'),
    emit: () => t.fail('nothing is told'),
  } as unknown as Host
  for (const caller of [
    { kind: 'session', role: 'maintainer' },
    { kind: 'token', role: 'owner' },
    { kind: 'plugin', role: 'owner' },
  ] as const) {
    const context = { ...CONTEXT, caller: { ...caller, actor: 'x' } }
    t.match(await refusalOf(() => mintToken(host, { label: 'x', scope: 'read' }, context)), { status: 403 })
  }
})

t.test('the 101st active token is refused', async t => {
  const daemon = await daemonWith(t, ['system'])
  await Promise.all(Array.from({ length: 60 }, () => daemon.token('read')))
  for (let n = 0; n < 40; n++) await daemon.token('read')
  t.match(
    await refusalOf(() => daemon.client.call('POST /system/control/tokens', { label: 'one more', scope: 'read' })),
    { status: 429 },
  )
})

t.test('acknowledged changes are on the disk, encrypted, and in force at the next start', async t => {
  const { client, data, workspace, auth } = await daemonWith(t, ['system'])
  const login = await auth.mintLogin()
  const { token } = await client.call('POST /system/session', { login })
  const kept = await client.call('POST /system/control/tokens', { label: 'kept', scope: 'read' })
  const gone = await client.call('POST /system/control/tokens', { label: 'gone', scope: 'read' })
  await client.call('DELETE /system/control/tokens/{id}', { id: gone.id })
  const found = join(data, '..', 'found-after-kill')
  cpSync(data, found, { recursive: true })
  const sealed = ['access', 'tokens'].map(name => readFileSync(join(found, 'files', 'auth', `${name}.json`), 'latin1'))
  t.notMatch(sealed.join(''), /owner@sandbox|kept|sbs_/)
  await t.test('the next start on the same files', async t => {
    const again = await daemonWith(t, ['system'], { workspace, data: found })
    t.match(await bare(again, 'GET /info', bearer(token)), { body: { me: { role: 'owner' } } })
    t.match(await bare(again, 'GET /info', { 'x-sandbox-control': kept.token }), {
      body: { me: { actor: 'token:kept' } },
    })
    t.equal((await bare(again, 'GET /info', { 'x-sandbox-control': gone.token })).status, 401)
    t.equal((await openSession(again, { login })).status, 401)
    t.match(await bare(again, 'GET /system/sign-in'), { body: { claimed: true } })
  })
})

t.test('a name is shown without invisible characters', async t => {
  const cases = [
    ['a', 'a'],
    [' a b ', 'a b'],
    ['\u202eevil', 'evil'],
    ['\u3164', ''],
    ['\u2800\u00ad', ''],
    ['a\u0308', '\u00e4'],
    ['\u{e0041}x', 'x'],
    ['\ud800x', 'x'],
    ['日本', '日本'],
  ]
  for (const [given, shown] of cases) t.equal(plainValue(given!), shown, JSON.stringify(given))
})

t.test('programs are searched at the first question, one row each, and read again in the background', async t => {
  const clock = { now: 0 }
  const row = (over: Partial<Program>): Program => ({
    name: 'git',
    present: false,
    neededBy: ['a'],
    install: 'apt install git',
    ...over,
  })
  const given = [
    [[row({}), row({ name: 'bwrap' })], [row({ present: true, version: '2', neededBy: ['b', 'a'] })]],
    [[row({ name: 'new' })]],
  ]
  const programs = new Programs({ collect: async () => (given.shift() ?? []) as never }, () => clock.now)
  t.strictSame(await programs.known(), [
    row({ name: 'bwrap' }),
    row({ present: true, version: '2', neededBy: ['a', 'b'] }),
  ])
  t.equal(given.length, 1)
  clock.now = 60_000
  t.equal((await programs.known()).length, 2, 'the previous answer is returned at once')
  await programs.look()
  t.match(await programs.known(), exactly({ name: 'new' }))
})

t.test('a failed reading of the programs returns none and does not throw', async t => {
  const programs = new Programs({ collect: () => Promise.reject(new Error('no')) })
  t.strictSame(await programs.known(), [])
})
