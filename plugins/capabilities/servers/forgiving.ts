import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { isDeeper, MOST_LEVELS } from '../../../sdk/node/limits/depth.js'

/** What a server may say in this time; requests are what it asks by itself. */
const WINDOW_MS = 10_000
const MOST_MESSAGES = 5_000
const MOST_REQUESTS = 100
/** The pause between two lists of tools that a server says are others now. */
const CHANGED_MS = 5_000
const CHANGED = 'notifications/tools/list_changed'
/** The tools of one page: more are not passed on. */
const MOST_TOOLS = 501
const MOST_DESCRIPTION = 8001

type Fields = { readonly [name: string]: unknown }
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The Model Context Protocol requires of each tool a name, and a schema of an object as its input. */
const isTool = (tool: unknown): tool is Fields =>
  isFields(tool)
  && typeof tool.name === 'string'
  && isFields(tool.inputSchema)
  && tool.inputSchema.type === 'object'
  && !isDeeper(tool)

const cutTool = (tool: Fields): Fields =>
  typeof tool.description === 'string' && tool.description.length > MOST_DESCRIPTION
    ? { ...tool, description: tool.description.slice(0, MOST_DESCRIPTION) }
    : tool

/** A message without the tools of a list that are none: the client would refuse the whole list for one. */
const withoutNoTools = (message: JSONRPCMessage): JSONRPCMessage => {
  const result = 'result' in message && isFields(message.result) ? message.result : undefined
  const tools = result?.tools
  if (!Array.isArray(tools)) return message
  const passed = tools.filter(isTool).slice(0, MOST_TOOLS).map(cutTool)
  return { ...message, result: { ...result, tools: passed } } as JSONRPCMessage
}

/** A message that every reader can read; undefined: it is left out. */
const readable = (message: JSONRPCMessage): JSONRPCMessage | undefined => {
  if (!isDeeper(message)) return message
  if ('method' in message || message.id === undefined) return undefined
  const error = { code: -32_603, message: `its answer is nested deeper than ${MOST_LEVELS} levels` }
  return { jsonrpc: '2.0', id: message.id, error }
}

/** What a server says, counted. */
class Said {
  #since = 0
  #messages = 0
  #requests = 0

  /** Why no more of it is read; undefined: it is. */
  tooMuch(message: JSONRPCMessage): string | undefined {
    const now = performance.now()
    if (now - this.#since > WINDOW_MS) {
      this.#since = now
      this.#messages = this.#requests = 0
    }
    if ('method' in message && 'id' in message && ++this.#requests > MOST_REQUESTS)
      return `sent more than ${MOST_REQUESTS} requests in ${WINDOW_MS / 1000} s`
    return ++this.#messages > MOST_MESSAGES
      ? `sent more than ${MOST_MESSAGES} messages in ${WINDOW_MS / 1000} s`
      : undefined
  }
}

const floods = new WeakMap<Transport, string>()

/** Why a connection was ended, as the rest of a sentence about its server; undefined: it was not. */
export const floodOf = (transport: Transport): string | undefined => floods.get(transport)

/**
 * A transport whose lists of tools are without those that are none, and whose messages are neither nested too deep nor
 * too many: a server that floods loses its connection.
 */
export const forgiving = <T extends Transport>(transport: T): T => {
  let listener: Transport['onmessage']
  const said = new Said()
  let changedAt = -Infinity
  let later: NodeJS.Timeout | undefined
  const hear = (next: NonNullable<Transport['onmessage']>): NonNullable<Transport['onmessage']> => {
    const changed: typeof next = (message, extra) => {
      changedAt = performance.now()
      next(message, extra)
    }
    return (message, extra) => {
      if (floods.has(transport)) return
      const flood = said.tooMuch(message)
      if (flood !== undefined) {
        floods.set(transport, flood)
        clearTimeout(later)
        return void transport.close()
      }
      const left = readable(withoutNoTools(message))
      if (!left) return
      if (!('method' in left) || left.method !== CHANGED) return next(left, extra)
      const wait = changedAt + CHANGED_MS - performance.now()
      clearTimeout(later)
      if (wait <= 0) changed(left, extra)
      else later = setTimeout(() => changed(left, extra), wait).unref()
    }
  }
  Object.defineProperty(transport, 'onmessage', {
    get: () => listener,
    set: (next: Transport['onmessage']) => {
      listener = next && hear(next)
    },
  })
  return transport
}
