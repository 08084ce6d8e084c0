import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { drainedOrClosed } from '../../../sdk/node/programs/drained-or-closed.js'
import type { ScriptedReply } from '../../support/servers/model-server.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'

/** A message that a client of the Model Context Protocol sent. */
interface Heard {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly protocolVersion?: string; readonly cursor?: string; readonly _meta?: object }
}

/** What a hostile tool server does; each is a way of `repliesTo`. */
export const WAYS = [
  ...[
    'hostile info',
    'hostile names',
    'many tools',
    'endless pages',
    'huge pages',
    'deep schema',
    'rather deep schema',
  ],
  ...['tools that change', 'hostile texts', 'giant text', 'endless line', 'many parts', 'deep structure'],
  ...['rather deep structure', 'hostile error', 'questions', 'a hostile question', 'a deep question', 'requests'],
  ...['progress', 'other answers', 'lines beside', 'logs', 'links', 'an answer that is none'],
] as const

/**
 * What a server writes after a message, line by line. It stands alone, because its text is also the program of a server
 * behind the wall.
 */
export function* repliesTo(way: string, heard: Heard, texts: readonly string[]): Generator<string> {
  const { id, method, params = {} } = heard
  const all = texts.join(' ')
  const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  const line = (message: object) => JSON.stringify({ jsonrpc: '2.0', ...message })
  const ok = (result: object) => line({ id, result })
  const tool = (name: string, more: object = {}) => ({
    name,
    description: 'Hits.',
    inputSchema: { type: 'object', properties: {} },
    ...more,
  })
  const text = (said: string) => ok({ content: [{ type: 'text', text: said }] })
  if (method === 'initialize') {
    const odd = way === 'hostile info'
    const serverInfo = { name: odd ? all.repeat(1000) : 'hostile', version: odd ? all : '1' }
    const capabilities = { tools: { listChanged: true } }
    yield ok({
      ...{ protocolVersion: params.protocolVersion, capabilities, serverInfo },
      ...(odd && { instructions: all.repeat(10_000) }),
    })
  } else if (method === 'tools/list') {
    const schema = (depth: number) =>
      `{"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"deep","inputSchema":{"type":"object","properties":`
      + `${nested(depth)}}},`
      + `${JSON.stringify(tool('hit'))}]}}`
    const names = ['a.b', 'a_b', 'a/b', 'Read', 'Shell', '__proto__', 'constructor', '', ...texts]
    const titled = { title: all, description: all, annotations: { title: all } }
    const long = { title: 'W'.repeat(10_000), description: 'W'.repeat(10_000) }
    const named = [...names.map(name => tool(name, titled)), tool('long', long), tool('W'.repeat(10_000), long)]
    if (way === 'hostile names') yield ok({ tools: [tool('hit', titled), ...named] })
    else if (way === 'many tools')
      yield ok({ tools: [tool('hit'), ...Array.from({ length: 150_000 }, (_, at) => tool(`t${at}`))] })
    else if (way === 'endless pages') yield ok({ tools: [tool('hit')], nextCursor: `${Math.random()}` })
    else if (way === 'huge pages')
      yield ok({ tools: [tool('hit', { description: 'x'.repeat(12_000_000) })], nextCursor: `${Math.random()}` })
    else if (way === 'deep schema') yield schema(200_000)
    else if (way === 'rather deep schema') yield schema(3_000)
    else yield ok({ tools: [tool('hit')] })
    if (way === 'tools that change')
      for (let at = 0; at < 100_000; at++) yield line({ method: 'notifications/tools/list_changed' })
  } else if (method === 'tools/call') {
    const ask = (nth: number, message: string, requestedSchema: object) =>
      line({ id: `q${nth}`, method: 'elicitation/create', params: { message, requestedSchema } })
    const plainly = { type: 'object', properties: { a: { type: 'string' } } }
    const token = (params._meta as { progressToken?: number } | undefined)?.progressToken
    if (way === 'hostile texts')
      yield ok({ content: texts.map(said => ({ type: 'text', text: said })), structuredContent: { a: all } })
    else if (way === 'giant text') yield text('x'.repeat(15_000_000))
    else if (way === 'endless line') for (let at = 0; at < 2_000; at++) yield `\0${'x'.repeat(20_000)}`
    else if (way === 'many parts')
      yield ok({ content: Array.from({ length: 300_000 }, () => ({ type: 'text', text: 'x' })) })
    else if (way === 'deep structure' || way === 'rather deep structure')
      yield (
        `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":`
        + `${nested(way === 'deep structure' ? 200_000 : 3_000)}}}`
      )
    else if (way === 'hostile error') yield line({ id, error: { code: -32_000, message: all.repeat(10_000) } })
    else if (way === 'questions') {
      for (let at = 0; at < 20_000; at++) yield ask(at, 'Well?', plainly)
    } else if (way === 'a hostile question')
      yield ask(0, all.repeat(100), {
        type: 'object',
        properties: { a: { type: 'string', title: all, description: all, enum: [...texts, 'y'.repeat(1_000_000)] } },
      })
    else if (way === 'a deep question')
      yield (
        `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"x","requestedSchema":`
        + `{"type":"object","properties":{"a":{"type":"string","default":${nested(100_000)}}}}}}`
      )
    else if (way === 'requests')
      for (let at = 0; at < 400_000; at++)
        yield line({ id: `r${at}`, method: ['ping', 'roots/list', 'sampling/createMessage', 'x'.repeat(200)][at % 4] })
    else if (way === 'progress')
      for (let at = 0; at < 300_000; at++)
        yield line({ method: 'notifications/progress', params: { progressToken: token, progress: at, message: all } })
    else if (way === 'other answers')
      for (let at = 0; at < 100_000; at++)
        yield line({ id: at % 2 ? -at : `${at}`, result: {}, error: { code: 1, message: all } })
    else if (way === 'lines beside') for (const said of texts) yield said.replaceAll('\n', ' ')
    else if (way === 'logs')
      for (let at = 0; at < 200_000; at++)
        yield line({ method: 'notifications/message', params: { level: 'emergency', logger: all, data: all } })
    else if (way === 'links') {
      const links = texts.map(said => ({ type: 'resource_link', uri: 'javascript:alert(1)', name: said, title: said }))
      yield ok({ content: [...links, { type: 'image', data: 'AAAA', mimeType: 'text/html\r\nx: y' }] })
    } else if (way === 'an answer that is none') yield line({ id, result: { content: { length: 9e9 } } })
    if (way !== 'a hostile question' && way !== 'a deep question') yield text('over')
  } else if (method === 'ping') yield ok({})
  // What was asked of a person was answered.
  else if (method === undefined && way.endsWith('question')) yield line({ id: 'call', result: { content: [] } })
}

/** The program of a server that reads what it is sent, but not while it writes. */
export const PROGRAM = `
import { once } from 'node:events'
import { createInterface } from 'node:readline'
const repliesTo = ${repliesTo.toString()}
const TEXTS = JSON.parse(${JSON.stringify(JSON.stringify(HOSTILE_TEXTS))})
let call
for await (const line of createInterface({ input: process.stdin })) {
  const heard = JSON.parse(line)
  if (heard.method === 'tools/call') call = heard.id
  for (let reply of repliesTo(process.argv[2], heard, TEXTS)) {
    if (reply.includes('"id":"call"')) reply = reply.replace('"call"', call)
    const text = reply.startsWith('\\0') ? reply : reply + '\\n'
    if (!process.stdout.write(text)) await once(process.stdout, 'drain')
  }
}
`

const bodyOf = async (request: IncomingMessage): Promise<Heard> => {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return JSON.parse(Buffer.concat(pieces).toString() || '{}') as Heard
}

/** The same servers over HTTP, each at a path of its number; what they say after a message is a stream of events. */
export const hostileToolServer = async (t: Pick<Test, 'teardown'>): Promise<(way: string) => string> => {
  let open: { id?: number; reply: ServerResponse } | undefined
  const say = async (reply: ServerResponse, lines: Iterable<string>, id = open?.id): Promise<void> => {
    for (const line of lines) {
      if (reply.destroyed) return
      const told = line.includes('"id":"call"') ? line.replace('"call"', String(id)) : line
      const text = line.startsWith('\0') ? told : `event: message\ndata: ${told}\n\n`
      if (!reply.write(text)) await drainedOrClosed(reply)
    }
  }
  const server = createServer((request, reply) => {
    request.on('error', () => {})
    reply.on('error', () => {})
    void (async () => {
      if (request.method !== 'POST') return reply.writeHead(405).end()
      const way = WAYS[Number(request.url?.slice(1))] ?? ''
      const heard = await bodyOf(request)
      const lines = repliesTo(way, heard, HOSTILE_TEXTS)
      if (heard.id === undefined || heard.method === undefined) {
        reply.writeHead(202).end()
        if (!open || heard.method !== undefined) return undefined
        await say(open.reply, lines)
        return open.reply.end()
      }
      reply.writeHead(200, { 'content-type': 'text/event-stream' })
      if (heard.method === 'tools/call') open = { id: heard.id, reply }
      await say(reply, lines, heard.id)
      return heard.method === 'tools/call' && way.endsWith(' question') ? undefined : reply.end()
    })().catch(() => reply.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => (server.closeAllConnections(), server.close()))
  return way => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${WAYS.findIndex(each => each === way)}`
}

/** A model that calls each tool whose name ends in `hit` once. */
export const hitting = ({ text }: { readonly text: string }): ScriptedReply => {
  if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
  const { tools = [], messages } = JSON.parse(text) as {
    tools?: { function: { name: string } }[]
    messages: { role: string }[]
  }
  const hit = tools.map(tool => tool.function.name).find(name => name.endsWith('hit'))
  return messages.at(-1)?.role === 'tool' || !hit ? { text: ['over'] } : { calls: [{ name: hit, input: {} }] }
}
