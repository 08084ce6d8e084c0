import t from 'tap'
import type { Credential } from '../../../kernel/auth/credential.js'
import { contextOf, MINUTE, refusalOf, started } from './memory.js'

const KINDS = ['token', 'turn', 'extension', 'run', 'bearer'] as const
const wrong: Credential = { kind: 'bearer', value: `sbs_${'A'.repeat(22)}.${'A'.repeat(43)}` }

t.test('an invalid credential of any kind is 401, and the refusal does not repeat it', async t => {
  const { auth } = await started()
  for (const kind of KINDS) {
    const refusal = await refusalOf(() => auth.authenticate({ ...wrong, kind }, '10.0.0.1'))
    t.equal(refusal.status, 401, kind)
    t.notMatch(refusal.message, 'AAAA')
  }
})

t.test('after 30 failures a minute an address gets 429 for failing requests, while valid ones succeed', async t => {
  const held = await started()
  const { token, id } = await held.signIn()
  for (let n = 0; n < 30; n++) t.equal((await refusalOf(() => held.auth.authenticate(wrong, '10.0.0.1'))).status, 401)
  t.match(await refusalOf(() => held.auth.authenticate(wrong, '10.0.0.1')), { status: 429, detail: { retryAfter: 60 } })
  t.match(
    await refusalOf(async () =>
      held.auth.handlers['kernel.session.renew']({ token: 'x', address: '10.0.0.1' }, contextOf()),
    ),
    { status: 429 },
  )
  t.equal(held.auth.authenticate({ kind: 'bearer', value: token }, '10.0.0.1').sessionId, id)
  t.equal((await refusalOf(() => held.auth.authenticate(wrong, '10.0.0.2'))).status, 401)
  held.clock.now += MINUTE
  t.equal((await refusalOf(() => held.auth.authenticate(wrong, '10.0.0.1'))).status, 401)
})
