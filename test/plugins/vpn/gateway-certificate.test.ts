import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { pinnedKey } from '../../../plugins/vpn/clients/gateway-certificate.js'

t.test('a port that speaks no TLS is refused with a sentence', async t => {
  const server = createServer(socket => socket.on('error', () => {}).end('SSH-2.0-OpenSSH_9.2\r\n'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const pinned = `sha256:${'a'.repeat(64)}`
  await t.rejects(pinnedKey({ server: '127.0.0.1', port }, pinned, new AbortController().signal), {
    ...{ name: 'Refusal', reason: 'dependency' },
    message: new RegExp(`^127\\.0\\.0\\.1:${port} does not answer: `),
  })
})
