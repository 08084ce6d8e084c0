import { readdirSync, readFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect as connectSocket, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { Gate } from '../../../../plugins/system/browsers/gate.js'
import { exemptions } from '../../../../sdk/node/network/no-proxy.js'
import { askOutside } from '../../../../sdk/node/network/outbound.js'
import { connectChecked } from '../../../../sdk/node/network/policy.js'
import { Names } from '../../../../sdk/node/network/names.js'
import { deploymentProxy } from '../../../../sdk/node/network/upstream.js'
import { companyNetwork } from '../../../support/servers/deployment-proxy.js'

/** Sets variables of this process until the end of a test. */
const environment = (t: Test, values: { readonly [name: string]: string }): void => {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap(name => [name, name.toLowerCase()])
  const before = names.map(name => [name, process.env[name]] as const)
  for (const name of names) delete process.env[name]
  Object.assign(process.env, values)
  t.teardown(() => {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
  })
}

const BARRED = { message: /not (?:asked|reached)/ }

/** What each entry names, and what it does not. */
const ENTRIES: { readonly [entry: string]: readonly [named: readonly string[], others: readonly string[]] } = {
  '*': [['a.example:80', '10.1.2.3:443', '::1:22'], []],
  'a.example': [
    ['a.example:80', 'b.a.example:443', 'c.b.a.example:80'],
    ['xa.example:80', 'a.example.org:80', 'example:80'],
  ],
  '.a.example': [['a.example:80', 'b.a.example:443'], ['xa.example:80']],
  '*.a.example': [['a.example:80', 'b.a.example:443'], ['xa.example:80']],
  'A.Example.': [['a.example:80'], ['b.example:80']],
  'a.example:8443': [
    ['a.example:8443', 'b.a.example:8443'],
    ['a.example:443', 'a.example:80'],
  ],
  '10.1.2.3': [
    ['10.1.2.3:80', '10.1.2.3:443'],
    ['10.1.2.4:80', '110.1.2.3:80', 'x.10.1.2.3.example:80'],
  ],
  '10.1.2.3:8080': [['10.1.2.3:8080'], ['10.1.2.3:80']],
  '10.0.0.0/8': [
    ['10.1.2.3:80', '10.255.0.1:443'],
    ['11.0.0.1:80', 'a.example:80'],
  ],
  '192.168.4.0/22': [
    ['192.168.4.1:80', '192.168.7.255:80'],
    ['192.168.8.1:80', '192.168.3.1:80'],
  ],
  'fd00::/8': [['fd12::1:80'], ['fe80::1:80', '10.1.2.3:80']],
  'fd00::1': [['fd00::1:443'], ['fd00::2:443']],
  '[fd00::1]:443': [['fd00::1:443'], ['fd00::1:80']],
  '10.0.0.0/99': [[], ['10.1.2.3:80']],
  'not a/b/c': [[], ['not.example:80', 'a.example:80']],
}

const targetOf = (written: string): { host: string; port: number } => {
  const at = written.lastIndexOf(':')
  return { host: written.slice(0, at), port: Number(written.slice(at + 1)) }
}

t.test('each entry of NO_PROXY names what it says, alone and in a list', async t => {
  for (const [entry, [named, others]] of Object.entries(ENTRIES))
    for (const list of [entry, `x.invalid,${entry}`, ` ${entry} , y.invalid`, `z.invalid ${entry}`]) {
      const exempt = exemptions(list)
      for (const each of named) t.ok(exempt(targetOf(each)), `${list} names ${each}`)
      for (const each of others) t.notOk(exempt(targetOf(each)), `${list} does not name ${each}`)
    }
})

t.test('a proxy is taken from the variable of its scheme, in small letters first', async t => {
  const of = (scheme: 'http:' | 'https:', host = 'a.example') => {
    const found = deploymentProxy({ host, port: 443 }, scheme)
    return found && `${found.variable} ${found.secure ? 'tls' : 'tcp'} ${found.host}:${found.port}`
  }
  environment(t, { HTTP_PROXY: 'http://up:1', http_proxy: 'low:2', ALL_PROXY: 'https://all', NO_PROXY: 'b.example' })
  t.equal(of('http:'), 'http_proxy tcp low:2')
  t.equal(of('https:'), 'ALL_PROXY tls all:443')
  process.env.HTTPS_PROXY = 'http://ada:x%40y@[fd00::1]:3128/'
  t.equal(of('https:'), 'HTTPS_PROXY tcp fd00::1:3128')
  t.equal(deploymentProxy({ host: 'a.example', port: 443 }, 'https:')!.authorization, `Basic ${btoa('ada:x@y')}`)
  for (const host of ['b.example', 'localhost', 'x.localhost', '127.0.0.1', '127.8.8.8', '::1'])
    t.equal(of('https:', host), undefined, host)
  for (const value of ['socks5://a:1', 'http://', 'http://a b', 'ftp://x']) {
    process.env.HTTPS_PROXY = value
    t.throws(() => of('https:'), { message: /^HTTPS_PROXY of the daemon: expected/ }, value)
  }
  delete process.env.HTTPS_PROXY
  process.env.ALL_PROXY = 'socks5h://a:1080'
  t.throws(() => of('https:'), { message: /^ALL_PROXY of the daemon: .*found that of a SOCKS proxy, .*name the HTTP/ })
})

t.test('a name that stands for what may not be asked is refused, whatever the proxy would find', async t => {
  const network = await companyNetwork(t, { secure: false }, (_, answer) => void answer.end('reached'))
  environment(t, { HTTP_PROXY: network.address, HTTPS_PROXY: network.address })
  const rules = { allow: [], only: false, listeners: [] }
  const { signal } = new AbortController()
  const lookups: readonly (readonly [name: string, addresses: readonly string[]])[] = [
    ['rebound', ['10.0.0.5']],
    ['metadata', ['169.254.169.254']],
    ['mixed', ['93.184.216.34', '10.0.0.5']],
    ['mapped', ['::ffff:192.168.1.1']],
    ['machine', ['127.0.0.1']],
  ]
  for (const [name, addresses] of lookups)
    for (const port of [80, 443, 22]) {
      const names = new Names(async () =>
        addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
      const target = { host: `${name}.corp.example`, port }
      await t.rejects(connectChecked(target, rules, signal, names), BARRED, `${name}:${port}`)
    }
  t.strictSame(network.asked, [], 'no request reaches the proxy')
  const known = new Names(async () => [{ address: '93.184.216.34', family: 4 }])
  const socket = await connectChecked({ host: 'open.corp.example', port: 443 }, rules, signal, known)
  socket.destroy()
  const unknown = new Names(async () => {
    throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
  })
  const other = await connectChecked({ host: 'far.corp.example', port: 443 }, rules, signal, unknown)
  other.destroy()
  for (const host of ['intranet', 'a.internal', 'a.local', 'a.home.arpa', 'metadata.google.internal'])
    await t.rejects(connectChecked({ host, port: 443 }, rules, signal, unknown), BARRED, host)
  await t.rejects(connectChecked({ host: 'far.corp.example', port: 443 }, { ...rules, only: true }, signal, unknown), {
    message: /only what networkAllow names/,
  })
  t.strictSame(
    network.asked.map(({ target }) => target),
    ['open.corp.example:443', 'far.corp.example:443'],
  )
})

t.test('a redirect of a server behind the proxy is checked like its address', async t => {
  const aims = ['http://169.254.169.254/', 'http://10.1.1.1/', 'http://intranet/', 'http://localhost:1/']
  let at = ''
  const network = await companyNetwork(t, { secure: false }, (_, answer) => {
    answer.writeHead(302, { location: at }).end()
  })
  environment(t, { HTTP_PROXY: network.address })
  for (const aim of aims) {
    at = aim
    const asking = askOutside({
      url: 'http://page.corp.example/',
      reach: { near: true, listeners: [] },
      timeoutMs: 20_000,
      maxBytes: 1_000,
    })
    await t.rejects(asking, BARRED, aim)
  }
  t.equal(network.asked.filter(({ target }) => !target.includes('corp.example')).length, 0)
})

for (const form of [{ secure: false }, { secure: true, login: 'ada:a pass' }])
  t.test(`the browser's way out goes through a proxy ${JSON.stringify(form)}`, async t => {
    const network = await companyNetwork(t, form, (_, answer) => void answer.end('a page'))
    environment(t, { HTTP_PROXY: network.address, HTTPS_PROXY: network.address })
    const { setDefaultCACertificates, getCACertificates } = await import('node:tls')
    setDefaultCACertificates([...getCACertificates('default'), network.authority.certificate])
    const gate = await Gate.open(async () => ({ near: false, listeners: [] }))
    t.teardown(() => gate.close())
    const plain = request({
      host: '127.0.0.1',
      port: gate.port,
      path: 'http://page.corp.example/x',
      agent: false,
    }).end()
    const answer = await new Promise<Parameters<typeof text>[0]>((came, failed) =>
      plain.on('response', came).on('error', failed),
    )
    t.equal(await text(answer), 'a page')
    const tunnelled = request({ host: '127.0.0.1', port: gate.port, method: 'CONNECT', path: 'page.corp.example:443' })
    const socket = await new Promise<ReturnType<typeof connectSocket>>((came, failed) =>
      tunnelled
        .on('connect', (_, raw) => came(raw as ReturnType<typeof connectSocket>))
        .on('error', failed)
        .end(),
    )
    const secure = connect({ socket, servername: 'page.corp.example' })
    secure.write('GET / HTTP/1.1\r\nhost: page.corp.example\r\nconnection: close\r\n\r\n')
    t.match(await text(secure), /a page/)
    t.ok(network.asked.every(({ allowed }) => allowed))
  })

t.test("a page's request to the loopback of its conversation reaches no server of the machine", async t => {
  const machine = createServer((_, answer) => void answer.end('the machine')).listen(0, '127.0.0.1')
  const own = createServer((_, answer) => void answer.end('the conversation')).listen(0, '127.0.0.1')
  await Promise.all([machine, own].map(server => once(server, 'listening')))
  t.teardown(() => [machine, own].map(server => server.close()))
  const [port, ownPort] = [machine, own].map(server => (server.address() as AddressInfo).port)
  const dial = async () => {
    const socket = connectSocket(ownPort!, '127.0.0.1')
    await once(socket, 'connect')
    return socket.pause()
  }
  const rules = { allow: [], only: false, listeners: [] }
  const gate = await Gate.open(async () => ({ near: false, listeners: [], own: { rules, dial, refused: () => {} } }))
  t.teardown(() => gate.close())
  const asked = request({ host: '127.0.0.1', port: gate.port, path: `http://localhost:${port}/`, agent: false }).end()
  const [answer] = (await once(asked, 'response')) as [Parameters<typeof text>[0]]
  t.equal(await text(answer), 'the conversation')
})

/** Files that connect without the deployment's proxy, and why. */
const DIRECT: { readonly [file: string]: string } = {
  'kernel/auth/line-socket.ts': 'the login socket of this machine',
  'plugins/agent/tool-server/bridge.ts': 'the daemon',
  'plugins/agent/providers/routed/translator-relay.ts': 'a program of this machine',
  'plugins/agent/networks/turn-credential.ts': 'the daemon',
  'plugins/capabilities/docker/engine-child.ts': 'a socket inside of a wall',
  'plugins/agent/tool-server/http.ts': 'a handler in this process',
  'plugins/endpoints/local/local-server.ts': 'a parameter of that name',
  'plugins/capabilities/ssh/doors.ts': 'ssh, which goes directly',
  'plugins/capabilities/ssh/relay-child.ts': 'a socket inside of a wall',
  'plugins/disks/servers/address.ts': 'network disks, which the system mounts directly',
  'plugins/disks/servers/webdav.ts': 'network disks, which the system mounts directly',
  'plugins/ports/preview/previews.ts': 'servers of this machine',
  'plugins/ports/preview/probe.ts': 'servers of this machine',
  'plugins/ports/preview/server.ts': 'servers of this machine',
  'plugins/routed/translator.ts': 'a program of this machine',
  'plugins/vpn/clients/gateway-certificate.ts': 'the gateway of a tunnel, which its program dials directly',
  'sdk/node/tunnels/management.ts': 'a program of this machine',
  'plugins/workspace/apps/built-in.ts': 'the text of a program',
  'plugins/extensions/scaffold/scaffold-files.ts': 'the text of a program',
  'sdk/cli/calls/document.ts': 'the daemon, from the command line',
  'sdk/cli/daemon/daemon.ts': 'the daemon, from the command line',
  'sdk/cli/daemon/socket.ts': 'the daemon, from the command line',
  'sdk/cli/verbs/bundle.ts': 'the daemon, from the command line',
  'sdk/node/network/answers-http.ts': 'servers of this machine',
  'sdk/node/network/local/join-local.ts': 'servers of this machine',
  'plugins/exit/clients/tor-control.ts': 'a program of this machine',
  'plugins/exit/proxy/dial-tunnel.ts': 'what goes into a tunnel',
  'plugins/exit/proxy/check.ts': 'the proxy of an exit',
  'sdk/node/network/opened.ts': 'TLS over a connection that was dialled',
  'sdk/node/network/upstream.ts': 'the proxy itself',
  'sdk/node/network/inside-child.ts': 'sockets of a network of its own',
}

/** What makes a connection: a value of one of these modules by one of these names, or the `fetch` of Node. */
const CONNECTS =
  /import \{[^}]*\b(?:request|connect|createConnection|get)\b[^}]*\} from 'node:(?:https?|net|tls|http2)'/
const FETCHES = /(?<![.\w#])(?:await |return )fetch\(/
/** What knows the proxy. */
const KNOWS =
  /network\/(?:upstream|askable|outbound|checked-fetch)\.js'|'\.\/(?:upstream|outbound|askable)\.js'|reachTarget/

t.test('whatever of the program connects knows the proxy, but for what is of this machine', async t => {
  const root = process.cwd()
  const files = ['kernel', 'sdk', 'plugins'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map(path => `${folder}/${path}`)
      .filter(path => path.endsWith('.ts') && !path.includes('/web/') && !path.startsWith('sdk/examples')),
  )
  t.ok(files.length > 1000)
  const connecting = files.filter(path => {
    const source = readFileSync(join(root, path), 'utf8')
    return (CONNECTS.test(source) || FETCHES.test(source)) && !KNOWS.test(source)
  })
  t.strictSame(
    connecting.filter(path => !(path in DIRECT)),
    [],
  )
})

t.test('no request names both an agent and a connection of its own, of which Node would use the agent', async t => {
  const root = process.cwd()
  const wrong = ['kernel', 'sdk', 'plugins'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map(path => `${folder}/${path}`)
      .filter(path => path.endsWith('.ts'))
      .filter(path => {
        const source = readFileSync(join(root, path), 'utf8')
        return /agent: false(?! as|[\s\S]{0,2} \})/.test(source) && /^\s*createConnection: /m.test(source)
      }),
  )
  t.strictSame(wrong, [])
})
