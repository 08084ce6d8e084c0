import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import t from 'tap'
import { socketsOfFamily, SocketTables } from '../../../../sdk/node/network/listening-sockets.js'

t.test('what listens is found beside connections, however many sockets there are', async t => {
  const servers = ['127.0.0.1', '0.0.0.0', '::1', '::'].flatMap(host =>
    Array.from({ length: 8 }, () => ({ host, server: createServer().listen(0, host) })),
  )
  await Promise.all(servers.map(({ server }) => once(server, 'listening')))
  const ports = servers.map(({ host, server }) => ({
    address: host,
    port: (server.address() as { port: number }).port,
  }))
  const clients = ports.slice(0, 8).map(({ port }) => connect(port, '127.0.0.1'))
  await Promise.all(clients.map(client => once(client, 'connect')))
  const byPort = (one: { port: number }, other: { port: number }) => one.port - other.port
  t.same(
    socketsOfFamily(process.pid)
      .map(({ address, port }) => ({ address, port }))
      .sort(byPort),
    ports.sort(byPort),
  )
  for (const client of clients) client.destroy()
  for (const { server } of servers) server.close()
})

t.test('open tables say what listens now, and nothing once they are closed', async t => {
  const tables = new SocketTables('/proc/self/net')
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const listens = () => tables.listening().some(each => each.port === port)
  t.ok(listens())
  server.close()
  await once(server, 'close')
  t.notOk(listens())
  tables.close()
  t.same(tables.listening(), [])
  tables.close()
  t.throws(() => new SocketTables('/proc/self/no-network'), { code: 'ENOENT' })
})
