import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { ignored } from '../../../../sdk/index.js'
import { splice } from '../../../../sdk/node/network/splice.js'

const relays = new Map<number, Server>()

/** A server of this process that passes each connection on to the translator, for the networks of conversations. */
export const translatorRelay = (baseUrl: string): Server => {
  const port = Number(new URL(baseUrl).port)
  const known = relays.get(port)
  if (known) return known
  const server = createServer()
  // Nothing of the requests is read here.
  server.removeAllListeners('connection')
  server.on('connection', (near: Socket) => {
    near.on('error', ignored('its close follows'))
    splice(near, connect(port, '127.0.0.1'), { idleMs: 0 })
  })
  relays.set(port, server)
  return server
}
