import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const PER_ADDRESS = 256
const IN_ALL = 2_048

/** Bounds how many connections one far address, and all of them together, may hold open. */
export const limitConnections = (server: Server): void => {
  const held = new Map<string, number>()
  server.maxConnections = IN_ALL
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    if (/^(::ffff:)?127\.|^::1$/.test(address)) return
    const count = (held.get(address) ?? 0) + 1
    if (count > PER_ADDRESS) return void socket.destroy()
    held.set(address, count)
    socket.once('close', () => {
      const left = (held.get(address) ?? 1) - 1
      if (left === 0) held.delete(address)
      else held.set(address, left)
    })
  })
}
