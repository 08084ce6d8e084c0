import { ServerResponse, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { WebSocketServer } from 'ws'
import { FrameSocket, UNFIT, type FrameSocketDeps } from './frame-socket.js'
import { Inbox } from '../../sdk/node/concurrency/inbox.js'
import { refuse } from '../../sdk/refusal.js'
import { headOf } from './head-lines.js'

const LONGEST = 64 * 1024
const KEY = /^[A-Za-z0-9+/]{22}==$/

/** What a socket is served with. */
export interface SocketDeps extends FrameSocketDeps {
  /** Gives the frames to send, for those the client sends; while it refuses there is no socket yet. */
  readonly answer: (frames: AsyncIterable<unknown>) => Promise<AsyncIterable<unknown>>
}

/**
 * Only who asks for a WebSocket is given the connection: every other wish to change protocols may be ignored (RFC 9110,
 * section 7.8).
 */
export const asksSocket: Pick<ServerOptions, 'shouldUpgradeCallback'> = {
  shouldUpgradeCallback: ({ method, headers }) => method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket',
}

/** The connections on which a client asks for a WebSocket. */
export class Upgrades {
  readonly #asked = new WeakMap<IncomingMessage, { socket: Socket; head: Buffer }>()
  #server: Promise<WebSocketServer> | undefined

  /** Serves such a request as every other is; where the answer is no socket, the connection ends with it. */
  listen(server: Server, serve: (req: IncomingMessage, res: ServerResponse) => unknown): void {
    server.on('upgrade', (req, duplex, head) => {
      const socket = duplex as Socket
      socket.on('error', () => socket.destroy())
      const res = new ServerResponse(req)
      try {
        res.assignSocket(socket)
      } catch {
        // The answer to a request before this one is not out yet.
        return void socket.destroy()
      }
      res.shouldKeepAlive = false
      res.once('finish', () => socket.destroySoon())
      this.#asked.set(req, { socket, head })
      serve(req, res)
    })
  }

  /** The socket a request asks for; undefined when it asks for none. */
  of(req: IncomingMessage, res: ServerResponse): { serve(parts: SocketDeps): Promise<void> } | undefined {
    const asked = this.#asked.get(req)
    if (!asked) return undefined
    const { 'sec-websocket-key': key = '', 'sec-websocket-version': version } = req.headers
    if (!KEY.test(key) || version !== '13')
      refuse('invalid', 'expected the handshake of a WebSocket of version 13 (RFC 6455), found another')
    return {
      serve: async parts => {
        const gone = () => parts.ended.abort()
        asked.socket.once('close', gone)
        let line: FrameSocket | undefined
        const inbox = new Inbox<unknown>({
          full: 64,
          room: 16,
          pause: () => line?.pause(),
          resume: () => line?.resume(),
        })
        const frames = await parts.answer(inbox)
        const server = await (this.#server ??= openServer())
        res.detachSocket(asked.socket)
        if (!asked.socket.destroyed) {
          // Of a client that left meanwhile only the connection tells.
          await new Promise<void>(resolve => {
            asked.socket.once('close', resolve)
            server.handleUpgrade(req, asked.socket, asked.head, ws =>
              resolve(void (line = new FrameSocket(ws, inbox, parts))),
            )
          })
        }
        await (line ? line.send(frames) : frames[Symbol.asyncIterator]().return?.())
      },
    }
  }
}

/** Read when the first socket is asked for. */
const openServer = async (): Promise<WebSocketServer> => {
  const { WebSocket, WebSocketServer } = await import('ws')
  /** A frame that is too long is one that does not fit, as the contract has it. */
  class Strict extends WebSocket {
    override close(code?: number, reason?: string | Buffer): void {
      super.close(code === 1009 ? UNFIT : code, reason)
    }
  }
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: LONGEST,
    perMessageDeflate: false,
    clientTracking: false,
    WebSocket: Strict,
  })
  return server.on('wsClientError', (error, socket) => {
    const body = JSON.stringify({
      message: `expected the handshake of a WebSocket, found another: ${error.message}`,
      reason: 'invalid',
    })
    socket.end(headOf(400, Buffer.byteLength(body)) + body)
  })
}
