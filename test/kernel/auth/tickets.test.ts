import t from 'tap'
import type { Caller } from '../../../sdk/types.js'
import { contextOf, MINUTE, refusalOf, started, type Started } from './memory.js'

const personOf = async (held: Started): Promise<Caller> =>
  held.auth.authenticate({ kind: 'bearer', value: (await held.signIn()).token }, 'a')
const mint = async (
  { auth }: Started,
  caller: Caller,
  wanted: { purpose?: string; name?: string } = { purpose: 'terminal' },
) => auth.handlers['kernel.ticket.mint'](wanted, contextOf(caller))
const show = ({ auth }: Started, ticket: string, purpose: string = 'terminal', name = 'web-1') =>
  auth.redeem({ ticket, purpose, name }, '10.0.0.9')
const refused = (held: Started, ...shown: [string, string?, string?]) => refusalOf(() => show(held, ...shown))

t.test('a ticket is 256 bits, and valid once within 30 s for the person who requested it', async t => {
  const held = await started()
  const person = await personOf(held)
  const { ticket, expiresAt } = await mint(held, person)
  t.match(ticket, /^[A-Za-z0-9_-]{43}$/)
  t.equal(expiresAt, held.clock.now + 30_000)
  held.clock.now += 29_999
  t.same(show(held, ticket), person)
  t.match(await refused(held, ticket), { status: 401 })
  const late = await mint(held, person)
  held.clock.now += 30_000
  t.match(await refused(held, late.ticket), { status: 401 })
  t.notMatch(JSON.stringify([...held.files.texts]), late.ticket)
})

t.test('a ticket is valid only for its purpose and name, and one without a purpose for either socket', async t => {
  const held = await started()
  const person = await personOf(held)
  const named = await mint(held, person, { purpose: 'terminal', name: 'web-1' })
  t.match(await refused(held, named.ticket, 'browser'), { status: 401 })
  t.match(await refused(held, named.ticket, 'bundle'), { status: 401 })
  t.match(await refused(held, named.ticket, 'terminal', 'web-2'), { status: 401 })
  t.ok(show(held, named.ticket))
  const any = await mint(held, person, {})
  t.match(await refused(held, any.ticket, 'bundle'), { status: 401 })
  t.ok(show(held, any.ticket, 'browser', 'web-9'))
})

t.test('the ticket of a bundle is valid repeatedly for an hour, and reports its first use', async t => {
  const held = await started()
  const { ticket } = await mint(held, await personOf(held), { purpose: 'bundle', name: 'b' })
  const redeem = async () =>
    held.auth.handlers['kernel.ticket.redeem']({ ticket, purpose: 'bundle', name: 'b', address: 'a' }, contextOf())
  t.equal((await redeem()).first, true)
  held.clock.now += 59 * MINUTE
  t.equal((await redeem()).first, false)
  held.clock.now += MINUTE
  t.match(await refusalOf(redeem), { status: 401 })
})

t.test('a ticket ends with the session that requested it', async t => {
  const held = await started()
  const person = await personOf(held)
  const { ticket } = await mint(held, person)
  const other = await personOf(held)
  const kept = await mint(held, other)
  await held.auth.handlers['kernel.session.revoke']({ id: person.sessionId! }, contextOf())
  t.match(await refused(held, ticket), { status: 401 })
  t.equal(show(held, kept.ticket).sessionId, other.sessionId)
})

t.test('a person has at most 32 unused tickets', async t => {
  const held = await started()
  const person = await personOf(held)
  const all = await Promise.all(Array.from({ length: 32 }, () => mint(held, person)))
  t.match(await refusalOf(() => mint(held, person)), { status: 429, detail: { retryAfter: 30 } })
  show(held, all[0]!.ticket)
  await mint(held, person)
  t.match(await refusalOf(() => mint(held, person)), { status: 429 })
  held.clock.now += 30_000
  await mint(held, person)
  for (let n = 0; n < 2_010; n++)
    show(held, (await mint(held, person, { purpose: 'bundle', name: 'b' })).ticket, 'bundle', 'b')
  t.match(await refused(held, all[1]!.ticket), { status: 401 })
})

t.test('only signed-in people get tickets, and guessing is rate limited', async t => {
  const held = await started()
  for (const kind of ['token', 'turn', 'run', 'plugin'] as const) {
    t.match(await refusalOf(() => mint(held, { kind, actor: 'x', role: 'owner' })), { status: 403 }, kind)
  }
  for (let n = 0; n < 30; n++) t.match(await refused(held, 'A'.repeat(43)), { status: 401 })
  const { message, status } = await refused(held, 'A'.repeat(43))
  t.equal(status, 429)
  t.notMatch(message, 'AAAA')
})
