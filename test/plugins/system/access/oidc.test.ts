import { createHmac } from 'node:crypto'
import { importJWK, exportSPKI, type CryptoKey } from 'jose'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { IdentityProvider } from '../../../../sdk/kernel.js'
import { daemonWith, makeWorkspace, type Support } from '../../../support/daemon.js'
import { seconds, startIssuer } from '../../../support/servers/issuer.js'
import { exactly } from '../../../support/lists.js'
import { ask, bearer, nonceOf, present, signInAs } from './sign-in-support.js'

const ADA = 'ada@example.org'

/** Folders for another daemon of the same test. */
const beside = ({ workspace }: Support) => {
  const folder = join(workspace, '..', 'second')
  makeWorkspace(join(folder, 'workspace'))
  return { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
}

const claimed = async (t: Test, more: Partial<IdentityProvider> = {}) => {
  const issuer = await startIssuer(t, more)
  const http = { trustedProxies: ['127.0.0.1'] }
  const daemon = await daemonWith(t, ['system'], { deployment: { http, identity: { providers: [issuer.provider] } } })
  const first = await signInAs(daemon, issuer, ADA)
  return { issuer, daemon, first }
}

t.test('a valid token of each algorithm signs in the person it names', async t => {
  const { issuer, daemon, first } = await claimed(t)
  t.match(first, { status: 200, body: { email: ADA, role: 'owner', renewed: false, token: /^sbs_/ } })
  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA'] as const) {
    const claims = {
      email: 'Ada@Example.org',
      sub: ADA,
      name: ' Ada\u202e L. ',
      picture: 'https://pictures.example/a.png',
      nonce: await nonceOf(daemon.url),
    }
    const { status, body } = await present(daemon.url, await issuer.token(claims, { alg }))
    t.match(
      [status, body],
      exactly(200, { email: ADA, role: 'owner', name: 'Ada L.', picture: 'https://pictures.example/a.png' }),
      alg,
    )
    t.match((await ask(daemon.url, 'GET /info', undefined, bearer(String(body.token)))).body.me, {
      actor: ADA,
      role: 'owner',
      name: 'Ada L.',
    })
  }
  t.match((await ask(daemon.url, 'GET /system/sign-in')).body, {
    claimed: true,
    providers: exactly({ id: 'ours', label: 'Ours', issuer: issuer.url, clientId: 'sandbox' }),
  })
})

t.test('every invalid token is 401 with the reason, without repeating the token', async t => {
  const { issuer, daemon } = await claimed(t)
  const now = seconds()
  const good = async (claims: object = {}, more: object = {}) =>
    issuer.token({ email: ADA, nonce: await nonceOf(daemon.url), ...claims }, more)
  const foreign = await startIssuer(t)
  const second = await daemonWith(t, ['system'], {
    ...beside(daemon),
    deployment: { identity: { providers: [issuer.provider] } },
  })
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const body = async (claims = {}) =>
    encode({
      iss: issuer.url,
      aud: 'sandbox',
      sub: ADA,
      email: ADA,
      email_verified: true,
      iat: now,
      exp: now + 300,
      nonce: await nonceOf(daemon.url),
      ...claims,
    })
  const pem = await exportSPKI((await importJWK(issuer.publicJwk(), 'RS256')) as CryptoKey)
  const hs = `${encode({ alg: 'HS256', kid: issuer.publicJwk().kid })}.${await body()}`
  const [head, , signature] = (await good()).split('.')
  const cases: [why: string, token: string, words: RegExp][] = [
    ['another audience', await good({ aud: 'others' }), /issuer or audience/],
    ['several audiences, for another client', await good({ aud: ['sandbox', 'x'], azp: 'x' }), /issuer or audience/],
    ['several audiences, for no client', await good({ aud: ['sandbox', 'x'] }), /issuer or audience/],
    ['another issuer', await foreign.token({ email: ADA, nonce: await nonceOf(daemon.url) }), /issuer or audience/],
    [
      'another issuer with our name',
      await foreign.token({ iss: issuer.url, email: ADA, nonce: await nonceOf(daemon.url) }),
      /signature/,
    ],
    ['expired 61 s ago', await good({ exp: now - 61 }), /expired/],
    ['no end', await good({ exp: undefined }), /expired/],
    ['valid in 120 s', await good({ nbf: now + 120 }), /not valid yet/],
    ['issued in 120 s', await good({ iat: now + 120 }), /in the future/],
    ['not said when', await good({ iat: undefined }), /no issue time/],
    ['alg none', `${encode({ alg: 'none' })}.${await body()}.AAAA`, /alg/],
    ['alg none without a signature', `${encode({ alg: 'none' })}.${await body()}.`, /three parts/],
    ['HS256 with the public key', `${hs}.${createHmac('sha256', pem).update(hs).digest('base64url')}`, /alg/],
    [
      'an algorithm that does not match the key',
      `${encode({ alg: 'ES256', kid: issuer.publicJwk().kid })}.${await body()}.${signature}`,
      /signature/,
    ],
    [
      'other claims under the signature',
      `${head}.${await body({ email: 'eve@example.org' })}.${signature}`,
      /signature/,
    ],
    ['an unverified e-mail', await good({ email_verified: false }), /not verified/],
    ['an e-mail verified as a word', await good({ email_verified: 'true' }), /not verified/],
    ['no e-mail', await good({ email: undefined, sub: ADA }), /local@domain/],
    ['an e-mail that is none', await good({ email: 'token:ci', sub: ADA }), /local@domain/],
    ['an e-mail of the sandbox itself', await good({ email: 'owner@sandbox.local', sub: ADA }), /sandbox\.local/],
    ['nobody', await good({ sub: '' }), /sub/],
    ['a crit header', await good({}, { header: { crit: ['b64'], b64: true } }), /crit/],
    ['no nonce', await good({ nonce: undefined }), /nonce/],
    ['a nonce of another sandbox', await good({ nonce: await nonceOf(second.url) }), /nonce/],
    ['a made-up nonce', await good({ nonce: 'x.y.z' }), /nonce/],
    ['an unknown key', await good({}, { header: { kid: 'other' } }), /signature/],
    ['two parts', (await good()).split('.').slice(0, 2).join('.'), /./],
  ]
  for (const [at, [why, token, words]] of cases.entries()) {
    // Each from its own address, because requests per address are limited.
    const answer = await present(
      daemon.url,
      token,
      {},
      { 'x-forwarded-for': `10.1.0.${at}`, 'x-forwarded-proto': 'https' },
    )
    t.match([answer.status, answer.body.message], exactly(401, words), why)
    t.notMatch(answer.body.message, token.split('.')[1]!)
  }
  t.notMatch(daemon.logged.join('\n'), /eyJ/)
})

t.test('an expired token is accepted for 60 s more', async t => {
  const { issuer, daemon } = await claimed(t)
  const token = await issuer.token({
    email: ADA,
    exp: seconds() - 30,
    nbf: seconds() + 30,
    iat: seconds() + 30,
    nonce: await nonceOf(daemon.url),
  })
  t.equal((await present(daemon.url, token)).status, 200)
})

t.test('the same token, and the same nonce in another, sign in once', async t => {
  const { issuer, daemon } = await claimed(t)
  const nonce = await nonceOf(daemon.url)
  const token = await issuer.token({ email: ADA, nonce })
  t.equal((await present(daemon.url, token)).status, 200)
  t.match(await present(daemon.url, token), { status: 401, body: { message: /nonce/ } })
  t.equal((await present(daemon.url, await issuer.token({ email: ADA, nonce }))).status, 401)
  const again = await issuer.token({ email: ADA, nonce: await nonceOf(daemon.url) })
  const both = await Promise.all([present(daemon.url, again), present(daemon.url, again)])
  t.same(both.map(({ status }) => status).sort(), [200, 401])
})

t.test('a token that did not sign in can be presented again', async t => {
  const { issuer, daemon } = await claimed(t)
  const token = await issuer.token({ email: 'bob@example.org', nonce: await nonceOf(daemon.url) })
  t.match(await present(daemon.url, token), { status: 403, body: { message: /bob@example\.org has no role here/ } })
  await daemon.client.call('POST /members', { email: 'bob@example.org', role: 'viewer' })
  t.match(await present(daemon.url, token), { status: 200, body: { role: 'viewer' } })
})

t.test('without a nonce a token counts once and for ten minutes, also across a restart', async t => {
  const { issuer, daemon, first } = await claimed(t, { nonce: 'off' })
  t.equal(first.status, 200)
  const token = await issuer.token({ email: ADA, jti: 'one' })
  t.equal((await present(daemon.url, token)).status, 200)
  t.match(await present(daemon.url, token), { status: 401, body: { message: /used before/ } })
  t.match(await present(daemon.url, await issuer.token({ email: ADA, iat: seconds() - 601 })), {
    status: 401,
    body: { message: /ten minutes ago/ },
  })
  await daemon.stop()
  const { workspace, data } = daemon
  const next = await daemonWith(t, ['system'], {
    workspace,
    data,
    deployment: { identity: { providers: [issuer.provider] } },
  })
  t.match(await present(next.url, token), { status: 401, body: { message: /used before/ } })
})

t.test(
  'rotated keys of the issuer are found by one more request, and strangers cannot cause many requests',
  async t => {
    const { issuer, daemon } = await claimed(t)
    t.equal(issuer.fetched(), 1)
    t.equal((await signInAs(daemon, issuer, ADA)).status, 200)
    t.equal(issuer.fetched(), 1, 'the keys are cached')
    await issuer.rotate()
    t.equal((await signInAs(daemon, issuer, ADA)).status, 200)
    t.equal(issuer.fetched(), 2)
    await issuer.rotate()
    t.equal((await signInAs(daemon, issuer, ADA)).status, 401, 'no second request within a minute')
    t.equal(issuer.fetched(), 2)
  },
)

t.test('while the keys cannot be fetched a token is 424 with the reason, and known keys keep working', async t => {
  const issuer = await startIssuer(t)
  const daemon = await daemonWith(t, ['system'], { deployment: { identity: { providers: [issuer.provider] } } })
  const answers: [why: string, answer: NonNullable<typeof issuer.answer>, words: RegExp][] = [
    ['an error', () => ({ status: 500, body: '{}' }), /answered 500/],
    ['no JSON', () => ({ status: 200, body: '<html>' }), /not JSON/],
    [
      'another issuer',
      () => ({ status: 200, body: JSON.stringify({ issuer: 'https://evil.example', jwks_uri: `${issuer.url}/keys` }) }),
      /names the issuer/,
    ],
    [
      'keys over plain HTTP',
      () => ({ status: 200, body: JSON.stringify({ issuer: issuer.url, jwks_uri: 'http://evil.example/keys' }) }),
      /https/,
    ],
    ['a redirect', () => ({ status: 302, body: '', headers: { location: `${issuer.url}/other` } }), /redirects/],
    ['too much', () => ({ status: 200, body: `{"x":"${'x'.repeat(1 << 20)}"}` }), /1 MiB/],
    ['no keys', path => (path === '/keys' ? { status: 200, body: '{"keys":7}' } : undefined), /no list of keys/],
  ]
  for (const [why, answer, words] of answers) {
    issuer.answer = answer
    t.match(await signInAs(daemon, issuer, ADA), { status: 424, body: { message: words } }, why)
  }
  issuer.answer = undefined
  t.equal((await signInAs(daemon, issuer, ADA)).status, 200)
  issuer.answer = () => ({ status: 500, body: '' })
  t.equal((await signInAs(daemon, issuer, ADA)).status, 200)
})

t.test('ten failing tokens a minute are 401, the next 429, and a valid one is still accepted', async t => {
  const { issuer, daemon } = await claimed(t)
  for (let n = 0; n < 10; n++) t.equal((await present(daemon.url, await issuer.token({ email: ADA }))).status, 401)
  const { status, headers } = await present(daemon.url, await issuer.token({ email: ADA }))
  t.equal(status, 429)
  t.ok(Number(headers.get('retry-after')) > 50)
  t.equal((await signInAs(daemon, issuer, ADA)).status, 200)
})

t.test('an identity token is not a credential for other calls, and without a provider none is accepted', async t => {
  const { issuer, daemon } = await claimed(t)
  const token = await issuer.token({ email: ADA, nonce: await nonceOf(daemon.url) })
  t.match(await ask(daemon.url, 'GET /info', undefined, bearer(token)), {
    status: 401,
    body: { message: /exchange it at POST \/system\/session/ },
  })
  const bare = await daemonWith(t, ['system'], beside(daemon))
  t.match(await present(bare.url, token), { status: 401, body: { message: /no identity provider is configured/ } })
})

t.test('the group signs people in from its own process too', async t => {
  const issuer = await startIssuer(t)
  const daemon = await daemonWith(t, ['system'], {
    apart: ['system'],
    deployment: { identity: { claim: 'code', providers: [issuer.provider] } },
  })
  const token = await issuer.token({ email: ADA, nonce: await nonceOf(daemon.url) })
  t.equal((await present(daemon.url, token)).status, 409)
  t.match(
    await present(daemon.url, token, { claim: daemon.auth.claim! }),
    { status: 200, body: { role: 'owner' } },
    'it was released',
  )
  t.equal((await present(daemon.url, token)).status, 401)
})

t.test('a person whose e-mail changed at the issuer keeps their account here', async t => {
  const { issuer, daemon } = await claimed(t)
  const token = await issuer.token({ sub: ADA, email: 'ada@new.example', nonce: await nonceOf(daemon.url) })
  t.match(await present(daemon.url, token), { status: 200, body: { email: ADA, role: 'owner' } })
})

t.test('sessions of an issuer that is no longer configured end at the next start', async t => {
  const { daemon, first } = await claimed(t)
  await daemon.stop()
  const { workspace, data } = daemon
  const next = await daemonWith(t, ['system'], { workspace, data })
  t.equal((await ask(next.url, 'GET /info', undefined, bearer(first.body.token))).status, 401)
  t.match((await ask(next.url, 'GET /system/sign-in')).body, { claimed: true, providers: { length: 0 } })
})
