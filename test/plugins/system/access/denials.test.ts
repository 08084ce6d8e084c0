import t from 'tap'
import { Denials } from '../../../../plugins/system/access/denials.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'

t.test('the first failure of an address is reported at once, and the number of others after ten minutes', t => {
  const clock = { now: 1_000_000 }
  const told: [address: string, count: number][] = []
  const denials = new Denials(
    (address, _, count) => told.push([address, count]),
    () => clock.now,
  )
  for (let n = 0; n < 5; n++) denials.add('a', 'token')
  denials.add('b', 'session')
  t.same(told, [
    ['a', 1],
    ['b', 1],
  ])
  clock.now += 10 * 60_000
  denials.sweep()
  t.same(told.slice(2), [['a', 4]], 'a single failure has no second report')
  denials.add('a', 'token')
  t.same(told.slice(3), [['a', 1]])
  clock.now -= 60 * 60_000
  denials.add('a', 'token')
  t.same(told.slice(4), [['a', 1]], 'a clock that was set back starts a new period')
  denials.add('a', 'token')
  denials.sweep(true)
  t.same(told.slice(5), [['a', 1]])
  t.end()
})

t.test('addresses beyond the limit are reported by their first failure only', t => {
  const told: string[] = []
  const denials = new Denials(
    address => told.push(address),
    () => 1,
  )
  for (let n = 0; n < 10_500; n++) denials.add(`a-${n}`, 'token')
  t.equal(told.length, 10_500)
  t.end()
})

t.test('an invalid credential is recorded, without its value', async t => {
  const daemon = await daemonWith(t, ['activity', 'system'])
  const wrong = `sbc_${'a'.repeat(22)}.${'b'.repeat(43)}`
  for (let n = 0; n < 3; n++)
    t.equal((await fetch(`${daemon.url}/info`, { headers: { 'x-sandbox-control': wrong } })).status, 401)
  await daemon.fetch('/info')
  const { events } = await daemon.client.call('GET /activity', { type: 'access.*' })
  t.match(
    events,
    exactly({
      type: 'access.denied',
      actor: 'stranger',
      audience: 'maintainer',
      outcome: 'error',
      extra: { address: '127.0.0.1', credential: 'token', count: 1 },
    }),
  )
  t.equal(events.length, 1)
  t.notMatch(JSON.stringify(events), 'bbbbbb')
})
