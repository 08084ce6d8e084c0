import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EVERY_CASE } from '../../support/lists.js'
import { makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { answersOf } from '../support.js'
import { hostOutside, ip, PAGE, PUBLIC } from './network-outside.js'

/** What a hostile name server's names led to. */
export interface NamesWorld {
  /** Connections that must never be made, each with the way that made it. */
  readonly reached: readonly string[]
  /** Ways that looked the name of a public server up, and the one that got its page: all were tried. */
  readonly controls: readonly string[]
  /** How long somebody else's request took while names were asked for that nobody answers, in milliseconds. */
  readonly besideSlow: number
  /** How many lookups were asked of the name server. */
  readonly asked: number
}

const [PRIVATE, METADATA] = ['10.77.0.1', '169.254.169.254']
/** Loopback, but not where the daemon listens: a server of the test has its port there. */
const LOOPBACK = '127.0.0.2'
const PORT = 80

/** The answers of a name, the nth time it is asked for an address of a family; undefined: none comes. */
type Answers = (family: 4 | 6, nth: number) => readonly string[] | undefined

const only =
  (...all: readonly string[]): Answers =>
  family =>
    all.filter(address => address.includes(':') === (family === 6))

/** Public when it is checked, and something else when it is dialled. */
const turning = (to: string, after: number): Answers => {
  const then = to.includes(':') ? 6 : 4
  return (family, nth) => (nth < after ? only(PUBLIC)(family, nth) : family === then ? [to] : [])
}

const TARGETS = [
  LOOPBACK,
  METADATA,
  PRIVATE,
  '::1',
  '0.0.0.0',
  `::ffff:${LOOPBACK}`,
  '64:ff9b::7f00:2',
  '2002:7f00:2::',
  'fd00:ec2::254',
]

/** Names of the hostile server, each with what it answers. */
export const HOSTILE: { readonly [name: string]: Answers } = Object.fromEntries([
  ...TARGETS.map((address, at) => [`plain-${at}`, only(address)]),
  ...TARGETS.map((address, at) => [`both-${at}`, only(PUBLIC, address)]),
  ...TARGETS.flatMap((address, at) => [1, 2, 3].map(after => [`turns-${at}-${after}`, turning(address, after)])),
  ['many', only(...Array.from({ length: 40 }, (_, at) => (at % 2 ? LOOPBACK : METADATA)))],
  ['none', only()],
])

const bytesOf = (address: string): Buffer => {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = plain.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16)))
  const [first, last] = [groups(head), groups(tail ?? '')]
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last]
  return Buffer.from(all.flatMap(group => [group >> 8, group & 255]))
}

/** A name server whose answers live for no time. */
const nameServer = async (answers: { readonly [name: string]: Answers }) => {
  const socket = createSocket('udp4')
  const counts = new Map<string, number>()
  let asked = 0
  socket.on('message', (query, from) => {
    asked += 1
    const labels: string[] = []
    let at = 12
    for (; query[at]; at += query[at]! + 1) labels.push(query.subarray(at + 1, at + 1 + query[at]!).toString())
    const type = query.readUInt16BE(at + 1)
    const name = labels.join('.').toLowerCase()
    const first = labels[0]!.toLowerCase()
    if (first.startsWith('slow')) return
    const family = type === 28 ? 6 : 4
    const key = `${name} ${type}`
    const nth = counts.get(key) ?? 0
    counts.set(key, nth + 1)
    const known = first.startsWith('good') ? only(PUBLIC) : answers[first]
    const found = (name.endsWith('.example') && (type === 1 || type === 28) && known?.(family, nth)) || []
    const rows = found.map(address => {
      const data = bytesOf(address)
      const row = Buffer.alloc(12)
      row.writeUInt16BE(0xc00c, 0)
      row.writeUInt16BE(type, 2)
      row.writeUInt16BE(1, 4)
      row.writeUInt32BE(0, 6)
      row.writeUInt16BE(data.length, 10)
      return Buffer.concat([row, data])
    })
    const head = Buffer.from(query.subarray(0, at + 5))
    head.writeUInt16BE(0x8180 | (known ? 0 : 3), 2)
    head.writeUInt16BE(rows.length, 6)
    head.writeUInt32BE(0, 8)
    socket.send(Buffer.concat([head, ...rows]), from.port, from.address)
  })
  socket.bind(53, '127.0.0.53')
  await once(socket, 'listening')
  return { asked: () => asked, close: () => socket.close() }
}

const world = async (uid: number, base: string): Promise<NamesWorld> => {
  ip('link', 'set', 'lo', 'up')
  const outside = await hostOutside()
  ip('addr', 'add', `${METADATA}/32`, 'dev', 'lo')
  for (const address of ['fd00:ec2::254/128', '64:ff9b::7f00:2/128', '2002:7f00:2::/128'])
    ip('addr', 'add', address, 'dev', 'lo', 'nodad')
  const put = (name: string, text: string, over: string) => {
    writeFileSync(join(base, name), text)
    execFileSync('mount', ['--bind', join(base, name), over])
  }
  put('hosts', '127.0.0.1 localhost\n::1 localhost\n', '/etc/hosts')
  put('nsswitch', 'hosts: files dns\n', '/etc/nsswitch.conf')
  put('resolv', 'nameserver 127.0.0.53\noptions timeout:2 attempts:1\n', '/etc/resolv.conf')
  const names = await nameServer(HOSTILE)
  const workspace = join(base, 'w')
  makeWorkspace(workspace)
  execFileSync('install', ['-d', '-m', '700', '-o', String(uid), join(base, 'd'), join(base, 'h')])
  execFileSync('chown', ['-R', `${uid}:${uid}`, workspace])
  const ends: (() => unknown)[] = []
  const daemon = await spawnDaemon(
    { teardown: work => ends.unshift(work as () => unknown) },
    {
      workspace,
      data: join(base, 'd'),
      ...(uid !== process.getuid?.() && { user: uid }),
      env: { HOME: join(base, 'h'), XDG_RUNTIME_DIR: join(base, 'h'), XDG_STATE_HOME: join(base, 'h') },
    },
  )
  const { client, url, session } = daemon
  const own = Number(new URL(url).port)

  let way = ''
  const reached = new Set<string>()
  const controls: string[] = []
  const canary = async (address: string, port: number) => {
    const server = createServer(socket => {
      reached.add(`${way}: ${address}:${port === own ? 'the port of the daemon' : port}`)
      socket.on('error', () => {}).destroy()
    }).listen(port, address)
    await once(server, 'listening')
    ends.unshift(() => server.close())
  }
  for (const address of [LOOPBACK, '::1', PRIVATE, METADATA, 'fd00:ec2::254', '64:ff9b::7f00:2', '2002:7f00:2::'])
    for (const port of [PORT, own]) await canary(address, port)
  const post = async (path: string, body: object): Promise<string> =>
    (
      await fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(60_000),
      })
    ).text()
  const near = { keys: { p256dh: KEY, auth: 'BTBZMqHH6r4Tts7J_aSIgg' } }
  /** What a request is made for; with `near` it may go to private addresses, which is then none of the test's. */
  const WAYS: {
    readonly [what: string]: { readonly near: boolean; readonly ask: (at: string, id: string) => Promise<unknown> }
  } = {
    'a model server': {
      near: true,
      ask: async at => {
        await post('/endpoints', { id: 'e', kind: 'server', protocol: 'openai', baseUrl: `http://${at}/v1` })
        await post('/endpoints/e/test', { model: 'm' })
        await client.call('DELETE /endpoints/{id}', { id: 'e' }).catch(() => {})
      },
    },
    'a tool server': {
      near: true,
      ask: async at => {
        await post('/capabilities', { id: 't', kind: 'mcp', config: { url: `http://${at}/mcp`, timeoutMs: 1000 } })
        await client.call('DELETE /capabilities/{id}', { id: 't' }).catch(() => {})
      },
    },
    'a push service': {
      near: false,
      ask: async at => {
        await post('/push/subscribe', { kind: 'webpush', endpoint: `https://${at}/`, ...near })
        // A person may ask for six a minute.
        if (/^(?:good|turns)/.test(at)) await post('/push/test', {})
        await post('/push/unsubscribe', { id: `https://${at}/` })
      },
    },
    'a page for a turn': {
      near: false,
      ask: async (at, id) => {
        const answers = answersOf(await runTurn(client, `f-${id}`, `fetch http://${at}/`, { isolated: true }))
        if (answers.some(({ text }) => text.includes(PAGE))) controls.push(`${way}: its page`)
      },
    },
    'a repository to clone': {
      near: true,
      ask: async (at, id) => post('/workspace/repos', { cloneUrl: `https://${at}/x.git`, name: `r-${id}` }),
    },
  }
  const every = EVERY_CASE && uid === process.getuid?.()
  const chosen = Object.keys(HOSTILE).filter((_, at) => every || at % 5 === 0)
  let nth = 0
  for (const [what, { near, ask }] of Object.entries(WAYS)) {
    way = `${what}, of a public server`
    const before = names.asked()
    await ask(`good-${nth}.example:${PORT}`, `${nth++}`)
    if (names.asked() > before) controls.push(way)
    for (const port of [PORT, own])
      for (const name of chosen) {
        way = `${what} at ${name}`
        await ask(`${name}.example:${port}`, `${nth++}`)
      }
    // A person who names a server may name one nearby; what is the daemon's or the machine's own secret is never one.
    const nearby = [LOOPBACK, '::1', PRIVATE, '64:ff9b::7f00:2', '2002:7f00:2::'].map(each => `: ${each}:${PORT}`)
    for (const one of near ? [...reached] : [])
      if (nearby.some(each => one.endsWith(each)) && one.startsWith(what) && reached.delete(one))
        controls.push(`${what}: nearby`)
  }

  way = 'slow'
  const slow = [0, 1, 2].map(at => Array.from({ length: 10 }, (_, nth) => `fetch http://slow-${at}-${nth}.example/`))
  const all = Promise.all(slow.map((lines, at) => runTurn(client, `slow-${at}`, lines.join('\n'), { isolated: true })))
  await new Promise(resolve => setTimeout(resolve, 1_000))
  const began = performance.now()
  const beside = answersOf(await runTurn(client, 'beside', 'fetch http://good-beside.example/', { isolated: true }))
  const besideSlow = beside[0]?.ok ? performance.now() - began : -1
  for (const at of [0, 1, 2]) await post('/agent/stop', { conversationId: `slow-${at}` })
  await all
  for (const end of ends) await end()
  names.close()
  outside.stdin!.end()
  return {
    reached: [...reached],
    controls,
    besideSlow,
    asked: names.asked(),
  }
}

const KEY = 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'

// A program in networks of its own, which the machine does not see.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , uid = '0', base = ''] = process.argv
  console.log(JSON.stringify(await world(Number(uid), base)))
  process.exit()
}
