import type { McpHttpHandler, ServerContext } from '@modelcontextprotocol/server'
import { attachedBytes } from '../providers/attached-bytes.js'
import type { OfferedTool, SentPicture, ToolResult } from '../providers/adapter.js'
import { ignored } from '../../../sdk/index.js'

/** The tools for a program during its turn. */
export interface ServedTools {
  list(): Promise<readonly OfferedTool[]>
  call(name: string, input: object): Promise<ToolResult>
}

const MOST_IMAGE = 5 * 1024 * 1024
const NOBODY = 'no turn of this program is running'
/** Clients cancel a call after half a minute or more without progress. */
const NEWS_MS = 10_000

/** Serves the tools that `tools` returns over the Model Context Protocol; undefined: no turn is running. */
export const toolProtocol = async (tools: () => ServedTools | undefined): Promise<McpHttpHandler> => {
  const { createMcpHandler, Server } = await import('@modelcontextprotocol/server')
  return createMcpHandler(() => {
    const server = new Server({ name: 'sandbox', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', async () => ({
      tools: ((await tools()?.list()) ?? []).map(({ name, description, input, readOnly }) => ({
        name,
        description,
        // The library accepts any JSON Schema of an object.
        inputSchema: input as { type: 'object' },
        annotations: { readOnlyHint: readOnly },
        // Programs built on the Claude Agent SDK show the model only the names of other tools.
        _meta: { 'anthropic/alwaysLoad': true },
      })),
    }))
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const served = tools()
      if (!served) return failed(NOBODY)
      const stop = news(context)
      try {
        const { ok, text, pictures = [] } = await served.call(params.name, params.arguments ?? {})
        return ok ? { content: [{ type: 'text', text }, ...(await imagesOf(pictures))] } : failed(text)
      } finally {
        stop()
      }
    })
    return server
  })
}

const imagesOf = async (pictures: readonly SentPicture[]) => {
  const read = pictures.map(async ({ absolute, mime }) => ({ mime, bytes: await attachedBytes(absolute, MOST_IMAGE) }))
  return (await Promise.all(read)).flatMap(({ mime, bytes }) =>
    bytes ? [{ type: 'image' as const, data: bytes.toString('base64'), mimeType: mime }] : [],
  )
}

const failed = (text: string) => ({ content: [{ type: 'text' as const, text }], isError: true })

/** Sends progress notifications during a call to clients that requested them. */
const news = ({ mcpReq: { _meta, notify } }: ServerContext): (() => void) => {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return () => {}
  let progress = 0
  const timer = setInterval(
    () =>
      void notify({ method: 'notifications/progress', params: { progressToken, progress: ++progress } }).catch(
        ignored('the client has gone'),
      ),
    NEWS_MS,
  )
  return () => clearInterval(timer)
}
