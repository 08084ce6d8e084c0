import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'

type Fields = { readonly [name: string]: unknown }
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The Model Context Protocol requires of each tool a name, and a schema of an object as its input. */
const isTool = (tool: unknown): boolean =>
  isFields(tool) && typeof tool.name === 'string' && isFields(tool.inputSchema) && tool.inputSchema.type === 'object'

/** A message without the tools of a list that are none: the client would refuse the whole list for one. */
const withoutNoTools = (message: JSONRPCMessage): JSONRPCMessage => {
  const result = 'result' in message && isFields(message.result) ? message.result : undefined
  const tools = result?.tools
  if (!Array.isArray(tools) || tools.every(isTool)) return message
  return { ...message, result: { ...result, tools: tools.filter(isTool) } } as JSONRPCMessage
}

/** A transport whose lists of tools are without those that are none. */
export const forgiving = <T extends Transport>(transport: T): T => {
  let listener: Transport['onmessage']
  Object.defineProperty(transport, 'onmessage', {
    get: () => listener,
    set: (next: Transport['onmessage']) => {
      listener = next && ((message, extra) => next(withoutNoTools(message), extra))
    },
  })
  return transport
}
