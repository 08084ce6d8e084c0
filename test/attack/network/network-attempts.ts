import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createServer as createSocketServer, type AddressInfo } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { allowedOf } from '../../../sdk/node/network/allow.js'
import { Networks } from '../../../sdk/node/network/networks.js'
import { homeOfConversation } from '../../../sdk/node/wall/home.js'
import { runWalled, walled, type WallKind, type WallSpec } from '../../../sdk/node/wall/wall.js'

/** The findings of programs in their own networks. */
export interface NetworkLeaks {
  /** The services of the machine that a program reached; empty if the network holds. */
  readonly reached: string[]
  /** The changes it made to its own network; empty. */
  readonly changed: string[]
  /** The answers on port 3000 of two conversations. */
  readonly pages: string[]
  /** The allowed targets that answered, by kind of request. */
  readonly allowed: string[]
  /** The user of a program inside, with its own network and with the shared one. */
  readonly user: readonly [own: string, shared: string]
  /** The targets that were reported as refused. */
  readonly refused: string[]
}

const CANARY = 'canary-of-the-machine'

/** Tries every kind of request to each address; prints those that returned the canary. */
const ASKS = `
const net = require('node:net'), http = require('node:http')
const [canary, proxy, ...targets] = process.argv.slice(1)
const over = (socket, words) => new Promise(done => {
  let text = ''
  socket.setTimeout(4000, () => socket.destroy())
  socket.on('data', piece => { text += piece.toString('latin1') }).on('error', () => {}).on('close', () => done(text))
  if (words) socket.write(words)
})
const request = host => 'GET / HTTP/1.1\\r\\nHost: ' + host + '\\r\\nConnection: close\\r\\n\\r\\n'
const through = () => net.connect(Number(proxy), '127.0.0.1')
const bracket = host => host.includes(':') ? '[' + host + ']' : host
const socks = (host, port) => {
  const address = net.isIPv4(host)
    ? Buffer.from([1, ...host.split('.').map(Number)])
    : Buffer.concat([Buffer.from([3, host.length]), Buffer.from(host)])
  const end = Buffer.alloc(2)
  end.writeUInt16BE(port)
  return Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0]), address, end, Buffer.from(request(host))])
}
const ways = {
  direct: (host, port) => over(net.connect(port, host), request(host)),
  forward: (host, port) => over(
    through(),
    'GET http://' + bracket(host) + ':' + port + '/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n',
  ),
  connect: (host, port) => over(
    through(),
    'CONNECT ' + bracket(host) + ':' + port + ' HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' + request(host),
  ),
  socks: (host, port) => over(through(), socks(host, port)),
}
;(async () => {
  for (const target of targets) {
    const at = target.lastIndexOf(':')
    const host = target.slice(0, at), port = Number(target.slice(at + 1))
    for (const [way, ask] of Object.entries(ways))
      if ((await ask(host, port)).includes(canary)) console.log('DONE', way, target)
  }
})()
`
const CHANGES = `
const { execFileSync } = require('node:child_process')
for (const command of [
  'ip link set lo down',
  'ip route del prohibit 10.0.0.0/8',
  'ip route add 10.0.0.0/8 dev lo',
  'ip addr add 10.9.9.9/8 dev lo',
  'unshare -rn true; nsenter -t 1 -n true && false',
  'sysctl -w net.ipv4.ip_forward=1',
  'unshare -r ip route del prohibit 10.0.0.0/8',
  'unshare -r ip link set lo down',
]) {
  try {
    execFileSync('sh', ['-c', command], { stdio: 'ignore' })
    if (!command.includes('false')) console.log('DONE', command)
  } catch {}
}
`
const ABSTRACT = `
const net = require('node:net')
const socket = net.connect('\\0' + process.argv[1])
socket.on('connect', () => { console.log('DONE abstract'); process.exit() }).on('error', () => {})
`
/** Serves its argument on port 3000 and requests it. */
const PAGE = `
const http = require('node:http')
const ask = () => http.get('http://127.0.0.1:3000', answer => {
  let text = ''
  answer.on('data', piece => { text += piece }).on('end', () => {
    console.log(text)
    setTimeout(() => process.exit(), 500)
  })
})
const server = http.createServer((_, answer) => answer.end(process.argv[1]))
server.listen(3000, '127.0.0.1', () => setTimeout(ask, 500))
`

const serving = async (host: string, answer = CANARY, location?: string): Promise<{ server: Server; port: number }> => {
  const server = createServer((_, reply) => {
    if (location) reply.writeHead(302, { location })
    reply.end(answer)
  }).listen(0, host)
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

const attempt = async (kind: WallKind, base: string): Promise<NetworkLeaks> => {
  const [workspace, data] = [join(base, 'w'), join(base, 'd')]
  for (const folder of [workspace, data]) mkdirSync(folder, { recursive: true })
  const machine = Object.values(networkInterfaces())
    .flatMap(all => all ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
  const everywhere = await serving('0.0.0.0')
  const six = await serving('::1').catch(() => undefined)
  const own = await serving('127.0.0.1')
  const allowed = await serving('127.0.0.1')
  const leads = await serving('127.0.0.1', 'moved', `http://127.0.0.1:${everywhere.port}/`)
  const abstract = createSocketServer().listen(`\0${CANARY}`)
  const refused: string[] = []
  const [resolver] = [join(base, 'resolv.conf')]
  writeFileSync(resolver, 'nameserver 192.0.2.3\n')
  const rules = {
    allow: allowedOf([
      `localhost:${allowed.port}`,
      `localhost:${leads.port}`,
      `localhost:${own.port}`,
      '*.example',
      'localtest',
    ]),
    only: false,
    listeners: [{ host: '127.0.0.1', port: own.port }],
  }
  const networks = new Networks({
    log: { warn: () => {} },
    busy: () => true,
    owner: () => ({
      rules: async () => rules,
      refused: ({ host, port }) => void refused.push(`${host}:${port}`),
      taken: () => {},
      resolver: async () => resolver,
    }),
  })
  const specOf = async (id: string): Promise<WallSpec> => ({
    workspace,
    data,
    cwd: workspace,
    env: listEnv(),
    home: await homeOfConversation(data, id),
    network: { enter: () => networks.enter(id) },
  })
  const spec = await specOf('one')
  const run = async (script: string, args: readonly string[], within = spec) => {
    const { stdout, stderr } = await runWalled(
      within,
      process.execPath,
      ['-e', script, ...args],
      { timeoutMs: 120_000 },
      kind,
    )
    return [...stdout.toString().split('\n'), ...(stderr ? [stderr] : [])].filter(Boolean)
  }
  try {
    const hosts = [
      '127.0.0.1',
      '127.9.8.7',
      '0.0.0.0',
      'localhost',
      'localhost.',
      '::ffff:127.0.0.1',
      hostname(),
      ...machine,
    ]
    const targets = [
      ...hosts.flatMap(host => [`${host}:${everywhere.port}`, `${host}:${own.port}`]),
      ...(six ? [`::1:${six.port}`, `localhost:${six.port}`] : []),
      '169.254.169.254:80',
      '100.100.100.200:80',
      '10.255.255.1:80',
    ]
    const reached = await run(ASKS, [CANARY, '18999', ...targets])
    const redirected = await runWalled(
      spec,
      'curl',
      ['-sSL', '-m', '5', '--noproxy', '', `http://localhost:${leads.port}/`],
      {},
      kind,
    )
    if (redirected.stdout.toString().includes(CANARY)) reached.push('by a redirect')
    reached.push(...(await run(ABSTRACT, [CANARY])))
    const [other, shared] = [await specOf('two'), { ...spec } as { network?: unknown } & WallSpec]
    delete (shared as { network?: unknown }).network
    const who = async (within: WallSpec) => (await runWalled(within, 'id', [], {}, kind)).stdout.toString().trim()
    return {
      reached,
      changed: await run(CHANGES, []),
      refused,
      pages: (await Promise.all([run(PAGE, ['one']), run(PAGE, ['two'], other)])).flat(),
      allowed: await run(ASKS, [CANARY, '18999', `127.0.0.1:${allowed.port}`]),
      user: [await who(spec), await who(shared)],
    }
  } finally {
    networks.close()
    for (const each of [everywhere, six, own, allowed, leads]) each?.server.close()
    abstract.close()
  }
}

// As a program it makes the attempts as its own user.
if (process.argv[1]?.endsWith('network-attempts.js')) {
  const [, , kind = 'bwrap', base = ''] = process.argv
  const place = { workspace: join(base, 'w'), data: join(base, 'd'), cwd: '/', env: listEnv() }
  for (const folder of [place.workspace, place.data]) mkdirSync(folder, { recursive: true })
  const { enforced } = await walled(place, 'true', [], kind as WallKind)
  const own = new Networks({
    log: { warn: () => {} },
    busy: () => false,
    owner: () => {
      throw new Error('unused')
    },
  })
  const possible = enforced && (await own.possible())
  own.close()
  console.log(JSON.stringify(possible ? await attempt(kind as WallKind, join(base, 'place')) : 'none'))
}
