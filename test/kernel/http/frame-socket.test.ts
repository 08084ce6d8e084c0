import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { WebSocketServer } from 'ws'
import { FrameSocket } from '../../../kernel/http/sockets/frame-socket.js'
import { Inbox } from '../../../sdk/node/concurrency/inbox.js'
import { talkTo } from '../../support/sockets/client.js'

t.test('a silent socket is closed after a time, and one that answers pings is not', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await once(server, 'listening')
  const ended = new AbortController()
  server.on('connection', ws => {
    const inbox = new Inbox<unknown>({ full: 9, room: 1, pause: () => {}, resume: () => {} })
    void new FrameSocket(ws, inbox, { ended, fits: frame => frame, failed: () => {}, silence: 300 }).send(inbox)
  })
  const talk = await talkTo(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const began = performance.now()
  for (let n = 0; n < 5; n++) {
    await new Promise(resolve => setTimeout(resolve, 100))
    talk.ws.ping()
  }
  talk.say({ type: 'last' })
  t.match(await talk.closed, { code: 1001, reason: 'the client sent nothing for 0.3 s' })
  t.ok(performance.now() - began > 700, 'it was alive for half a second, then silent')
  t.same(talk.seen, [{ type: 'last' }])
  if (!ended.signal.aborted) await once(ended.signal, 'abort')
})
