import type { Socket } from 'node:net'
import { codeOf } from '../files/paths.js'
import { Refusal } from '../../refusal.js'
import { normalHost, type Target } from './host-form.js'
import type { Dial } from './policy.js'

const VERSION = 5
const NO_AUTHENTICATION = 0
const NONE_OFFERED = 0xff
const CONNECT = 1
const [IPV4, NAME, IPV6] = [1, 3, 4]
/** The replies of RFC 1928, section 6. */
const REPLY = {
  granted: 0,
  failed: 1,
  notAllowed: 2,
  noNetwork: 3,
  unreachable: 4,
  refused: 5,
  command: 7,
  addressType: 8,
} as const
const CODES: { readonly [code: string]: number } = { ECONNREFUSED: REPLY.refused, ENETUNREACH: REPLY.noNetwork }

const reply = (code: number): Buffer => Buffer.from([VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0])

/** Reads so many bytes of a paused socket; undefined when it ends before. */
const take = async (socket: Socket, count: number): Promise<Buffer | undefined> => {
  for (;;) {
    const piece = socket.read(count) as Buffer | null
    if (piece) return piece.length === count ? piece : undefined
    if (socket.readableEnded || socket.destroyed) return undefined
    await new Promise<void>(resolve => {
      const go = () => {
        for (const event of ['readable', 'end', 'close'] as const) socket.off(event, go)
        resolve()
      }
      for (const event of ['readable', 'end', 'close'] as const) socket.on(event, go)
    })
  }
}

const hostIn = async (socket: Socket, type: number): Promise<string | undefined> => {
  if (type === NAME) return (await take(socket, (await take(socket, 1))?.[0] ?? 0))?.toString('latin1')
  const bytes = await take(socket, type === IPV4 ? 4 : 16)
  if (!bytes) return undefined
  return type === IPV4
    ? [...bytes].join('.')
    : Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16)).join(':')
}

/** Serves one client of SOCKS5 (RFC 1928): connections alone, without authentication; names are looked up here. */
export const serveSocks = async (
  socket: Socket,
  dial: Dial,
  join: (socket: Socket, far: Socket, target: Target) => void,
): Promise<void> => {
  const end = (code: number) => void socket.end(reply(code))
  const greeting = await take(socket, 2)
  if (!greeting || greeting[0] !== VERSION || !greeting[1]) return void socket.destroy()
  const methods = await take(socket, greeting[1])
  if (!methods?.includes(NO_AUTHENTICATION)) return void socket.end(Buffer.from([VERSION, NONE_OFFERED]))
  socket.write(Buffer.from([VERSION, NO_AUTHENTICATION]))
  const request = await take(socket, 4)
  if (!request || request[0] !== VERSION) return void socket.destroy()
  const [, command, , type = 0] = request
  if (command !== CONNECT) return end(REPLY.command)
  if (type !== IPV4 && type !== NAME && type !== IPV6) return end(REPLY.addressType)
  const named = await hostIn(socket, type)
  const port = (await take(socket, 2))?.readUInt16BE()
  if (!named || !port) return void socket.destroy()
  const host = normalHost(named)
  if (host === undefined) return end(REPLY.notAllowed)
  try {
    const far = await dial({ host, port })
    if (socket.destroyed) return void far.destroy()
    socket.write(reply(REPLY.granted))
    socket.setTimeout(0)
    join(socket, far, { host, port })
  } catch (error) {
    end(error instanceof Refusal ? REPLY.notAllowed : (CODES[codeOf(error) ?? ''] ?? REPLY.unreachable))
  }
}
