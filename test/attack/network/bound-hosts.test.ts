import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConversationAuthority } from '../../../plugins/agent/secrets/conversation-authority.js'
import { folderOf } from '../../support/daemon.js'
import { shellTurn, walled } from '../support.js'
import { USERS } from '../users.js'
import { ENCODERS, otherHostRequests, PROGRAM, VALUE } from './bound-hosts-attempts.js'
import { daemonOf, HERE } from './user-daemon.js'

interface Request {
  readonly url: string
  readonly host: string[]
  readonly key: string
}

const NAMES = Object.keys(ENCODERS)
const PATHS = [...NAMES.map((_, at) => `/as/${at}`), ...NAMES.map((_, at) => `/pieces/${at}`)].concat([
  '/reason',
  '/name',
  '/header',
  '/wide',
  '/trailer',
  '/early',
  '/packed',
  '/missing',
])
const possible = HERE === undefined ? { skip: 'this machine has no address but its loopback' } : walled()

/** A server that says the value it was sent in every way that a server might. */
const echoing = async (t: Test): Promise<{ port: number; requests: Request[]; certificate: string }> => {
  const requests: Request[] = []
  const authority = await ConversationAuthority.make()
  let last = ''
  const server: Server = createServer(await authority.identityOf(HERE!))
  const note = ({ url = '', headersDistinct }: IncomingMessage): string => {
    const [key = ''] = headersDistinct['x-key'] ?? []
    requests.push({ url, host: headersDistinct.host ?? [], key })
    if (key === VALUE) last = key
    return last
  }
  server.on('request', (asked: IncomingMessage, answer: ServerResponse) => {
    const value = note(asked)
    asked.resume()
    answer.on('error', () => {})
    const [, kind = '', which = ''] = (asked.url ?? '').split('/')
    const encoded = ENCODERS[NAMES[Number(which)]!]?.(value) ?? ''
    switch (kind) {
      case 'as':
        answer.setHeader('x-said', encoded)
        return void answer.end(`before ${encoded} after`)
      case 'pieces':
        for (const char of `before ${encoded} after`) answer.write(char)
        return void answer.end()
      case 'reason':
        answer.writeHead(200, value)
        return void answer.end()
      case 'name':
        answer.setHeader(`x-${Buffer.from(value).toString('hex')}`, '1')
        return void answer.end()
      case 'header':
        answer.setHeader('set-cookie', [`a=${value}`, `b=${encodeURIComponent(value)}`])
        return void answer.end()
      case 'wide':
        return void answer.end(Buffer.concat([Buffer.from(value, 'utf16le'), Buffer.from(value, 'utf16le').swap16()]))
      case 'trailer':
        answer.setHeader('trailer', 'x-last')
        answer.write('body')
        answer.addTrailers({ 'x-last': value })
        return void answer.end()
      case 'early':
        answer.writeEarlyHints({ link: '</a>; rel=preload', 'x-early': value })
        return void answer.end()
      case 'packed':
        answer.setHeader('transfer-encoding', 'x-other, chunked')
        return void answer.end(value)
      case 'missing':
        answer.writeHead(404, `${value} is missing`)
        return void answer.end(value)
      case 'range': {
        const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(asked.headers.range ?? '') ?? []
        if (from === undefined) return void answer.end(`${value}\n`)
        answer.writeHead(206, { 'content-range': `bytes ${from}-${to}/99` })
        return void answer.end(`${value}\n`.slice(Number(from), Number(to) + 1))
      }
    }
    answer.end(`key ${value}`)
  })
  server.on('upgrade', (asked: IncomingMessage, socket) => {
    const value = note(asked)
    socket.on('error', () => {})
    if (asked.headers.upgrade === 'refused')
      return void socket.end(`HTTP/1.1 200 ${value}\r\nconnection: close\r\nx-said: ${value}\r\n\r\n${value}`)
    socket.write(`HTTP/1.1 101 ${value}\r\nconnection: upgrade\r\nupgrade: x\r\nx-said: ${value}\r\n\r\n`)
    for (const char of `said ${value} `) socket.write(char)
  })
  server.on('clientError', (_, socket) => socket.destroy())
  await once(server.listen(0, HERE), 'listening')
  t.teardown(() => (server.closeAllConnections(), server.close()))
  return { port: (server.address() as AddressInfo).port, requests, certificate: authority.certificate }
}

/** Reads every escape of a text, as somebody would who looks for a value in it. */
const readable = (text: string): string => {
  let read = text.replaceAll('\0', '')
  for (let round = 0; round < 4; round++)
    read = read
      .replace(
        /&(amp|lt|gt|quot|apos);/g,
        (_, name: string) => ({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" })[name]!,
      )
      .replace(/&#x([0-9a-f]+);/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
      .replace(/\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|%([0-9a-f]{2})/gi, (_, ...codes: string[]) =>
        String.fromCharCode(Number.parseInt(codes.find(Boolean)!, 16)),
      )
      .replaceAll('\\"', '"')
  return read
}

for (const [user, uid] of USERS)
  t.test(`${user}: a bound value goes out under no other host name, and comes back in no form`, possible, async t => {
    const { port, requests, certificate } = await echoing(t)
    const trusted = join(folderOf(t), 'authority.pem')
    writeFileSync(trusted, certificate)
    const tried = otherHostRequests()
    const { client, workspace } = await daemonOf(
      t,
      uid,
      { 'program.cjs': PROGRAM, 'requests.json': JSON.stringify({ requests: tried, paths: PATHS }) },
      { NODE_EXTRA_CA_CERTS: trusted },
    )
    await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await client.call('POST /secrets', { key: 'API', value: VALUE, hosts: [HERE!] })
    await client.call('POST /settings/patch', { set: { networkAllow: [`${HERE}:${port}`] } })
    const [said] = await shellTurn(client, 'c', [
      `KEY={{secret:API}} ${process.execPath} program.cjs ${HERE} ${port} seen.txt`,
    ])
    t.match(said, /^tried \d{3,}$/)

    t.ok(
      requests.filter(({ key }) => key === VALUE).length > PATHS.length,
      'requests to the bound host carry the value',
    )
    t.strictSame([...new Set(requests.flatMap(({ host }) => host))], [`${HERE}:${port}`], 'Host is that of the daemon')
    t.ok(requests.every(({ host }) => host.length === 1))
    t.strictSame(
      requests.filter(({ url }) => !/^(?:\/|\*$)/.test(url) || url.includes('smuggled')).map(({ url }) => url),
      [],
      'no request came in the body of another, and none names a host',
    )

    const seen = readFileSync(join(workspace, 'seen.txt'), 'latin1')
    t.match(seen, /key \{\{secret:API\}\}/, 'the host echoes what it was sent')
    t.match(seen, /HTTP\/1\.1 101 /, 'it switches protocols')
    const [plain, ...pieces] = [seen, readable(seen)].flatMap(text =>
      Array.from({ length: VALUE.length - 5 }, (_, at) => VALUE.slice(at, at + 6)).filter(part => text.includes(part)),
    )
    t.strictSame([plain, ...pieces].filter(Boolean), [], 'no piece of the value is in what came back')
    const ranges = seen.split('\n-----\n').filter(each => /^HTTP\/1\.1 206|^content-range/im.test(each))
    t.strictSame(ranges, [], 'no piece of an answer was asked for')
    for (const form of [Buffer.from(VALUE).toString('hex'), Buffer.from(VALUE).toString('base64').slice(0, -4)])
      t.notOk(seen.includes(form), 'no encoded value')
  })
