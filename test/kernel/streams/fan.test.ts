import t from 'tap'
import { Fan } from '../../../kernel/streams/fan.js'
import { TestClock } from './support.js'

interface Reader {
  readonly name: number
}
const readers = (count: number): Set<Reader> => new Set(Array.from({ length: count }, (_, name) => ({ name })))
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

t.test('few readers are served at once, each time', async t => {
  const told: number[] = []
  const fan = new Fan(readers(100), ({ name }) => void told.push(name), new TestClock())
  fan.wake()
  fan.wake()
  t.equal(told.length, 200)
})

t.test('many readers are served in batches of a hundred, with other work in between', async t => {
  let told = 0
  const fan = new Fan(readers(1_000), () => void told++, new TestClock())
  fan.wake()
  const seen = [told]
  while (told < 1_000) {
    await turn()
    seen.push(told)
  }
  t.ok(seen.length >= 10 && seen.every((now, at) => now - (seen[at - 1] ?? 0) <= 100), seen.join())
})

t.test('changes during a round are sent once with the next one, which begins after a pause', async t => {
  const clock = new TestClock()
  let told = 0
  const fan = new Fan(readers(1_000), () => void told++, clock)
  fan.wake()
  for (let more = 0; more < 5; more++) fan.wake()
  while (told < 1_000) await turn()
  clock.pass(24)
  t.equal(told, 1_000)
  clock.pass(1)
  while (told < 2_000) await turn()
  clock.pass(25)
  await turn()
  t.equal(told, 2_000)
  fan.wake()
  t.equal(told, 2_100, 'after a pause without changes the next one is sent at once')
})

t.test('a reader that leaves during a round is skipped, and the others are served', async t => {
  const all = readers(300)
  const told: number[] = []
  const fan = new Fan(all, ({ name }) => void told.push(name), new TestClock())
  fan.wake()
  for (const reader of all) if (reader.name >= 200) all.delete(reader)
  for (let at = 0; at < 5; at++) await turn()
  t.same([told.length, Math.max(...told)], [200, 199])
})
