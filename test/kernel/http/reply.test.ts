import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { sendBytes } from '../../../kernel/http/reply.js'
import type { GivenBytes } from '../../../sdk/contract.js'
import { Lines } from '../../../sdk/node/head-lines.js'

/** Serves bytes as a handler gives them; `ended` is how each answer ended. */
const serving = async (t: Test, data: () => GivenBytes['data']) => {
  const ended: Promise<unknown>[] = []
  const server = createServer((req, res) => {
    const sent = sendBytes({ res, lines: new Lines(), head: req.method === 'HEAD' }, { 'content-type': 'text/plain', data: data() })
    ended.push(sent.then(() => 'sent', error => (error as Error).message))
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
