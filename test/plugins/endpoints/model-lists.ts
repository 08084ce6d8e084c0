import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A request that a model server got. */
export interface GotRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly [field: string]: unknown }
}

/** What a model server does. */
export interface ModelServerScript {
  protocol: 'openai' | 'anthropic' | 'ollama'
  /** Rows of its list. */
  models: (object & { id?: string; name?: string })[]
  /** Where its calls are: `/v1`, or `/api`, unless told otherwise. */
  base?: string
  /** The only key it takes. */
  key?: string
  /** What it does in place of a list. */
  list?: 'page' | 'hangs' | 'cut' | 'broken' | 'huge' | { redirect: string } | { status: number; body: string }
  /** What it does in place of an answer. */
  chat?:
    | 'cut'
    | 'whole'
    | 'page'
    | 'older-limit'
    | { status: number; body: string; headers?: { [name: string]: string } }
  /** It refuses requests that declare a tool. */
  refusesTools?: boolean
}

/** A model server on this machine that does what its script says, and keeps what it is asked. */
export interface ScriptedModelServer {
  readonly url: string
  readonly requests: GotRequest[]
  /** Change it while the server runs. */
  readonly script: ModelServerScript
  stop(): Promise<void>
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const piece of request) text += String(piece)
  return text
}

const json = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

const page = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'text/html' })
  response.end('<!doctype html><title>Console</title>')
}

/** Starts a model server; with a certificate it speaks TLS. */
export const startModelServer = async (
  t: Pick<Test, 'teardown'>,
  script: ModelServerScript,
  { tls, port = 0 }: { tls?: { key: string; cert: string }; port?: number } = {},
): Promise<ScriptedModelServer> => {
  const requests: GotRequest[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const text = await readBody(request)
    const { method = '', url: path = '', headers } = request
    requests.push({ method, path, headers, body: text ? (JSON.parse(text) as GotRequest['body']) : {} })
    answer(script, requests.at(-1)!, response)
  }
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response).catch(() => response.destroy())
  const server = tls ? createSecureServer(tls, listener) : createServer(listener)
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  const stop = async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  t.teardown(stop)
  const at = (server.address() as AddressInfo).port
  return { url: `${tls ? 'https' : 'http'}://127.0.0.1:${at}`, requests, script, stop }
}

const answer = (script: ModelServerScript, got: GotRequest, response: ServerResponse): void => {
  const { protocol, key } = script
  const base = script.base ?? (protocol === 'ollama' ? '/api' : '/v1')
  const given = protocol === 'anthropic' ? got.headers['x-api-key'] : got.headers.authorization?.replace(/^Bearer /, '')
  if (key !== undefined && given !== key)
    return json(response, 401, { error: { message: `the key ${String(given)} is not known` } })
  const path = got.path.split('?')[0]!
  const [lists, chats] =
    protocol === 'openai'
      ? ['/models', '/chat/completions']
      : protocol === 'anthropic'
        ? ['/models', '/messages']
        : ['/tags', '/chat']
  if (got.method === 'GET' && path === base + lists) return list(script, response)
  if (got.method === 'POST' && path === base + chats) return chat(script, got, response)
  if (got.method === 'POST' && protocol === 'ollama' && path === `${base}/show`) {
    const model = script.models.find(({ name }) => name === got.body.model) as { show?: object } | undefined
    return json(response, 200, model?.show ?? { capabilities: ['completion', 'tools'] })
  }
  json(response, 404, { error: { message: `nothing at ${path}` } })
}

const list = ({ protocol, models, list: how }: ModelServerScript, response: ServerResponse): void => {
  const rows = protocol === 'ollama' ? { models } : { object: 'list', data: models }
  if (how === undefined) return json(response, 200, rows)
  if (how === 'page') return page(response)
  if (how === 'hangs') return
  if (how === 'broken') return void response.writeHead(200).end('{"data": [{"id": ')
  if (how === 'cut') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
    response.write('{"data": [')
    return void setImmediate(() => response.destroy())
  }
  if (how === 'huge') {
    const many = Array.from({ length: 9000 }, (_, at) => ({ id: `m-${at}`, description: 'x'.repeat(900) }))
    return json(response, 200, { data: many })
  }
  if ('redirect' in how) return void response.writeHead(302, { location: how.redirect }).end()
  response.writeHead(how.status, { 'content-type': 'application/json' }).end(how.body)
}

const chat = (script: ModelServerScript, got: GotRequest, response: ServerResponse): void => {
  const { protocol, chat: how, refusesTools } = script
  if (refusesTools && got.body.tools) return json(response, 400, { error: { message: 'this model takes no tools' } })
  if (how === 'page') return page(response)
  if (how === 'older-limit' && got.body.max_tokens !== undefined)
    return json(response, 400, { error: { message: 'use max_completion_tokens in place of max_tokens' } })
  if (typeof how === 'object')
    return void response.writeHead(how.status, { 'content-type': 'application/json', ...how.headers }).end(how.body)
  if (how === 'whole')
    return json(response, 200, { choices: [{ message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }] })
  const type = protocol === 'ollama' ? 'application/x-ndjson' : 'text/event-stream'
  response.writeHead(200, { 'content-type': type })
  const pieces = PIECES[protocol].map(piece => (protocol === 'ollama' ? `${piece}\n` : `data: ${piece}\n\n`))
  if (how !== 'cut') return void response.end(pieces.join(''))
  response.write(pieces[0] + pieces[1]!)
  setImmediate(() => response.destroy())
}

const PIECES = {
  openai: [
    '{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
    '{"choices":[{"index":0,"delta":{"content":"ok"}}]}',
    '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    '[DONE]',
  ],
  anthropic: [
    '{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}',
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
    '{"type":"message_stop"}',
  ],
  ollama: [
    '{"model":"m","message":{"role":"assistant","content":""},"done":false}',
    '{"model":"m","message":{"role":"assistant","content":"ok"},"done":false}',
    '{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}',
  ],
} as const
