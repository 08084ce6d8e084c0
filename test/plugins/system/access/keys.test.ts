import t from 'tap'
import { IssuerKeys } from '../../../../plugins/system/access/issuer-keys.js'
import { Nonces } from '../../../../plugins/system/access/nonces.js'
import { UsedTokens } from '../../../../plugins/system/access/used-tokens.js'
import { plainEmail } from '../../../../plugins/system/access/email.js'
import type { Files } from '../../../../sdk/index.js'
import { MemoryFiles, refusalOf } from '../../../kernel/auth/memory.js'
import { exactly } from '../../../support/lists.js'

const MINUTE = 60_000
const ISSUER = 'https://id.example'

/** An issuer whose answers the test chooses, and its requests. */
const issuer = () => {
  const clock = { now: 1_800_000_000_000 }
  const state = { up: true, kid: 'a' }
  const asked: string[] = []
  const keys = new IssuerKeys(
    ISSUER,
    async url => {
      asked.push(url)
      if (!state.up) throw new Error('it does not answer')
      return Buffer.from(
        JSON.stringify(
          url.endsWith('/keys') ? { keys: [{ kid: state.kid }] } : { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` },
        ),
      )
    },
    () => clock.now,
  )
  return { clock, state, asked, keys }
}

t.test('keys are fetched once in ten minutes, for all callers', async t => {
  const { clock, asked, keys, state } = issuer()
  await Promise.all([keys.current(), keys.current(), keys.current()])
  t.same(asked, [`${ISSUER}/.well-known/openid-configuration`, `${ISSUER}/keys`])
  clock.now += 10 * MINUTE - 1
  await keys.current()
  t.equal(asked.length, 2)
  state.kid = 'b'
  clock.now += 1
  t.match(await keys.current(), { keys: exactly({ kid: 'b' }) })
})

t.test('for an unknown key they are fetched again, at most once a minute', async t => {
  const { clock, asked, keys } = issuer()
  await keys.current()
  t.ok(await keys.again())
  t.equal(await keys.again(), undefined)
  clock.now += MINUTE
  t.ok(await keys.again())
  t.equal(asked.length, 6)
  clock.now -= 60 * MINUTE
  t.ok(await keys.again(), 'a clock that was set back delays nobody')
})

t.test('the last valid keys are used for a day while the issuer does not answer', async t => {
  const { clock, keys, state } = issuer()
  await keys.current()
  state.up = false
  clock.now += 24 * 60 * MINUTE - 1
  t.match(await keys.current(), { keys: exactly({ kid: 'a' }) })
  clock.now += 1
  t.match(await refusalOf(() => keys.current()), {
    status: 424,
    message: 'the keys of https://id.example cannot be fetched: it does not answer',
  })
  state.up = true
  t.match(await keys.current(), { keys: exactly({ kid: 'a' }) })
})

t.test('a nonce is valid once for ten minutes, only for the sandbox that made it', async t => {
  const clock = { now: 1_800_000_000_000 }
  const nonces = new Nonces(() => clock.now)
  const { nonce, expiresAt } = nonces.make()
  t.equal(expiresAt, clock.now + 10 * MINUTE)
  t.not(nonces.make().nonce, nonce)
  t.equal(nonces.isOpen(nonce), true)
  t.equal(new Nonces(() => clock.now).isOpen(nonce), false)
  const later = nonce.replace(/^[^.]+/, (expiresAt + MINUTE).toString(36))
  for (const other of [later, `${nonce}A`, nonce.slice(0, -1), '', '..', 'a.b.c'])
    t.equal(nonces.isOpen(other), false, other)
  t.equal(nonces.use(nonce), true)
  t.equal(nonces.use(nonce), false)
  nonces.release(nonce)
  t.equal(nonces.use(nonce), true)
  const old = nonces.make().nonce
  clock.now += 10 * MINUTE
  t.equal(nonces.use(old), false)
})

t.test('of many concurrent uses of a token one succeeds, and the token is dropped when it expires', async t => {
  const clock = { now: 0 }
  const files = new MemoryFiles()
  const used = new UsedTokens(files as unknown as Files, () => clock.now)
  const all = await Promise.all(Array.from({ length: 10 }, () => used.add('token', 100)))
  t.equal(all.filter(Boolean).length, 1)
  const kept = files.texts.get('used-tokens')
  t.type(kept, 'string')
  t.notMatch(kept, '"token"')
  t.equal(await new UsedTokens(files as unknown as Files, () => clock.now).has('token'), true, 'also after a restart')
  await used.remove('token')
  t.equal(await used.has('token'), false)
  await used.add('old', 100)
  clock.now = 100
  await used.add('new', 200)
  t.equal(await used.has('old'), false)
})

t.test('an e-mail must have the plain form, so that one person has one spelling', async t => {
  for (const [text, email] of [
    ['Ada@Example.org', 'ada@example.org'],
    ['a.b+c@d', 'a.b+c@d'],
    ["o'neil@x.y", undefined],
  ] as const)
    t.equal(plainEmail(text), email)
  for (const wrong of [
    '',
    '@',
    'a@',
    '@b',
    'a b@c',
    'token:x@y',
    'a@b:c',
    '"a"@b',
    'a@b@c',
    'a\u200b@b',
    'a@b.',
    'a@.b',
    'a\n@b',
    '\u0430@b.c',
    `${'a'.repeat(65)}@b`,
  ]) {
    t.equal(plainEmail(wrong), undefined, JSON.stringify(wrong))
  }
})
