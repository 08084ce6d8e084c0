import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { exactly } from '../support/lists.js'
import { endTerminals, folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { walled } from './support.js'
import { USERS } from './users.js'

const VALUE = 'wört-of-ä-secret/1234567890'
const FOLDER = '.sandbox/config/workspace-extensions'

const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')

/** What a server can make of a value that it was given, where an extension asks for it. */
const ECHOES: {
  readonly [path: string]: (value: string, request: IncomingMessage) => [body: Buffer, headers: object]
} = {
  '/utf8': value => [Buffer.from(value), {}],
  '/latin1': value => [Buffer.from(value, 'latin1'), {}],
  '/utf16': value => [utf16(value), { 'content-type': 'text/plain; charset=utf-16le' }],
  '/utf16be': value => [utf16(value).swap16(), {}],
  '/json': value => [Buffer.from(JSON.stringify({ value })), {}],
  '/percent': value => [Buffer.from(encodeURIComponent(value)), {}],
  '/base64': value => [Buffer.from(Buffer.from(value).toString('base64')), {}],
  '/hex': value => [Buffer.from(Buffer.from(value).toString('hex')), {}],
  '/header': value => [
    Buffer.alloc(0),
    { 'x-echo': encodeURIComponent(value), 'x-plain': Buffer.from(value).toString('latin1') },
  ],
  '/asked': (value, { headers }) => {
    const [way = ''] = String(headers['accept-encoding'] ?? '').split(/[,;]/)
    const packed = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }[way.trim()]
    return packed ? [packed(value), { 'content-encoding': way.trim() }] : [Buffer.from(value), {}]
  },
  '/gzip': value => [gzipSync(value), { 'content-encoding': 'gzip' }],
  '/piece': (value, { headers }) => {
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(String(headers.range ?? '')) ?? []
    const bytes = Buffer.from(value)
    return from === undefined
      ? [bytes, {}]
      : [bytes.subarray(Number(from), Number(to) + 1), { 'content-range': 'bytes' }]
  },
}

/** A server that keeps what it was given, and answers with it in every way, also to a later request without it. */
const echoServer = async (t: Test): Promise<number> => {
  let kept = ''
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const given = request.headers['x-key']
    let body = ''
    request.setEncoding('utf8').on('data', piece => (body += piece))
    request.on('end', () => {
      const value = body || (typeof given === 'string' ? given : '')
      if (value !== '') kept = value
      const [answer, headers] = ECHOES[request.url!]!(kept, request)
      response.writeHead(200, headers as { [name: string]: string }).end(answer)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => (server.closeAllConnections(), server.close()))
  return (server.address() as AddressInfo).port
}

/** A backend that looks for the value in every answer that it gets, as bytes of any encoding. */
const BACKEND = (port: number) => `import { gunzipSync, inflateSync, brotliDecompressSync } from 'node:zlib'
const found = []
const look = async (host, path, headers, send) => {
  const options = send ? { method: 'POST', body: '{{secret:VALUE}}', headers } : { headers }
  const answer = await host.fetch('http://127.0.0.1:${port}' + path, options).catch(error => ({ error: error.message }))
  if (answer.error) return answer.error
  const bytes = Buffer.from(await answer.bytes())
  const texts = [JSON.stringify(Object.entries(answer.headers))]
  for (const open of [each => each, gunzipSync, inflateSync, brotliDecompressSync])
    try {
      for (const of of ['utf8', 'latin1', 'utf16le', 'hex', 'base64']) texts.push(open(bytes).toString(of))
    } catch {}
  return texts.join('\\n')
}
export const activate = host => {
  host.routes.handle('GET /look', {}, async () => {
    const answers = []
    for (const send of [true, false])
      for (const path of ${JSON.stringify(Object.keys(ECHOES))}) {
        for (const way of ['gzip', 'deflate', 'br', 'identity'])
          answers.push(path, await look(host, path, { 'accept-encoding': way, 'Accept-Encoding': way }, send))
        let whole = ''
        for (let at = 0; at < 40 && path === '/piece'; at += 4) {
          const piece = await host.fetch('http://127.0.0.1:${port}/piece', {
            headers: { range: 'bytes=' + at + '-' + (at + 3), 'if-range': 'x' },
            ...(send && { method: 'POST', body: '{{secret:VALUE}}' }),
          })
          whole += Buffer.from(await piece.bytes()).toString('latin1')
        }
        answers.push(whole, Buffer.from(whole, 'latin1').toString())
      }
    return { body: { answers } }
  })
}
`

const extension = (
  workspace: string,
  name: string,
  manifest: object,
  files: { readonly [path: string]: string } = {},
) => {
  const folder = join(workspace, FOLDER, name)
  mkdirSync(folder, { recursive: true })
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text)
  writeFileSync(
    join(folder, 'intentic-extension.json'),
    JSON.stringify({ publisher: 'eve', name, version: '1.0.0', ...manifest }),
  )
}

const daemonAs = async (t: Test, uid: number): Promise<{ daemon: RunningDaemon; own: () => void }> => {
  const folder = folderOf(t)
  const [workspace, data, home] = ['workspace', 'data', 'home'].map(name => join(folder, name))
  makeWorkspace(workspace!)
  for (const path of [data!, home!]) mkdirSync(path)
  t.teardown(() => endTerminals(data!))
  const own = () => void execFileSync('chown', ['-R', `${uid}:${uid}`, folder])
  own()
  return { daemon: await spawnDaemon(t, { workspace: workspace!, data: data!, user: uid, env: { HOME: home } }), own }
}

const approved = async ({ client }: RunningDaemon, id: string): Promise<string> => {
  const { pending } = await client.call('GET /extensions')
  const { digest } = pending.find(each => each.id === id)!
  await client.call('POST /extensions/{id}/approve', { id, digest })
  return digest
}

/** Asks again until a condition holds. */
const until = async <T>(ask: () => Promise<T>, holds: (found: T) => boolean): Promise<T> => {
  for (let tries = 0; ; tries++) {
    const found = await ask()
    if (holds(found)) return found
    if (tries > 300)
      throw new Error(`it did not become so: ${found instanceof Response ? await found.text() : JSON.stringify(found)}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

for (const [who, uid] of USERS) {
  t.test(`an extension gets no value out of an answer, however it asks, as ${who}`, walled(), async t => {
    const port = await echoServer(t)
    const { daemon, own } = await daemonAs(t, uid)
    await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await daemon.client.call('POST /secrets', { key: 'VALUE', value: VALUE })
    const permissions = { sandbox: [`net:127.0.0.1:${port}`, 'secret:VALUE'], daemon: [] }
    const server = { server: 'server.js', permissions }
    extension(daemon.workspace, 'leak', server, { 'server.js': BACKEND(port) })
    own()
    await approved(daemon, 'eve.leak')
    const asked = () =>
      fetch(`${daemon.url}/x/eve.leak/look`, { headers: { authorization: `Bearer ${daemon.session}` } })
    const answer = await until(asked, ({ status }) => status !== 404 && status !== 503)
    const { answers = [], message } = (await answer.json()) as { answers?: string[]; message?: string }
    t.equal(message, undefined)
    t.ok(answers.length > 80 && answers.some(text => text.includes('{{secret:VALUE}}')), 'answers came, masked')
    const hex = Buffer.from(VALUE).toString('hex')
    for (const form of [VALUE, encodeURIComponent(VALUE), Buffer.from(VALUE).toString('base64'), hex])
      t.same(
        answers.filter(text => text.includes(form)).map(text => text.slice(0, 200)),
        [],
        form,
      )
  })

  t.test(`an approved program that changes in any field waits for approval, as ${who}`, walled(), async t => {
    const { daemon, own } = await daemonAs(t, uid)
    const mark = join(daemon.workspace, 'marked')
    const program = { name: 'tick', command: 'sleep 1000', autoStart: true }
    extension(daemon.workspace, 'tick', { contributes: { processes: [program] } })
    own()
    const digest = await approved(daemon, 'eve.tick')
    const state = () => daemon.client.call('GET /extensions/{id}/processes/{name}', { id: 'eve.tick', name: 'tick' })
    await until(state, ({ running }) => running)
    for (const change of [{ command: `touch ${mark}` }, { cwd: 'elsewhere' }, { command: 'sleep  1000' }]) {
      extension(daemon.workspace, 'tick', { contributes: { processes: [{ ...program, ...change }] } })
      own()
      const { pending } = await until(
        () => daemon.client.call('GET /extensions'),
        list => list.pending.length > 0,
      )
      t.match(
        pending,
        exactly({ id: 'eve.tick', approvedBefore: true, added: exactly(/^runs the background program tick: /) }),
      )
      t.not(pending[0]?.digest, digest, JSON.stringify(change))
      const again = daemon.client.call('POST /extensions/{id}/approve', { id: 'eve.tick', digest })
      await t.rejects(again, { message: /read GET \/extensions again/ })
      extension(daemon.workspace, 'tick', { contributes: { processes: [program] } })
      own()
      await until(
        () => daemon.client.call('GET /extensions'),
        list => list.pending.length === 0,
      )
    }
    t.notOk(existsSync(mark), 'no other command ran')
  })
}
