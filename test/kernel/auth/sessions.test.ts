import t from 'tap'
import type { OpenedSession } from '../../../sdk/kernel.js'
import { contextOf, DAY, MemoryFiles, MINUTE, mockedTime, refusalOf, started, type Started } from './memory.js'

const who = ({ auth }: Started, token: string, address = '10.0.0.1') =>
  auth.authenticate({ kind: 'bearer', value: token }, address)
const statusOf = async (held: Started, token: string) => (await refusalOf(() => who(held, token))).status
const renew = async ({ auth }: Started, token: string): Promise<OpenedSession> =>
  auth.handlers['kernel.session.renew']({ token, address: '10.0.0.1' }, contextOf())
const revoke = async ({ auth }: Started, input: { id?: string; email?: string }) =>
  (await auth.handlers['kernel.session.revoke'](input, contextOf())).revoked

t.test('a session acts as the owner, only by its bearer', async t => {
  const held = await started()
  const { token, id, email, role, renewed } = await held.signIn()
  t.strictSame({ email, role, renewed }, { email: 'owner@sandbox.local', role: 'owner', renewed: false })
  t.strictSame(who(held, token), { kind: 'session', actor: email, role: 'owner', sessionId: id, email })
  t.match(await refusalOf(() => held.auth.authenticate({ kind: 'token', value: token }, 'a')), { status: 401 })
})

t.test('everything except an active session is 401', async t => {
  const held = await started()
  const { token, id } = await held.signIn()
  const wrong = [
    `${token.slice(0, -1)}${token.endsWith('A') ? 'E' : 'A'}`,
    `sbs_${'A'.repeat(22)}.${token.split('.')[1]}`,
    token.replace('sbs', 'sbc'),
    id,
    '',
    'x',
  ]
  for (const one of wrong) t.equal(await statusOf(held, one), 401, one.slice(0, 8))
})

t.test('the refusal of an identity token says where to exchange it', async t => {
  const held = await started()
  t.match(await refusalOf(() => who(held, 'eyJh.eyJp.c2ln')), {
    status: 401,
    message: 'exchange it at POST /system/session',
  })
})

t.test('a session is valid for 30 days from its last renewal', async t => {
  const held = await started()
  const { token, expiresAt } = await held.signIn()
  t.equal(expiresAt, held.clock.now + 30 * DAY)
  held.clock.now = expiresAt - 1
  t.ok(who(held, token))
  held.clock.now = expiresAt
  t.equal(await statusOf(held, token), 401)
  t.match(await refusalOf(() => renew(held, token)), { status: 401 })
})

t.test('a renewal keeps the id and changes the secret; the old one works for 10 minutes', async t => {
  const held = await started()
  const first = await held.signIn()
  held.clock.now += DAY
  const second = await renew(held, first.token)
  t.strictSame([second.id, second.renewed, second.expiresAt], [first.id, true, held.clock.now + 30 * DAY])
  t.not(second.token, first.token)
  held.clock.now += 10 * MINUTE - 1
  t.ok(who(held, first.token))
  held.clock.now += 1
  t.equal(await statusOf(held, first.token), 401)
  t.ok(who(held, second.token))
})

t.test('a session ends 180 days after the sign-in, despite renewals', async t => {
  const held = await started()
  const { token, expiresAt } = await held.signIn()
  const proof = expiresAt - 30 * DAY
  let current = token
  for (let day = 0; day < 175; day += 25) {
    held.clock.now = proof + day * DAY
    current = (await renew(held, current)).token
  }
  held.clock.now = proof + 170 * DAY
  t.equal((await renew(held, current)).expiresAt, proof + 180 * DAY)
})

t.test('sessions, renewals and ends survive a restart', async t => {
  const held = await started()
  const [kept, gone] = [await held.signIn(), await held.signIn()]
  const renewed = await renew(held, kept.token)
  await revoke(held, { id: gone.id })
  const again = await started({ files: held.files, clock: held.clock })
  t.ok(who(again, renewed.token))
  t.ok(who(again, kept.token), 'also the secret from before the renewal')
  t.equal(await statusOf(again, gone.token), 401)
})

t.test('nothing stored on the disk can sign in', async t => {
  const held = await started()
  const { token } = await held.signIn()
  const kept = [...held.files.texts.values()].join('\n')
  t.notMatch(kept, token.split('.')[1])
})

t.test('revoking ends sessions by id, by person or all, announces each, and can be repeated', async t => {
  const held = await started()
  const [a, b, c] = [await held.signIn(), await held.signIn(), await held.signIn()]
  t.equal(await revoke(held, { id: a.id }), 1)
  t.equal(await revoke(held, { id: a.id }), 0)
  t.equal(await revoke(held, { email: 'nobody@sandbox.local' }), 0)
  t.equal(await revoke(held, { email: b.email }), 2)
  t.equal(await revoke(held, {}), 0)
  t.strictSame(
    held.ended,
    [a, b, c].map(({ id }) => ({ sessionId: id })),
  )
  t.equal(await statusOf(held, c.token), 401)
})

t.test("one person cannot end another person's session", async t => {
  const held = await started()
  const { id, token } = await held.signIn()
  t.match(await refusalOf(() => revoke(held, { id, email: 'guest@b.c' })), { status: 403 })
  t.ok(who(held, token))
  t.equal(await revoke(held, { id: 'constructor', email: 'guest@b.c' }), 0)
})

t.test('a renewal that cannot be stored is refused and the session is unchanged', async t => {
  const held = await started()
  const { token } = await held.signIn()
  held.files.full.add('access')
  await t.rejects(renew(held, token), /ENOSPC/)
  await t.rejects(revoke(held, {}), /ENOSPC/)
  t.ok(who(held, token))
  t.strictSame(held.ended, [])
  held.files.full.clear()
  t.equal(await revoke(held, {}), 1)
})

t.test('a renewal during the end of its session does not restore it', async t => {
  const held = await started()
  const { token, id } = await held.signIn()
  const [ended, renewed] = await Promise.allSettled([revoke(held, { id }), renew(held, token)])
  t.match(ended, { status: 'fulfilled', value: 1 })
  t.match(renewed, { status: 'rejected', reason: { status: 401 } })
  t.equal(await statusOf(held, token), 401)
})

t.test('a session of the login socket acts as the owner, claims no sandbox and ends with the daemon', async t => {
  const held = await started()
  const { token, expiresAt, email } = held.auth.openLocal('cli')
  t.equal(expiresAt, held.clock.now + 12 * 60 * MINUTE)
  t.match(who(held, token), { kind: 'session', role: 'owner', email: 'owner@sandbox.local' })
  t.match(await held.auth.handlers['kernel.identity.state'](undefined, contextOf()), { claimed: false })
  t.strictSame(held.files.writes, [])
  t.equal(await statusOf(await started({ files: held.files, clock: held.clock }), token), 401)
  t.equal(await revoke(held, { email }), 1)
  t.equal(await statusOf(held, token), 401)
})

t.test('a renewed session of the login socket is still not stored', async t => {
  const held = await started()
  const { token } = held.auth.openLocal('cli')
  held.clock.now += 60 * MINUTE
  const renewed = await renew(held, token)
  t.equal(renewed.expiresAt, held.clock.now + 12 * 60 * MINUTE)
  t.ok(who(held, renewed.token))
  t.strictSame(held.files.writes, [])
})

t.test('sessions of the login socket are limited: the least recently used one is ended', async t => {
  const held = await started()
  const opened = Array.from({ length: 1024 }, () => {
    held.clock.now += 1
    return held.auth.openLocal('cli')
  })
  held.clock.now += 1
  who(held, opened[0]!.token)
  held.auth.openLocal('cli')
  t.strictSame(held.ended, [{ sessionId: opened[1]!.id }])
  t.ok(who(held, opened[0]!.token))
  t.equal(await statusOf(held, opened[1]!.token), 401)
})

t.test('last use is stored at most once a minute and never by the request itself', async t => {
  const time = mockedTime(t)
  const held = await started({ now: () => Date.now() })
  const { token, id } = await held.signIn()
  const before = held.files.writes.length
  for (let request = 0; request < 100; request++) who(held, token, '10.9.9.9')
  t.equal(held.files.writes.length, before)
  time.tick(MINUTE)
  await held.auth.close()
  await new Promise(setImmediate)
  t.equal(held.files.writes.length, before + 1)
  t.match(JSON.parse(held.files.texts.get('access')!), { value: { sessions: { [id]: { address: '10.9.9.9' } } } })
})

t.test('last use is stored when the daemon stops', async t => {
  const held = await started()
  const { token } = await held.signIn()
  who(held, token, '10.9.9.9')
  await held.auth.close()
  t.match(held.files.texts.get('access'), '10.9.9.9')
})

t.test('the end of a session is announced when it expires', async t => {
  const time = mockedTime(t)
  const held = await started({ now: () => Date.now() })
  const kept = await held.signIn()
  const local = held.auth.openLocal('cli')
  time.tick(12 * 60 * MINUTE - 1)
  t.strictSame(held.ended, [])
  time.tick(1)
  t.strictSame(held.ended, [{ sessionId: local.id }])
  time.tick(30 * DAY)
  t.strictSame(held.ended, [{ sessionId: local.id }, { sessionId: kept.id }])
})

t.test('a person has at most 200 sessions: the least recently used one is ended, also on the disk', async t => {
  const held = await started()
  const opened: OpenedSession[] = []
  for (let n = 0; n < 200; n++) {
    held.clock.now += 1
    opened.push(await held.signIn())
  }
  held.clock.now += 1
  who(held, opened[0]!.token)
  held.clock.now += 1
  const last = await held.signIn()
  t.same(held.ended, [{ sessionId: opened[1]!.id }])
  t.equal(await statusOf(held, opened[1]!.token), 401)
  const again = await started({ files: held.files, clock: held.clock })
  t.ok(who(again, opened[0]!.token))
  t.ok(who(again, last.token))
  t.equal(await statusOf(again, opened[1]!.token), 401)
})

t.test('a session belongs to the account that opened it, even if another account has its e-mail now', async t => {
  const held = await started()
  const { token, email } = await held.signIn()
  for (const other of [{ subject: 'another' }, { issuer: 'https://other.example.org' }]) {
    const files = new MemoryFiles()
    const book = JSON.parse(held.files.texts.get('access')!)
    Object.assign(book.value.people[email], other)
    files.texts.set('access', JSON.stringify(book))
    t.equal(await statusOf(await started({ files, clock: held.clock }), token), 401, JSON.stringify(other))
  }
})

t.test(
  "a person's streams end when an area is revoked, also if others are left, and not when one is granted",
  async t => {
    const { auth, ended } = await started()
    const email = 'ann@example.org'
    await auth.handlers['kernel.members.grant'](
      { email, role: 'viewer', areas: ['docs', 'src'], by: 'owner@sandbox.local' },
      contextOf(),
    )
    const told = async (areas?: string[]) => {
      ended.length = 0
      await auth.handlers['kernel.members.limit']({ people: [{ email, ...(areas && { areas }) }] }, contextOf())
      return ended.map(what => what.email)
    }
    const steps: [areas: string[] | undefined, told: string[]][] = [
      [['docs', 'src', 'web'], []],
      [['docs', 'web'], [email]],
      [['docs', 'src'], [email]],
      [undefined, []],
      [['docs', 'src', 'web'], [email]],
      [[], [email]],
      [['docs'], []],
    ]
    for (const [areas, names] of steps) t.same(await told(areas), names, JSON.stringify(areas))
  },
)
