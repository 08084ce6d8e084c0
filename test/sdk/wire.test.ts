import { EventEmitter, once } from 'node:events'
import t, { type Test } from 'tap'
import type { Context } from '../../sdk/contract.js'
import { Refusal, refuse } from '../../sdk/refusal.js'
import { Peer, type Message } from '../../sdk/wire.js'
import { exactly } from '../support/lists.js'

type Stream = AsyncIterable<unknown, unknown>

/** The result of reading one piece of a stream. */
const readerOf = (stream: unknown) => (stream as Stream)[Symbol.asyncIterator]()

/** Two peers on one pipe, like the daemon and the process of a group; `serve` answers on the other side. */
const linked = (serve: (call: string, context: Context) => unknown) => {
  const [here, there] = [new EventEmitter(), new EventEmitter()]
  const pipe = (own: EventEmitter, other: EventEmitter) => ({
    send: (message: Message) => void setImmediate(() => other.emit('message', structuredClone(message))),
    on: (event: 'message', listener: (message: Message) => void) => own.on(event, listener),
  })
  const [near, far] = [new Peer(pipe(here, there)), new Peer(pipe(there, here))]
  far.answer = async (call, _input, context) => serve(call, context)
  return { near, far }
}

const gone = () => new Refusal('unavailable', 'demo is not running: its process ended with 1')

t.test('each piece of a stream is produced when its reader requests it', async t => {
  let made = 0
  const { near } = linked(async function* () {
    for (;;) yield ++made
  })
  const reader = readerOf(await near.request('demo.count', {}))
  t.equal(made, 0)
  t.same([(await reader.next()).value, (await reader.next()).value], [1, 2])
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
  t.equal(made, 2, 'nothing is produced ahead')
  await reader.return?.()
})

t.test('a stream ends with its value, also one that is the data of an answer', async t => {
  const { near } = linked(call => {
    const pieces = (async function* () {
      yield 'piece'
      return 'whole'
    })()
    return call === 'demo.bytes' ? { type: 'text/plain', data: pieces } : pieces
  })
  const { data, ...rest } = (await near.request('demo.bytes', {})) as { data: unknown }
  t.same(rest, { type: 'text/plain' })
  for (const stream of [data, await near.request('demo.plain', {})]) {
    const reader = readerOf(stream)
    t.same(await reader.next(), { value: 'piece', done: false })
    t.same(await reader.next(), { value: 'whole', done: true })
  }
})

/** A stream that reports when it was ended from outside, and the state of its signal. */
const watched = (events: EventEmitter) =>
  async function* (_call: string, { signal }: Context) {
    try {
      for (;;) yield 'piece'
    } finally {
      events.emit('ended', signal.aborted)
    }
  }

t.test('a reader that leaves early ends the stream on the other side', async t => {
  const events = new EventEmitter()
  const { near } = linked(watched(events))
  const ended = once(events, 'ended')
  for await (const piece of (await near.request('demo.stream', {})) as Stream) {
    t.equal(piece, 'piece')
    break
  }
  t.same(await ended, [true])
})

t.test('a reader whose signal is aborted ends a stream that waits for its next piece', async t => {
  const events = new EventEmitter()
  const { near } = linked(async function* (_, { signal }) {
    yield 'first'
    await once(signal, 'abort')
    events.emit('ended')
  })
  const leaving = new AbortController()
  const reader = readerOf(await near.request('demo.stream', {}, { signal: leaving.signal }))
  await reader.next()
  const [ended, next] = [once(events, 'ended'), reader.next()]
  leaving.abort()
  await ended
  t.same(await next, { value: undefined, done: true })
})

t.test('an error in the middle of a stream arrives as the same refusal, after the pieces before it', async t => {
  const { near } = linked(async function* (call) {
    yield 'piece'
    if (call === 'demo.bug') throw new Error('secret detail')
    refuse('too-many', 'come back later', { retryAfter: 7, fields: { people: ['ann'] } })
  })
  const failed = async (call: string) => {
    const reader = readerOf(await near.request(call, {}))
    t.equal((await reader.next()).value, 'piece')
    return reader.next().then(
      () => t.fail('the stream went on'),
      (error: Refusal) => error,
    )
  }
  t.match(await failed('demo.refuses'), {
    name: 'Refusal',
    status: 429,
    message: 'come back later',
    detail: { retryAfter: 7, fields: { people: exactly('ann') } },
  })
  const bug = await failed('demo.bug')
  t.match(bug, { name: 'Refusal', status: 500 })
  t.notMatch(String(bug), 'secret detail')
})

const opened = async (t: Test) => {
  const { near } = linked(async function* (call, { signal }) {
    yield 'first'
    if (call === 'demo.waits') await once(signal, 'abort')
    yield 'second'
  })
  const [waits, rests] = [
    readerOf(await near.request('demo.waits', {})),
    readerOf(await near.request('demo.rests', {})),
  ]
  for (const reader of [waits, rests]) t.equal((await reader.next()).value, 'first')
  return { near, waits, rests }
}

t.test('when the pipe breaks, every open stream and every request ends with that refusal', async t => {
  const { near, waits, rests } = await opened(t)
  const [next, asked] = [waits.next(), near.request('demo.waits', {})]
  near.break(gone())
  for (const read of [next, asked, rests.next(), near.request('demo.rests', {})])
    await t.rejects(read, { name: 'Refusal', reason: 'unavailable', message: /its process ended with 1/ })
  t.same(await rests.next(), { value: undefined, done: true }, 'an ended one stays ended')
})

t.test('when the pipe breaks, streams that were served over it end on this side', async t => {
  const events = new EventEmitter()
  const { near, far } = linked(watched(events))
  const reader = readerOf(await near.request('demo.stream', {}))
  await reader.next()
  const ended = once(events, 'ended')
  far.break(gone())
  t.same(await ended, [true])
})

t.test('when the pipe breaks, a request that is being answered is aborted', async t => {
  const events = new EventEmitter()
  const { near, far } = linked(async (_, { signal }) => {
    events.emit('begun')
    await once(signal, 'abort')
    events.emit('aborted')
  })
  const begun = once(events, 'begun')
  void near.request('demo.wait', {})
  await begun
  const aborted = once(events, 'aborted')
  far.break(gone())
  await aborted
})
