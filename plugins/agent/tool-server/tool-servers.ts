import { randomBytes } from 'node:crypto'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import type { Log } from '../../../sdk/host.js'
import { answerBy } from './http.js'
import { toolProtocol, type ServedTools } from './protocol.js'
import { ignored } from '../../../sdk/index.js'

/** The credential of one program: `use` makes tools available, `end` removes them. */
export interface ToolSession {
  readonly token: string
  use(tools: ServedTools | undefined): void
  end(): void
}

interface Session {
  tools: ServedTools | undefined
  readonly handler: Promise<McpHttpHandler>
}

/** The path of the server. */
export const TOOLS_PATH = '/mcp'

const JSON_TYPE = { 'content-type': 'application/json' }

/** What a program gets whose request failed in the daemon: a message of its own protocol (JSON-RPC), with no id. */
const FAILURE = JSON.stringify({
  jsonrpc: '2.0',
  id: null,
  // -32603 is an internal error.
  error: { code: -32603, message: "the sandbox's tool server failed; the daemon's log says why" },
})

/**
 * The tool server of the daemon: programs of turns reach it over HTTP with their own token, which is valid only during
 * their turn.
 */
export class ToolServers {
  readonly #sessions = new Map<string, Session>()
  readonly #log: Pick<Log, 'error'>
  readonly #protocol: typeof toolProtocol
  /** Does not listen: the networks of conversations pass it their connections. */
  readonly server: Server = createServer((request, response) => {
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? []
    const session = this.#sessions.get(token)
    if (!session || request.url !== TOOLS_PATH) {
      response.writeHead(session ? 404 : 401, JSON_TYPE)
      return void response.end(JSON.stringify({ message: session ? 'expected /mcp' : 'expected the token of a turn' }))
    }
    session.handler
      .then(handler => answerBy(request, response, asked => handler.fetch(asked)))
      .catch(error => this.#fail(response, error))
  })

  constructor(log: Pick<Log, 'error'>, protocol = toolProtocol) {
    this.#log = log
    this.#protocol = protocol
  }

  /** A credential for a program. */
  open(): ToolSession {
    const token = randomBytes(32).toString('base64url')
    const session: Session = { tools: undefined, handler: this.#protocol(() => session.tools) }
    session.handler.catch(ignored('each request reports it'))
    this.#sessions.set(token, session)
    return {
      token,
      use: tools => (session.tools = tools),
      end: () => {
        this.#sessions.delete(token)
        void session.handler
          .then(handler => handler.close())
          .catch(error => this.#log.error('closing the tool server of a program failed', { error: String(error) }))
      },
    }
  }

  #fail(response: ServerResponse, error: unknown): void {
    // The program ended its request itself.
    if (response.destroyed) return
    this.#log.error('the tool server failed', { error: String(error) })
    if (response.headersSent) return void response.destroy()
    response.writeHead(500, JSON_TYPE).end(FAILURE)
  }

  /** Ends every connection when the daemon stops. */
  close(): void {
    this.#sessions.clear()
    this.server.closeAllConnections()
  }
}
