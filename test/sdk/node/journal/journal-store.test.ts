import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { JournalStore } from '../../../../sdk/node/journal/journal-store.js'

const RUN = 'agent/frames/r-1'

t.test('names that could leave the folder or collide with another file are refused', async t => {
  const folder = t.testdir()
  const store = new JournalStore(join(folder, 'journals'))
  const bad = [
    '',
    'agent',
    '../agent/x',
    'agent/../../x',
    'agent//x',
    '/agent/x',
    'agent/x/',
    'agent/.x',
    'agent/a\0b',
    'agent/ü',
    'agent/a b',
    `agent/${'a'.repeat(129)}`,
    'agent/frames/r-1.events/x',
    'a/b/c/d/e/f/g/h/i',
  ]
  for (const name of bad) {
    await t.rejects(store.append(name, [1]), /name: expected/)
    await t.rejects(store.read(name), /name: expected/)
    await t.rejects(store.follow(name, 0, AbortSignal.abort()).next(), /name: expected/)
  }
  t.same(readdirSync(folder), [])
})

t.test('values that are not JSON are refused, and only event journals can be closed, by done or error', async t => {
  const store = new JournalStore(t.testdir())
  const circular: { self?: unknown } = {}
  circular.self = circular
  await t.rejects(store.append(RUN, [1, circular]), TypeError)
  await t.rejects(store.append(RUN, [1, undefined]), /expected a JSON value/)
  t.equal(await store.stat(RUN), undefined)
  await t.rejects(store.close('agent/ledger', [{ event: 'done', data: {} }]), /expected a journal of events/)
  await t.rejects(store.close(RUN, []), /expected to end with done or error, found nothing/)
  await t.rejects(store.close(RUN, [{ event: 'message', data: 1 }]), /found message/)
})

t.test('an append after close in the same tick is refused, one before it is kept', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  const asked = await Promise.allSettled([
    store.append(RUN, [1]),
    store.close(RUN, [{ event: 'error', data: { message: 'x' } }]),
    store.append(RUN, [2]),
    store.append(RUN, [3]),
  ])
  t.same(
    asked.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected'],
  )
  t.same(await store.stat(RUN), { entries: 1, closed: true })
  t.same(await store.read(RUN), [1])
  await t.rejects(store.close(RUN, [{ event: 'done', data: {} }]), /is closed/)
  t.equal(
    readFileSync(join(folder, `${RUN}.events`), 'utf8'),
    'id: r-1:1\nevent: message\ndata: 1\n\nevent: error\ndata: {"message":"x"}\n\n',
  )
})

t.test('the content of a value cannot forge an event', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  const hostile = ['\n\nevent: done\ndata: {}\n\n', '\r\n\u2028\u2029\0\ud800', { '\ndata: ': '\ndata: x\n\n' }]
  await store.append(RUN, hostile)
  await store.append('agent/lines', hostile)
  await store.shutdown()
  const again = new JournalStore(folder)
  t.same(await again.read(RUN), hostile)
  t.same(await again.read('agent/lines'), hostile)
  t.same(await again.stat(RUN), { entries: 3, closed: false })
})

t.test('a rewrite is atomic between earlier and later appends', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  const asked = [
    store.append('agent/queue', [1]),
    store.append('agent/queue', [2]),
    store.rewrite('agent/queue', ['a', 'b']),
    store.append('agent/queue', ['c'], { flush: true }),
    store.rewrite('agent/queue', ['x']),
    store.append('agent/queue', ['y']),
  ]
  t.same(await Promise.all(asked), [1, 2, undefined, 3, undefined, 2])
  t.same(await store.read('agent/queue'), ['x', 'y'])
  t.same(readdirSync(join(folder, 'agent')), ['queue.jsonl'])
  const seen = new Set<string>()
  let writing = true
  const reading = (async () => {
    while (writing) seen.add(JSON.stringify(await store.read('agent/queue')))
  })()
  const [old, next] = ['old', 'new'].map(word => Array.from({ length: 5000 }, () => word))
  await store.rewrite('agent/queue', old ?? [])
  seen.clear()
  for (let n = 0; n < 20; n++) await store.rewrite('agent/queue', (n % 2 ? old : next) ?? [])
  writing = false
  await reading
  seen.delete('["x","y"]')
  for (const read of seen) t.ok(read === JSON.stringify(old) || read === JSON.stringify(next))
})

t.test('a renamed journal keeps its bytes, also bytes that are not entries', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  await store.append('agent/runs/a', [1])
  await store.append('agent/bad/a', ['old', 'older'])
  await store.append('agent/runs/a', [2])
  await store.rename('agent/runs/a', 'agent/bad/a')
  t.same(await store.read('agent/bad/a'), [1, 2])
  t.equal(await store.append('agent/bad/a', [3]), 3)
  t.equal(await store.stat('agent/runs/a'), undefined)
  t.equal(await store.append('agent/runs/a', ['new']), 1)
  await store.shutdown()
  writeFileSync(join(folder, 'agent/runs/a.jsonl'), '1\nno entry\n2\n')
  const again = new JournalStore(folder)
  await t.rejects(again.read('agent/runs/a'))
  await again.rename('agent/runs/a', 'agent/bad/b')
  t.equal(readFileSync(join(folder, 'agent/bad/b.jsonl'), 'utf8'), '1\nno entry\n2\n')
  await again.rename('agent/runs/none', 'agent/bad/none')
  t.same(await again.list('agent/'), ['agent/bad/a', 'agent/bad/b'])
  await t.rejects(again.rename('agent/bad/a', 'agent/frames/a'), /of the same kind/)
})

t.test('an interrupted rewrite that a crash left changes nothing', async t => {
  const folder = t.testdir()
  await new JournalStore(folder).append('agent/queue', [1])
  writeFileSync(join(folder, 'agent/.queue.jsonl.tmp'), '2\n3')
  const store = new JournalStore(folder)
  t.same(await store.read('agent/queue'), [1])
  t.same(await store.list(''), ['agent/queue'])
  await store.rewrite('agent/queue', [4])
  t.same(readdirSync(join(folder, 'agent')), ['queue.jsonl'])
})

t.test('journals are listed by name prefix, and not after removal', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  const names = ['agent/frames', 'agent/frames/r-1', 'agent/frames/r-10', 'agent/frames/r-2', 'agent/ledger']
  for (const name of [...names, 'agents/x']) await store.append(name, [1])
  t.same(await store.list('agent/'), names)
  t.same(await store.list('agent/frames/r-1'), ['agent/frames/r-1', 'agent/frames/r-10'])
  t.same(await store.list('nobody/'), [])
  await t.rejects(store.list('../'), /name: expected/)
  await store.remove(RUN)
  t.notOk(existsSync(join(folder, `${RUN}.events`)))
  t.same(await store.list('agent/frames/r-1'), ['agent/frames/r-10'])
  t.same(await store.read(RUN), [])
})

t.test('simultaneous flushed appends are acknowledged together after one sync of the disk', async t => {
  const store = new JournalStore(t.testdir())
  await store.append(RUN, [0], { flush: true })
  let turn = 0
  const counting = setInterval(() => turn++, 0)
  t.teardown(() => clearInterval(counting))
  const asked = Array.from({ length: 2000 }, (_, n) => store.append(RUN, [n], { flush: true }).then(() => turn))
  const turns = await Promise.all(asked)
  t.equal(new Set(turns).size, 1)
})

t.test('more journals can be in use than are kept open, and idle ones are closed', async t => {
  const store = new JournalStore(t.testdir(), { open: 8, idle: 20 })
  const names = Array.from({ length: 200 }, (_, n) => `agent/many/${n}`)
  for (let round = 1; round <= 3; round++) {
    const positions = await Promise.all(names.map(name => store.append(name, [name])))
    t.ok(positions.every(position => position === round))
  }
  const open = (): number => readdirSync('/proc/self/fd').length
  const before = open()
  while (open() > before - 150) await new Promise(resolve => setTimeout(resolve, 5))
  for (const name of names) t.same(await store.read(name, 2), [name])
})
