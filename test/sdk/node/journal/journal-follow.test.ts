import { once } from 'node:events'
import { createServer, connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { JournalStore } from '../../../../sdk/node/journal/journal-store.js'

const RUN = 'agent/frames/r-1'
const never = (): AbortSignal => new AbortController().signal
const done = [{ event: 'done', data: {} }] as const
/** One iteration of the event loop. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const frame = (n: number) => ({ kind: 'delta', n, text: 'x'.repeat(180) })

/** A sink that keeps the buffers it got. */
const keeper = () => {
  const got: Buffer[] = []
  const out = new Writable({ write: (bytes: Buffer, _, next) => (got.push(bytes), next()), highWaterMark: 1 << 20 })
  return { got, out }
}

t.test('nothing is serialised or copied for a watcher: all get the same buffer', async t => {
  const store = new JournalStore(t.testdir())
  await store.append(RUN, [frame(0)])
  const watchers = Array.from({ length: 50 }, keeper)
  const pumps = watchers.map(({ out }) => store.pump(RUN, 0, out, never()))
  while (watchers.some(({ got }) => got.length === 0)) await turn()
  let serialised = 0
  const { stringify } = JSON
  JSON.stringify = (...args: unknown[]) => (serialised++, Reflect.apply(stringify, JSON, args) as string)
  t.teardown(() => (JSON.stringify = stringify))
  for (let n = 1; n <= 20; n++) await store.append(RUN, [frame(n)])
  await store.close(RUN, done)
  await Promise.all(pumps)
  JSON.stringify = stringify
  t.equal(serialised, 21)
  const [first] = watchers
  t.ok((first?.got.length ?? 0) > 1)
  for (const { got } of watchers.slice(1)) {
    t.equal(got.length, first?.got.length)
    t.ok(got.slice(1).every((bytes, i) => bytes === first?.got[i + 1]))
  }
})

t.test('a stopped reader costs nothing and gets everything when it continues', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder, { tail: 128 * 1024 })
  await store.append(RUN, [frame(0)])
  const stalled = new PassThrough({ highWaterMark: 64 * 1024 })
  const quick = new PassThrough()
  const all = buffer(quick)
  const stalling = store.pump(RUN, 0, stalled, never())
  const pumping = store.pump(RUN, 0, quick, never()).then(() => quick.end())
  const batch = Array.from({ length: 1000 }, (_, n) => frame(n))
  for (let n = 0; n < 60; n++) {
    await store.append(RUN, batch)
    await turn()
  }
  await store.close(RUN, done)
  await pumping
  const file = readFileSync(join(folder, `${RUN}.events`))
  t.ok(file.equals(await all))
  t.ok(file.length > 12e6)
  t.ok(stalled.readableLength + stalled.writableLength < 1 << 20)
  const late = buffer(stalled)
  await stalling
  stalled.end()
  t.ok(file.equals(await late))
})

t.test('over sockets, a watcher that reconnects sees the same as the others', async t => {
  const store = new JournalStore(t.testdir())
  await store.append(RUN, [frame(0)])
  const server = createServer(socket => {
    socket.once('data', async after => {
      await store.pump(RUN, Number(after.toString()), socket, never())
      socket.end()
    })
    socket.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const attach = (after: number): Socket => {
    const socket = connect(port, '127.0.0.1')
    socket.write(String(after))
    return socket
  }
  const steady = Promise.all(Array.from({ length: 3 }, () => buffer(attach(0))))
  const breaking = (async () => {
    let text = ''
    for (let n = 0; !text.includes('event: done'); n++) {
      const last = Number([...text.matchAll(/^id: r-1:(\d+)$/gm)].at(-1)?.[1] ?? 0)
      const socket = attach(last)
      let part = ''
      for await (const piece of socket.setEncoding('utf8')) {
        part += piece as string
        if (n < 30 && part.length > n * 977) break
      }
      socket.destroy()
      text += part.slice(0, part.lastIndexOf('\n\n') + 2)
    }
    return text
  })()
  for (let n = 1; n < 3000; n++) {
    void store.append(RUN, [frame(n)])
    if (n % 20 === 0) await turn()
  }
  await store.close(RUN, done)
  const [first, ...others] = await steady
  t.ok(first?.toString().endsWith('event: done\ndata: {}\n\n'))
  for (const other of others) t.ok(first?.equals(other))
  t.equal((await breaking) === first?.toString(), true)
})

t.test('a watcher ends when it is stopped, its sink fails, or the journal is removed, replaced or closed', async t => {
  const store = new JournalStore(t.testdir())
  await t.rejects(store.pump(RUN, 0, new PassThrough(), never()), /there is no journal agent\/frames\/r-1/)
  await store.append(RUN, [frame(0)])
  const stop = new AbortController()
  const stopped = store.pump(RUN, 0, new PassThrough().resume(), stop.signal)
  const sink = new PassThrough().resume()
  const broken = store.pump(RUN, 0, sink, never())
  const aborted = await store.pump(RUN, 0, new PassThrough(), AbortSignal.abort())
  t.equal(aborted, undefined)
  stop.abort()
  sink.destroy(new Error('reset'))
  await Promise.all([stopped, broken])
  t.equal(sink.listenerCount('drain'), 0)
  const stalledSink = new Writable({ highWaterMark: 1, write: () => {} })
  const ends = [store.pump(RUN, 0, stalledSink, never()), store.pump(RUN, 1, new PassThrough().resume(), never())]
  await turn()
  await store.rewrite(RUN, [1])
  await Promise.all(ends)
  const next = store.pump(RUN, 0, new PassThrough().resume(), never())
  await store.remove(RUN)
  await next
  t.equal(await store.stat(RUN), undefined)
  await store.remove(RUN)
  t.equal(await store.append(RUN, ['anew']), 1)
  const last = store.pump(RUN, 0, new PassThrough().resume(), never())
  await store.shutdown()
  await last
})

t.test('idle bytes are sent when nothing else was, and only between complete entries', async t => {
  const store = new JournalStore(t.testdir())
  await store.append(RUN, [1])
  const out = new PassThrough().setEncoding('utf8')
  const stop = new AbortController()
  const pumping = store.pump(RUN, 0, out, stop.signal, { idle: { every: 5, write: Buffer.from(': \n\n') } })
  let text = ''
  for await (const piece of out) {
    text += piece as string
    if (text.endsWith(': \n\n') && text.split(': \n\n').length === 3) await store.append(RUN, [2])
    if (text.split(': \n\n').length > 5) break
  }
  stop.abort()
  await pumping
  t.equal(text.replaceAll(': \n\n', ''), 'id: r-1:1\nevent: message\ndata: 1\n\nid: r-1:2\nevent: message\ndata: 2\n\n')
  t.ok(text.startsWith('id: r-1:1'))
})

t.test('within the process, a journal is followed as values until it is closed', async t => {
  const folder = t.testdir()
  const store = new JournalStore(folder, { tail: 0 })
  await t.rejects(store.follow(RUN, 0, never()).next(), /there is no journal/)
  await store.append(RUN, ['a'.repeat(300_000), 'b'])
  const values: unknown[] = []
  const following = (async () => {
    for await (const value of store.follow(RUN, 1, never())) values.push(value)
  })()
  for (let n = 0; n < 100; n++) {
    await store.append(RUN, [n])
    if (n % 10 === 0) await turn()
  }
  await store.close(RUN, done)
  await following
  t.same(values, ['b', ...Array.from({ length: 100 }, (_, n) => n)])
  await store.append('agent/ledger', [1])
  const stop = new AbortController()
  const ledger = store.follow('agent/ledger', 0, stop.signal)
  t.same(await ledger.next(), { done: false, value: 1 })
  const waiting = ledger.next()
  await store.append('agent/ledger', [2])
  t.same(await waiting, { done: false, value: 2 })
  const last = ledger.next()
  stop.abort()
  t.same(await last, { done: true, value: undefined })
})
