import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { readGguf } from '../../../plugins/endpoints/local/gguf.js'
import { cacheBytes } from '../../../plugins/endpoints/local/need.js'

/**
 * A small program that behaves as `llama-server` does towards a daemon: arguments, variables, health, key, list and
 * streamed chat. It loads while the file `hold` lies beside its launcher, and ends when a message says `crash`.
 */
const { values } = parseArgs({
  options: {
    version: { type: 'boolean' },
    'list-devices': { type: 'boolean' },
    launched: { type: 'string' },
    model: { type: 'string' },
    alias: { type: 'string' },
    host: { type: 'string' },
    port: { type: 'string' },
    'ctx-size': { type: 'string' },
    parallel: { type: 'string' },
    'n-gpu-layers': { type: 'string' },
  },
})
const MIB = 1024 * 1024
const { LLAMA_API_KEY: key, LLAMA_ARG_ENDPOINT_SLOTS: slots } = process.env
const context = Number(values['ctx-size'])
const held = (): boolean => existsSync(join(values.launched ?? '/nowhere', 'hold'))
let loaded = false

const shapeOf = async (path: string) => {
  const file = await open(path)
  const { size } = await file.stat()
  return readGguf(async (offset, length) => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset)
    return buffer.subarray(0, bytesRead)
  }, size)
}

const load = async (): Promise<void> => {
  try {
    const shape = await shapeOf(values.model!)
    console.error(
      `llama_kv_cache:        CPU KV buffer size = ${(cacheBytes(shape, context) / MIB).toFixed(2)} MiB\n`
        + 'llama_context:        CPU compute buffer size =     2.00 MiB',
    )
  } catch (error) {
    console.error(`srv    load_model: failed to load model, ${String(error)}`)
    process.exit(1)
  }
  const timer = setInterval(() => {
    if (held()) return
    clearInterval(timer)
    loaded = true
    console.error('main: model loaded')
  }, 20)
}

const send = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const refused = (message: string, code: number) => ({ error: { code, message, type: 'error' } })

const chat = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { messages = [] } = JSON.parse(await text(request)) as { messages?: { role: string; content: unknown }[] }
  const last = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content ?? '')
  if (last.includes('crash')) process.exit(3)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const piece = (choices: object[], more: object = {}) =>
    response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices, ...more })}\n\n`)
  for (const content of ['I run ', 'on this ', 'machine.']) piece([{ index: 0, delta: { content } }])
  piece([{ index: 0, delta: {}, finish_reason: 'stop' }])
  piece([], { usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } })
  response.end('data: [DONE]\n\n')
}

const serve = (request: IncomingMessage, response: ServerResponse): void => {
  const { url = '/', headers } = request
  if (!loaded) return send(response, 503, refused('Loading model', 503))
  if (url === '/health') return send(response, 200, { status: 'ok' })
  if (url === '/v1/models')
    return send(response, 200, {
      object: 'list',
      data: [{ id: values.alias, object: 'model', meta: { n_ctx_train: 16384 } }],
    })
  if (key !== undefined && headers.authorization !== `Bearer ${key}`)
    return send(response, 401, refused('Invalid API Key', 401))
  if (url === '/slots')
    return slots === '0' ? send(response, 501, refused('no slots here', 501)) : send(response, 200, { slots: [] })
  if (url === '/v1/chat/completions') return void chat(request, response)
  send(response, 404, refused('File Not Found', 404))
}

if (values.version) console.log('version: 1 (stand-in of the tests)')
else if (values['list-devices']) console.log('Available devices:')
else createServer(serve).listen(Number(values.port), values.host, () => void load())
