import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer as createWeb } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { Masker } from '../../../../sdk/node/access/masker.js'
import { ConversationAuthority } from '../../../../plugins/agent/secrets/conversation-authority.js'
import {
  isBoundTo,
  placeholderOf,
  type BoundTarget,
  type BoundTraffic,
} from '../../../../sdk/node/network/bound-traffic.js'
import { EgressProxy } from '../../../../sdk/node/network/proxy.js'
import { folderOf } from '../../../support/daemon.js'
import { recording, tlsServer, type Answering, type Recorded } from '../../../support/servers/tls-server.js'

const VALUE = 'correct "horse"/battery+ståple'
const HELD = placeholderOf(Buffer.alloc(32, 7))
const HOSTS = ['api.example', '*.below.example']
const run = promisify(execFile)

/** Echoes the request. */
const echo: Answering = (asked, answer) => void answer.end(JSON.stringify(asked))

/** A network in which every name resolves to one server, and a proxy that fills in one value for some hosts. */
const world = async (t: Test, answering: Answering = echo) => {
  const { requests, port } = await tlsServer(t, answering)
  const plain: Recorded[] = []
  const web = createWeb((asked, answer) => void recording(plain, answering)(asked, answer)).listen(0, '127.0.0.1')
  await once(web, 'listening')
  const asked: { host: string; why: 'put in' | 'left' }[] = []
  const bound: BoundTraffic = {
    opens: host => isBoundTo(HOSTS, host),
    fill: async (found, to: BoundTarget) => {
      const may = isBoundTo(HOSTS, to.host) && to.secure
      asked.push({ host: to.host, why: may ? 'put in' : 'left' })
      return new Map(may && found.includes(HELD) ? [[HELD, VALUE]] : [])
    },
    masker: async () =>
      new Masker([VALUE, Buffer.from(VALUE).toString('latin1')].map(value => ({ name: 'API', value }))),
  }
  const authority = await ConversationAuthority.make()
  const proxy = new EgressProxy(
    async ({ port: wanted }) => {
      const to = wanted === 80 ? (web.address() as AddressInfo).port : port
      const socket = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true })
      await once(socket, 'connect')
      return socket.pause()
    },
    { bound: () => bound, authority: async () => authority },
  )
  const server = createServer({ allowHalfOpen: true }, socket => proxy.serve(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => [server, web].map(one => one.close()))
  const folder = folderOf(t)
  const bundle = join(folder, 'authorities.pem')
  const trusted = await ConversationAuthority.make()
  writeFileSync(bundle, trusted.certificate + authority.certificate)
  const way = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    https_proxy: `http://${way}`,
    http_proxy: `http://${way}`,
    NODE_USE_ENV_PROXY: '1',
    SSL_CERT_FILE: bundle,
    NODE_EXTRA_CA_CERTS: bundle,
    GIT_SSL_CAINFO: bundle,
    CURL_CA_BUNDLE: bundle,
  }
  const curl = async (...args: string[]): Promise<string> =>
    (await run('curl', ['-sS', '-m', '10', ...args], { env })).stdout
  return { curl, env, requests, plain, asked, way, folder, bundle }
}

const json = (text: string): Recorded => JSON.parse(text) as Recorded

t.test('a header, basic credentials, and bodies of every kind reach a bound host with the value', async t => {
  const { curl, requests } = await world(t)
  const url = 'https://api.example/v1'
  await curl('-H', `authorization: Bearer ${HELD}`, 'https://a.b.below.example/v1')
  await curl('-u', `me:${HELD}`, url)
  await curl('-H', 'content-type: application/json', '-d', JSON.stringify({ key: HELD }), url)
  await curl('--data-urlencode', `key=${HELD}`, url)
  await curl('-F', `key=${HELD}`, url)
  const basic = Buffer.from(`me:${VALUE}`).toString('base64')
  const [bearer, named, body, form, parts] = requests
  t.equal(Buffer.from(bearer!.headers.authorization!, 'latin1').toString(), `Bearer ${VALUE}`)
  t.equal(named!.headers.authorization, `Basic ${basic}`)
  t.strictSame(JSON.parse(body!.body), { key: VALUE })
  t.equal(new URLSearchParams(form!.body).get('key'), VALUE)
  t.ok(parts!.body.includes(`\r\n${VALUE}\r\n`))
})

t.test('the answer of a bound host is masked in every form, also compressed and split into pieces', async t => {
  const { curl } = await world(t, ({ url, headers }, answer) => {
    const said = Buffer.from(headers.authorization ?? '', 'latin1')
      .toString()
      .replace('Bearer ', '')
    const forms = [said, JSON.stringify(said), encodeURIComponent(said), Buffer.from(said).toString('base64')].join(' ')
    answer.setHeader('x-said', encodeURIComponent(said))
    if (url === '/gzip') answer.setHeader('content-encoding', 'gzip').end(gzipSync(forms))
    else if (url === '/br') answer.setHeader('content-encoding', 'br').end(brotliCompressSync(forms))
    else {
      const bytes = Buffer.from(forms)
      for (let at = 0; at < bytes.length; at++) answer.write(bytes.subarray(at, at + 1))
      answer.end()
    }
  })
  for (const path of ['pieces', 'gzip', 'br']) {
    const text = await curl('-i', '-H', `authorization: Bearer ${HELD}`, `https://api.example/${path}`)
    t.match(text, /x-said: \{\{secret:API\}\}/, `${path}: the header`)
    t.ok(
      text.endsWith('{{secret:API}} "{{secret:API}}" {{secret:API}} {{secret:API}}'),
      `${path}: the body: ${text.slice(-80)}`,
    )
  }
})

t.test('a request to another host or without TLS keeps the placeholder, one for another name is refused', async t => {
  const { curl, requests, plain, asked, bundle } = await world(t)
  const header = ['-H', `x-key: ${HELD}`]
  const other = await curl('-k', ...header, 'https://other.example/')
  t.equal(json(other).headers['x-key'], HELD, 'TLS to other hosts is not terminated')
  await t.rejects(curl('--cacert', bundle, 'https://other.example/'), /certificate/)
  t.match(
    await curl(...header, '-H', 'host: other.example', 'https://api.example/'),
    /leads to api\.example: expected that as Host, found other\.example/,
  )
  await curl(...header, 'http://api.example/')
  await curl(...header, 'http://other.example/')
  t.strictSame(
    [...requests, ...plain].map(({ headers }) => headers['x-key']),
    [HELD, HELD, HELD],
  )
  t.strictSame(
    asked.map(({ why }) => why),
    ['left', 'left'],
  )
})

t.test('a redirect to another host does not carry the value', async t => {
  const { curl, requests } = await world(t, ({ url, headers }, answer) => {
    if (url === '/away') answer.writeHead(302, { location: 'https://other.example/' })
    answer.end(headers.host)
  })
  await curl('-k', '-L', '-H', `x-key: ${HELD}`, 'https://api.example/away')
  t.strictSame(
    requests.map(({ headers }) => headers.host),
    ['api.example', 'other.example'],
  )
  t.equal(requests[1]!.headers['x-key'], HELD)
})

t.test('a large body, a body of another type and a stream pass unchanged', async t => {
  const { curl, requests, folder } = await world(t, (_, answer) => {
    answer.write('first ')
    setImmediate(() => answer.end('last'))
  })
  const large = `${HELD}${'x'.repeat(2 * 1024 * 1024)}`
  writeFileSync(join(folder, 'large'), large)
  for (const type of ['text/plain', 'application/octet-stream'])
    for (const more of [[], ['-H', 'transfer-encoding: chunked']])
      await curl(
        '-H',
        `content-type: ${type}`,
        ...more,
        '--data-binary',
        `@${join(folder, 'large')}`,
        'https://api.example/',
      )
  t.ok(requests.every(({ body }) => body === large))
  t.equal(await curl('https://api.example/'), 'first last')
})

t.test('node and git trust the proxy by the usual variables, also over SOCKS', async t => {
  let repository = ''
  const { env, curl, requests, way, folder } = await world(t, ({ url, headers }, answer) => {
    if (!url.includes('git-upload-pack')) return void answer.end('page')
    if (!headers.authorization) return void answer.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    const refs = execFileSync('git', ['upload-pack', '--stateless-rpc', '--advertise-refs', repository])
    answer.setHeader('content-type', 'application/x-git-upload-pack-advertisement')
    answer.end(Buffer.concat([Buffer.from('001e# service=git-upload-pack\n0000'), refs]))
  })
  repository = join(folder, 'repository')
  execFileSync('git', ['init', '-q', repository])
  const program =
    `fetch('https://api.example/', { headers: { 'x-key': '${HELD}' } })`
    + '.then(answer => answer.text()).then(text => console.log(text))'
  const { stdout } = await run(process.execPath, ['-e', program], { env })
  t.equal(stdout, 'page\n')
  await run('git', ['ls-remote', `https://me:${HELD}@api.example/x.git`], { env })
  await curl('-x', `socks5h://${way}`, '-H', `x-key: ${HELD}`, 'https://api.example/')
  const got = requests.map(({ headers }) => {
    const basic = headers.authorization && Buffer.from(headers.authorization.slice(6), 'base64').toString()
    return Buffer.from(String(headers['x-key'] ?? ''), 'latin1').toString() || basic
  })
  t.strictSame(got.filter(Boolean), [VALUE, `me:${VALUE}`, VALUE])
})

t.test('a host with an untrusted certificate gets nothing', async t => {
  const { way, requests, env } = await world(t)
  const stranger = await ConversationAuthority.make()
  const { createServer: createSecure } = await import('node:https')
  const seen: unknown[] = []
  const server = createSecure(await stranger.identityOf('api.example'), (asked, answer) => {
    seen.push(asked.headers)
    answer.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const proxy = new EgressProxy(
    async () => {
      const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true })
      await once(socket, 'connect')
      return socket.pause()
    },
    {
      bound: () => ({
        opens: () => true,
        fill: async () => new Map([[HELD, VALUE]]),
        masker: async () => new Masker([]),
      }),
      authority: async () => stranger,
    },
  )
  const front = createServer({ allowHalfOpen: true }, socket => proxy.serve(socket)).listen(0, '127.0.0.1')
  await once(front, 'listening')
  t.teardown(() => front.close())
  const to = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
  const args = ['-sSk', '-m', '10', '-x', to, '-H', `x-key: ${HELD}`, 'https://api.example/']
  const { stdout } = await run('curl', args, { env })
  t.match(stdout, /api\.example:443 could not be asked: nobody trusted vouches for its certificate/)
  t.strictSame([seen, requests, way.length > 0], [[], [], true])
})
