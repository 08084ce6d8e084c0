import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'

/** What a program wrote is no protocol, or more of it than is taken; the message says what. */
export class Misbehaved extends Error {}

/** Who listens to a program. */
export interface WireHooks {
  /** Anything arrived. */
  heard(bytes: number): void
  /** A `session/update`, unchecked. */
  update(params: unknown): void
  /** Resolves when there is room for more of what the program says. */
  room(): Promise<void> | undefined
}

/** How much is taken of a program. */
export interface WireLimits {
  readonly line: number
  /** Requests of the program under way at once. */
  readonly requests: number
}

const LIMITS: WireLimits = { line: 16 * 1024 * 1024, requests: 256 }
const NEWLINE = 10
const SHOWN = 120

/** The lines of a stream, none longer than `most` bytes. */
export async function* wireLines(input: AsyncIterable<Buffer>, most: number): AsyncGenerator<string, void> {
  let parts: Buffer[] = []
  let size = 0
  const take = (part: Buffer) => {
    size += part.length
    if (size > most) throw new Misbehaved(`wrote a line of more than ${most} bytes`)
    parts.push(part)
  }
  for await (const chunk of input) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      take(chunk.subarray(from, end))
      yield Buffer.concat(parts).toString()
      from = end + 1
      parts = []
      size = 0
    }
    if (from < chunk.length) take(chunk.subarray(from))
  }
  if (size > 0) yield Buffer.concat(parts).toString()
}

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
    // What it wrote is reported below; the parser's words would not help a reader.
  }
  const shown =
    JSON.stringify(line.slice(0, SHOWN).toWellFormed())
    + (line.length > SHOWN ? ` and ${line.length - SHOWN} characters more` : '')
  throw new Misbehaved(`wrote a line that is no message of the Agent Client Protocol: ${shown}`)
}

/**
 * The messages of a program over its two pipes, read no faster than they are dealt with.
 *
 * Only well-formed requests, and answers to what was asked, come through; updates of a session go to their hook.
 */
export const wire = (input: Readable, output: Writable, hooks: WireHooks, limits = LIMITS): Stream => {
  const asked = new Set<unknown>()
  const asking = new Set<unknown>()
  const lines = wireLines(input as AsyncIterable<Buffer>, limits.line)

  const taken = (line: string): AnyMessage | undefined => {
    const message = parsed(line)
    const { id, method, params } = message
    if (method === undefined && 'result' in message !== 'error' in message)
      return asked.delete(id) ? (message as AnyMessage) : undefined
    if (typeof method !== 'string') throw new Misbehaved('wrote a message that is neither a request nor an answer')
    if (id === undefined) {
      if (method === 'session/update') hooks.update(params)
      return method === '$/cancel_request' ? (message as AnyMessage) : undefined
    }
    if (typeof id !== 'string' && typeof id !== 'number')
      throw new Misbehaved('asked something without an id to answer to')
    if (asking.has(id)) throw new Misbehaved('asked two things under one id')
    asking.add(id)
    if (asking.size > limits.requests) throw new Misbehaved(`asked for more than ${limits.requests} things at once`)
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
      cancel: () => void lines.return().catch(() => {}),
    },
    { highWaterMark: 0 },
  )

  const writable = new WritableStream<AnyMessage>({
    write: async message => {
      const { id, method } = message as Parsed
      if (method !== undefined && id !== undefined) asked.add(id)
      if (output.destroyed) throw new Misbehaved('takes no more words')
      if (!output.write(`${JSON.stringify(message)}\n`))
        await Promise.race([once(output, 'drain'), once(output, 'close')])
      if (method === undefined) asking.delete(id)
    },
  })
  return { readable, writable }
}
