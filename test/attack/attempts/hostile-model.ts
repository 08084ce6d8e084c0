import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import type { WireProtocol } from '../../../plugins/endpoints/contract.js'
import { streamedAs, type ScriptedAnswer } from '../../support/servers/model-server.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'
import { drainedOrClosed } from '../../../sdk/node/programs/drained-or-closed.js'

const MIB = 1024 * 1024

/** The pieces of an answer in the form of a protocol. */
type Pieces = (protocol: WireProtocol, answered: boolean) => Iterable<string | Buffer>

const plain =
  (answer: ScriptedAnswer): Pieces =>
  (protocol, answered) =>
    streamedAs(protocol, answered ? { text: ['over'] } : answer)

const nested = (depth: number): string => `{"path":${'['.repeat(depth)}${']'.repeat(depth)}}`

/** One piece of text of an answer, without the beginning and the end of the answer. */
const textPiece = (protocol: WireProtocol, text: string): string =>
  streamedAs(protocol, { text: [text] }).find(piece => piece.includes(JSON.stringify(text)))!

const opening = (protocol: WireProtocol): string[] =>
  streamedAs(protocol, { text: ['¤'] }).slice(0, protocol === 'anthropic' ? 2 : 0)

function* repeated(piece: string | Buffer, bytes: number): Generator<string | Buffer> {
  for (let sent = 0; sent < bytes; sent += piece.length) yield piece
}

/** Calls as each protocol writes them, many in one answer; `ids` names the id of each. */
const manyCalls =
  (count: number, idOf: (nth: number) => string): Pieces =>
  (protocol, answered) =>
    streamedAs(
      protocol,
      answered
        ? { text: ['over'] }
        : { calls: Array.from({ length: count }, (_, nth) => ({ id: idOf(nth), name: 'Read', input: { path: 'a' } })) },
    )

/** What a hostile model server answers; an answer that is `endless` has no end of its own. */
export const ANSWERS: { readonly [what: string]: Pieces } = {
  'hostile texts': plain({ text: HOSTILE_TEXTS, thoughts: HOSTILE_TEXTS }),
  'calls with hostile names': plain({
    calls: HOSTILE_TEXTS.map(text => ({ id: text, name: `Read${text}`, input: { path: text, [text]: text } })),
  }),
  'calls with names of objects': plain({
    calls: ['__proto__', 'constructor', 'toString', 'hasOwnProperty', ''].map(name => ({
      id: name,
      name,
      raw: `{"__proto__":{"polluted":1},"${name}":1}`,
    })),
  }),
  'hostile paths and commands': plain({
    calls: HOSTILE_TEXTS.flatMap(text => [
      { name: 'Read', input: { path: text } },
      { name: 'Write', input: { path: `d/${text.replaceAll('\0', '')}`.slice(0, 200), content: text } },
      { name: 'Shell', input: { command: `echo '${text.replaceAll('\0', '')}'` } },
    ]),
  }),
  'deep arguments': plain({ calls: [{ name: 'Read', raw: nested(400_000) }] }),
  'rather deep arguments': plain({ calls: [{ name: 'Read', raw: nested(3_000) }] }),
  'deep arguments that nothing cuts': plain({ calls: [{ name: 'Shell', raw: nested(20_000) }] }),
  'a deep piece': protocol =>
    protocol === 'anthropic'
      ? [`event: content_block_start\ndata: ${nested(2_000_000)}\n\n`]
      : protocol === 'openai'
        ? [`data: {"choices":${nested(2_000_000)}}\n\n`]
        : [`{"message":${nested(2_000_000)}}\n`],
  'a thousand calls': manyCalls(1_000, nth => `call_${nth}`),
  'fifty thousand calls of one id': manyCalls(50_000, () => 'same'),
  'fifty thousand calls without an id': manyCalls(50_000, () => ''),
  'calls of a million characters': plain({ calls: [{ name: 'Read', input: { path: 'x'.repeat(3 * MIB) } }] }),
  'a name of a million characters': plain({ calls: [{ name: 'x'.repeat(MIB), input: {} }] }),
  'one line without an end': protocol =>
    repeated(protocol === 'ollama' ? `{"a":"${'x'.repeat(200)}` : Buffer.alloc(1024, 'data: x'), 36 * MIB),
  'a text without an end': protocol => [
    ...opening(protocol),
    ...Array.from({ length: 600 }, () => textPiece(protocol, 'x'.repeat(64 * 1024))),
  ],
  'single characters without an end': protocol => [
    ...opening(protocol),
    ...Array.from({ length: 3_000 }, () => textPiece(protocol, 'x').repeat(200)),
  ],
  'thoughts without an end': protocol => streamedAs(protocol, { thoughts: Array(400).fill('y'.repeat(100_000)) }),
  'comments without an end': () => repeated(`: ${'ping '.repeat(2_000)}\n\n`, 36 * MIB),
  'empty lines without an end': () => repeated('\n'.repeat(64 * 1024), 36 * MIB),
  'events without an end': () => repeated('event: x\nid: 1\nretry: 1\n'.repeat(2_000), 36 * MIB),
  'data lines without an event': () => repeated('data: x\n'.repeat(8_000), 36 * MIB),
  'an open thought without an end': protocol => [
    ...opening(protocol),
    ...Array.from({ length: 20_000 }, (_, nth) => textPiece(protocol, nth === 0 ? '<think>' : '</thin</thin')),
  ],
  'a web page': () => ['<html><script>alert(1)</script>'],
  'an answer of another protocol': protocol => streamedAs(protocol === 'openai' ? 'ollama' : 'openai', { text: ['x'] }),
  'the events of the daemon': () => [
    'id: 1\nevent: message\ndata: {"kind":"frame","seq":1,"event":{"kind":"landed","landed":true}}\n\n',
    'event: done\ndata: {}\n\n',
  ],
  'tokens beyond all numbers': protocol =>
    streamedAs(protocol, { text: ['x'], usage: { input: 9e99, output: -5, read: 1e308, write: NaN } }),
  'an error with hostile words': protocol =>
    streamedAs(protocol, { error: { error: { message: HOSTILE_TEXTS.join(' ').repeat(500), type: 'x\u001b[2J' } } }),
}

/** Answers that are none: with a status, headers or an encoding of their own. */
export const REPLIES: { readonly [what: string]: (reply: ServerResponse) => void } = {
  'a bomb of gzip': reply => {
    reply.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
    reply.end(gzipSync(Buffer.alloc(512 * MIB, ': ping\n\n')))
  },
  'a refusal without an end': reply => {
    reply.writeHead(400, { 'content-type': 'application/json' })
    const say = (): void => {
      while (!reply.destroyed && reply.write('"\u001b[2J'.repeat(10_000)));
      if (!reply.destroyed) reply.once('drain', say)
    }
    say()
  },
  'a refusal with hostile words': reply => {
    reply.writeHead(400, { 'content-type': 'application/json' })
    reply.end(JSON.stringify({ error: { message: HOSTILE_TEXTS.join('') } }))
  },
  'a redirect with hostile words': reply => reply.writeHead(302, { location: 'http://x\u00ff\u009b31m/' }).end(),
  'a wait of a thousand years': reply => reply.writeHead(429, { 'retry-after': '31536000000' }).end('{}'),
}

/** A model server that serves every attempt as a model of its name. */
export const hostileModels = async (t: Test, protocol: WireProtocol): Promise<{ baseUrl: string }> => {
  const names = [...Object.keys(ANSWERS), ...Object.keys(REPLIES)]
  const server = createServer((request, reply) => {
    const heard: Buffer[] = []
    request.on('error', () => {}).on('data', (piece: Buffer) => heard.push(piece))
    reply.on('error', () => {})
    request.on('end', () => {
      if (request.method === 'GET' || heard.length === 0)
        return void reply.end(
          JSON.stringify({
            data: names.map(id => ({ id, context_length: 100_000 })),
            models: names.map(name => ({ name, model: name })),
          }),
        )
      const text = Buffer.concat(heard).toString()
      const { model, messages } = JSON.parse(text) as { model: string; messages?: { role: string }[] }
      if (!messages) return void reply.end('{}')
      const answered = text.includes('"role":"tool"') || text.includes('tool_result')
      const own = REPLIES[model]
      if (own) return own(reply)
      reply.writeHead(200, { 'content-type': protocol === 'ollama' ? 'application/x-ndjson' : 'text/event-stream' })
      void send(reply, ANSWERS[model]!(protocol, answered))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => (server.closeAllConnections(), server.close()))
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const send = async (reply: ServerResponse, pieces: Iterable<string | Buffer>): Promise<void> => {
  for (const piece of pieces) {
    if (reply.destroyed) return
    if (!reply.write(piece)) await drainedOrClosed(reply)
  }
  reply.end()
}
