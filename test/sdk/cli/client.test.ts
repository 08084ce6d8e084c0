import t from 'tap'
import type { AttachData, Frame } from '../../../plugins/agent/contract.js'
import { createClient, Unreached } from '../../../sdk/client.js'
import { Refusal } from '../../../sdk/refusal.js'
import { json, runBytes, streaming, wire, wireServer } from '../wire.js'

// A stream that lasted longer than the longest wait does not count as a failure: long enough for a busy machine.
const quick = { first: 1, most: 5_000, attempts: 4 }
const collect = async <T>(stream: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const one of stream) all.push(one)
  return all
}
/** The error of a promise that must fail. */
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    error => error,
  )
const frames = (count: number): Frame[] =>
  Array.from({ length: count }, (_, i) => ({ kind: 'delta', text: `wörd ${i + 1} 🌱` }))
const seqs = (events: readonly AttachData[]) => events.flatMap(event => (event.kind === 'frame' ? [event.seq] : []))

t.test('a call is its method and path: parameters in the path, the rest in the query or the body', async t => {
  const { url, seen } = await wireServer(t, () => ({ ok: true }))
  const client = createClient({ url: `${url}/`, session: 'sbs_1' })
  await client.call('GET /agents/{id}/{repo}/file-diff', { id: 'c-1', repo: 'libs/a b', path: 'ä&b' })
  t.equal(seen[0]!.path, '/agents/c-1/libs%2Fa%20b/file-diff')
  t.same([...seen[0]!.query], [['path', 'ä&b']])
  t.equal(seen[0]!.headers.authorization, 'Bearer sbs_1')
  await client.call('POST /agents/{id}/land', { id: 'c-1', force: true })
  t.same([seen[1]!.path, seen[1]!.body], ['/agents/c-1/land', { force: true }])
  await createClient({ url, token: 'sbc_1' }).call('DELETE /system/control/tokens/{id}', { id: 'x' })
  t.same([seen[2]!.method, seen[2]!.body, seen[2]!.headers['x-sandbox-control']], ['DELETE', {}, 'sbc_1'])
  await client.call('GET /agents')
  t.equal(seen[3]!.query.size, 0)
})

t.test('a path that would be normalised to another one is never sent', async t => {
  const { url, seen } = await wireServer(t, () => ({}))
  const client = createClient({ url })
  for (const id of ['..', '.', ''])
    t.match(await failure(client.call('GET /agents/{id}/diff', { id })), { reason: 'not-found' }, JSON.stringify(id))
  t.match(await failure(client.call('GET /agents/{id}', {} as { id: string })), { reason: 'invalid' })
  t.match(await failure(client.call('GET /agents/%2e%2E/x' as 'GET /agents')), { reason: 'not-found' })
  t.match(await failure(client.call('GET /agents?x=1' as 'GET /agents')), { reason: 'invalid' })
  t.equal(seen.length, 0)
})

t.test('a refusal keeps its reason, message, errors, fields and retry time', async t => {
  const { url } = await wireServer(t, (_, response) =>
    json(
      response,
      409,
      { message: 'the agent is writing', reason: 'conflict', errors: [{ path: 'a', expected: 'b' }], holders: ['x'] },
      { 'retry-after': '7' },
    ),
  )
  const error = await createClient({ url })
    .call('GET /agents')
    .catch(error => error)
  t.ok(error instanceof Refusal)
  t.equal(error.reason, 'conflict')
  t.equal(error.message, 'the agent is writing')
  t.same(error.detail, { errors: [{ path: 'a', expected: 'b' }], fields: { holders: ['x'] }, retryAfter: 7 })
})

t.test("a failure without the contract's body keeps its status", async t => {
  const { url } = await wireServer(t, ({ path }, response) => {
    if (path === '/info') return void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>proxy</h1>')
    if (path === '/agents') return json(response, 404, { reason: 'constructor', message: 'x' })
    return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"a')
  })
  const client = createClient({ url })
  t.match(await failure(client.call('GET /info')), { reason: 'unavailable', message: /^502 without a reason/ })
  t.match(await failure(client.call('GET /agents')), { reason: 'not-found' })
  t.match(await failure(client.call('GET /agent/refusals')), { reason: 'failed' })
})

t.test('an unreachable daemon is distinguished from a refusal', async t => {
  const { url } = await wireServer(t, () => ({}))
  await t.rejects(createClient({ url: 'http://127.0.0.1:1' }).call('GET /agents'), Unreached)
  const stopped = AbortSignal.abort(new Error('stopped'))
  await t.rejects(createClient({ url }).call('GET /agents', undefined, { signal: stopped }), { message: 'stopped' })
})

t.test('a redirect is not followed, so no credential leaves', async t => {
  const other = await wireServer(t, () => ({}))
  const { url } = await wireServer(
    t,
    (_, response) => void response.writeHead(302, { location: `${other.url}/agents` }).end(),
  )
  await t.rejects(createClient({ url, token: 'sbc_1' }).call('GET /agents'), Unreached)
  t.equal(other.seen.length, 0)
})

t.test('bytes have their type', async t => {
  const { url } = await wireServer(
    t,
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
  )
  const page = (await createClient({ url }).call('GET /reference' as 'GET /agents')) as unknown as { data: Uint8Array }
  t.equal(new TextDecoder().decode(page.data), '<p>')
})

t.test('a run interrupted at any byte arrives complete: no frame twice, none missing', async t => {
  const all = frames(12)
  const total = Buffer.from(runBytes('r-1', all)).length
  let cut = 0
  const { url, seen } = await wireServer(t, ({ body }, response) => {
    const bytes = Buffer.from(runBytes('r-1', all, (body.after as number | undefined) ?? 0))
    const upTo = cut
    cut = total
    streaming(response)
    if (upTo >= bytes.length) return void response.end(bytes)
    response.write(bytes.subarray(0, upTo), () => setImmediate(() => response.destroy()))
  })
  const client = createClient({ url, retry: quick })
  for (let at = 1; at < total; at += 37) {
    cut = at
    const events = await collect(await client.call('POST /agent/attach', { conversationId: 'c-1' }))
    t.same(
      events.map(event => event.kind),
      ['attached', ...all.map(() => 'frame'), 'end'],
      `cut at ${at}`,
    )
    t.same(
      seqs(events),
      all.map((_, i) => i + 1),
    )
  }
  t.ok(
    seen.some(({ body }) => body.run === 'r-1' && body.after === 7),
    'it resumed by run and position',
  )
})

t.test('a run interrupted after every few bytes still arrives complete', async t => {
  const all = frames(60)
  let seed = 7
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647
  const { url } = await wireServer(t, ({ body }, response) => {
    const bytes = Buffer.from(runBytes('r-1', all, (body.after as number | undefined) ?? 0))
    const upTo = Math.floor(300 + random() * 600)
    streaming(response)
    if (upTo >= bytes.length) return void response.end(bytes)
    response.write(bytes.subarray(0, upTo), () => setImmediate(() => response.destroy()))
  })
  const events = await collect(
    await createClient({ url, retry: quick }).call('POST /agent/attach', { conversationId: 'c-1' }),
  )
  t.same(
    seqs(events),
    all.map((_, i) => i + 1),
  )
})

t.test('repeated frames are dropped, and missing ones requested again', async t => {
  const all = frames(6)
  const { url } = await wireServer(t, ({ body }, response) => {
    const lines = runBytes('r-1', all, 0).split(/(?<=\n\n)/)
    // The first answer lacks frame 3; the second begins at 1 regardless of the position.
    return void streaming(response).end(lines.filter((_, i) => body.after !== undefined || i !== 4).join(''))
  })
  const events = await collect(
    await createClient({ url, retry: quick }).call('POST /agent/attach', { conversationId: 'c-1' }),
  )
  t.same(seqs(events), [1, 2, 3, 4, 5, 6])
})

t.test('a newer run after an interruption begins with its head and its first frame', async t => {
  const { url } = await wireServer(t, ({ body }, response) => {
    streaming(response)
    if (body.run) return void response.end(runBytes('r-2', frames(2)))
    response.write(
      runBytes('r-1', frames(5))
        .split(/(?<=\n\n)/)
        .slice(0, 5)
        .join(''),
      () => setImmediate(() => response.destroy()),
    )
  })
  const events = await collect(
    await createClient({ url, retry: quick }).call('POST /agent/attach', { conversationId: 'c-1' }),
  )
  t.same(
    events.flatMap(event => (event.kind === 'attached' ? [event.run] : [])),
    ['r-1', 'r-2'],
  )
  t.same(seqs(events), [1, 2, 3, 1, 2])
})

t.test('requests to a starting daemon are repeated, a refusal ends the stream', async t => {
  const answers = [
    (response: Parameters<typeof json>[0]) =>
      void streaming(response).write(wire('message', { kind: 'frame', seq: 1, event: frames(1)[0] }, 'r-1:1'), () =>
        setImmediate(() => response.destroy()),
      ),
    (response: Parameters<typeof json>[0]) => json(response, 503, { reason: 'unavailable', message: 'still starting' }),
    (response: Parameters<typeof json>[0]) =>
      json(response, 404, { reason: 'not-found', message: 'no such conversation' }),
  ]
  const { url, seen } = await wireServer(t, (_, response) => answers[Math.min(seen.length, 3) - 1]!(response))
  const stream = await createClient({ url, retry: quick }).call('POST /agent/attach', { conversationId: 'c-1' })
  t.match(await failure(collect(stream)), { reason: 'not-found' })
  t.equal(seen.length, 3)
})

t.test('a stream that is always interrupted ends after the allowed attempts', async t => {
  const { url, seen } = await wireServer(t, (_, response) => {
    streaming(response).write(wire('message', { kind: 'attached', run: 'r-1', prompt: '', startedAt: 1, seq: 0 }), () =>
      response.socket?.end(),
    )
  })
  const stream = await createClient({ url, retry: quick }).call('POST /agent/attach', { conversationId: 'c-1' })
  await t.rejects(collect(stream), Unreached)
  // The head may be lost: the attempts are counted again from the one that delivered it.
  t.ok(seen.length >= 1 + quick.attempts && seen.length <= 1 + 2 * quick.attempts, `${seen.length} requests`)
})

t.test('an error event is thrown as the refusal it describes, without another attempt', async t => {
  const { url, seen } = await wireServer(
    t,
    (_, response) =>
      void streaming(response).end(wire('error', { message: 'your session ended', reason: 'unauthenticated' })),
  )
  const stream = await createClient({ url, retry: quick }).call('POST /agent/attach', { conversationId: 'c-1' })
  t.match(await failure(collect(stream)), { reason: 'unauthenticated', message: 'your session ended' })
  t.equal(seen.length, 1)
})

t.test('any other stream resumes after its last event id', async t => {
  const { url, seen } = await wireServer(t, ({ headers }, response) => {
    streaming(response)
    if (headers['last-event-id'] === 'e:2') return void response.end(`${wire('message', 3, 'e:3')}${wire('done', {})}`)
    response.write(wire('message', 1, 'e:1') + wire('message', 2, 'e:2') + 'id: e:3\ndata: 3', () =>
      setImmediate(() => response.destroy()),
    )
  })
  const stream = (await createClient({ url, retry: quick }).call(
    'GET /events' as 'GET /agents',
  )) as unknown as AsyncIterable<number>
  t.same(await collect(stream), [1, 2, 3])
  t.equal(seen.length, 2)
})

t.test('a signal ends a stream that waits, also between two attempts', async t => {
  const { url } = await wireServer(t, ({ body }, response) => {
    streaming(response).write(
      wire('message', { kind: 'attached', run: 'r-1', prompt: '', startedAt: 1, seq: 0 }),
      () => {
        if (body.conversationId === 'cut') setImmediate(() => response.destroy())
      },
    )
  })
  const client = createClient({ url, retry: { first: 60_000, most: 60_000 } })
  for (const conversationId of ['open', 'cut']) {
    const stop = new AbortController()
    const stream = await client.call('POST /agent/attach', { conversationId }, { signal: stop.signal })
    const reading = (async () => {
      for await (const _ of stream) setImmediate(() => setImmediate(() => stop.abort(new Error('enough'))))
    })()
    await t.rejects(reading, { message: 'enough' }, conversationId)
  }
})

t.test('a stream that is asked for once is not asked for again when it is cut', async t => {
  const { url, seen } = await wireServer(t, (_, response) => {
    streaming(response).write(wire('message', { kind: 'start' }), () => setImmediate(() => response.destroy()))
  })
  const stream = await createClient({ url, retry: quick }).call(
    'POST /cli',
    { args: ['deploy', 'adopt'] },
    { once: true },
  )
  const error = await failure(collect(stream))
  t.ok(error instanceof Unreached)
  t.match(error, { message: /cut before its end/ })
  t.equal(seen.length, 1)
})

t.test('a silent stream counts as interrupted', async t => {
  const { url, seen } = await wireServer(t, ({ body }, response) => {
    streaming(response)
    if (body.after !== undefined) return void response.end(runBytes('r-1', frames(2), 1))
    response.write(
      runBytes('r-1', frames(2))
        .split(/(?<=\n\n)/)
        .slice(0, 3)
        .join(''),
    )
  })
  const events = await collect(
    await createClient({ url, retry: { ...quick, silence: 50 } }).call('POST /agent/attach', { conversationId: 'c-1' }),
  )
  t.same(seqs(events), [1, 2])
  t.equal(seen.length, 2)
})

t.test('an unknown session is renewed once, for calls and for streams', async t => {
  const { url, seen } = await wireServer(t, ({ headers, body }, response) => {
    if (headers.authorization !== 'Bearer sbs_2')
      return json(response, 401, { reason: 'unauthenticated', message: 'expected another session' })
    if (body.conversationId) return void streaming(response).end(runBytes('r-1', frames(1)))
    return { agents: [] }
  })
  let renewed = 0
  const client = createClient({ url, session: 'sbs_1', renew: async () => `sbs_${++renewed + 1}` })
  t.same(await client.call('GET /agents'), { agents: [] })
  t.same(seqs(await collect(await client.call('POST /agent/attach', { conversationId: 'c-1' }))), [1])
  t.same([renewed, seen.length], [1, 3])
  const refused = createClient({ url, session: 'sbs_1', renew: async () => 'sbs_9' })
  t.match(await failure(refused.call('GET /agents')), { reason: 'unauthenticated' })
  t.equal(seen.length, 5)
})

t.test('a reader that leaves closes the connection', async t => {
  let closed = () => {}
  const left = new Promise<void>(resolve => {
    closed = resolve
  })
  const { url } = await wireServer(t, (_, response) => {
    response.on('close', closed)
    streaming(response).write(
      runBytes('r-1', frames(2))
        .split(/(?<=\n\n)/)
        .slice(0, 3)
        .join(''),
    )
  })
  for await (const _ of await createClient({ url }).call('POST /agent/attach', { conversationId: 'c-1' })) break
  await left
  t.pass('the far side saw it close')
})
