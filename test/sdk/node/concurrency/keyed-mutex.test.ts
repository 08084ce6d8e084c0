import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'

t.test('one holder at a time, in the order of requests', async t => {
  const locks = new KeyedMutex()
  const seen: string[] = []
  const work = (name: string) =>
    locks.with('k', async () => {
      seen.push(`${name}+`)
      await setImmediate()
      seen.push(`${name}-`)
    })
  await Promise.all([work('a'), work('b'), work('c')])
  t.same(seen, ['a+', 'a-', 'b+', 'b-', 'c+', 'c-'])
  t.notOk(locks.held('k'))
})

t.test('another key does not wait', async t => {
  const locks = new KeyedMutex()
  const release = await locks.hold('a')
  t.equal(await locks.with('b', () => 1), 1)
  t.ok(locks.held('a'))
  release()
})

t.test('an aborted waiter leaves the queue and the next one is served', async t => {
  const locks = new KeyedMutex()
  const release = await locks.hold('k')
  const stop = new AbortController()
  const aborted = locks.hold('k', stop.signal)
  const next = locks.hold('k')
  stop.abort(new Error('gone'))
  await t.rejects(aborted, { message: 'gone' })
  release()
  release()
  ;(await next)()
  t.notOk(locks.held('k'))
  await t.rejects(locks.hold('k', stop.signal), { message: 'gone' })
})

t.test('a lock is free again after its work threw, and a late abort does nothing', async t => {
  const locks = new KeyedMutex()
  await t.rejects(
    locks.with('k', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
  const stop = new AbortController()
  const first = await locks.hold('k')
  const second = locks.hold('k', stop.signal)
  first()
  const release = await second
  stop.abort()
  t.ok(locks.held('k'))
  release()
  t.notOk(locks.held('k'))
})
