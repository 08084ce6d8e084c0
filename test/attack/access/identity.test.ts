import crypto from 'node:crypto'
import { request } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { mock } from 'node:test'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { Role } from '../../../sdk/types.js'
import { newSecret } from '../../../sdk/node/access/secret.js'
import { ask, bearer } from '../../plugins/system/access/sign-in-support.js'
import { daemonWith, root, type Support } from '../../support/daemon.js'
import { startIssuer } from '../../support/servers/issuer.js'
import { talkTo, turnedAway } from '../../support/sockets/client.js'
import { framesOf } from '../../support/turns.js'
import { ROUTED } from '../calls.js'
import { inTime } from '../../support/in-time.js'

const context = {
  caller: { kind: 'session', actor: 'x', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** A person with a role, created by an invitation. */
const somebody = async ({ auth }: Support, role: Exclude<Role, 'owner'>) => {
  const { code } = await auth.handlers['kernel.members.invite']({ role, by: 'x' }, context)
  return (
    await auth.handlers['kernel.session.open'](
      { invite: code, name: role, device: 'test', address: '127.0.0.1' },
      context,
    )
  ).session
}

/** A request with a chosen Host. */
const under = (url: string, host: string, body: object): Promise<{ status?: number | undefined; body: string }> =>
  new Promise((resolve, reject) => {
    const headers = { host, 'content-type': 'application/json' }
    request(`${url}/system/session`, { method: 'POST', headers }, async response =>
      resolve({ status: response.statusCode, body: await text(response) }),
    )
      .on('error', reject)
      .end(JSON.stringify(body))
  })

t.test('a login code or an invitation sent with another Host header is not checked', async t => {
  const daemon = await daemonWith(t, ['system'])
  const login = await daemon.auth.mintLogin()
  const { code } = await daemon.auth.handlers['kernel.members.invite']({ role: 'viewer', by: 'x' }, context)
  for (const host of ['evil.example', '127.0.0.1.evil.example', 'sandbox.local']) {
    for (const body of [{ login }, { invite: code, name: 'x' }])
      t.match(await under(daemon.url, host, body), { status: 403, body: /is not a name of/ }, host)
  }
  t.equal((await ask(daemon.url, 'POST /system/session', { login })).status, 200)
  t.equal((await ask(daemon.url, 'POST /system/session', { invite: code, name: 'x' })).status, 200)
})

t.test('no answer ever sets a cookie, and none is read', async t => {
  const daemon = await daemonWith(t, ['system'])
  const login = await daemon.auth.mintLogin()
  const opened = await ask(daemon.url, 'POST /system/session', { login })
  const { token } = opened.body as { token?: string }
  t.notOk(opened.headers.has('set-cookie'))
  for (const { call } of ROUTED) {
    const body = call.startsWith('GET') ? undefined : {}
    const path = call.replace(/\{\w+\}/g, 'x')
    if (path === 'GET /events' || path === 'POST /system/sessions/revoke') continue
    for (const headers of [
      {},
      bearer(token!),
      { cookie: `session=${token}; token=${token}; authorization=Bearer ${token}` },
    ] as { [name: string]: string }[]) {
      const answer = await ask(daemon.url, path, body, headers)
      t.notOk(answer.headers.has('set-cookie'), call)
      if (headers.cookie && path === 'GET /info') t.equal(answer.status, 401)
    }
  }
})

t.test('a thousand wrong sessions from one address are refused while a valid one keeps working', async t => {
  const daemon = await daemonWith(t, ['system'])
  const statuses: number[] = []
  for (let round = 0; round < 40; round++) {
    const all = await Promise.all(
      Array.from({ length: 25 }, () => ask(daemon.url, 'GET /info', undefined, bearer(newSecret('sbs').text))),
    )
    statuses.push(...all.map(({ status }) => status))
    t.equal((await daemon.fetch('/info')).status, 200)
  }
  t.same(
    [statuses.filter(status => status === 401).length, statuses.filter(status => status === 429).length],
    [30, 970],
  )
})

t.test('a socket and a ticket of a person whose role is lowered end within a second', async t => {
  const daemon = await daemonWith(t, ['echo'], {
    manifests: join(root, '..', 'test', 'support', 'sockets', 'manifests'),
    git: false,
  })
  const { handlers } = daemon.auth
  const bob = await somebody(daemon, 'maintainer')
  const other = await somebody(daemon, 'collaborator')
  const ticket = async () => {
    const caller = daemon.auth.authenticate({ kind: 'bearer', value: bob.token }, '127.0.0.1')
    return (await handlers['kernel.ticket.mint']({ purpose: 'terminal' }, { ...context, caller })).ticket
  }
  const talk = await talkTo(t, `${daemon.url}/echo/kitchen`, { headers: bearer(bob.token) })
  const left = await talkTo(t, `${daemon.url}/echo/kitchen`, { headers: bearer(other.token) })
  const before = await ticket()
  const from = performance.now()
  await handlers['kernel.members.grant']({ email: bob.email, role: 'viewer', by: 'x' }, context)
  t.match(await talk.closed, { code: 1008, reason: /were reduced/ })
  t.ok(inTime(from, 1000))
  left.say({ type: 'say', text: 'still here' })
  await left.until(({ text }) => text === 'still here')
  t.match(await turnedAway(t, `${daemon.url}/echo/by-ticket?session=x&ticket=${before}`), { status: 401 })
  t.match(
    await turnedAway(t, `${daemon.url}/echo/by-ticket?session=x&ticket=${await ticket()}`),
    { status: 403 },
    'a new one is refused',
  )
  t.match(await turnedAway(t, `${daemon.url}/echo/kitchen`, { headers: bearer(bob.token) }), { status: 403 })
  await handlers['kernel.members.remove']({ email: other.email }, context)
  t.match(await left.closed, { code: 1008 })
})

t.test('a stream of frames ends when its reader is removed, and the turn they started continues', async t => {
  const daemon = await daemonWith(t, [])
  const bob = await somebody(daemon, 'maintainer')
  const asBob = (call: string, body: object) => ask(daemon.url, call, body, bearer(bob.token))
  t.equal((await asBob('POST /agent', { conversationId: 'c', prompt: 'ask Which?\n| a\nsay $answer' })).status, 200)
  const { requestId } = await framesOf(daemon.client, 'c').until(frame => frame.kind === 'question')
  const response = await fetch(`${daemon.url}/agent/attach`, {
    method: 'POST',
    body: JSON.stringify({ conversationId: 'c' }),
    headers: { ...bearer(bob.token), 'content-type': 'application/json' },
  })
  const reader = response.body!.getReader()
  await reader.read()
  const from = performance.now()
  await daemon.client.call('DELETE /members', { email: bob.email })
  await (async () => {
    while (!(await reader.read()).done) continue
  })().catch(() => {})
  t.ok(inTime(from, 1000))
  t.equal((await asBob('POST /agent/reply', { kind: 'question', requestId, answers: { 'Which?': 'a' } })).status, 401)
  await daemon.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Which?': 'a' } })
  t.match((await framesOf(daemon.client, 'c').all()).at(-1)?.event, { kind: 'done', reason: 'completed' })
})

/** The number of hashes and comparisons of some work. */
const counted = async (work: () => unknown): Promise<{ hashes: number; compared: number }> => {
  const [hash, equal] = [mock.method(crypto, 'hash'), mock.method(crypto, 'timingSafeEqual')]
  syncBuiltinESMExports()
  try {
    await Promise.resolve()
      .then(work)
      .catch(() => {})
    return { hashes: hash.mock.callCount(), compared: equal.mock.callCount() }
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
  }
}

/** The same id with another secret. */
const wrongSecret = (known: string): string => `${known.split('.')[0]}.${newSecret('sbs').text.split('.')[1]}`

t.test('an unknown id and a known one with a wrong secret cost the same work, also for codes', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { auth } = daemon
  const { token: control } = await daemon.token('read')
  const { token: session } = await somebody(daemon, 'viewer')
  const work = (kind: 'bearer' | 'token', value: string) =>
    counted(() => auth.authenticate({ kind, value }, '127.0.0.1'))
  for (const [kind, good, unknown] of [
    ['bearer', session, newSecret('sbs').text],
    ['token', control, newSecret('sbc').text],
  ] as const) {
    const first = await work(kind, unknown)
    t.match(first, { hashes: 1, compared: 1 }, `${kind} of nobody`)
    t.same(await work(kind, wrongSecret(good)), first, `${kind} with a wrong secret`)
    t.same(await work(kind, good), first, `${kind} that is right`)
  }
  const redeem = (login: string) =>
    counted(() => auth.handlers['kernel.session.open']({ login, device: 'x', address: '127.0.0.1' }, context))
  const codes = [await auth.mintLogin(), await auth.mintLogin(), await auth.mintLogin()]
  const none = await redeem('x'.repeat(43))
  t.match(none, { compared: 3 })
  t.equal((await redeem(codes[1]!)).compared, none.compared, 'in both cases')
})

t.test('claims of a token beside the identity grant nothing', async (t: Test) => {
  const issuer = await startIssuer(t)
  const daemon = await daemonWith(t, ['system'], {
    deployment: { identity: { providers: [issuer.provider], claim: 'code' } },
  })
  const {
    body: { nonce },
  } = await ask(daemon.url, 'GET /system/sign-in')
  const claims = {
    email: 'eve@example.org',
    role: 'owner',
    roles: ['owner'],
    groups: ['owner'],
    admin: true,
    areas: [],
    scope: 'land',
    __proto__: { role: 'owner' },
    nonce,
  }
  const token = await issuer.token(claims)
  t.equal((await ask(daemon.url, 'POST /system/session', { claim: '' }, bearer(token))).status, 400)
  t.equal((await ask(daemon.url, 'POST /system/session', { role: 'owner' }, bearer(token))).status, 409)
  await ask(daemon.url, 'POST /system/session', { login: await daemon.auth.mintLogin() })
  t.equal(
    (await ask(daemon.url, 'POST /system/session', { role: 'owner', invite: undefined }, bearer(token))).status,
    403,
  )
  await daemon.client.call('POST /members', { email: 'eve@example.org', role: 'viewer' })
  t.match(await ask(daemon.url, 'POST /system/session', { role: 'owner' }, bearer(token)), {
    status: 200,
    body: { role: 'viewer' },
  })
})
