import t from 'tap'
import { Names } from '../../../../sdk/node/network/names.js'
import { exactly } from '../../../support/lists.js'

const tick = () => new Promise(resolve => setImmediate(resolve))

t.test('each network resolves one name at a time, and all together two', async t => {
  const under: string[] = []
  const ends: (() => void)[] = []
  const look = (host: string) =>
    new Promise<{ address: string; family: number }[]>(resolve => {
      under.push(host)
      ends.push(() => resolve([{ address: '10.0.0.1', family: 4 }]))
    })
  const [one, two, three] = [new Names(look), new Names(look), new Names(look)]
  const asked = [one.find('a1'), one.find('a2'), one.find('a1'), two.find('b1'), three.find('c1')]
  await tick()
  t.same(under, ['a1', 'b1'], 'the second name of one waits, and so does the third network')
  t.same(await one.find('10.1.1.1'), [{ address: '10.1.1.1', family: 4 }], 'an address does not wait')
  while (under.length < 4) {
    ends.shift()!()
    await tick()
  }
  t.same([...under].sort(), ['a1', 'a2', 'b1', 'c1'], 'the same name is resolved once')
  for (const end of ends) end()
  await Promise.all(asked)
  await one.find('a1')
  t.equal(under.length, 4, 'the result is cached for a moment')
})

t.test('a failed name is resolved again', async t => {
  let times = 0
  const names = new Names(async () => {
    if (++times === 1) throw new Error('no such name')
    return [{ address: '10.0.0.1', family: 4 }]
  })
  await t.rejects(names.find('a'), { message: 'no such name' })
  await tick()
  t.match(await names.find('a'), exactly({ address: '10.0.0.1' }))
})
