import type { Socket } from 'node:net'
import { connect as secured, type TLSSocket } from 'node:tls'
import { isIP } from 'node:net'
import { WebSocket } from 'ws'
import { refuse, ignored } from '../../../sdk/index.js'
import { LINK_PIECE } from '../../../sdk/node/extension/protocol.js'
import { textOrBytes } from '../../../sdk/node/extension/bytes.js'
import type { FetchDeps } from './fetch.js'
import type { HostHandlers } from './operations.js'
import { reachTarget } from './reach.js'
import { filledTexts } from './secrets.js'

const MOST_OPEN = 100
const MOST_FRAME = 4 * 1024 * 1024
/** The maximum number of unread frames; with more the connection is closed. */
const MOST_WAITING = 1_000

/** An open connection of a backend. */
interface Connection {
  send(data: string | Uint8Array): Promise<void>
  close(): void
  readonly frames: AsyncIterable<string | Uint8Array>
}

/** The operations on connections, and the function that closes all of them. */
export const connectOperations = (
  deps: FetchDeps,
): { readonly handlers: Pick<HostHandlers, 'connect' | `socket.${'send' | 'close'}`>; readonly end: () => void } => {
  const open = new Map<number, Connection>()
  let next = 0
  const of = (socket: number) => open.get(socket) ?? refuse('not-found', 'this connection is closed')
  return {
    handlers: {
      connect: async ({ host, port, tls = false, url, headers }, signal) => {
        if (open.size >= MOST_OPEN) refuse('too-many', `expected at most ${MOST_OPEN} open connections`)
        const connection =
          url !== undefined
            ? await webSocket(deps, url, headers ?? {}, signal)
            : host !== undefined && port !== undefined
              ? await rawSocket(deps, { host, port, tls }, signal)
              : refuse('invalid', 'expected host and port, or url')
        const socket = ++next
        open.set(socket, connection)
        return { socket, frames: deps.link().offer(closing(connection, () => open.delete(socket))) }
      },
      'socket.send': async ({ socket, data }) => {
        await of(socket).send(textOrBytes('data', data))
        return {}
      },
      'socket.close': ({ socket }) => {
        open.get(socket)?.close()
        open.delete(socket)
        return {}
      },
    },
    end: () => {
      for (const connection of open.values()) connection.close()
      open.clear()
    },
  }
}

async function* closing(connection: Connection, closed: () => void): AsyncGenerator<string | Uint8Array, void> {
  try {
    yield* connection.frames
  } finally {
    connection.close()
    closed()
  }
}

const rawSocket = async (
  { reach }: FetchDeps,
  { host, port, tls }: { host: string; port: number; tls: boolean },
  signal: AbortSignal,
): Promise<Connection> => {
  const plain = await reachTarget(reach, { host, port }, signal)
  const socket = tls ? await securedSocket(plain, host, signal) : plain
  socket.on('error', ignored('its close follows'))
  return {
    close: () => void socket.destroy(),
    send: data =>
      new Promise((sent, failed) => socket.write(data, error => (error ? failed(refusalOf(error)) : sent()))),
    frames: piecesOfSocket(socket),
  }
}

const refusalOf = (error: Error): Error => {
  try {
    return refuse('dependency', `the connection is closed: ${(error as NodeJS.ErrnoException).code ?? error.message}`)
  } catch (refusal) {
    return refusal as Error
  }
}

async function* piecesOfSocket(socket: Socket): AsyncGenerator<Uint8Array, void> {
  for await (const piece of socket as AsyncIterable<Buffer>)
    for (let at = 0; at < piece.length; at += LINK_PIECE) yield piece.subarray(at, at + LINK_PIECE)
}

const securedSocket = (plain: Socket, host: string, signal: AbortSignal): Promise<TLSSocket> =>
  new Promise((done, failed) => {
    const socket = secured({ socket: plain, servername: isIP(host) ? '' : host })
    const stop = () => socket.destroy(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    socket.once('secureConnect', () => {
      signal.removeEventListener('abort', stop)
      done(socket)
    })
    socket.once('error', error => failed(refusalOf(error)))
    plain.resume()
  })

const webSocket = async (
  { reach, secrets }: FetchDeps,
  text: string,
  headers: { readonly [name: string]: string },
  signal: AbortSignal,
): Promise<Connection> => {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'ws:' && url.protocol !== 'wss:'))
    return refuse('invalid', 'url: expected a ws or wss address')
  const names = Object.keys(headers)
  const { texts } = await filledTexts(
    secrets,
    names.map(name => headers[name]!),
  )
  const secure = url.protocol === 'wss:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const plain = await reachTarget(reach, { host, port: Number(url.port || (secure ? 443 : 80)) }, signal)
  const socket = secure ? await securedSocket(plain, host, signal) : plain
  const web = new WebSocket(url.href, {
    createConnection: () => socket,
    headers: Object.fromEntries(names.map((name, at) => [name, texts[at]!])),
    maxPayload: MOST_FRAME,
    followRedirects: false,
    perMessageDeflate: false,
    handshakeTimeout: 30_000,
  })
  const frames = framesOf(web)
  await new Promise<void>((opened, failed) => {
    web.once('open', opened)
    web.once('error', error => failed(refusalOf(error)))
    signal.addEventListener('abort', () => web.terminate(), { once: true })
    socket.resume()
  })
  return {
    close: () => web.close(),
    send: data => new Promise((sent, failed) => web.send(data, error => (error ? failed(refusalOf(error)) : sent()))),
    frames,
  }
}

const framesOf = (web: WebSocket): AsyncIterable<string | Uint8Array> => {
  const waiting: (string | Uint8Array)[] = []
  let wake = () => {}
  let over = false
  web.on('message', (data: Buffer, isBinary) => {
    waiting.push(isBinary ? data : data.toString())
    if (waiting.length > MOST_WAITING) web.terminate()
    wake()
  })
  web.on('error', ignored('its close follows'))
  web.once('close', () => {
    over = true
    wake()
  })
  return (async function* () {
    for (;;) {
      for (let frame = waiting.shift(); frame !== undefined; frame = waiting.shift()) yield frame
      if (over) return
      await new Promise<void>(resolve => (wake = resolve))
    }
  })()
}
