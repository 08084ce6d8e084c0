import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { sendBytes, sendStream } from '../../../kernel/http/reply.js'
import type { GivenBytes } from '../../../sdk/contract.js'
import { Lines } from '../../../kernel/http/head-lines.js'

/** Serves bytes of a handler; `ended` has the end of each answer. */
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

t.test('bytes in pieces arrive in order, and HEAD reads none of them', async t => {
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

t.test('a failure in the middle aborts the answer, so that it does not look complete', async t => {
  const { ask, ended } = await serving(t, async function* () {
    yield 'begun'
    throw new Error('broken')
  })
  await t.rejects(async () => textOf(await ask()), { code: 'ECONNRESET' })
  t.same(await Promise.all(ended), ['broken'])
})

t.test('the answer waits for a slow reader, and ends when it disconnects', async t => {
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
  t.ok(taken < 32, `${taken} MiB were produced without a reader`)
  response.destroy()
  t.same(await Promise.all(ended), ['sent'])
  t.ok(over)
})

/** Serves a stream of events of a handler; `ended` resolves when it has ended. */
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
  'no event is produced before a slow reader has read the previous ones, and the producer ends when it leaves',
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
    t.ok(first < 64, `${first} MiB were produced without a reader`)
    for (let read = 0; read < 8 << 20;) {
      if (!response.readableLength) await once(response, 'readable')
      read += (response.read() as Buffer | null)?.length ?? 0
    }
    t.ok((await quiet()) > first, 'it continues with its reader')
    t.notOk(over)
    response.destroy()
    await ended
    t.ok(over)
  },
)

t.test('a stream that waits for an event ends with its reader', { timeout: 20_000 }, async t => {
  const { response, ended } = await streaming(t, async function* (signal) {
    yield 'begun'
    await once(signal, 'abort')
    yield 'for nobody'
  })
  t.match(String((await once(response, 'data'))[0]), 'retry: 1000')
  response.destroy()
  t.equal(await ended, undefined)
})
