import t from 'tap'
import type { EndpointTarget, WireProtocol } from '../../../../plugins/endpoints/contract.js'
import { Refusal } from '../../../../sdk/index.js'
import { exactly } from '../../../support/lists.js'
import { modelServer, type ScriptedReply } from '../../../support/servers/model-server.js'
import { nativeRun, NativeWorld } from './native-support.js'

const PROTOCOLS: readonly WireProtocol[] = ['openai', 'anthropic', 'ollama']
const MIB = 1024 * 1024
const again = { times: 2, firstMs: 1, mostMs: 4, longestMs: 1000 }

for (const protocol of PROTOCOLS) {
  void t.test(`${protocol}: a request to a busy or failing server is repeated until it answers`, async t => {
    const server = await modelServer(t, protocol, [
      { status: 429, headers: { 'retry-after': '0' } },
      { status: 500, body: '{"error":"out of memory"}' },
      { status: 529, body: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}' },
      { text: ['ok'] },
    ])
    const world = await nativeRun(server.target())
    t.equal(world.prose, 'ok\n')
    t.strictSame(
      world.find('provider_retry').map(({ attempt, maxAttempts, status }) => [attempt, maxAttempts, status]),
      [
        [1, 8, 429],
        [2, 8, 500],
        [3, 8, 529],
      ],
    )
    const bodies = new Set(server.requests.map(({ text }) => text))
    t.equal(bodies.size, 1, 'the same request every time')
  })

  void t.test(`${protocol}: an interrupted answer is requested again and shown once`, async t => {
    const text = ['The first ', 'words, ', 'the second ', 'words.']
    const server = await modelServer(t, protocol, [{ text, cutAt: 700 }, { text, endAt: 600 }, { text }])
    const world = await nativeRun(server.target())
    t.equal(world.prose, 'The first words, the second words.\n')
    t.equal(server.requests.length, 3)
    t.match(world.find('usage'), exactly({ numTurns: 1 }))
  })

  void t.test(`${protocol}: if the repeated answer differs, a new block begins`, async t => {
    const server = await modelServer(t, protocol, [
      { text: ['One', ' way', ' and no', ' end'], cutAt: 750 },
      { text: ['Other', ' way'] },
    ])
    const { prose } = await nativeRun(server.target())
    t.match(prose, /^One.*\nOther way\n$/)
  })

  void t.test(`${protocol}: an error in the middle of an answer is retried, but not a refused key`, async t => {
    const error = protocol === 'ollama' ? { error: 'overloaded' } : { type: 'overloaded_error', message: 'Overloaded' }
    const server = await modelServer(t, protocol, [{ text: ['half'], error }, { text: ['half', ' whole'] }])
    const world = await nativeRun(server.target())
    t.equal(world.prose, 'half whole\n')
    const shown = await modelServer(t, protocol, [
      { text: ['half'], error: { error: { type: 'authentication_error', message: 'bad key-123456' } } },
    ])
    t.notMatch(JSON.stringify((await nativeRun(shown.target(), { deps: { again } })).log), /key-123456/)
    const refused = await modelServer(t, protocol, [
      { status: 401, body: '{"error":{"message":"Incorrect API key provided: key-123456"}}' },
    ])
    const { log, find } = bound(await nativeRun(refused.target()))
    t.match(
      find('error'),
      exactly({
        code: 'token-refused',
        message: 'the model server refused the key (401): save the right one; it says: Incorrect API key provided: ***',
      }),
    )
    t.equal(refused.requests.length, 1)
    t.notMatch(JSON.stringify(log), /key-123456/)
  })

  void t.test(`${protocol}: unknown tools and malformed arguments go back to the model as failed results`, async t => {
    const server = await modelServer(t, protocol, [
      {
        calls: [
          { name: 'Nothing', input: {}, id: 'a' },
          { name: 'Read', raw: '{"path":', id: 'b' },
          { name: 'Read', raw: '[1]', id: 'c' },
        ],
      },
      { text: ['sorry'] },
    ])
    const world = await nativeRun(server.target())
    t.equal(world.prose, 'sorry\n')
    t.equal(world.find('tool_call').length, 3)
    const second = server.told(1)
    t.match(second, /there is no tool Nothing/)
    // Arguments of this protocol are always JSON: values other than objects reach the tool, which refuses them.
    if (protocol !== 'ollama') {
      t.match(second, /not a JSON object/)
      t.equal(world.find('tool_call_update').filter(({ status }) => status === 'failed').length, 3)
      t.equal(world.calls.length, 0)
    }
  })

  void t.test(`${protocol}: an answer over 32 MiB ends the turn as failed`, async t => {
    const server = await modelServer(t, protocol, [{ flood: 40 * MIB }])
    const world = await nativeRun(server.target())
    t.match(world.find('error'), exactly({ message: /over 33554432 bytes/ }))
    t.equal(server.requests.length, 1)
  })

  void t.test(`${protocol}: too large a call and too many calls end the turn as failed`, async t => {
    const large = await modelServer(t, protocol, [
      { calls: [{ name: 'Write', input: { path: 'a', content: 'x'.repeat(MIB + 1) } }] },
    ])
    t.match((await nativeRun(large.target())).find('error'), exactly({ message: /tool call of over 1048576 bytes/ }))
    const many = await modelServer(t, protocol, [
      { calls: Array.from({ length: 257 }, (_, n) => ({ name: 'Read', input: { path: `${n}` }, id: `i${n}` })) },
    ])
    const world = await nativeRun(many.target())
    t.match(world.find('error'), exactly({ message: /over 256 tool calls/ }))
    t.equal(world.calls.length, 0, 'none of them has run')
  })
}

const bound = (world: NativeWorld) => ({ log: world.log, find: world.find.bind(world) })

void t.test('a server that stays busy or unreachable ends the turn with its error code', async t => {
  const busy = await modelServer(t, 'openai', [{ status: 429, headers: { 'retry-after': '0.002' } }])
  const limited = await nativeRun(busy.target(), { deps: { again } })
  t.match(limited.find('error'), exactly({ code: 'rate_limit', resetsAt: Number }))
  t.equal(busy.requests.length, 3)
  t.equal(limited.find('provider_retry').length, 2)
  const gone = busy.target({ baseUrl: 'http://127.0.0.1:9' })
  const away = await nativeRun(gone, { deps: { again } })
  t.match(away.find('error'), exactly({ code: 'provider-outage', message: /nothing is listening there/ }))
})

void t.test('a long retry-after is not waited for', async t => {
  const server = await modelServer(t, 'openai', [{ status: 429, headers: { 'retry-after': '3600' } }])
  const world = await nativeRun(server.target())
  const [error] = world.find('error')
  t.match(error, { code: 'rate_limit' })
  t.ok(error!.resetsAt! > Date.now() + 3_000_000)
  t.equal(server.requests.length, 1)
})

void t.test('a short retry-after is waited for', async t => {
  const server = await modelServer(t, 'openai', [{ status: 503, headers: { 'retry-after': '0.2' } }, { text: ['ok'] }])
  await nativeRun(server.target())
  const [first, second] = server.requests
  t.ok(second!.at - first!.at >= 195)
})

void t.test('a redirect is followed within the origin, and to no other', async t => {
  const server = await modelServer(t, 'openai', ({ path }) =>
    path.startsWith('/moved') ? { text: ['here'] } : { status: 307, headers: { location: '/moved/v1' } },
  )
  t.equal((await nativeRun(server.target())).prose, 'here\n')
  const other = await modelServer(t, 'openai', [{ text: ['stolen'] }])
  const away = await modelServer(t, 'openai', [{ status: 307, headers: { location: `${other.address}/v1` } }])
  const world = await nativeRun(away.target())
  t.match(world.find('error'), exactly({ message: /redirects to another origin/ }))
  t.equal(other.requests.length, 0)
  const circle = await modelServer(t, 'openai', [{ status: 308, headers: { location: '/again' } }])
  t.match((await nativeRun(circle.target())).find('error'), exactly({ message: /redirects more than 5 times/ }))
})

void t.test('a server that is silent for too long ends the turn, before its answer or during it', async t => {
  const limits = { bytes: MIB, silenceMs: 60 }
  const silent = await modelServer(t, 'openai', [{ silent: true }])
  t.match(
    (await nativeRun(silent.target(), { deps: { limits } })).find('error'),
    exactly({ message: /sent nothing for/ }),
  )
  const slow = await modelServer(t, 'openai', [{ text: ['a', 'b', 'c'], everyMs: 150 }])
  const world = await nativeRun(slow.target(), { deps: { limits } })
  t.match(world.find('error'), exactly({ message: /sent nothing for/ }))
  t.equal(slow.requests.length, 1)
})

void t.test('other refusals end the turn with a code for their meaning', async t => {
  const codeOf = async (status: number, message: string) => {
    const server = await modelServer(t, 'openai', [{ status, body: JSON.stringify({ error: { message } }) }])
    const [error] = (await nativeRun(server.target())).find('error')
    return `${error?.code}: ${error?.message}`
  }
  t.equal(
    await codeOf(402, 'pay'),
    'not-entitled: the model server requires payment (402): pay there, or choose another model; it says: pay',
  )
  t.match(await codeOf(404, 'the model `x` does not exist'), /^model-invalid: /)
  t.match(await codeOf(429, 'You exceeded insufficient_quota'), /^rate_limit: /)
  t.match(await codeOf(400, 'maximum context length is 10 tokens'), /^context-full: /)
  t.equal(
    await codeOf(400, 'bad temperature'),
    'undefined: the model server refused the request (400): try another model, or another server; it says: bad '
      + 'temperature',
  )
})

void t.test('a turn on a server that cannot be used ends with one sentence that says what to do', async t => {
  const endOf = async (reply: ScriptedReply, target: Partial<EndpointTarget> = {}) => {
    const server = await modelServer(t, 'openai', [reply])
    const errors = (await nativeRun(server.target(target), { deps: { again: { ...again, times: 0 } } })).find('error')
    t.equal(errors.length, 1)
    return errors[0]!.message
  }
  const keyed = { headers: { authorization: 'Bearer key-123456' } }
  const elsewhere = { location: 'http://elsewhere.invalid/v1' }
  const page = { headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<!doctype html><p>Welcome' }
  const ends: [Promise<string>, RegExp][] = [
    [endOf({ text: [] }, { baseUrl: 'http://127.0.0.1:9' }), /nothing is listening there; check that it runs/],
    [endOf({ status: 200, ...page }), /sent a web page instead of an answer: check its address$/],
    [endOf({ status: 404, ...page }), /nothing answers at this address .*\(404\): check its address and protocol$/],
    [endOf({ status: 308, headers: elsewhere }), /redirects to another origin .*: set that as its address if/],
    [
      endOf({ status: 401, body: '{"error":{"message":"key has expired"}}' }, keyed),
      /save the right one; it says: key/,
    ],
    [endOf({ status: 403, body: '{}' }, { headers: {} }), /asks for a key \(403\): save the server with one$/],
  ]
  for (const [end, words] of ends) t.match(await end, words)
})

void t.test('a turn makes a limited number of requests to the model', async t => {
  const server = await modelServer(t, 'openai', [{ calls: [{ name: 'Read', input: { path: 'a' } }] }])
  const world = await nativeRun(server.target(), { deps: { mostRounds: 5 } })
  t.match(world.find('error'), exactly({ message: /asked 5 times/ }))
  t.equal(server.requests.length, 5)
})

void t.test('a stop in the middle of an answer takes effect at once and keeps the received text', async t => {
  for (const protocol of PROTOCOLS) {
    const server = await modelServer(t, protocol, (_, nth) =>
      nth === 0 ? { text: Array.from({ length: 100 }, (_, n) => `word${n} `), everyMs: 20 } : { text: ['ok'] },
    )
    const world = new NativeWorld({ target: server.target() })
    const turn = world.run()
    while (!world.prose.includes('word3')) await new Promise(resolve => setTimeout(resolve, 5))
    const stoppedAt = performance.now()
    world.stop.abort()
    await turn
    t.ok(performance.now() - stoppedAt < 500, protocol)
    t.equal(world.kinds.at(-1), 'text_end')
    t.strictSame(world.find('error'), [])
    const next = new NativeWorld({ ...world.setup })
    Object.assign(next, { sessions: world.sessions, sessionId: world.sessionId })
    await next.next({ prompt: 'go on' })
    t.match(server.told(1), /word0 word1.*go on/)
  }
})

void t.test('a server that is not usable ends the turn with the reason', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const world = await nativeRun(server.target({ problem: 'the secret of its key is gone' }))
  t.match(world.find('error'), exactly({ message: 'Server cannot be used now: the secret of its key is gone' }))
  const gone = await nativeRun(() => Promise.reject(new Refusal('not-found', 'there is no model server e-1')))
  const without = await nativeRun(server.target({ default: '' }), { request: { model: '' } })
  t.match(without.find('error'), exactly({ code: 'model-invalid' }))
  t.match(gone.find('error'), exactly({ message: 'Server cannot be used: there is no model server e-1' }))
})

void t.test('an answer that the model declines or cannot complete is reported', async t => {
  for (const protocol of ['openai', 'anthropic'] as const) {
    const declined = await modelServer(t, protocol, [{ text: ['no'], finish: 'refused' }])
    t.match((await nativeRun(declined.target())).find('error'), exactly({ message: /declined/ }))
  }
})

void t.test('an invalid line of the protocol ends the turn as failed', async t => {
  const server = await modelServer(t, 'ollama', [{ status: 200, body: 'not json\n' }])
  t.match((await nativeRun(server.target())).find('error'), exactly({ message: /not JSON/ }))
  const page = await modelServer(t, 'openai', [{ status: 200, body: 'data: {"choices":7}\n\n' }])
  t.match((await nativeRun(page.target())).find('error'), exactly({ message: /invalid in its protocol/ }))
})
