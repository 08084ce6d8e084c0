import t from 'tap'
import type { Started } from './memory.js'
import { contextOf, MemoryFiles, MINUTE, refusalOf, started } from './memory.js'
import { exactly } from '../../support/lists.js'

const redeem = async ({ auth }: Started, code: string, address = '10.0.0.1') =>
  (await auth.handlers['kernel.session.open']({ login: code, device: 'a browser', address }, contextOf())).session
const bookOf = ({ files }: Started) => JSON.parse(files.texts.get('access')!).value
const state = async ({ auth }: Started) => auth.handlers['kernel.identity.state'](undefined, contextOf())

t.test('redeeming a login code claims the sandbox once, and the claim survives a restart', async t => {
  const held = await started()
  t.strictSame(await state(held), { claimed: false, local: true, claim: 'first', providers: [] })
  await held.signIn()
  t.match(await state(held), { claimed: true })
  await held.signIn()
  t.strictSame(Object.keys(bookOf(held).people), ['owner@sandbox.local'])
  t.match(await state(await started({ files: held.files, clock: held.clock })), { claimed: true })
})

t.test('minting a code claims nothing and stores only its hash', async t => {
  const held = await started()
  const code = await held.auth.mintLogin()
  t.equal(Buffer.from(code, 'base64url').length, 32)
  t.match(await state(held), { claimed: false })
  t.notMatch([...held.files.texts.values()].join('\n'), code)
})

t.test('a code works once, within 5 minutes, also after a restart', async t => {
  const held = await started()
  const [used, late, kept] = [await held.auth.mintLogin(), await held.auth.mintLogin(), await held.auth.mintLogin()]
  await redeem(held, used)
  const again = await started({ files: held.files, clock: held.clock })
  t.match(await refusalOf(() => redeem(again, used)), { status: 401 })
  held.clock.now += 5 * MINUTE - 1
  t.ok((await redeem(again, kept)).token)
  held.clock.now += 1
  t.match(await refusalOf(() => redeem(again, late)), { status: 401 })
})

t.test('unknown, used and expired codes get the same answer', async t => {
  const held = await started()
  const [used, late] = [await held.auth.mintLogin(), await held.auth.mintLogin()]
  await redeem(held, used)
  held.clock.now += 5 * MINUTE
  const messages = new Set<string>()
  for (const code of [used, late, 'x'.repeat(43), '']) messages.add((await refusalOf(() => redeem(held, code))).message)
  t.equal(messages.size, 1)
})

t.test('of twenty concurrent redemptions of one code exactly one succeeds', async t => {
  const held = await started()
  const code = await held.auth.mintLogin()
  const tries = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => redeem(held, code, `10.0.0.${n}`)))
  t.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
  t.equal(Object.keys(bookOf(held).sessions).length, 1)
})

t.test(
  'a code is used up by the write that grants access: on the disk it is either valid or used and granted',
  async t => {
    const held = await started()
    const code = await held.auth.mintLogin()
    const before = new MemoryFiles()
    for (const [name, text] of held.files.texts) before.texts.set(name, text)
    const writes = held.files.writes.length
    const { token } = await redeem(held, code)
    t.equal(held.files.writes.length, writes + 1)
    const after = await started({ files: held.files, clock: held.clock })
    t.match(await refusalOf(() => redeem(after, code)), { status: 401 })
    t.equal(after.auth.authenticate({ kind: 'bearer', value: token }, 'a').role, 'owner')
    const undone = await started({ files: before, clock: held.clock })
    t.match(await state(undone), { claimed: false })
    t.match(await redeem(undone, code), { role: 'owner' })
  },
)

t.test(
  'if the grant cannot be stored nobody is signed in, nobody owns the sandbox and the code stays valid',
  async t => {
    const held = await started()
    const code = await held.auth.mintLogin()
    held.files.full.add('access')
    await t.rejects(redeem(held, code), /ENOSPC/)
    t.match(await state(held), { claimed: false })
    t.strictSame(bookOf(held).sessions, {})
    held.files.full.clear()
    t.ok((await redeem(held, code)).token)
  },
)

t.test('a code that cannot be stored is not issued', async t => {
  const held = await started()
  held.files.full.add('access')
  await t.rejects(held.auth.mintLogin(), /ENOSPC/)
})

t.test('the owner and the sessions of an older daemon are kept', async t => {
  const held = await started()
  const { token } = await held.signIn()
  const files = new MemoryFiles()
  const owner = { issuer: 'local', subject: 'owner', email: 'owner@sandbox.local', claimedAt: 1 }
  files.texts.set('owner', JSON.stringify({ version: 1, value: { owner } }))
  files.texts.set('sessions', JSON.stringify({ version: 1, value: { sessions: bookOf(held).sessions, spent: [] } }))
  const next = await started({ files, clock: held.clock })
  t.match(await state(next), { claimed: true })
  t.equal(next.auth.authenticate({ kind: 'bearer', value: token }, 'a').role, 'owner')
  await next.signIn()
  files.texts.delete('owner')
  const later = await started({ files, clock: held.clock })
  t.match(await state(later), { claimed: true }, 'everything is in one document now')
})

t.test('wrong codes lock out nobody: a valid one works at once, also from the same address', async t => {
  const held = await started()
  const code = await held.auth.mintLogin()
  const tries = await Promise.all(Array.from({ length: 200 }, () => refusalOf(() => redeem(held, 'wrong'))))
  t.strictSame([...new Set(tries.map(({ status }) => status))], [401])
  const written = held.files.writes.length
  t.ok((await redeem(held, code)).token)
  t.equal(held.files.writes.length, written + 1, 'a wrong one writes nothing')
})

t.test('at most 32 codes are valid: the oldest is dropped', async t => {
  const held = await started()
  const codes: string[] = []
  for (let n = 0; n < 33; n++) codes.push(await held.auth.mintLogin())
  t.match(await refusalOf(() => redeem(held, codes[0]!)), { status: 401 })
  t.ok((await redeem(held, codes[1]!)).token)
})

t.test('a sandbox without an owner prints at its start how to sign in, an owned one prints nothing', async t => {
  const held = await started()
  t.match(held.said, exactly(/sandbox login/))
  await held.signIn()
  t.strictSame((await started({ files: held.files, clock: held.clock })).said, [])
})

t.test('with the local sign-in disabled nobody can use it, and its sessions are ended', async t => {
  const held = await started()
  const { token } = await held.signIn()
  const code = await held.auth.mintLogin()
  const off = await started({ files: held.files, clock: held.clock, identity: { claim: 'code', local: false } })
  t.match(await state(off), { claimed: true, local: false, claim: 'code' })
  t.match(await refusalOf(() => redeem(off, code)), { status: 403, message: 'identity.local' })
  t.match(await refusalOf(() => off.auth.mintLogin()), { status: 403 })
  t.match(await refusalOf(() => off.auth.openLocal('cli')), { status: 403 })
  t.match(await refusalOf(() => off.auth.authenticate({ kind: 'bearer', value: token }, 'a')), { status: 401 })
})

t.test('a document of a newer version stops the start', async t => {
  const files = new MemoryFiles()
  files.texts.set('access', JSON.stringify({ version: 2, value: {} }))
  await t.rejects(started({ files }), /access: expected version 1, found 2/)
})
