import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { codeAt } from '../../../plugins/capabilities/otp/seed.js'
import { exactly } from '../../support/lists.js'
import { add, capabilitiesDaemon, inner } from './support.js'

/** The seeds of the test vectors of RFC 6238, appendix B, in base32. */
const SEEDS = {
  SHA1: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
  SHA256: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA',
  SHA512:
    'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' + 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNA',
} as const
type Algorithm = keyof typeof SEEDS

const VECTORS: readonly (readonly [seconds: number, ...codes: [string, string, string]])[] = [
  [59, '94287082', '46119246', '90693936'],
  [1111111109, '07081804', '68084774', '25091201'],
  [1111111111, '14050471', '67062674', '99943326'],
  [1234567890, '89005924', '91819424', '93441116'],
  [2000000000, '69279037', '90698825', '38618901'],
  [20000000000, '65353130', '77737706', '47863826'],
]
const addressOf = (algorithm: Algorithm, how: string) =>
  `otpauth://totp/Example:ada?secret=${SEEDS[algorithm]}&algorithm=${algorithm}&${how}`

const { daemon, vault } = await capabilitiesDaemon(t)
const { client } = daemon
const connect = (id: string, otp: string) => add(daemon, { id, kind: 'cli', config: { provider: 'otp', otp } })
const codeOf = (id: string) => client.call('GET /capabilities/{id}/otp', { id })

t.test('the codes are those of the RFC, with 6 and 8 digits', async t => {
  for (const [seconds, ...codes] of VECTORS)
    for (const [at, algorithm] of (['SHA1', 'SHA256', 'SHA512'] as const).entries()) {
      const seen = [8, 6].map(digits => codeAt(addressOf(algorithm, `digits=${digits}`), seconds * 1000)?.code)
      t.same(seen, [codes[at], codes[at]!.slice(-6)], `${algorithm} at ${seconds}`)
    }
  const plain = codeAt('gezd gnbv gy3t qojq gezd-gnbv-gy3t-qojq', 59_000)
  t.same(plain, { code: '287082', secondsRemaining: 1 }, 'plain base32, as services print it')
})

t.test('a code is answered without a credential to nobody, and with a control token to none', async t => {
  await connect('mail', SEEDS.SHA1)
  const path = `${daemon.url}/capabilities/mail/otp`
  t.equal((await fetch(path)).status, 401)
  const { token } = await daemon.token('land')
  t.equal((await fetch(path, { headers: { 'x-sandbox-control': token } })).status, 403)
  t.equal((await daemon.fetch('/capabilities/nobody/otp')).status, 404)
})

t.test('a connection answers codes of its algorithm and digits, and its seed is shown nowhere', async t => {
  // With this period all of these years are the step of the vectors at 59 s.
  const period = Math.floor(Date.now() / 1000 / 1.5)
  for (const [at, algorithm] of (['SHA1', 'SHA256', 'SHA512'] as const).entries())
    for (const digits of [6, 8]) {
      const id = `${algorithm}-${digits}`
      await connect(id, addressOf(algorithm, `digits=${digits}&period=${period}`))
      t.match(await codeOf(id), { code: VECTORS[0]![at + 1]!.toString().slice(-digits), secondsRemaining: Number })
    }
  const { capabilities } = await client.call('GET /capabilities')
  t.match(
    capabilities.find(({ id }) => id === 'SHA1-6'),
    { label: 'One-time codes', card: 'otp', secrets: exactly('otp') },
  )
  t.same(await inner(daemon, 'env.variables', { conversationId: 'c' }), { variables: {} })
  const file = readFileSync(join(daemon.workspace, '.sandbox/config/capabilities.json'), 'utf8')
  t.notMatch(JSON.stringify([capabilities, file, daemon.logged]), /GEZDGNB/)
})

t.test('a seed that makes no code is refused by name, and one that was stored so is a conflict', async t => {
  for (const otp of [
    '018',
    '=',
    'otpauth://hotp/x?secret=GEZDGNBVGY3TQOJQ&counter=1',
    'otpauth://totp/x?digits=6',
    addressOf('SHA1', 'digits=5'),
    'otpauth://totp/x?secret=GEZDGNBVGY3TQOJQ&algorithm=MD5',
    'otpauth://totp/x?secret=GEZDGNBVGY3TQOJQ&algorithm=SHA3-256',
  ]) {
    const body = JSON.stringify({ id: 'bad', kind: 'cli', config: { provider: 'otp', otp } })
    const response = await daemon.fetch('/capabilities', { method: 'POST', body })
    t.equal(response.status, 400, otp)
    t.match(await response.json(), { message: /config\.otp: expected base32 or an otpauth:\/\/totp\/ address/ }, otp)
  }
  vault.values.set('mail/otp', 'no-1')
  const spoilt = await daemon.fetch('/capabilities/mail/otp')
  t.equal(spoilt.status, 409)
  t.match(await spoilt.json(), { message: /no code can be made from the seed of mail/ })
  vault.values.delete('mail/otp')
  t.equal((await daemon.fetch('/capabilities/mail/otp')).status, 409)
  await add(daemon, { id: 'git-hub', kind: 'cli', config: { provider: 'github', token: 'a' } })
  const without = await daemon.fetch('/capabilities/git-hub/otp')
  t.equal(without.status, 409)
  t.match(await without.json(), { message: /git-hub holds no seed/ })
})

t.test('a new seed is set as the main secret, and a locked store gives no code', async t => {
  await connect('mail', addressOf('SHA1', 'digits=8'))
  await client.call('POST /capabilities/{id}/secret', { id: 'mail', value: SEEDS.SHA512 })
  t.equal((await codeOf('mail')).code, codeAt(SEEDS.SHA512, Date.now())!.code)
  vault.open = false
  t.equal((await daemon.fetch('/capabilities/mail/otp')).status, 503)
  vault.open = true
})
