import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import t, { type Test } from 'tap'
import { serveInTurn } from '../../../kernel/http/pipelining.js'
import type { RequestState } from '../../../kernel/http/request.js'
import { connected } from '../../attack/support.js'

/** A server that records its requests, and answers each when the test tells it to. */
const serving = async (t: Test) => {
  const koa = new Koa<RequestState>()
  const begun: string[] = []
  const answers: (() => void)[] = []
  const dropped: string[] = []
  koa.use(async ({ url }, next) => {
    await next()
    if (!begun.includes(url)) dropped.push(url)
  })
  koa.use(serveInTurn())
  koa.use(ctx => {
    ctx.respond = false
    begun.push(ctx.url)
    answers.push(() => ctx.res.end(`answer of ${ctx.url}`))
    server.emit('begun')
  })
  const server = createServer(koa.callback())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { server, url, begun, answers, dropped }
}

const asks = (...paths: string[]): string => paths.map(path => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join('')

t.test('pipelined requests are served one after another, in order', async t => {
  const { server, url, begun, answers } = await serving(t)
  const socket = await connected(t, url)
  let text = ''
  socket.on('data', part => (text += part))
  const first = once(server, 'begun')
  socket.write(asks('/a', '/b', '/c'))
  await first
  for (const [at, path] of ['/a', '/b', '/c'].entries()) {
    t.equal(begun.at(-1), path)
    t.equal(begun.length, at + 1, 'the others wait')
    const next = at < 2 ? once(server, 'begun') : once(socket, 'data')
    answers[at]!()
    await next
  }
  t.same(text.match(/answer of \/[abc]/g), ['answer of /a', 'answer of /b', 'answer of /c'])
})

t.test('connections do not wait for each other, and the pending requests of a closed one are not served', async t => {
  const { server, url, begun, dropped } = await serving(t)
  const [one, other] = [await connected(t, url), await connected(t, url)]
  const first = once(server, 'begun')
  one.write(asks('/a', '/b', '/c'))
  await first
  const second = once(server, 'begun')
  other.write(asks('/d'))
  await second
  t.same(begun, ['/a', '/d'])
  one.destroy()
  while (dropped.length < 2) await new Promise(resolve => setImmediate(resolve))
  t.same(
    [begun, dropped],
    [
      ['/a', '/d'],
      ['/b', '/c'],
    ],
  )
})
