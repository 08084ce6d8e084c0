import t from 'tap'
import { Semaphore } from '../../../../sdk/node/concurrency/semaphore.js'

t.test('a limited number of tasks runs at once, in order, and a failed one frees its slot', async t => {
  const semaphore = new Semaphore(2)
  const began: number[] = []
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
  const tasks = ends.map((end, task) =>
    semaphore.run(async () => {
      began.push(task)
      await end.promise
      return task
    }),
  )
  const settled = () => new Promise(resolve => setImmediate(resolve))
  await settled()
  t.same(began, [0, 1])
  ends[1]!.reject(new Error('it failed'))
  await t.rejects(tasks[1]!, { message: 'it failed' })
  await settled()
  t.same(began, [0, 1, 2])
  for (const end of ends) end.resolve()
  t.same(await Promise.all(tasks.filter((_, task) => task !== 1)), [0, 2, 3, 4])
  t.same(began, [0, 1, 2, 3, 4])
  t.equal(await semaphore.run(async () => 'free'), 'free')
})
