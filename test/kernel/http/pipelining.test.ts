import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { limitPipelining } from '../../../kernel/http/pipelining.js'
import { connected } from '../../attack/support.js'

/** A server that tells what it serves, and answers each request when it is told to. */
const serving = async (t: Test) => {
  const inTurn = limitPipelining()
  const begun: string[] = []
  const answers: (() => void)[] = []
  const dropped: string[] = []
  const server = createServer(async (req, res) => {
    const waits = inTurn(req, res)
    if (waits && !(await waits)) return void dropped.push(req.url!)
    begun.push(req.url!)
    answers.push(() => res.end(`answer of ${req.url}`))
    server.emit('begun')
  })
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

t.test('requests sent in one breath are served one after the other, in their order', async t => {
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

t.test('a connection does not wait for another, and what a gone one still asks for is not done', async t => {
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
