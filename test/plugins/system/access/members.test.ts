import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AccessSession, Member, OpenedSession, MemberList } from '../../../../sdk/kernel.js'
import type { Role } from '../../../../sdk/types.js'
import { daemonWith, type Support } from '../../../support/daemon.js'
import { startIssuer, type Issuer } from '../../../support/servers/issuer.js'
import { exactly } from '../../../support/lists.js'
import { openEvents } from '../stream/events-support.js'
import { ask as askAt, bearer, nonceOf, present, signInAs, type Answer } from './sign-in-support.js'
import { inTime } from '../../../support/in-time.js'

const ADA = 'ada@example.org'
const BOB = 'bob@example.org'
const EVE = 'eve@example.org'
const DAY = 24 * 60 * 60_000

interface World {
  readonly issuer: Issuer
  readonly daemon: Support
  /** The owner's session. */
  readonly ada: OpenedSession
  ask(who: { token: string } | undefined, call: string, body?: object): Promise<Answer>
  /** Grants a role and signs the person in. */
  member(email: string, role: Role): Promise<OpenedSession>
}

/** A sandbox that Ada owns, with a provider for every person. */
const world = async (t: Test, groups: readonly string[] = ['system']): Promise<World> => {
  const issuer = await startIssuer(t)
  const daemon = await daemonWith(t, groups, { deployment: { identity: { providers: [issuer.provider] } } })
  const { body: ada } = await signInAs(daemon, issuer, ADA)
  const ask: World['ask'] = (who, call, body) => askAt(daemon.url, call, body, who ? bearer(who.token) : {})
  return {
    issuer,
    daemon,
    ada,
    ask,
    member: async (email, role) => {
      await ask(ada, 'POST /members', { email, role })
      return (await signInAs(daemon, issuer, email)).body
    },
  }
}

const listOf = ({ body }: Answer): MemberList => body as unknown as MemberList

t.test('maintainers read the roster, the owner changes it, and no token reaches it', async t => {
  const { daemon, ask, member } = await world(t)
  const [viewer, maintainer] = [await member(BOB, 'viewer'), await member(EVE, 'maintainer')]
  for (const call of [
    'GET /members',
    'POST /members',
    'DELETE /members',
    'DELETE /members/self',
    'GET /system/sessions',
  ]) {
    const body = call.startsWith('GET') ? undefined : call.startsWith('POST') ? { role: 'viewer' } : {}
    t.equal((await ask(undefined, call, body)).status, 401, call)
    for (const scope of ['editor', 'read', 'drive', 'land'] as const) {
      const { token } = await daemon.token(scope)
      t.match(
        await askAt(daemon.url, call, body, { 'x-sandbox-control': token }),
        { status: 403, body: { message: `found scope ${scope}` } },
        `${scope} ${call}`,
      )
    }
  }
  t.match(await ask(viewer, 'GET /members'), { status: 403, body: { message: 'maintainer' } })
  t.equal((await ask(maintainer, 'GET /members')).status, 200)
  for (const who of [viewer, maintainer]) {
    t.match(await ask(who, 'POST /members', { email: 'x@y.z', role: 'viewer' }), {
      status: 403,
      body: { message: 'owner' },
    })
    t.match(await ask(who, 'DELETE /members', { email: ADA }), { status: 403 })
    t.match(await ask(who, 'DELETE /members', { invitation: 'x' }), { status: 403 })
  }
})

t.test('an invalid grant is refused and changes nothing', async t => {
  const { ask, ada } = await world(t)
  const cases: [body: object, status: number][] = [
    [{}, 400],
    [{ email: BOB }, 400],
    [{ email: BOB, role: 'king' }, 400],
    [{ email: '', role: 'viewer' }, 400],
    [{ email: 'bob', role: 'viewer' }, 400],
    [{ email: 'a b@c.d', role: 'viewer' }, 400],
    [{ email: 'token:x@y', role: 'viewer' }, 400],
    [{ email: '"x"@y.z', role: 'viewer' }, 400],
    [{ email: `${'x'.repeat(250)}@y.z`, role: 'viewer' }, 400],
    [{ email: 'b\u00f6b@c.d', role: 'viewer' }, 400],
    [{ email: BOB, role: 'viewer', areas: [''] }, 400],
    [{ email: BOB, role: 'viewer', areas: Array.from({ length: 51 }, (_, n) => `a${n}`) }, 400],
    [{ email: BOB, role: 'viewer', areas: ['no-such'] }, 404],
    [{ role: 'viewer', expiresAt: 1 }, 400],
    [{ role: 'viewer', expiresAt: Date.now() + 31 * DAY }, 400],
    [{ email: BOB, role: 'viewer', expiresAt: Date.now() + DAY }, 400],
    [{ role: 'owner' }, 422],
    [{ email: ADA, role: 'owner' }, 422],
    [{ email: ADA, role: 'viewer' }, 422],
    [{ email: BOB, role: 'owner' }, 409],
    [{ email: 'carl@sandbox.local', role: 'viewer' }, 422],
    [{ role: 'viewer', note: 'x'.repeat(201) }, 400],
  ]
  for (const [body, status] of cases)
    t.equal((await ask(ada, 'POST /members', body)).status, status, JSON.stringify(body).slice(0, 80))
  t.match(listOf(await ask(ada, 'GET /members')), { members: exactly({ email: ADA }), invitations: { length: 0 } })
  t.equal(listOf(await ask(ada, 'GET /members')).members.length, 1)
})

t.test('a person with a granted role signs in, and the first sign-in fixes their account', async t => {
  const { issuer, daemon, ada, ask } = await world(t)
  const granted = listOf(await ask(ada, 'POST /members', { email: 'Bob@Example.ORG', role: 'collaborator' }))
  t.match(
    granted.members,
    exactly(
      { email: ADA, role: 'owner', bound: true },
      { email: BOB, role: 'collaborator', bound: false, grantedBy: ADA },
    ),
  )
  t.match(await signInAs(daemon, issuer, BOB), { status: 200, body: { email: BOB, role: 'collaborator' } })
  t.match(listOf(await ask(ada, 'GET /members')).members[1], { bound: true, lastSeenAt: Number })
  const other = async () =>
    present(daemon.url, await issuer.token({ email: BOB, sub: 'another-bob', nonce: await nonceOf(daemon.url) }))
  t.match(await other(), { status: 403, body: { message: /bound to another account/ } })
  const {
    body: { token: before },
  } = await signInAs(daemon, issuer, BOB)
  await ask(ada, 'POST /members', { email: BOB, role: 'viewer' })
  t.match(await other(), { status: 200, body: { email: BOB, role: 'viewer' } }, 'granted anew')
  t.equal((await ask({ token: before }, 'GET /info')).status, 401, 'the previous account of Bob is refused')
  t.match(await signInAs(daemon, issuer, BOB), { status: 403 }, 'it stays refused')
})

t.test('a lowered role closes streams within a second and applies to the next call', async t => {
  const { daemon, ada, ask, member } = await world(t)
  const bob = await member(BOB, 'maintainer')
  const opened = await openEvents(t, { url: daemon.url, session: bob.token })
  await opened.until('hello')
  const from = performance.now()
  await ask(ada, 'POST /members', { email: BOB, role: 'collaborator' })
  t.match(await opened.until('resync'), { reason: 'access' })
  t.equal(await opened.end(), undefined, 'the connection ends without an end event')
  t.ok(inTime(from, 1000))
  t.match(await ask(bob, 'GET /members'), { status: 403, body: { message: 'found role collaborator' } })
  const again = await openEvents(t, { url: daemon.url, session: bob.token }, '', { 'last-event-id': opened.last })
  t.match(await again.until('hello'), { resumed: false, me: { role: 'collaborator' } })
  await ask(ada, 'POST /members', { email: BOB, role: 'maintainer' })
  t.equal((await ask(bob, 'GET /members')).status, 200, 'a higher role applies at once')
  t.equal(
    await Promise.race([
      again.until('resync').then(() => 'closed'),
      again.until('runtimeChanged', ({ domains }) => domains.includes('members')).then(() => 'open'),
    ]),
    'open',
  )
})

t.test('a removed person loses all streams and every right', async t => {
  const { issuer, daemon, ada, ask, member } = await world(t)
  const [bob, again] = [await member(BOB, 'collaborator'), (await signInAs(daemon, issuer, BOB)).body]
  const opened = await openEvents(t, { url: daemon.url, session: bob.token })
  await opened.until('hello')
  const heard: unknown[] = []
  for (const event of ['member.changed', 'member.removed'])
    daemon.kernel.events.on(
      event,
      'test',
      async (_, input) => void heard.push([event, (input as { data: unknown }).data]),
    )
  t.match(
    listOf(await ask(ada, 'DELETE /members', { email: BOB })).members.map(({ email }) => email),
    exactly(ADA),
  )
  t.match(await opened.end(), { event: 'error', data: { status: 401 } })
  for (const { token } of [bob, again]) t.equal((await ask({ token }, 'GET /info')).status, 401)
  t.equal((await signInAs(daemon, issuer, BOB)).status, 403)
  t.equal((await ask(ada, 'DELETE /members', { email: BOB })).status, 404)
  await ask(ada, 'POST /members', { email: BOB, role: 'viewer' })
  t.match(await signInAs(daemon, issuer, BOB), { status: 200, body: { role: 'viewer' } })
  t.same(heard, [
    ['member.removed', { email: BOB }],
    ['member.changed', { email: BOB }],
  ])
})

t.test('a person can leave, the owner cannot', async t => {
  const { ada, ask, member } = await world(t)
  const [bob, eve] = [await member(BOB, 'viewer'), await member(EVE, 'viewer')]
  for (const body of [{}, { email: BOB, invitation: 'x' }, { email: '' }])
    t.equal((await ask(ada, 'DELETE /members', body)).status, 400)
  t.match(await ask(bob, 'DELETE /members', { email: 'Bob@example.org' }), {
    status: 200,
    body: { members: { length: 0 }, invitations: { length: 0 } },
  })
  t.match(await ask(eve, 'DELETE /members/self', {}), {
    status: 200,
    body: { members: { length: 0 }, invitations: { length: 0 } },
  })
  t.equal((await ask(eve, 'GET /info')).status, 401)
  const mia = await member('mia@example.org', 'maintainer')
  t.not(listOf(await ask(mia, 'GET /members')).members.length, 0)
  t.match(
    await ask(mia, 'DELETE /members/self', {}),
    { status: 200, body: { members: { length: 0 }, invitations: { length: 0 } } },
    'a member who left reads no roster',
  )
  for (const [call, body] of [
    ['DELETE /members/self', {}],
    ['DELETE /members', { email: ADA }],
  ] as const) {
    t.match(await ask(ada, call, body), { status: 409, body: { message: /hand ownership over/ } })
  }
})

t.test('ownership is transferred to a person who has signed in, and tokens are kept', async t => {
  const { daemon, ada, ask, member } = await world(t)
  const { id } = (await ask(ada, 'POST /system/control/tokens', { label: 'ci', scope: 'read' })).body as { id?: string }
  await ask(ada, 'POST /members', { email: EVE, role: 'viewer' })
  t.match(await ask(ada, 'POST /members', { email: EVE, role: 'owner' }), {
    status: 409,
    body: { message: /never signed in/ },
  })
  const bob = await member(BOB, 'viewer')
  t.match(
    listOf(await ask(ada, 'POST /members', { email: BOB, role: 'owner' })).members,
    exactly({ email: BOB, role: 'owner' }, { email: ADA, role: 'maintainer' }, { email: EVE }),
  )
  t.match(await ask(ada, 'POST /members', { email: ADA, role: 'owner' }), { status: 403 })
  t.match((await ask(bob, 'GET /system/control/tokens')).body, { tokens: exactly({ id, createdBy: ADA }) })
  t.equal((await ask(bob, `DELETE /system/control/tokens/${id}`, {})).status, 200)
  const login = await daemon.auth.mintLogin()
  t.match(
    await askAt(daemon.url, 'POST /system/session', { login }),
    { body: { email: BOB, role: 'owner' } },
    'the user of the machine acts as the owner',
  )
})

t.test('an invitation admits the first person who presents it, with its role, once', async t => {
  const { issuer, daemon, ada, ask } = await world(t)
  const made = (await ask(ada, 'POST /members', { role: 'collaborator', note: ' for\u202e Bob ' }))
    .body as unknown as MemberList & { invitation: { code: string; url: string; expiresAt: number; id: string } }
  t.match(made.invitations, exactly({ id: made.invitation.id, role: 'collaborator', note: 'for Bob', createdBy: ADA }))
  t.equal(Buffer.from(made.invitation.code, 'base64url').length, 32)
  t.equal(made.invitation.url, `${daemon.url}/#invite=${made.invitation.code}`)
  t.ok(Math.abs(made.invitation.expiresAt - Date.now() - 7 * DAY) < 60_000)
  t.notMatch(JSON.stringify(listOf(await ask(ada, 'GET /members'))), made.invitation.code)
  t.match(await askAt(daemon.url, 'POST /system/session', { invite: made.invitation.code, name: 'Bob' }), {
    status: 401,
    body: { message: /sign in with Ours/ },
  })
  const tries = await Promise.all(
    Array.from({ length: 5 }, (_, n) =>
      signInAs(daemon, issuer, `p${n}@example.org`, { invite: made.invitation.code }),
    ),
  )
  t.same(tries.map(({ status }) => status).sort(), [200, 401, 401, 401, 401])
  t.match(tries.find(({ status }) => status === 200)!.body, { role: 'collaborator' })
  const roster = listOf(await ask(ada, 'GET /members'))
  t.same([roster.members.length, roster.invitations], [2, []])
})

t.test('a withdrawn or expired invitation is an invalid code', async t => {
  const { issuer, daemon, ada, ask } = await world(t)
  const { invitation } = (await ask(ada, 'POST /members', { role: 'viewer' })).body as unknown as {
    invitation: { id: string; code: string }
  }
  t.same(listOf(await ask(ada, 'DELETE /members', { invitation: invitation.id })).invitations, [])
  t.equal((await ask(ada, 'DELETE /members', { invitation: invitation.id })).status, 404)
  const gone = await signInAs(daemon, issuer, BOB, { invite: invitation.code })
  const never = await signInAs(daemon, issuer, BOB, { invite: 'x'.repeat(43) })
  t.same([gone.status, gone.body], [never.status, never.body])
  const { invitation: short } = (await ask(ada, 'POST /members', { role: 'viewer', expiresAt: Date.now() + 50 }))
    .body as unknown as { invitation: { code: string; expiresAt: number } }
  while (Date.now() <= short.expiresAt) await new Promise(setImmediate)
  t.same((await signInAs(daemon, issuer, BOB, { invite: short.code })).body, never.body)
})

t.test('an invitation never lowers a role, and the owner needs none', async t => {
  const { issuer, daemon, ada, ask, member } = await world(t)
  await member(BOB, 'maintainer')
  const invite = async () =>
    ((await ask(ada, 'POST /members', { role: 'viewer' })).body as unknown as { invitation: { code: string } })
      .invitation.code
  t.match(await signInAs(daemon, issuer, BOB, { invite: await invite() }), {
    status: 200,
    body: { role: 'maintainer' },
  })
  const kept = await invite()
  t.match(await signInAs(daemon, issuer, ADA, { invite: kept }), {
    status: 409,
    body: { message: /needs no invitation/ },
  })
  t.match(
    await signInAs(daemon, issuer, EVE, { invite: kept }),
    { status: 200, body: { role: 'viewer' } },
    'the invitation is still valid',
  )
})

t.test('at most 50 invitations are open', async t => {
  const { ada, ask } = await world(t)
  const made = await Promise.all(Array.from({ length: 51 }, () => ask(ada, 'POST /members', { role: 'viewer' })))
  t.same(
    made
      .map(({ status }) => status)
      .sort()
      .slice(-2),
    [200, 429],
  )
})

t.test('without a provider an invitation and a name create a person, whom no other can impersonate', async t => {
  const daemon = await daemonWith(t, ['system'])
  const open = (body: object) => askAt(daemon.url, 'POST /system/session', body)
  const { body: owner } = await open({ login: await daemon.auth.mintLogin() })
  const invite = async () => (await daemon.client.call('POST /members', { role: 'collaborator' })).invitation!.code
  const code = await invite()
  t.match(await open({ invite: code }), { status: 400, body: { errors: exactly({ path: 'name' }) } })
  t.match(await open({ invite: code, name: ' \u200b ' }), { status: 400 })
  const all = await Promise.all(Array.from({ length: 5 }, () => open({ invite: code, name: 'B\u00f6b T. Builder' })))
  t.same(all.map(({ status }) => status).sort(), [200, 401, 401, 401, 401])
  const bob = all.find(({ status }) => status === 200)!.body as unknown as OpenedSession
  t.match(bob, {
    role: 'collaborator',
    name: 'B\u00f6b T. Builder',
    email: /^bo-b-t-builder-[0-9a-f]{8}@sandbox\.local$/,
  })
  const other = await open({ invite: await invite(), name: 'B\u00f6b T. Builder' })
  t.not(other.body.email, bob.email)
  t.match((await askAt(daemon.url, 'GET /system/sessions', undefined, bearer(bob.token))).body, {
    sessions: exactly({ email: bob.email, via: 'invitation', current: true }),
  })
  await daemon.client.call('POST /members', { email: bob.email, role: 'maintainer' })
  t.match((await askAt(daemon.url, 'GET /members', undefined, bearer(bob.token))).status, 200)
  t.match((await askAt(daemon.url, 'POST /system/session', {}, bearer(bob.token))).body, {
    renewed: true,
    role: 'maintainer',
    email: bob.email,
  })
  t.match(owner, { role: 'owner' })
})

t.test('an invitation is refused over an unencrypted network', async t => {
  const daemon = await daemonWith(t, ['system'], { deployment: { http: { trustedProxies: ['127.0.0.1'] } } })
  const { code } = (await daemon.client.call('POST /members', { role: 'viewer' })).invitation!
  const open = (headers: { [name: string]: string }) =>
    askAt(daemon.url, 'POST /system/session', { invite: code, name: 'Bob' }, headers)
  t.match(await open({ 'x-forwarded-for': '203.0.113.9' }), { status: 403, body: { message: /plain HTTP/ } })
  t.equal((await open({ 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' })).status, 200)
})

t.test('a grant accepts only existing areas, and a maintainer needs none', async t => {
  const { daemon, ada, ask } = await world(t, ['system', 'areas'])
  mkdirSync(join(daemon.workspace, 'docs'))
  const id = 'docs'
  t.equal((await ask(ada, 'POST /areas', { id, label: 'Docs', folders: ['docs'] })).status, 200)
  t.match(await ask(ada, 'POST /members', { email: BOB, role: 'viewer', areas: [id, 'nope'] }), {
    status: 404,
    body: { message: /"nope"/ },
  })
  t.match(listOf(await ask(ada, 'POST /members', { email: BOB, role: 'viewer', areas: [id] })).members[1], {
    email: BOB,
    areas: exactly(id),
  })
  t.notOk(
    'areas' in listOf(await ask(ada, 'POST /members', { email: BOB, role: 'maintainer', areas: ['nope'] })).members[1]!,
  )
})

t.test('a person sees their own sessions, the owner all', async t => {
  const { daemon, issuer, ada, ask, member } = await world(t)
  const bob = await member(BOB, 'maintainer')
  await signInAs(daemon, issuer, BOB, { device: ' my\u202e laptop ' })
  const own = (await ask(bob, 'GET /system/sessions')).body as unknown as { sessions: AccessSession[] }
  t.match(
    own.sessions.map(({ email, device, via, role, current }) => ({ email, device, via, role, current })),
    exactly(
      { email: BOB, device: 'node', via: 'oidc', role: 'maintainer', current: true },
      { email: BOB, device: 'my laptop', current: false },
    ),
  )
  t.equal(own.sessions.length, 2)
  t.ok(own.sessions.every(({ address }) => address === '127.0.0.1'))
  const all = (await ask(ada, 'GET /system/sessions')).body as unknown as { sessions: AccessSession[] }
  t.same([...new Set(all.sessions.map(({ email }) => email))].sort(), [ADA, BOB])
  t.equal(all.sessions.filter(({ current }) => current).length, 1)
  t.notMatch(JSON.stringify(all), /hash|sbs_/)
  t.match(await ask(bob, 'POST /system/sessions/revoke', { id: all.sessions.find(({ email }) => email === ADA)!.id }), {
    status: 403,
  })
  t.match(await ask(bob, 'POST /system/sessions/revoke', { email: ADA }), { status: 403 })
  t.match(await ask(ada, 'POST /system/sessions/revoke', { email: BOB }), { body: { revoked: 2 } })
  t.equal((await ask(bob, 'GET /info')).status, 401)
  t.match(await signInAs(daemon, issuer, BOB), { status: 200 }, 'the role is kept without a session')
})

t.test('other groups read the roster and set areas, and reduced access closes streams', async t => {
  const { daemon, ada, ask, member } = await world(t)
  const bob = await member(BOB, 'collaborator')
  const inner = (call: string, input: object) =>
    daemon.kernel.calls.answer(call, input, {
      caller: { kind: 'plugin', actor: 'sandbox:areas', role: 'owner' },
      signal: new AbortController().signal,
      trusted: true,
    })
  t.match(await inner('members.get', { email: 'BOB@example.org' }), { member: { email: BOB, role: 'collaborator' } })
  t.same(await inner('members.get', { email: EVE }), {})
  t.equal(((await inner('members.list', {})) as MemberList).members.length, 2)
  const opened = await openEvents(t, { url: daemon.url, session: bob.token })
  await opened.until('hello')
  await inner('members.setAreas', { people: [{ email: BOB, areas: ['docs', 'docs', 'web'] }] })
  t.match(await opened.until('resync'), { reason: 'access' })
  t.match((await ask(bob, 'GET /info')).body.me, { areas: exactly('docs', 'web') })
  t.match(listOf(await ask(ada, 'GET /members')).members[1], { areas: exactly('docs', 'web') } as Partial<Member>)
  const again = await openEvents(t, { url: daemon.url, session: bob.token })
  await again.until('hello')
  await inner('members.setAreas', { people: [{ email: BOB }] })
  t.notOk('areas' in ((await ask(bob, 'GET /info')).body.me as object), 'the whole workspace')
  await inner('members.setAreas', { people: [{ email: BOB, areas: [] }] })
  t.match(await again.until('resync'), { reason: 'access' }, 'removing a limit closed no stream')
  t.match((await ask(bob, 'GET /info')).body.me, { areas: { length: 0 } })
  await ask(ada, 'POST /members', { email: BOB, role: 'maintainer' })
  t.notOk('areas' in ((await ask(bob, 'GET /info')).body.me as object), 'a maintainer has no limit')
})

t.test('changes of access are recorded for maintainers, with the actor, and without codes or tokens', async t => {
  const { daemon, issuer, ada, ask, member } = await world(t, ['system', 'activity'])
  const bob = await member(BOB, 'maintainer')
  const { invitation } = (await ask(ada, 'POST /members', { role: 'viewer', note: 'for Eve' })).body as unknown as {
    invitation: { id: string; code: string }
  }
  const { body: eve } = await signInAs(daemon, issuer, EVE, { invite: invitation.code })
  const { invitation: other } = (await ask(ada, 'POST /members', { role: 'viewer' })).body as unknown as {
    invitation: { id: string }
  }
  await ask(ada, 'DELETE /members', { invitation: other.id })
  const { id, token } = (await ask(ada, 'POST /system/control/tokens', { label: 'ci', scope: 'read' })).body as {
    id?: string
    token?: string
  }
  await ask(ada, `DELETE /system/control/tokens/${id}`, {})
  await ask(ada, 'POST /system/sessions/revoke', { email: EVE })
  await ask(ada, 'DELETE /members', { email: EVE })
  await ask(ada, 'POST /members', { email: BOB, role: 'owner' })
  const { events } = (await ask(bob, 'GET /activity')).body as unknown as {
    events: { type: string; actor: string; audience: string; extra?: object }[]
  }
  t.same(
    events.reverse().map(({ type, actor }) => `${type} ${actor}`),
    [
      `owner.claimed ${ADA}`,
      `session.opened ${ADA}`,
      `member.granted ${ADA}`,
      `member.joined ${BOB}`,
      `session.opened ${BOB}`,
      `invitation.made ${ADA}`,
      `member.joined ${EVE}`,
      `session.opened ${EVE}`,
      `invitation.made ${ADA}`,
      `invitation.withdrawn ${ADA}`,
      `token.minted ${ADA}`,
      `token.revoked ${ADA}`,
      `session.revoked ${ADA}`,
      `member.removed ${ADA}`,
      `owner.transferred ${ADA}`,
    ],
  )
  t.ok(events.every(({ audience }) => audience === 'maintainer'))
  const said = JSON.stringify(events)
  for (const secret of [invitation.code, token!.split('.')[1]!, bob.token.split('.')[1]!, eve.token.split('.')[1]!])
    t.notMatch(said, secret)
})
