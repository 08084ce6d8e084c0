import { ServerResponse, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { WebSocketServer } from 'ws'
import { FrameSocket, UNFIT, type FrameSocketDeps } from './frame-socket.js'
import { Inbox } from '../../../sdk/node/concurrency/inbox.js'
import { refuse } from '../../../sdk/refusal.js'
import { headOf } from '../head-lines.js'

const LONGEST = 64 * 1024
const KEY = /^[A-Za-z0-9+/]{22}==$/

/** The dependencies of a socket, with the call that answers it. */
export interface SocketDeps extends FrameSocketDeps {
  /**
   * Makes the call with the client's frames and returns the frames to send; runs before the upgrade, so that a refusal
   * is an ordinary answer.
   */
  readonly answer: (frames: AsyncIterable<unknown>) => Promise<AsyncIterable<unknown>>
}

/** Upgrades only requests for a WebSocket; a server may ignore other upgrade requests (RFC 9110, section 7.8). */
export const asksSocket: Pick<ServerOptions, 'shouldUpgradeCallback'> = {
  shouldUpgradeCallback: ({ method, headers }) => method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket',
}

/** The connections with a request to upgrade to a WebSocket. */
export class Upgrades {
  readonly #asked = new WeakMap<IncomingMessage, { socket: Socket; head: Buffer }>()
  #server: Promise<WebSocketServer> | undefined

  /** Serves upgrade requests like other requests; closes the connection after an answer that is not an upgrade. */
  listen(server: Server, serve: (req: IncomingMessage, res: ServerResponse) => unknown): void {
    server.on('upgrade', (req, duplex, head) => {
      const socket = duplex as Socket
      socket.on('error', () => socket.destroy())
      const res = new ServerResponse(req)
      try {
        res.assignSocket(socket)
      } catch {
        // The answer to an earlier request on this connection is still being sent.
        return void socket.destroy()
      }
      res.shouldKeepAlive = false
      res.once('finish', () => socket.destroySoon())
      this.#asked.set(req, { socket, head })
      serve(req, res)
    })
  }

  /** The socket of an upgrade request; undefined for other requests. */
  of(req: IncomingMessage, res: ServerResponse): { serve(parts: SocketDeps): Promise<void> } | undefined {
    const asked = this.#asked.get(req)
    if (!asked) return undefined
    const { 'sec-websocket-key': key = '', 'sec-websocket-version': version } = req.headers
    if (!KEY.test(key) || version !== '13')
      refuse('invalid', 'invalid sec-websocket-key or version (expected version 13, RFC 6455)')
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
          // If the client disconnected meanwhile, only the close event of the connection follows.
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

/** Loads `ws` and creates its server on the first upgrade. */
const openServer = async (): Promise<WebSocketServer> => {
  const { WebSocket, WebSocketServer } = await import('ws')
  /** The contract defines close code 1007, not 1009, for a frame that is too long. */
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
      message: `invalid WebSocket handshake: ${error.message}`,
      reason: 'invalid',
    })
    socket.end(headOf(400, Buffer.byteLength(body)) + body)
  })
}
