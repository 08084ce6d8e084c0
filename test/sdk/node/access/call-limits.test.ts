import t from 'tap'
import { CallLimits } from '../../../../sdk/node/access/call-limits.js'
import { Failures } from '../../../../sdk/node/access/failures.js'
import { MINUTE, refusalOf } from '../../../kernel/auth/memory.js'

t.test('failures of one address are answered up to the limit, and again when the window has passed', async t => {
  const clock = { now: 0 }
  const failures = new Failures(3, MINUTE, () => clock.now)
  for (const at of [0, 1000, 2000]) {
    clock.now = at
    t.equal(failures.wait('a'), undefined)
    failures.add('a')
  }
  t.equal(failures.wait('a'), 58)
  t.equal(failures.wait('b'), undefined)
  clock.now = MINUTE
  t.equal(failures.wait('a'), undefined)
})

t.test('a credential has 1200 calls a minute', async t => {
  const clock = { now: 0 }
  const limits = new CallLimits(() => clock.now)
  for (let call = 0; call < 1200; call++) limits.enter('a')()
  clock.now = 20_000
  t.match(await refusalOf(() => limits.enter('a')), { status: 429, detail: { retryAfter: 40 } })
  limits.enter('b')()
  clock.now = MINUTE
  limits.enter('a')()
  t.pass('a minute later it has them again')
})

t.test('a credential has 64 concurrent calls, and ending a call twice frees one slot', async t => {
  const limits = new CallLimits(() => 0)
  const leaves = Array.from({ length: 64 }, () => limits.enter('a'))
  t.match(await refusalOf(() => limits.enter('a')), { status: 429 })
  leaves[0]!()
  leaves[0]!()
  limits.enter('a')
  t.match(await refusalOf(() => limits.enter('a')), { status: 429 })
})

t.test('a credential has 16 streams', async t => {
  const limits = new CallLimits(() => 0)
  const leaves = Array.from({ length: 16 }, () => limits.enterStream('a'))
  t.match(await refusalOf(() => limits.enterStream('a')), { status: 429 })
  limits.enter('a')()
  leaves[3]!()
  limits.enterStream('a')
  t.pass('an ended stream makes room')
})
