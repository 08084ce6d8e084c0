// Makes sockets inside a network of its own and hands them to the daemon. Started by namespace.ts, and gone with it.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { codeOf } from '../files/paths.js'
import type { AskedInside, ToldInside } from './namespace.js'

const LOOPBACKS = ['127.0.0.1', '::1'] as const

const tell = (told: ToldInside, handle?: Server | Socket): Promise<void> =>
  new Promise(resolve => process.send!(told, handle, {}, () => resolve()))

const failed = (id: number, error: unknown): void => void tell({ id, failed: codeOf(error) ?? String(error) })

const listen = (id: number, host: string, port: number): void => {
  const server = createServer()
  server.once('error', error => failed(id, error))
  server.listen(
    { host, port, exclusive: true, ipv6Only: true },
    () => void tell({ id }, server).then(() => server.close()),
  )
}

const dial = (id: number, port: number, [host, ...others]: readonly string[] = LOOPBACKS): void => {
  const socket = connect({ host: host!, port, allowHalfOpen: true, noDelay: true })
  socket.pause()
  socket.once('error', error => {
    if (others.length) dial(id, port, others)
    else failed(id, error)
  })
  // What came before it is handed over would be lost.
  socket.once('connect', () => void tell({ id }, socket))
}

process.on('message', ({ id, ...asked }: AskedInside) => {
  if ('listen' in asked) listen(id, asked.host, asked.listen)
  else dial(id, asked.dial, asked.host ? [asked.host] : LOOPBACKS)
})
process.once('disconnect', () => process.exit())
// Who ends the daemon from its terminal ends it alone.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
void tell({ ready: true })
