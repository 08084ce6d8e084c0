import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import { answerBy } from './http.js'
import { toolProtocol, type ServedTools } from './protocol.js'

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

/**
 * The tool server of the daemon: programs of turns reach it over HTTP with their own token, which is valid only during
 * their turn.
 */
export class ToolServers {
  readonly #sessions = new Map<string, Session>()
  /** Does not listen: the networks of conversations pass it their connections. */
  readonly server: Server = createServer((request, response) => {
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? []
    const session = this.#sessions.get(token)
    if (!session || request.url !== TOOLS_PATH) {
      response.writeHead(session ? 404 : 401, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify({ message: session ? 'expected /mcp' : 'expected the token of a turn' }))
    }
    session.handler
      .then(handler => answerBy(request, response, asked => handler.fetch(asked)))
      .catch(() => response.destroy())
  })

  /** A credential for a program. */
  open(): ToolSession {
    const token = randomBytes(32).toString('base64url')
    const session: Session = { tools: undefined, handler: toolProtocol(() => session.tools) }
    session.handler.catch(() => {})
    this.#sessions.set(token, session)
    return {
      token,
      use: tools => (session.tools = tools),
      end: () => {
        this.#sessions.delete(token)
        void session.handler.then(handler => handler.close()).catch(() => {})
      },
    }
  }

  /** Ends every connection when the daemon stops. */
  close(): void {
    this.#sessions.clear()
    this.server.closeAllConnections()
  }
}
