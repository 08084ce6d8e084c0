import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { sendBytes, sendStream } from '../../../kernel/http/reply.js'
import type { GivenBytes } from '../../../sdk/contract.js'
import { Lines } from '../../../kernel/http/head-lines.js'

/** Serves bytes as a handler gives them; `ended` is how each answer ended. */
const serving = async (t: Test, data: () => GivenBytes['data']) => {
  const ended: Promise<unknown>[] = []
  const server = createServer((req, res) => {
    const sent = sendBytes(
      { res, lines: new Lines(), head: req.method === 'HEAD' },
      { 'content-type': 'text/plain', data: data() },
    )
    ended.push(
      sent.then(
        () => 'sent',
        error => (error as Error).message,
      ),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const ask = async (method = 'GET'): Promise<IncomingMessage> => {
    const asked = request({ port, method, agent: false }).end()
    const [response] = await once(asked, 'response')
    return response as IncomingMessage
  }
  return { ended, ask }
}
const textOf = async (response: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece
  return text
}

t.test('bytes that come piece by piece arrive in order, and their head alone takes none of them', async t => {
  let taken = 0
  const { ask, ended } = await serving(t, async function* () {
    for (let n = 0; n < 3; n++) {
      taken += 1
      yield n % 2 ? Buffer.from(`${n}`) : `${n}`
    }
  })
  t.equal(await textOf(await ask('HEAD')), '')
  t.equal(taken, 0)
  const response = await ask()
  t.equal(response.headers['content-length'], undefined)
  t.equal(await textOf(response), '012')
  t.same(await Promise.all(ended), ['sent', 'sent'])
})

t.test('a failure on the way cuts the answer, so that nobody takes it for whole', async t => {
  const { ask, ended } = await serving(t, async function* () {
    yield 'begun'
    throw new Error('broken')
  })
  await t.rejects(async () => textOf(await ask()), { code: 'ECONNRESET' })
  t.same(await Promise.all(ended), ['broken'])
})

t.test('a slow reader is waited for, and one that leaves is the end', async t => {
  let taken = 0
  let over = false
  const { ask, ended } = await serving(t, async function* () {
    try {
      for (;;) {
        taken += 1
        yield Buffer.alloc(1 << 20)
      }
    } finally {
      over = true
    }
  })
  const response = await ask()
  for (let before = -1; before !== taken;) {
    before = taken
    for (let n = 0; n < 50; n++) await new Promise(resolve => setImmediate(resolve))
  }
  t.ok(taken < 32, `${taken} MiB were made for nobody`)
  response.destroy()
  t.same(await Promise.all(ended), ['sent'])
  t.ok(over)
})

/** Serves a stream of events as a handler gives it; `ended` resolves when it is over. */
const streaming = async (t: Test, events: (signal: AbortSignal) => AsyncIterable<unknown, unknown>) => {
  const ended = Promise.withResolvers<unknown>()
  const server = createServer((_, res) => {
    const gone = new AbortController()
    res.once('close', () => gone.abort())
    const kernel = {} as never
    void sendStream({ res, lines: new Lines(), head: false, kernel, signal: gone.signal }, events(gone.signal)).then(
      ended.resolve,
      ended.reject,
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const asked = request({ port: (server.address() as AddressInfo).port, agent: false }).end()
  const [response] = await once(asked, 'response')
  return { ended: ended.promise, response: response as IncomingMessage }
}

t.test(
  'no event is made before a slow reader has taken those before it, and what makes them ends when it leaves',
  { timeout: 20_000 },
  async t => {
    const [most, event] = [200, 'x'.repeat(1 << 20)]
    let taken = 0
    let over = false
    const { response, ended } = await streaming(t, async function* () {
      try {
        while (taken < most) {
          taken += 1
          yield event
        }
      } finally {
        over = true
      }
    })
    const quiet = async () => {
      for (let before = -1; before !== taken;) {
        before = taken
        for (let n = 0; n < 50; n++) await new Promise(resolve => setImmediate(resolve))
      }
      return taken
    }
    const first = await quiet()
    t.ok(first < 64, `${first} MiB were made for nobody`)
    for (let read = 0; read < 8 << 20;) {
      if (!response.readableLength) await once(response, 'readable')
      read += (response.read() as Buffer | null)?.length ?? 0
    }
    t.ok((await quiet()) > first, 'it goes on with its reader')
    t.notOk(over)
    response.destroy()
    await ended
    t.ok(over)
  },
)

t.test('a stream that waits for something to say ends with its reader', { timeout: 20_000 }, async t => {
  const { response, ended } = await streaming(t, async function* (signal) {
    yield 'begun'
    await once(signal, 'abort')
    yield 'for nobody'
  })
  t.match(String((await once(response, 'data'))[0]), 'retry: 1000')
  response.destroy()
  t.equal(await ended, undefined)
})
