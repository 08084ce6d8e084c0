import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import type { Readable, Writable } from 'node:stream'
import { linesWithin, NotTheProtocol, quotedLine } from '../../../../sdk/node/programs/piped-process.js'
import { ignored } from '../../../../sdk/index.js'
import { drainedOrClosed } from '../../../../sdk/node/programs/drained-or-closed.js'

/** Callbacks for the messages of a program. */
export interface WireHooks {
  /** Called with the number of bytes received. */
  heard(bytes: number): void
  /** A `session/update`, unchecked. */
  update(params: unknown): void
  /** Resolves when there is room for more updates. */
  room(): Promise<void> | undefined
}

/** Limits for the messages of a program. */
export interface WireLimits {
  readonly line: number
  /** The most open requests of the program. */
  readonly requests: number
}

const LIMITS: WireLimits = { line: 16 * 1024 * 1024, requests: 256 }

interface Parsed {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
}

const parsed = (line: string): Parsed => {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // The line itself is reported below, which is more useful than the parser's message.
  }
  throw new NotTheProtocol(`wrote a line that is not a message of the Agent Client Protocol: ${quotedLine(line)}`)
}

/**
 * The messages of a program over its two pipes, read no faster than they are handled.
 *
 * Passes on only well-formed requests, and answers to requests; updates of a session go to their hook.
 */
export const wire = (input: Readable, output: Writable, hooks: WireHooks, limits = LIMITS): Stream => {
  const asked = new Set<unknown>()
  const asking = new Set<unknown>()
  const lines = linesWithin(input as AsyncIterable<Buffer>, limits.line)

  const taken = (line: string): AnyMessage | undefined => {
    const message = parsed(line)
    const { id, method, params } = message
    if (method === undefined && 'result' in message !== 'error' in message)
      return asked.delete(id) ? (message as AnyMessage) : undefined
    if (typeof method !== 'string') throw new NotTheProtocol('wrote a message that is neither a request nor an answer')
    if (id === undefined) {
      if (method === 'session/update') hooks.update(params)
      return method === '$/cancel_request' ? (message as AnyMessage) : undefined
    }
    if (typeof id !== 'string' && typeof id !== 'number') throw new NotTheProtocol('made a request without an id')
    if (asking.has(id)) throw new NotTheProtocol('made two requests with the same id')
    asking.add(id)
    if (asking.size > limits.requests) throw new NotTheProtocol(`made more than ${limits.requests} requests at once`)
    return message as AnyMessage
  }

  const readable = new ReadableStream<AnyMessage>(
    {
      pull: async controller => {
        for (;;) {
          await hooks.room()
          const { value: line, done } = await lines.next()
          if (done) return controller.close()
          hooks.heard(line.length)
          const message = line.trim() ? taken(line) : undefined
          if (message) return controller.enqueue(message)
        }
      },
      cancel: () => void lines.return().catch(ignored('the program is not read any more')),
    },
    { highWaterMark: 0 },
  )

  const writable = new WritableStream<AnyMessage>({
    write: async message => {
      const { id, method } = message as Parsed
      if (method !== undefined && id !== undefined) asked.add(id)
      if (output.destroyed) throw new NotTheProtocol('closed its input')
      if (!output.write(`${JSON.stringify(message)}\n`)) await drainedOrClosed(output)
      if (method === undefined) asking.delete(id)
    },
  })
  return { readable, writable }
}
