import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openConnection } from '../../../plugins/capabilities/servers/connection.js'
import type { Refusal } from '../../../sdk/index.js'
import { fileOfRepository } from '../../../sdk/node/transport/fetched-commit.js'
import { remoteAddress } from '../../../sdk/node/transport/remote-address.js'
import { RemoteGit } from '../../../sdk/node/transport/remote-git.js'
import { callTool, resultOf, TURN } from '../../plugins/capabilities/servers-support.js'
import { add, capabilitiesDaemon, inner, program } from '../../plugins/capabilities/support.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { tookLess } from '../../support/in-time.js'
import { walled } from '../support.js'
import { hostileGit } from './hostile-git.js'

const EVERY_MS = 250
const HELLO_MS = 1_500
/** The longest that an end may take beside the limit: a session that is ended has 2 s of it. */
const AFTER_MS = 5_000

t.setTimeout(120_000)
t.jobs = 4

/** How a server lets its answer drip. */
const DRIPS: { readonly [way: string]: (reply: ServerResponse) => (byte: string) => unknown } = {
  headers: reply => {
    reply.socket!.write('HTTP/1.1 200 OK\r\nx-a: ')
    return byte => reply.socket?.write(byte)
  },
  'a body': reply => {
    reply.writeHead(202, { 'content-length': 100_000 })
    return byte => reply.write(byte)
  },
  'a text': reply => {
    reply.writeHead(200, { 'content-type': 'application/json' })
    return byte => reply.write(byte)
  },
  events: reply => {
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    return byte => reply.write(`: ${byte}\n`)
  },
}

const drips = (reply: ServerResponse, way: string): void => {
  const write = DRIPS[way]!(reply)
  const timer = setInterval(() => (reply.socket?.destroyed === false ? write('[') : clearInterval(timer)), EVERY_MS)
}

/** A tool server over HTTP that answers, but for one method. */
const drippingServer = async (t: Test, method: string, way: string): Promise<string> => {
  let pages = 0
  const server = createServer((asked, reply) => {
    reply.on('error', () => {})
    void (async () => {
      if (method === 'an older server') {
        if (asked.method === 'POST') return reply.writeHead(404).end()
        return drips(reply, way)
      }
      if (asked.method !== 'POST') return reply.writeHead(405).end()
      let text = ''
      for await (const piece of asked) text += String(piece)
      const heard = JSON.parse(text) as { id?: number; method: string; params?: { protocolVersion: string } }
      if (heard.method === method && way !== 'pages') return drips(reply, way)
      if (heard.id === undefined) return reply.writeHead(202).end()
      if (heard.method === method) await new Promise(resolve => setTimeout(resolve, EVERY_MS))
      const tool = { name: `hit${pages++ || ''}`, inputSchema: { type: 'object' } }
      const results: { [method: string]: object } = {
        initialize: {
          protocolVersion: heard.params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'd', version: '1' },
        },
        'tools/list': { tools: [tool], ...(way === 'pages' && { nextCursor: `${pages}` }) },
      }
      reply.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
      return reply.end(JSON.stringify({ jsonrpc: '2.0', id: heard.id, result: results[heard.method] ?? {} }))
    })().catch(() => reply.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => (server.closeAllConnections(), server.close()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

t.test('a tool server whose answers drip is given up in time, at whatever step', { buffered: true }, async t => {
  t.jobs = 8
  const steps = ['initialize', 'notifications/initialized', 'an older server', 'tools/list']
  const cases = [...steps.flatMap(step => Object.keys(DRIPS).map(way => [step, way])), ['tools/list', 'pages']]
  const { signal } = new AbortController()
  const tried = cases.map(([step = '', way = '']) =>
    t.test(`${step}: ${way}`, { buffered: true }, async t => {
      const entry = { id: 'd', config: { url: await drippingServer(t, step, way) }, secrets: {} }
      const host = { call: async () => ({ listeners: [] }), serves: async () => false, place: {} } as never
      const tokens = { token: async () => undefined }
      const began = performance.now()
      const work = async () => {
        const connection = await openConnection({ host, entry, tokens, signal, helloMs: HELLO_MS })
        try {
          await connection.tools(signal)
        } catch (error) {
          throw await connection.failure(error)
        } finally {
          await connection.close()
        }
      }
      const refused = await work().then(
        () => undefined,
        (error: Refusal) => error,
      )
      t.equal(refused?.reason, 'dependency')
      if (step !== 'an older server') t.match(refused?.message, /the server d did not answer in time/)
      t.ok(tookLess(performance.now() - began, 2 * HELLO_MS + AFTER_MS), `${Math.round(performance.now() - began)} ms`)
    }),
  )
  await Promise.all(tried)
})

/** A tool server that is a program, whose answer to a call drips. */
const DRIPPING_PROGRAM = `#!/usr/bin/env node
const say = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const serverInfo = { name: 'd', version: '1' }
  const { protocolVersion } = params ?? {}
  if (method === 'initialize') say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } })
  else if (method === 'tools/list') say({ id, result: { tools: [{ name: 'hit', inputSchema: { type: 'object' } }] } })
  else if (method === 'tools/call') setInterval(() => process.stdout.write('{'), ${EVERY_MS})
  else if (id !== undefined) say({ id, result: {} })
})
`

t.test(
  'a call whose answer drips ends in its time, and when it is stopped',
  { ...walled(), buffered: true },
  async t => {
    const { daemon } = await capabilitiesDaemon(t)
    const command = program(daemon, 'drips.cjs', DRIPPING_PROGRAM)
    await add(daemon, { id: 'program', kind: 'mcp', config: { transport: 'stdio', command, timeoutMs: HELLO_MS } })
    for (const way of Object.keys(DRIPS)) {
      const url = await drippingServer(t, 'tools/call', way)
      await add(daemon, { id: way.replace(' ', '-'), kind: 'mcp', config: { url, timeoutMs: HELLO_MS } })
    }
    const { tools, problems } = await inner(daemon, 'mcp.tools', TURN)
    t.same(problems, [])
    t.equal(tools.length, 1 + Object.keys(DRIPS).length)
    await Promise.all(
      tools.map(async ({ server, name }) => {
        const began = performance.now()
        t.match(
          await resultOf(daemon, { server, name, input: {} }),
          { ok: false, text: /gave no sign for 1.5 s/ },
          server,
        )
        t.ok(tookLess(performance.now() - began, HELLO_MS + AFTER_MS), server)
        const stop = new AbortController()
        setTimeout(() => stop.abort(), EVERY_MS)
        const stopped = performance.now()
        await callTool(daemon, { server, name, input: {} }, undefined, stop.signal).catch(() => {})
        t.ok(tookLess(performance.now() - stopped, HELLO_MS), `${server}: it is stopped`)
      }),
    )
  },
)

t.test('a git server whose answers drip is given up in time, and when it is stopped', walled(), async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'w'), join(folder, 'd')]
  for (const each of [workspace, data]) mkdirSync(each)
  const { signal } = new AbortController()
  const host = { call: async () => ({ listeners: [] }), serves: async () => false, signal } as never
  const times = { stallMs: HELLO_MS, limitMs: 2 * HELLO_MS }
  const deps = { host, wall: { workspace, data }, passwordFor: async () => undefined }
  const [remote, patient] = [new RemoteGit({ ...deps, times }), new RemoteGit(deps)]
  const ways: [way: string, reason: RegExp][] = [
    ['headers that drip', /did not answer for 1.5 s/],
    ['a list of refs that drips', /did not answer for 1.5 s/],
    ['progress without an end', /did not (?:answer for 1.5|end within 3) s/],
  ]
  await Promise.all(
    ways.map(async ([way, reason], at) => {
      const own = join(data, `scratch-${at}`)
      inGit(data, 'init', '-q', '--bare', own)
      const url = await hostileGit(t, way)
      const address = remoteAddress(url, { workspace, from: workspace, field: 'url' })
      const args = (asked: string) => ['fetch', '--progress', '--no-tags', asked, 'HEAD']
      const order = { address, args, folder: own, env: { GIT_DIR: own } }
      const began = performance.now()
      t.match((await remote.run(order)).failure, { code: 'unreachable', reason }, way)
      t.ok(tookLess(performance.now() - began, times.limitMs + AFTER_MS), way)
      const stopped = performance.now()
      const { failure } = await patient.run({ ...order, signal: AbortSignal.timeout(EVERY_MS) })
      t.match(failure, { reason: /longer than there was time/ }, way)
      t.ok(tookLess(performance.now() - stopped, AFTER_MS), `${way}: it is stopped`)
    }),
  )
})

t.test('a repository without an end is refused before it fills the disk', walled(), async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'w'), data: join(folder, 'd'), hidden: [], folder: join(folder, 'd/p') }
  for (const each of [place.workspace, place.data, place.folder]) mkdirSync(each)
  const { signal } = new AbortController()
  const host = { call: async () => ({ listeners: [] }), serves: async () => false, place, signal } as never
  const scratch = join(place.folder, 'scratch')
  const wanted = { url: await hostileGit(t, 'a pack without an end'), paths: ['registry.json'], maxBytes: 1_000 }
  const began = performance.now()
  await t.rejects(fileOfRepository(host, scratch, wanted), { reason: 'too-large', message: /more than \d+ bytes/ })
  t.notOk(existsSync(scratch))
  t.ok(tookLess(performance.now() - began, 20_000), `${Math.round(performance.now() - began)} ms`)
})
