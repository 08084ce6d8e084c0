import { connect, type Socket } from 'node:net'
import { ignored } from '../../../ignored.js'
import { splice } from '../splice.js'

/** Joins a connection to one of a port of this machine's loopback; it closes where nothing listens there. */
export const joinLocal = (socket: Socket, port: number): void => {
  socket.on('error', ignored('its close follows'))
  const far = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true })
  far.once('error', () => socket.destroy())
  socket.once('close', () => far.destroy())
  far.once('connect', () => splice(socket, far))
}
