import { once } from 'node:events'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { JournalStore } from '../../../../sdk/node/journal/journal-store.js'

const RUN = 'agent/frames/r-1'
const never = new AbortController().signal
const done = [
  { event: 'message', data: { kind: 'end' } },
  { event: 'done', data: {} },
] as const
const wire = (position: number, value: unknown): string =>
  `id: r-1:${position}\nevent: message\ndata: ${JSON.stringify(value)}\n\n`
const END = 'event: message\ndata: {"kind":"end"}\n\nevent: done\ndata: {}\n\n'

/** What a watcher receives until the journal ends. */
const watched = async (store: JournalStore, name: string, after: number, signal = never): Promise<string> => {
  const out = new PassThrough()
  const all = buffer(out)
  await store.pump(name, after, out, signal)
  out.end()
  return (await all).toString()
}

t.test('positions count from one without a gap, also across a restart', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  t.equal(await store.append(RUN, [{ n: 1 }, { n: 2 }]), 2)
  t.equal(await store.append(RUN, []), 2)
  t.equal(await store.append(RUN, [{ n: 3 }]), 3)
  await store.shutdown()
  await t.rejects(store.append(RUN, [1]), /is shut/)
  const again = new JournalStore(folder)
  t.same(await again.stat(RUN), { entries: 3, closed: false })
  t.equal(await again.append(RUN, [{ n: 4 }]), 4)
  t.same(await again.read(RUN, 2), [{ n: 3 }, { n: 4 }])
  t.equal(readFileSync(join(folder, `${RUN}.events`), 'utf8'), [1, 2, 3, 4].map(n => wire(n, { n })).join(''))
})

t.test('a thousand appends at once keep their order and are written together', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  const append = (n: number): Promise<number> => store.append('system/activity', [n], { flush: n % 7 === 0 })
  const positions = await Promise.all(Array.from({ length: 1000 }, (_, n) => append(n)))
  t.same(
    positions,
    Array.from({ length: 1000 }, (_, n) => n + 1),
  )
  t.same(
    await store.read('system/activity'),
    Array.from({ length: 1000 }, (_, n) => n),
  )
  t.equal(readFileSync(join(folder, 'system/activity.jsonl'), 'utf8').split('\n').length, 1001)
  t.equal(statSync(join(folder, 'system/activity.jsonl')).mode & 0o777, 0o600)
  t.equal(statSync(join(folder, 'system')).mode & 0o777, 0o700)
})

t.test('a last entry torn at any byte is cut off and the next one takes its position', async t => {
  const folder = t.testdir()
  const whole = wire(1, 'first')
  const torn = wire(2, 'sécond')
  const line = '"sécond"\n'
  for (let cut = 0; cut < Buffer.byteLength(torn); cut++) {
    const file = join(folder, 'agent/frames/r-1.events')
    const store = new JournalStore(folder)
    await store.rewrite(RUN, ['first'])
    await store.shutdown()
    writeFileSync(file, Buffer.concat([Buffer.from(whole), Buffer.from(torn).subarray(0, cut)]))
    const again = new JournalStore(folder)
    t.same(await again.read(RUN), ['first'])
    t.equal(statSync(file).size, Buffer.byteLength(whole) + cut, 'reading alone changes nothing')
    t.equal(await again.append(RUN, ['next']), 2)
    t.equal(readFileSync(file, 'utf8'), whole + wire(2, 'next'))
    await again.shutdown()
  }
  for (let cut = 0; cut < Buffer.byteLength(line); cut++) {
    const file = join(folder, 'agent/ledger.jsonl')
    writeFileSync(file, Buffer.concat([Buffer.from('1\n'), Buffer.from(line).subarray(0, cut)]))
    const again = new JournalStore(folder)
    t.equal(await again.append('agent/ledger', [2]), 2)
    t.equal(readFileSync(file, 'utf8'), '1\n2\n')
  }
})

t.test('a close torn at any byte is complete or did not happen', async t => {
  const folder = t.testdir()
  const file = join(folder, 'agent/frames/r-1.events')
  await new JournalStore(folder).append(RUN, [1])
  const head = readFileSync(file)
  for (let cut = 0; cut <= END.length; cut++) {
    writeFileSync(file, Buffer.concat([head, Buffer.from(END.slice(0, cut))]))
    const store = new JournalStore(folder)
    t.same(await store.stat(RUN), { entries: 1, closed: cut === END.length })
    if (cut < END.length) t.equal(await store.append(RUN, [2]), 2)
    else await t.rejects(store.append(RUN, [2]), /is closed and takes no more entries/)
    t.equal(readFileSync(file, 'utf8'), wire(1, 1) + (cut < END.length ? wire(2, 2) : END))
  }
})

t.test('a block that a power cut left empty ends the journal there', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder)
  await store.append('agent/ledger', [1, 2])
  await store.shutdown()
  appendFileSync(join(folder, 'agent/ledger.jsonl'), `3${'\0'.repeat(20)}4\n5\n`)
  const again = new JournalStore(folder)
  t.same(await again.read('agent/ledger'), [1, 2])
  t.equal(await again.append('agent/ledger', [3]), 3)
  t.equal(readFileSync(join(folder, 'agent/ledger.jsonl'), 'utf8'), '1\n2\n3\n')
})

t.test('watchers get the bytes of the file, whether they connect early, late or again at any position', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder, { tail: 20_000 })
  await store.append(RUN, [{ n: 0 }])
  const early = watched(store, RUN, 0)
  const jumpy = (async () => {
    let text = ''
    for (;;) {
      const position = text.lastIndexOf('id: r-1:')
      const last = position < 0 ? 0 : Number(/\d+/.exec(text.slice(position + 8))?.[0])
      const stop = new AbortController()
      const out = new PassThrough({ highWaterMark: 100 + (last % 5000) })
      let part = ''
      const most = 1 + ((last * 7919) % 30_000)
      out.setEncoding('utf8').on('data', (piece: string) => {
        part += piece
        if (part.length > most) stop.abort()
      })
      await store.pump(RUN, last, out, stop.signal)
      out.end()
      await once(out, 'end')
      text += part.slice(0, part.lastIndexOf('\n\n') + 2)
      if (text.endsWith(END)) return text
    }
  })()
  for (let i = 1; i < 4000; i++) {
    await store.append(RUN, [{ n: i, text: 'ü'.repeat(i % 97) }])
    if (i % 50 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  await store.close(RUN, done)
  const file = readFileSync(join(folder, `${RUN}.events`), 'utf8')
  t.ok(file.endsWith(END))
  t.equal((await early) === file, true)
  t.equal((await jumpy) === file, true)
  t.equal((await watched(store, RUN, 0)) === file, true)
  t.equal(await watched(store, RUN, 4000), END)
  t.equal(await watched(store, RUN, 9999), END)
  const again = new JournalStore(folder)
  for (const after of [1, 63, 1500, 3998]) {
    const rest = await watched(again, RUN, after)
    t.ok(rest.startsWith(`id: r-1:${after + 1}\n`))
    t.ok(file.endsWith(rest))
  }
})
