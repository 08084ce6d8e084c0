import t from 'tap'
import { Live, SHRUNK } from '../../../kernel/streams/live.js'
import { Refusal } from '../../../sdk/refusal.js'
import { bench, EPOCH, TestClock, type Got } from './support.js'
import { exactly } from '../../support/lists.js'

const seqs = (got: readonly Got[]): number[] => got.map(({ id }) => Number(id.split('-')[1]))

const card = (n: number | string, more: object = {}) => ({ data: { kind: 'agent', n, ...more }, mode: 'delta' })

t.test('a watcher begins with hello and the snapshots, and only the last of them has an id', t => {
  const { live, watch } = bench()
  live.show([{ data: { kind: 'agents' }, snapshot: true, mode: 'snapshot' }])
  live.bump('fleet', 'landings')
  const got = watch().take()
  t.match(
    got.map(({ data }) => data.kind),
    exactly('hello', 'agents', 'presence', 'attention'),
  )
  t.same(seqs(got), [0, 0, 0, 4])
  t.match(got[0]!.data, {
    me: 'ada',
    epoch: EPOCH,
    seq: 4,
    resumed: false,
    boot: { ready: true },
    versions: { landings: 1, subagents: 0, sessions: 0 },
  })
  t.end()
})

t.test('a watcher whose access was reduced before it began is told so, and gets nothing else', async t => {
  const { watch } = bench()
  const reduced = watch({ signal: AbortSignal.abort(SHRUNK) })
  t.match(
    reduced.take().map(({ data }) => data),
    exactly({ kind: 'resync', reason: 'access' }),
  )
  await reduced.closed
})

t.test('frames reach every watcher at once and in one order', t => {
  const { live, watch } = bench()
  const [one, other] = [watch({ mode: 'delta' }), watch({ mode: 'delta' })]
  one.take()
  other.take()
  for (let n = 0; n < 5; n++) live.show([card(n), card(`${n}b`)])
  const got = one.take()
  t.same(
    got.map(({ data }) => data.n),
    [0, '0b', 1, '1b', 2, '2b', 3, '3b', 4, '4b'],
  )
  t.same(seqs(got), [3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  t.same(other.take(), got)
  t.end()
})

t.test('a frame is serialised once for all receivers', t => {
  const { live, watch } = bench()
  const sinks = [watch({ mode: 'delta' }), watch({ mode: 'delta' }), watch({ mode: 'delta', form: 'tokens' })]
  for (const sink of sinks) sink.take()
  let times = 0
  live.show([
    { data: { kind: 'agent', toJSON: () => ({ kind: 'agent', times: ++times }) } as { kind: string }, mode: 'delta' },
  ])
  t.equal(times, 1)
  const [first, ...others] = sinks.map(({ chunks }) => chunks[0]!)
  for (const chunk of others)
    t.ok(chunk.buffer === first!.buffer && chunk.byteOffset === first!.byteOffset, 'the same buffer')
  t.end()
})

t.test('people and programs get their own forms of an event', t => {
  const { live, watch } = bench()
  const [person, program] = [watch(), watch({ form: 'tokens' })]
  t.same(program.kinds(), ['hello', 'attention'])
  person.take()
  live.show([
    { data: { kind: 'attention', offload: 1 } as { kind: string }, tokens: { kind: 'attention' }, snapshot: true },
    { data: { kind: 'presence' }, tokens: false, snapshot: true },
  ])
  t.match(
    person.take().map(({ data }) => data),
    exactly({ kind: 'attention', offload: 1 }, { kind: 'presence' }),
  )
  t.strictSame(
    program.take().map(({ data }) => data),
    [{ kind: 'attention' }],
  )
  t.end()
})

t.test('frames of a mode reach the watchers that requested it, but the first snapshot of a kind goes to all', t => {
  const { live, watch } = bench()
  const [whole, delta] = [watch(), watch({ mode: 'delta' })]
  for (const sink of [whole, delta]) sink.take()
  const show = () => live.show([card(1), { data: { kind: 'agents' }, snapshot: true, mode: 'snapshot' }])
  show()
  t.same([whole.kinds(), delta.kinds()], [['agents'], ['agent', 'agents']])
  show()
  t.same([whole.kinds(), delta.kinds()], [['agents'], ['agent']])
  t.same(
    watch({ mode: 'delta' }).kinds(),
    ['hello', 'agents', 'presence', 'attention'],
    'a new watcher gets it in either mode',
  )
  t.end()
})

t.test('a watcher that reconnects gets every missed frame, in order, and none twice', t => {
  const { live, watch } = bench()
  const all = watch({ mode: 'delta' })
  all.take()
  for (let n = 0; n < 20; n++) live.show([card(n)])
  const whole = all.take()
  for (const { id } of whole) {
    const at = whole.findIndex(one => one.id === id)
    const got = watch({ mode: 'delta', last: id }).take()
    t.match(got[0], { id, data: { kind: 'hello', resumed: true, seq: 22 } })
    t.same(got.slice(1, -2), whole.slice(at + 1))
    t.same(
      got.slice(-2).map(({ data }) => data.kind),
      ['presence', 'attention'],
    )
    t.equal(got.at(-1)!.id, `${EPOCH}-22`)
  }
  t.same(watch({ mode: 'delta', after: whole[18]!.id }).take()[1], whole[19], 'named in the query')
  t.same(
    watch({ mode: 'delta', after: whole[0]!.id, last: whole[18]!.id }).take()[1],
    whole[19],
    'a header overrides the query',
  )
  t.end()
})

t.test('a resumed watcher gets a snapshot of its mode again if it has changed', t => {
  const { live, watch } = bench()
  const show = () => live.show([{ data: { kind: 'agents' }, snapshot: true, mode: 'snapshot' }])
  show()
  const last = watch().take().at(-1)!.id
  t.same(watch({ last }).kinds(), ['hello', 'presence', 'attention'])
  show()
  t.same(watch({ last }).kinds(), ['hello', 'agents', 'presence', 'attention'])
  t.same(watch({ last, mode: 'delta' }).kinds(), ['hello', 'presence', 'attention'], 'its changes are sent one by one')
  t.same(seqs(watch({ last }).take()), [3, 3, 3, 4], 'interrupted before the last one, it would get them again')
  t.end()
})

t.test('an id of another run, of the future, unknown or malformed starts from the beginning', t => {
  const { live, watch } = bench()
  live.show([card(1)])
  for (const last of [
    'fedcba98-3',
    `${EPOCH}-4`,
    `${EPOCH}-0`,
    `${EPOCH}-1`,
    `${EPOCH}-`,
    `${EPOCH}--1`,
    EPOCH,
    '3',
    'x'.repeat(9000),
    `${EPOCH}-9999999999999999999`,
  ]) {
    t.match(
      watch({ last, mode: 'delta' }).take(),
      exactly({ data: { kind: 'hello', resumed: false } }, { data: { kind: 'presence' } }, {}),
      last.slice(0, 40),
    )
  }
  t.match(watch({ last: `${EPOCH}-2`, mode: 'delta' }).take()[0], { data: { resumed: true } })
  t.end()
})

t.test('a watcher that never got a snapshot starts from the beginning and gets it', t => {
  const { live, watch } = bench()
  const last = watch().take().at(-1)!.id
  live.show([{ data: { kind: 'agents' }, snapshot: true, mode: 'snapshot' }])
  t.match(
    watch({ last, mode: 'delta' }).take(),
    exactly({ data: { resumed: false } }, { data: { kind: 'agents' } }, {}, {}),
  )
  t.end()
})

t.test('4096 frames are kept', t => {
  const { live, watch } = bench()
  for (let n = 0; n < 4097; n++) live.show([card(n)])
  const [hello, first, ...rest] = watch({ last: `${EPOCH}-3`, mode: 'delta' }).take()
  t.match(hello, { data: { resumed: true } })
  t.match(first, { data: { n: 1 } })
  t.equal(rest.length, 4095 + 2)
  t.match(watch({ last: `${EPOCH}-2`, mode: 'delta' }).take()[0], { data: { resumed: false } })
  t.end()
})

t.test('a frame is kept for 10 minutes', t => {
  const { live, clock, watch } = bench()
  live.show([card(1)])
  clock.pass(600_000)
  t.match(
    watch({ last: `${EPOCH}-2`, mode: 'delta' }).take(),
    exactly({ data: { resumed: true } }, { data: { n: 1 } }, {}, {}),
  )
  clock.pass(1)
  t.match(watch({ last: `${EPOCH}-2` }).take()[0], { data: { resumed: false } })
  t.match(watch({ last: `${EPOCH}-3` }).take()[0], { data: { resumed: true } }, 'nothing has changed since')
  t.end()
})

t.test('the first change of a burst is sent at once and the others together 250 ms later', t => {
  const { live, clock, watch } = bench()
  const sink = watch()
  sink.take()
  live.bump('fleet', 'landings', 'a')
  t.match(
    sink.take(),
    exactly({
      data: { kind: 'runtimeChanged', domains: exactly('landings'), versions: { landings: 1 }, keys: exactly('a') },
    }),
  )
  for (const key of ['b', 'c', 'b']) live.bump('fleet', 'landings', key)
  live.bump('fleet', 'sessions', 'd')
  clock.pass(249)
  t.same(sink.take(), [])
  clock.pass(1)
  const got = sink.take()
  t.equal(got.length, 1)
  t.match(
    got,
    exactly({
      data: {
        domains: exactly('landings', 'sessions'),
        versions: { landings: 4, sessions: 1 },
        keys: exactly('b', 'c', 'd'),
      },
    }),
  )
  clock.pass(250)
  live.bump('fleet', 'landings')
  t.strictSame(
    sink.take().map(({ data }) => data),
    [{ kind: 'runtimeChanged', domains: ['landings'], versions: { landings: 5 } }],
    'after a pause, without a key',
  )
  t.end()
})

t.test('keys are left out if one is unknown or there are many', t => {
  const { live, clock, watch } = bench()
  const sink = watch()
  const burst = (keys: (string | undefined)[]) => {
    clock.pass(500)
    live.bump('fleet', 'landings', 'first')
    sink.take()
    for (const key of keys) live.bump('fleet', 'landings', key)
    clock.pass(250)
    return sink.take()[0]!.data.keys
  }
  t.same(burst(['a', 'b']), ['a', 'b'])
  t.equal(burst(['a', undefined, 'b']), undefined)
  t.equal(burst(Array.from({ length: 21 }, (_, n) => `k${n}`)), undefined)
  t.end()
})

t.test('domains that change constantly are sent every 2 s', t => {
  const { live, clock, watch } = bench()
  const sink = watch()
  sink.take()
  for (let n = 0; n < 40; n++) {
    live.bump('fleet', 'subagents')
    clock.pass(100)
  }
  t.match(
    sink.take().map(({ data }) => data.versions),
    exactly({ subagents: 1 }, { subagents: 20 }, { subagents: 40 }),
  )
  t.end()
})

t.test('a domain that the group does not declare is refused', t => {
  const { live } = bench()
  t.throws(() => live.bump('fleet', 'push'), { message: 'fleet does not declare the domain push in its manifest' })
  t.throws(() => live.bump('other', 'landings'), {
    message: 'other does not declare the domain landings in its manifest',
  })
  t.end()
})

t.test('frames that wait for a slow reader are merged, and their order is kept', t => {
  const { live, clock, watch } = bench()
  const [slow, quick] = [watch({ mode: 'delta', reads: false }), watch({ mode: 'delta' })]
  quick.take()
  live.bump('fleet', 'landings', 'a')
  live.show([card(1), { data: { kind: 'presence', at: 1 } as { kind: string }, tokens: false, snapshot: true }])
  clock.pass(300)
  live.bump('fleet', 'sessions', 'b')
  live.show([{ data: { kind: 'presence', at: 2 } as { kind: string }, tokens: false, snapshot: true }, card(2)])
  t.same(quick.kinds(), ['runtimeChanged', 'agent', 'presence', 'runtimeChanged', 'presence', 'agent'])
  t.same(slow.kinds(), ['hello', 'presence', 'attention'], 'sent before')
  slow.read()
  const got = slow.take()
  t.match(
    got.map(({ data }) => data),
    exactly(
      { kind: 'agent', n: 1 },
      {
        kind: 'runtimeChanged',
        domains: exactly('landings', 'sessions'),
        versions: { landings: 1, sessions: 1 },
        keys: exactly('a', 'b'),
      },
      { kind: 'presence', at: 2 },
      { kind: 'agent', n: 2 },
    ),
  )
  t.same(seqs(got), [4, 6, 7, 8])
  t.end()
})

t.test('readers that fell behind at different positions each get their missing frames', t => {
  const { live, clock, watch } = bench()
  const bump = (domain: string) => {
    clock.pass(300)
    live.bump('fleet', domain)
  }
  const early = watch({ reads: false })
  bump('landings')
  const late = watch({ reads: false })
  for (const sink of [early, late]) sink.take()
  bump('sessions')
  bump('sessions')
  for (const sink of [early, late]) sink.read()
  t.match(
    early.take(),
    exactly({ data: { domains: exactly('landings', 'sessions'), versions: { landings: 1, sessions: 2 } } }),
  )
  t.strictSame(
    late.take().map(({ data }) => data),
    [{ kind: 'runtimeChanged', domains: ['sessions'], versions: { sessions: 2 } }],
  )
  t.end()
})

t.test('a reader that missed a frame which is no longer kept starts from the beginning', t => {
  const { live, watch } = bench()
  const slow = watch({ reads: false })
  slow.take()
  live.bump('fleet', 'landings')
  for (let n = 0; n < 4096; n++) live.show([card(n)])
  slow.read()
  t.same(slow.kinds(), ['resync', 'hello', 'presence', 'attention'])
  t.end()
})

t.test('a reader with more than 512 waiting frames starts from the beginning, and delays no other', t => {
  const { live, watch } = bench()
  const [slow, quick] = [watch({ mode: 'delta', reads: false }), watch({ mode: 'delta' })]
  slow.take()
  quick.take()
  for (let n = 0; n < 512; n++) live.show([card(n)])
  t.equal(quick.take().length, 512)
  const patient = watch({ mode: 'delta', last: `${EPOCH}-2`, reads: false })
  slow.read(false)
  t.match(slow.take()[0], { data: { kind: 'agent', n: 0 } }, 'exactly 512 still come')
  for (let n = 0; n < 513; n++) live.show([card(n)])
  slow.read(true)
  const got = slow.take()
  t.same(
    got.slice(-4).map(({ data }) => data.kind),
    ['resync', 'hello', 'presence', 'attention'],
  )
  t.match(
    got.slice(-4),
    exactly({ data: { reason: 'slow' } }, { data: { resumed: false, seq: 1027 } }, {}, { id: `${EPOCH}-1027` }),
  )
  t.equal(quick.take().length, 513)
  patient.read()
  t.equal(
    patient.take().filter(({ data }) => data.kind === 'agent').length,
    512,
    'the missed frames of a resumed reader are not limited',
  )
  live.show([card('next')])
  t.match(slow.take(), exactly({ data: { n: 'next' } }))
  t.end()
})

t.test('a reader with more than 4 MiB waiting starts from the beginning, but one snapshot may be larger', t => {
  const { live, watch } = bench()
  const slow = watch({ mode: 'delta', reads: false })
  slow.take()
  for (let n = 0; n < 5; n++) live.show([card(n, { text: 'x'.repeat(1 << 20) })])
  slow.read(false)
  t.same(slow.kinds(), ['resync'])
  slow.read()
  t.same(slow.kinds(), ['hello', 'presence', 'attention'])
  slow.reads = false
  live.show([
    card('held'),
    { data: { kind: 'attention', text: 'x'.repeat(3 << 20) } as { kind: string }, snapshot: true },
  ])
  slow.read()
  t.same(slow.kinds(), ['agent', 'attention'])
  t.end()
})

t.test('a large frame is sent in pieces of 64 KiB, each when the previous one was accepted', t => {
  const { live, watch } = bench()
  const sink = watch({ mode: 'delta' })
  sink.take()
  sink.reads = false
  live.show([card('large', { text: 'x'.repeat(200_000) })])
  t.same(
    sink.chunks.map(({ length }) => length),
    [65_536],
  )
  sink.read(false)
  t.equal(sink.chunks.length, 2)
  sink.read()
  t.equal(sink.chunks.length, 4)
  t.match(sink.take(), exactly({ data: { n: 'large' } }))
  t.end()
})

t.test('a peer that accepts nothing for 30 s is closed, and one that accepts a little is not', async t => {
  const { clock, live, watch } = bench()
  const [stalled, slow] = [watch({ reads: false }), watch({ mode: 'delta', reads: false })]
  live.show([card(1, { text: 'x'.repeat(300_000) })])
  for (let n = 0; n < 5; n++) {
    clock.pass(29_000 / 4)
    slow.read(false)
  }
  t.notOk(stalled.open)
  await stalled.closed
  t.ok(slow.open)
  clock.pass(29_000)
  t.ok(slow.open)
  clock.pass(2_000)
  t.notOk(slow.open)
})

t.test('after 5 s without a frame a heartbeat is sent, but none into a blocked connection', t => {
  const { live, clock, watch } = bench()
  const [sink, stuck] = [watch(), watch({ reads: false })]
  sink.take()
  stuck.take()
  clock.pass(4_000)
  t.same(sink.take(), [])
  clock.pass(1_000)
  t.match(sink.take(), exactly({ id: `${EPOCH}-2`, data: { kind: 'heartbeat', at: clock.now(), seq: 2 } }))
  clock.pass(3_000)
  live.bump('fleet', 'landings')
  sink.take()
  clock.pass(4_000)
  t.same(sink.take(), [])
  clock.pass(1_000)
  t.same(sink.kinds(), ['heartbeat'])
  stuck.read()
  t.same(stuck.kinds(), ['runtimeChanged'], 'none is queued for it')
  t.end()
})

t.test('a stream whose credential ended reports it, and one whose reader left is removed', async t => {
  const { live, watch } = bench()
  const [revoked, left] = [new AbortController(), new AbortController()]
  const [one, other] = [watch({ signal: revoked.signal }), watch({ signal: left.signal })]
  one.take()
  other.take()
  revoked.abort(new Refusal('unauthenticated', 'it has ended'))
  left.abort()
  await Promise.all([one.closed, other.closed])
  t.match(
    one.take(),
    exactly({ event: 'error', data: { status: 401, reason: 'unauthenticated', message: 'it has ended' } }),
  )
  t.same(other.take(), [])
  live.show([card(1)])
  t.same([one.take(), other.take()], [[], []])
})

t.test('a stop ends every stream with done, and waits at most 1 s for a peer to accept it', async t => {
  const { live, clock, watch } = bench()
  const [sink, stuck] = [watch(), watch({ reads: false })]
  sink.take()
  stuck.take()
  const stopped = live.stop()
  t.match(sink.take(), exactly({ event: 'done', data: { reason: 'stopping', retryMs: 1000 } }))
  await sink.closed
  clock.pass(1_000)
  await stopped
  t.notOk(stuck.open)
  const late = watch()
  await late.closed
  t.same(late.kinds().at(-1), 'done')
})

t.test('in the middle of a frame a stream is aborted, not ended', async t => {
  const { live, watch } = bench()
  const ended = new AbortController()
  const sink = watch({ mode: 'delta', signal: ended.signal })
  sink.take()
  sink.reads = false
  live.show([card(1, { text: 'x'.repeat(100_000) })])
  ended.abort(new Refusal('unauthenticated', 'it has ended'))
  await sink.closed
  t.notOk(sink.open)
  t.notMatch(Buffer.concat(sink.chunks).toString(), 'it has ended')
})

t.test('the progress of a start is sent, also to watchers that connect meanwhile', t => {
  const progress = { ready: false, startedAt: 0, steps: [] }
  const live = new Live({ boot: () => ({ ...progress }), clock: new TestClock(), epoch: EPOCH })
  live.booted()
  const { watch } = bench()
  t.same(watch().kinds(), ['hello', 'presence', 'attention'], 'not after the start')
  const sinks: Got[][] = []
  const serve = () => {
    const got: Got[] = []
    sinks.push(got)
    const sink = {
      write: (bytes: Buffer, accepted: () => void) => (
        got.push(
          ...String(bytes)
            .split('\n\n')
            .filter(Boolean)
            .map(text => JSON.parse(text.split('data: ')[1]!) as never),
        ),
        accepted()
      ),
      end: () => {},
      cut: () => {},
    }
    void live.serve(
      sink,
      { hello: {}, form: 'people', mode: 'snapshot', snapshots: ['boot'], again: [] },
      undefined,
      new AbortController().signal,
    )
    return got as unknown as { kind: string; ready?: boolean }[]
  }
  const early = serve()
  progress.ready = true
  live.booted()
  t.match(early, exactly({ kind: 'hello' }, { kind: 'boot', ready: false }, { kind: 'boot', ready: true }))
  t.match(serve(), exactly({ kind: 'hello' }))
  t.end()
})
