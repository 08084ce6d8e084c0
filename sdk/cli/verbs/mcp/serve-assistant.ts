import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import type { TranscriptMessage } from '../../../../plugins/agent/contract.js'
import type { Client } from '../../../client.js'
import { Unreached } from '../../../client.js'
import { Refusal } from '../../../refusal.js'
import { exitFor } from '../../exit-codes.js'
import { asTyped } from '../../terminal/own-name.js'
import type { GivenArguments, Terminal } from '../../verb.js'
import { Daemons } from '../acp/daemons.js'
import { ASSISTANT_TOOLS } from './assistant-tools.js'

const SCHEME = 'sandbox://conversation/'
const MOST_ROWS = 500
const MOST_LISTED = 200

const sentence = (error: unknown): string => asTyped(exitFor(error).message)

const markdownOf = (messages: readonly TranscriptMessage[]): string =>
  messages.map(({ role, text, by }) => `## ${role === 'user' ? (by ?? 'user') : role}\n\n${text}\n`).join('\n')

/** Serves the Model Context Protocol on standard input and output until the assistant goes. */
export const serveAssistant = async (terminal: Terminal, given: GivenArguments): Promise<void> => {
  const daemons = new Daemons(terminal, given)
  const asked = async <T>(work: (client: Client, copies: boolean) => Promise<T>): Promise<T> => {
    const { client, copies } = await daemons.anywhere()
    try {
      return await work(client, copies)
    } catch (error) {
      if (error instanceof Unreached) daemons.forget(client)
      throw error
    }
  }
  /** A resource that cannot be read is an error of the protocol. */
  const resource = <T>(work: (client: Client) => Promise<T>): Promise<T> =>
    asked(work).catch(error => {
      const absent = error instanceof Refusal && ['invalid', 'not-found'].includes(error.reason)
      throw new ProtocolError(
        absent ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError,
        sentence(error),
      )
    })
  const factory = () => {
    const server = new Server(
      { name: 'sandbox', title: 'Sandbox', version: terminal.version },
      { capabilities: { tools: {}, resources: {} } },
    )
    server.setRequestHandler('tools/list', () => ({
      tools: Object.entries(ASSISTANT_TOOLS).map(([name, { description, input, needs, readOnly, destructive }]) => ({
        name,
        description,
        // The library accepts any JSON Schema of an object.
        inputSchema: { type: 'object', properties: input, required: [...needs] } as { type: 'object' },
        annotations: { readOnlyHint: readOnly === true, destructiveHint: destructive === true },
      })),
    }))
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: args = {} } }, context) => {
      if (!Object.hasOwn(ASSISTANT_TOOLS, name))
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `no tool ${name.slice(0, 80)}`)
      const { elicitation } = server.getClientCapabilities() ?? {}
      const forms = elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
      try {
        const result = await asked((client, copies) =>
          ASSISTANT_TOOLS[name]!.run(args, { client, copies, forms, context }),
        )
        if ('inputRequests' in result) return result
        return { content: [{ type: 'text' as const, text: JSON.stringify(result) }] }
      } catch (error) {
        return { content: [{ type: 'text' as const, text: sentence(error) }], isError: true }
      }
    })
    server.setRequestHandler('resources/list', () =>
      resource(async client => {
        const { agents } = await client.call('GET /agents')
        return {
          resources: agents
            .toSorted((one, other) => other.updatedAt - one.updatedAt)
            .slice(0, MOST_LISTED)
            .map(({ id, title, status }) => ({
              uri: SCHEME + id,
              name: id,
              title: title ?? id,
              description: `A conversation of the sandbox: ${status}`,
              mimeType: 'text/markdown',
            })),
        }
      }),
    )
    server.setRequestHandler('resources/templates/list', () => ({
      resourceTemplates: [
        { uriTemplate: `${SCHEME}{id}`, name: 'conversation', title: 'A conversation', mimeType: 'text/markdown' },
      ],
    }))
    server.setRequestHandler('resources/read', ({ params: { uri } }) =>
      resource(async client => {
        const id = uri.startsWith(SCHEME) ? uri.slice(SCHEME.length) : ''
        if (!/^[a-zA-Z0-9][\w-]{0,63}$/.test(id))
          throw new Refusal('invalid', `uri: expected ${SCHEME}ID, found ${uri.slice(0, 200)}`)
        const { messages } = await client.call('GET /agents/{id}/transcript', { id, limit: MOST_ROWS })
        return { contents: [{ uri, mimeType: 'text/markdown', text: markdownOf(messages) }] }
      }),
    )
    return server
  }
  const transport = new StdioServerTransport(terminal.in, terminal.out as Writable)
  const handle = serveStdio(factory, { transport })
  await Promise.race([
    once(terminal.in, 'end').catch(() => undefined),
    once(terminal.in, 'close').catch(() => undefined),
    once(terminal.signal, 'abort'),
  ])
  await handle.close()
  await daemons.close()
}
