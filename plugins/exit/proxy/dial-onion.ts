import { isIPv4, isIPv6, type Socket } from 'node:net'
import { plainAddress } from '../../../sdk/node/network/addresses.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { Target } from '../../../sdk/node/network/host-form.js'
import { connectIn, SOCKS } from '../clients/tor-control.js'
import { assertOutside, noTunnel } from './targets.js'

const CONNECT_MS = 60_000
/** What replies of RFC 1928 mean, as codes of the system. */
const REPLIES: { readonly [reply: number]: string } = {
  2: 'EACCES',
  3: 'EHOSTUNREACH',
  4: 'EHOSTUNREACH',
  5: 'ECONNREFUSED',
  6: 'ETIMEDOUT',
}

const addressBytes = (host: string): Buffer => {
  if (isIPv4(host)) return Buffer.from([1, ...host.split('.').map(Number)])
  if (!isIPv6(host)) return Buffer.concat([Buffer.from([3, Buffer.byteLength(host)]), Buffer.from(host, 'latin1')])
  const groups = (plainAddress(host) ?? '').split(':').map(group => Number.parseInt(group, 16))
  return Buffer.from([4, ...groups.flatMap(group => [group >> 8, group & 255])])
}

/** Reads so many bytes of a paused socket. */
const take = async (socket: Socket, count: number): Promise<Buffer> => {
  for (;;) {
    const piece = socket.read(count) as Buffer | null
    if (piece?.length === count) return piece
    if (piece || socket.readableEnded || socket.destroyed) throw new Error('tor ended the connection')
    await new Promise<void>(resolve => {
      const go = () => {
        for (const event of ['readable', 'end', 'close'] as const) socket.off(event, go)
        resolve()
      }
      for (const event of ['readable', 'end', 'close'] as const) socket.on(event, go)
    })
  }
}

/** Connects to a target through the `tor` of a folder, which has names looked up where traffic leaves. */
export const dialOnion = async (folder: string, target: Target): Promise<Socket> => {
  assertOutside(target.host)
  const socket = await connectIn(folder, SOCKS).catch((error: unknown) => {
    if (['ENOENT', 'ECONNREFUSED'].includes(codeOf(error) ?? '')) throw noTunnel()
    throw error
  })
  const late = setTimeout(() => socket.destroy(), CONNECT_MS)
  try {
    const port = [target.port >> 8, target.port & 255]
    socket.write(Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0]), addressBytes(target.host), Buffer.from(port)]))
    await take(socket, 2)
    const [, reply = 1, , type] = await take(socket, 4)
    await take(socket, type === 4 ? 18 : 6)
    if (reply !== 0)
      throw Object.assign(new Error('the exit does not reach it'), { code: REPLIES[reply] ?? 'EHOSTUNREACH' })
    return socket.pause()
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(late)
  }
}
