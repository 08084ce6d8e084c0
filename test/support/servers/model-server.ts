import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { EndpointTarget, WireProtocol } from '../../../plugins/endpoints/contract.js'
import { drainedOrClosed } from '../../../sdk/node/programs/drained-or-closed.js'

/** A tool call of a scripted answer; `raw` arguments are sent unchanged and need not be JSON. */
export interface ScriptedCall {
  readonly name: string
  readonly input?: object
  readonly raw?: string
  readonly id?: string
}

/** A streamed answer of the scripted model server. */
export interface ScriptedAnswer {
  readonly thoughts?: readonly string[]
  readonly text?: readonly string[]
  readonly calls?: readonly ScriptedCall[]
  readonly usage?: {
    readonly input?: number
    readonly output?: number
    readonly read?: number
    readonly write?: number
  }
  readonly finish?: 'stop' | 'length' | 'refused'
  /** The connection breaks after this number of bytes. */
  readonly cutAt?: number
  /** The body ends normally after this number of bytes, without the end marker of the protocol. */
  readonly endAt?: number
  /** The time between two pieces. */
  readonly everyMs?: number
  /** An error in the middle of the stream, after the text. */
  readonly error?: object
  readonly headers?: { readonly [name: string]: string }
  /** The speed or service tier that it says it answered in. */
  readonly speed?: string
}

/** An error status instead of an answer. */
export interface ScriptedRefusal {
  readonly status: number
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string
}

/** The reply to one request; `silent` never answers, `flood` sends this number of bytes. */
export type ScriptedReply = ScriptedAnswer | ScriptedRefusal | { readonly silent: true } | { readonly flood: number }

/** A message of a request, in any protocol. */
export interface SeenMessage {
  readonly role: string
  readonly content: unknown
  readonly tool_call_id?: string
}

/** The body of a request to a model, in any protocol. */
export interface SeenBody {
  readonly messages?: readonly SeenMessage[]
  readonly tools?: readonly object[]
  readonly system?: readonly object[]
  readonly [field: string]: unknown
}

/** A request as the server received it. */
export interface SeenRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: SeenBody
  readonly at: number
}

interface Until {
  teardown(work: () => unknown): unknown
}

const sse = (data: object, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`

const argumentsOf = ({ raw, input }: ScriptedCall): string => raw ?? JSON.stringify(input ?? {})

const half = (text: string): string[] => {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter(Boolean)
}

const chatCompletion = ({ thoughts, text, calls, usage, finish = 'stop', error, speed }: ScriptedAnswer): string[] => {
  const served = speed !== undefined && { service_tier: speed }
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', ...served }
  const chunk = (delta: object, reason: string | null = null) =>
    sse({ ...base, choices: [{ index: 0, delta, finish_reason: reason }] })
  const { input = 0, output = 0, read = 0 } = usage ?? {}
  const reasons = { stop: calls?.length ? 'tool_calls' : 'stop', length: 'length', refused: 'content_filter' }
  return [
    chunk({ role: 'assistant', content: '' }),
    ...(thoughts ?? []).map(reasoning_content => chunk({ reasoning_content })),
    ...(text ?? []).map(content => chunk({ content })),
    ...(error ? [sse({ error })] : []),
    ...(calls ?? []).flatMap((call, index) => [
      chunk({
        tool_calls: [
          { index, id: call.id ?? `call_${index}`, type: 'function', function: { name: call.name, arguments: '' } },
        ],
      }),
      ...half(argumentsOf(call)).map(part => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
    ]),
    chunk({}, reasons[finish]),
    sse({
      ...base,
      choices: [],
      usage: {
        prompt_tokens: input + read,
        completion_tokens: output,
        prompt_tokens_details: { cached_tokens: read },
      },
    }),
    'data: [DONE]\n\n',
  ]
}

const messages = ({ thoughts, text, calls, usage, finish = 'stop', error, speed }: ScriptedAnswer): string[] => {
  const { input = 0, output = 0, read = 0, write = 0 } = usage ?? {}
  const event = (type: string, more: object) => sse({ type, ...more }, type)
  let index = -1
  const block = (content_block: object, deltas: readonly object[]): string[] => {
    index++
    return [
      event('content_block_start', { index, content_block }),
      ...deltas.map(delta => event('content_block_delta', { index, delta })),
      event('content_block_stop', { index }),
    ]
  }
  const reasons = { stop: calls?.length ? 'tool_use' : 'end_turn', length: 'max_tokens', refused: 'refusal' }
  return [
    event('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: input,
          output_tokens: 1,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: write,
          ...(speed !== undefined && { speed }),
        },
      },
    }),
    ...(thoughts
      ? block({ type: 'thinking', thinking: '' }, [
          ...thoughts.map(thinking => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: 'signed' },
        ])
      : []),
    ...(text
      ? block(
          { type: 'text', text: '' },
          text.map(part => ({ type: 'text_delta', text: part })),
        )
      : []),
    ...(error ? [event('error', { error })] : []),
    ...(calls ?? []).flatMap((call, nth) =>
      block(
        { type: 'tool_use', id: call.id ?? `toolu_${nth}`, name: call.name, input: {} },
        half(argumentsOf(call)).map(partial_json => ({ type: 'input_json_delta', partial_json })),
      ),
    ),
    event('message_delta', {
      delta: { stop_reason: reasons[finish], stop_sequence: null },
      usage: { output_tokens: output },
    }),
    event('message_stop', {}),
  ]
}

const ollamaChat = ({ thoughts, text, calls, usage, finish = 'stop', error }: ScriptedAnswer): string[] => {
  const line = (message: object, more: object = { done: false }) => {
    const whole = { role: 'assistant', ...message }
    return `${JSON.stringify({ model: 'm', created_at: '2026-01-01T00:00:00Z', message: whole, ...more })}\n`
  }
  return [
    ...(thoughts ?? []).map(thinking => line({ content: '', thinking })),
    ...(text ?? []).map(content => line({ content })),
    ...(error ? [`${JSON.stringify(error)}\n`] : []),
    ...(calls ?? []).map(({ name, input = {}, raw }) =>
      line({ content: '', tool_calls: [{ function: { name, arguments: raw ?? input } }] }),
    ),
    line(
      { content: '' },
      {
        done: true,
        done_reason: finish === 'refused' ? 'content_filter' : finish,
        prompt_eval_count: usage?.input ?? 0,
        eval_count: usage?.output ?? 0,
      },
    ),
  ]
}

const STREAMS = { openai: chatCompletion, anthropic: messages, ollama: ollamaChat }

/** The pieces of an answer as a server of the protocol streams them. */
export const streamedAs = (protocol: WireProtocol, answer: ScriptedAnswer): string[] => STREAMS[protocol](answer)

/** A model server on loopback that answers by a script, one reply per request; it repeats the last one. */
export class ModelServer {
  readonly requests: SeenRequest[] = []
  readonly protocol: WireProtocol
  readonly #script: readonly ScriptedReply[] | ((request: SeenRequest, nth: number) => ScriptedReply)
  #port = 0

  constructor(protocol: WireProtocol, script: ModelServer['script']) {
    this.protocol = protocol
    this.#script = script
  }

  get script(): readonly ScriptedReply[] | ((request: SeenRequest, nth: number) => ScriptedReply) {
    return this.#script
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** The body of a request. */
  body(nth: number): SeenBody {
    return this.requests.at(nth)?.body ?? {}
  }

  /** The messages of a request, as JSON. */
  told(nth: number): string {
    return JSON.stringify(this.body(nth).messages)
  }

  target(more: Partial<EndpointTarget> = {}): EndpointTarget {
    return {
      id: 'e-1',
      label: 'Server',
      protocol: this.protocol,
      baseUrl: this.address,
      headers: { authorization: 'Bearer key-123456' },
      local: true,
      models: [{ id: 'm', label: 'M', efforts: [], badges: [], contextWindow: 100_000 }],
      default: 'm',
      ...more,
    }
  }

  async listen(t: Until): Promise<this> {
    const server = createServer((request, response) => {
      void (async () => {
        const pieces: Buffer[] = []
        for await (const piece of request) pieces.push(piece as Buffer)
        const text = Buffer.concat(pieces).toString()
        const { url = '', headers } = request
        const seen = {
          path: url,
          headers,
          text,
          body: (text ? JSON.parse(text) : {}) as SeenBody,
          at: performance.now(),
        }
        this.requests.push(seen)
        await this.#answer(seen, response)
      })().catch(() => response.destroy())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#port = (server.address() as AddressInfo).port
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return this
  }

  async #answer(request: SeenRequest, response: ServerResponse): Promise<void> {
    const nth = this.requests.length - 1
    const script = this.#script
    const reply = typeof script === 'function' ? script(request, nth) : script[Math.min(nth, script.length - 1)]!
    if ('silent' in reply) return
    if ('status' in reply) {
      response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers })
      return void response.end(reply.body ?? '')
    }
    const type = this.protocol === 'ollama' ? 'application/x-ndjson' : 'text/event-stream'
    response.writeHead(200, { 'content-type': type, ...('headers' in reply ? reply.headers : {}) })
    if ('flood' in reply) return flood(response, this.protocol, reply.flood)
    await send(response, streamedAs(this.protocol, reply), reply)
  }
}

const send = async (
  response: ServerResponse,
  pieces: readonly string[],
  { cutAt, endAt, everyMs }: ScriptedAnswer,
): Promise<void> => {
  const most = cutAt ?? endAt
  if (most === undefined) {
    for (const piece of pieces) {
      response.write(piece)
      if (everyMs) await delay(everyMs)
      if (response.destroyed) return
    }
    return void response.end()
  }
  const bytes = Buffer.from(pieces.join('')).subarray(0, most)
  if (cutAt === undefined) return void response.end(bytes)
  await new Promise(resolve => response.write(bytes, resolve))
  response.destroy()
}

const flood = async (response: ServerResponse, protocol: WireProtocol, bytes: number): Promise<void> => {
  const [first = ''] = streamedAs(protocol, { text: ['x'.repeat(64 * 1024)] }).filter(piece => piece.includes('xxx'))
  for (let sent = 0; sent < bytes && !response.destroyed; sent += first.length) {
    if (!response.write(first)) await drainedOrClosed(response)
  }
  response.end()
}

/** A scripted model server that listens until the test ends. */
export const modelServer = (t: Until, protocol: WireProtocol, script: ModelServer['script']): Promise<ModelServer> =>
  new ModelServer(protocol, script).listen(t)
