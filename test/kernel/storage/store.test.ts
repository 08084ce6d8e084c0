import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openStore } from '../../../kernel/storage/store.js'

t.test('documents are read as they were stored, also after the store was closed', async t => {
  const file = join(t.testdir(), 'store.sqlite')
  const store = openStore(`sqlite://${file}`)
  t.notOk(existsSync(file), 'nothing is opened before it is used')
  const agents = store.of('agents')
  const value = { text: ':base64:ü "quoted"', list: [1, 0, false], empty: {} }
  await agents.set('card', value)
  t.same(await agents.get('card'), value)
  t.equal(await agents.get('none'), undefined)
  t.equal(statSync(file).mode & 0o777, 0o600)
  await store.close()
  await t.rejects(agents.set('card', 1), /is closed/)
  await t.rejects(agents.get('card'), /is closed/)
  t.throws(() => store.of('other'), /is closed/)
  const again = openStore(`sqlite://${file}`)
  t.same(await again.of('agents').get('card'), value)
  await again.of('agents').delete('card')
  await again.of('agents').delete('card')
  t.same(await again.of('agents').all(), [])
  await again.close()
})

t.test('plugins see only their own documents, with any names', async t => {
  const store = openStore(`sqlite://${join(t.testdir(), 'store.sqlite')}`)
  t.teardown(() => store.close())
  const names = ['a-b', 'ab', 'a_b', 'a.b', 'A-B', 'acme.tool', '%']
  await Promise.all(names.map(name => store.of(name).set('who', name)))
  await Promise.all(names.map(name => store.of(name).set('own_%', { name })))
  for (const name of names)
    t.same(await store.of(name).all(), [
      ['own_%', { name }],
      ['who', name],
    ])
  await store.of('a_b').delete('who')
  t.equal(await store.of('ab').get('who'), 'ab')
})

t.test('the last of many writes of one key wins, and several thousand keys are listed', async t => {
  const store = openStore(`sqlite://${join(t.testdir(), 'store.sqlite')}`)
  t.teardown(() => store.close())
  const many = store.of('many')
  await Promise.all(Array.from({ length: 300 }, (_, n) => many.set('same', n)))
  t.equal(await many.get('same'), 299)
  await Promise.all(Array.from({ length: 2300 }, (_, n) => many.set(`k${n}`, n)))
  const all = new Map(await many.all<number>())
  t.equal(all.size, 2301)
  t.equal(all.get('k2299'), 2299)
  await Promise.all(['k', 'l', 'k2😀', 'k2\uffff', 'K2'].map(key => many.set(key, { key })))
  const below = await many.all('k2')
  t.equal(below.length, 1 + 10 + 100 + 300 + 2)
  t.same(
    await many.texts('k2'),
    below.map(([key, value]) => [key, JSON.stringify(value)]),
  )
})

t.test('values that are not JSON are refused, and later changes of the object have no effect', async t => {
  const store = openStore('sqlite://:memory:')
  t.teardown(() => store.close())
  await t.rejects(store.of('a').set('key', undefined), /expected a JSON value/)
  const value = { n: 1 }
  const written = store.of('a').set('key', value)
  value.n = 2
  await written
  t.same(await store.of('a').get('key'), { n: 1 })
})

t.test('the error for another address names the missing package and never shows the password', t => {
  t.throws(
    () => openStore('redis://user:hunter2@host'),
    /redis: needs the package @keyv\/redis, which is not installed/,
  )
  for (const uri of ['redis://user:hunter2@host', 'nonsense:hunter2', 'sqlite://', '']) {
    t.throws(() => openStore(uri), /^(?!.*hunter2)store: /)
  }
  t.end()
})

t.test('a file that is not a database is an error, not the end of the process', async t => {
  const store = openStore(`sqlite://${t.testdir({ 'store.sqlite': 'x'.repeat(5000) })}/store.sqlite`)
  await t.rejects(store.of('a').set('key', 1), /not a database/)
  await t.rejects(store.of('a').get('key'), /not a database/)
  await store.close()
  const nowhere = openStore(`sqlite://${t.testdir()}/no/such/folder/store.sqlite`)
  await t.rejects(nowhere.of('a').get('key'), { code: 'ENOENT' })
  await nowhere.close()
})

t.test('documents that were stored before a kill exist after it', async t => {
  const uri = `sqlite://${join(t.testdir(), 'store.sqlite')}`
  for (let round = 0; round < 3; round++) {
    const setter = fileURLToPath(new URL('setter.js', import.meta.url))
    const child = spawn(process.execPath, [setter, uri], { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      if (text.length > 300 + round * 777) child.kill('SIGKILL')
    })
    await once(child, 'close')
    const last = Number(text.slice(0, text.lastIndexOf('\n')).split('\n').at(-1))
    const store = openStore(uri)
    const { n } = (await store.of('agents').get<{ n: number }>(`k${last % 100}`)) ?? { n: -1 }
    t.ok(last > 50 && n >= last)
    await store.close()
  }
})
