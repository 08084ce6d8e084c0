import t from 'tap'
import type { Caller, CallerKind, Scope } from '../../../sdk/types.js'
import { contextOf, DAY, MINUTE, mockedTime, owner, refusalOf, started, type Started } from './memory.js'
import { exactly } from '../../support/lists.js'

const who = ({ auth }: Started, token: string, address = '10.0.0.1') =>
  auth.authenticate({ kind: 'token', value: token }, address)
/** The stored text of tokens; it must not be empty, or a search in it would prove nothing. */
const textOf = ({ files }: Started): string => {
  const text = files.texts.get('tokens')
  if (text === undefined) throw new Error('no tokens are stored')
  return text
}
const statusOf = async (held: Started, token: string) => (await refusalOf(() => who(held, token))).status
const mint = async (
  { auth }: Started,
  input: { scope?: Scope; label?: string; expiresAt?: number } = {},
  caller: Caller = owner,
) =>
  auth.handlers['kernel.token.mint'](
    { label: 'bot', scope: 'read', createdBy: 'owner@sandbox.local', ...input },
    contextOf(caller),
  )
const list = async ({ auth }: Started) => (await auth.handlers['kernel.token.list'](undefined, contextOf())).tokens
const revoke = async ({ auth }: Started, id: string) => auth.handlers['kernel.token.revoke']({ id }, contextOf())

t.test('a control token is a caller with the role of its scope', async t => {
  const held = await started()
  const roles = { read: 'viewer', editor: 'collaborator', drive: 'collaborator', land: 'maintainer' } as const
  for (const scope of ['read', 'editor', 'drive', 'land'] as const) {
    const { id, token } = await mint(held, { scope })
    t.match(token, /^sbc_[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/)
    t.strictSame(who(held, token), { kind: 'token', actor: 'token:bot', role: roles[scope], scope, tokenId: id })
  }
})

t.test('a control token is not accepted as a bearer, and every invalid one is 401', async t => {
  const held = await started()
  const { token } = await mint(held)
  t.match(await refusalOf(() => held.auth.authenticate({ kind: 'bearer', value: token }, 'a')), { status: 401 })
  for (const wrong of [token.replace('sbc', 'sbs'), `${token}x`, `sbc_${'A'.repeat(22)}.${'A'.repeat(43)}`, ''])
    t.equal(await statusOf(held, wrong), 401)
})

t.test('only a session of the owner mints', async t => {
  const held = await started()
  for (const kind of ['token', 'turn', 'extension', 'run', 'plugin'] as CallerKind[]) {
    t.match(await refusalOf(() => mint(held, {}, { ...owner, kind })), { status: 403 }, kind)
  }
  t.match(await refusalOf(() => mint(held, {}, { ...owner, role: 'maintainer' })), { status: 403 })
  t.strictSame(await list(held), [])
})

t.test('an expiry in the past is refused, a later one ends the token', async t => {
  const held = await started()
  t.match(await refusalOf(() => mint(held, { expiresAt: held.clock.now })), {
    status: 400,
    detail: { errors: exactly({ path: 'expiresAt' }) },
  })
  const { token } = await mint(held, { expiresAt: held.clock.now + MINUTE })
  held.clock.now += MINUTE - 1
  t.ok(who(held, token))
  held.clock.now += 1
  t.equal(await statusOf(held, token), 401)
})

t.test('at most 100 tokens are active, not counting expired or revoked ones', async t => {
  const held = await started()
  const first = await mint(held, { expiresAt: held.clock.now + MINUTE })
  const more = await Promise.allSettled(Array.from({ length: 101 }, () => mint(held)))
  t.equal(more.filter(({ status }) => status === 'fulfilled').length, 99)
  t.match(more.at(-1), { reason: { status: 429 } })
  held.clock.now += MINUTE
  await mint(held)
  t.match(await refusalOf(() => mint(held)), { status: 429 })
  const [newest] = await list(held)
  await revoke(held, newest!.id)
  t.ok((await mint(held)).id)
  t.ok((await list(held)).some(({ id }) => id === first.id))
})

t.test('the list is newest first, without secret or hash, with expired ones for 30 days', async t => {
  const held = await started()
  const a = await mint(held, { label: 'a', expiresAt: held.clock.now + MINUTE })
  held.clock.now += 1
  const b = await mint(held, { label: 'b', scope: 'land' })
  t.strictSame(
    (await list(held)).map(({ id }) => id),
    [b.id, a.id],
  )
  t.strictSame((await list(held))[0], {
    id: b.id,
    label: 'b',
    scope: 'land',
    createdAt: held.clock.now,
    createdBy: 'owner@sandbox.local',
  })
  t.notMatch(textOf(held), b.token.split('.')[1])
  held.clock.now += 30 * DAY + MINUTE
  t.strictSame(
    (await list(held)).map(({ id }) => id),
    [b.id],
  )
})

t.test('the list says when and from where a token was used last', async t => {
  const held = await started()
  const { token } = await mint(held)
  held.clock.now += 5
  who(held, token, '10.9.9.9')
  t.match(await list(held), exactly({ lastUsedAt: held.clock.now, lastUsedFrom: '10.9.9.9' }))
  t.notMatch(textOf(held), '10.9.9.9', 'stored only later')
  await held.auth.close()
  t.match(held.files.texts.get('tokens'), '10.9.9.9')
})

t.test('a revoked token is 401 at once and after a restart, and its end is announced', async t => {
  const held = await started()
  const [a, b] = [await mint(held), await mint(held)]
  t.strictSame(await revoke(held, a.id), { ok: true })
  t.strictSame(held.ended, [{ tokenId: a.id }])
  t.equal(await statusOf(held, a.token), 401)
  t.match(await refusalOf(() => revoke(held, a.id)), { status: 404 })
  t.match(await refusalOf(() => revoke(held, '__proto__')), { status: 404 })
  const again = await started({ files: held.files, clock: held.clock })
  t.equal(await statusOf(again, a.token), 401)
  t.ok(who(again, b.token))
})

t.test('a token that cannot be stored is not granted, and a revocation that cannot be stored is refused', async t => {
  const held = await started()
  const { id, token } = await mint(held)
  held.files.full.add('tokens')
  await t.rejects(mint(held), /ENOSPC/)
  await t.rejects(revoke(held, id), /ENOSPC/)
  t.equal((await list(held)).length, 1)
  t.ok(who(held, token))
  t.strictSame(held.ended, [])
})

t.test('the end of a token is announced when it expires, also beyond the longest timer', async t => {
  const time = mockedTime(t)
  const held = await started({ now: () => Date.now() })
  const { id } = await mint(held, { expiresAt: Date.now() + 60 * DAY })
  time.tick(60 * DAY - 1)
  t.strictSame(held.ended, [])
  time.tick(1)
  t.strictSame(held.ended, [{ tokenId: id }])
})
