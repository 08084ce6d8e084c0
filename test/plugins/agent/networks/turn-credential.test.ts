import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect, createServer as createListener, type AddressInfo, type Server as Listener } from 'node:net'
import t, { type Test } from 'tap'
import { turnCredential } from '../../../../plugins/agent/networks/turn-credential.js'

const TOKEN = 'sbt_a.b'
const GROUPS = [
  {
    routes: [
      { call: 'POST /approvals', turns: true },
      { call: 'GET /approvals', tokens: ['read'] },
      { call: 'GET /ports', tokens: ['read'] },
      { call: 'GET /workspace/file', tokens: ['read'] },
      { call: 'GET /secrets', tokens: [] },
      { call: 'GET /vpn', tokens: [], turns: 'sandbox' },
    ],
  },
]

const listening = async <S extends Server | Listener>(t: Test, server: S): Promise<S & { port: number }> => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return Object.assign(server, { port: (server.address() as AddressInfo).port })
}

/** A turn whose server is handed its connections, as in a network of its own, and what reaches the daemon behind it. */
const world = async (
  t: Test,
  { allowedTools, sandbox = false }: { readonly allowedTools?: readonly string[]; readonly sandbox?: boolean } = {},
) => {
  const calls: string[] = []
  const outside: string[] = []
  const entry: { onOutsiders: (() => Promise<void>) | undefined } = { onOutsiders: undefined }
  const asked: IncomingMessage[] = []
  const daemon = await listening(
    t,
    createServer(request => void asked.push(request.on('error', () => {}))),
  )
  const turn = { ...Promise.withResolvers<void>(), stop: new AbortController() }
  const known = { looked: Promise.withResolvers<void>(), gate: Promise.resolve() }
  let door: { port: number } | undefined
  const variables = turnCredential(
    {
      host: {
        call: async (name: string) => {
          calls.push(name)
          return name === 'kernel.groups' ? { groups: GROUPS } : { id: 'a', token: TOKEN }
        },
        log: { warn: t.fail, error: t.fail },
      } as never,
      stored: { hide: () => () => {} },
      listeners: async () => {
        known.looked.resolve()
        await known.gate
        return [{ host: '127.0.0.1', port: daemon.port }]
      },
    },
    {
      ...{ conversationId: 'c', run: 'r', ended: turn.promise, signal: turn.stop.signal },
      ...{ entry, markOutside: async source => void outside.push(source) },
    },
    {
      serve: async server => {
        door = await listening(
          t,
          createListener(socket => void server.emit('connection', socket.resume())),
        )
        return `http://127.0.0.1:${door.port}`
      },
    },
    () => ({ sandbox, accounts: true }),
    allowedTools,
  )
  const env = await variables()
  /** Begins a proposal of 10 bytes, and sends the first of them. */
  const begin = async () => {
    const client = connect(door!.port, '127.0.0.1')
    client.on('error', () => {})
    await once(client, 'connect')
    const head = ['POST /approvals HTTP/1.1', 'host: x', `x-sandbox-turn: ${TOKEN}`, 'content-length: 10', '', '{']
    client.write(head.join('\r\n'))
    return client
  }
  return { env, calls, asked, turn, known, begin, entry, outside }
}

for (const how of ['ends', 'is stopped'])
  t.test(`a call that is half sent ends when its turn ${how}`, async t => {
    const { asked, turn, begin } = await world(t)
    const client = await begin()
    while (asked.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
    const [request] = asked
    const cut = new Promise(resolve => request!.once('close', resolve))
    if (how === 'ends') turn.resolve()
    else turn.stop.abort()
    await Promise.all([once(client, 'close'), cut])
    t.notOk(request!.complete)
  })

t.test('a call that is being passed on when its turn ends shows the daemon no dead credential', async t => {
  const { asked, turn, known, begin } = await world(t)
  const gate = Promise.withResolvers<void>()
  known.gate = gate.promise
  const client = await begin()
  await known.looked.promise
  turn.resolve()
  await once(client, 'close')
  gate.resolve()
  await new Promise(resolve => setTimeout(resolve, 50))
  t.same(asked, [])
})

t.test('a turn with the power passes reads on, and counts records of others as content from outside', async t => {
  for (const sandbox of [true, false]) {
    const { env, asked, calls, entry, outside, turn } = await world(t, { sandbox })
    const ask = (path: string) =>
      fetch(`${env.SANDBOX_DAEMON}${path}`, { headers: { 'x-sandbox-turn': TOKEN } }).then(
        ({ status }) => status,
        () => 0,
      )
    t.equal(await ask('/secrets'), 403)
    const passes = ['/ports?x=1', '/approvals', '/vpn']
    if (!sandbox) t.same(await Promise.all(passes.map(ask)), [403, 403, 403])
    else {
      for (const path of passes) void ask(path)
      while (asked.length < passes.length) await new Promise(resolve => setTimeout(resolve, 5))
      t.same(asked.map(({ url }) => url).sort(), [...passes].sort())
    }
    t.same(outside, sandbox ? ['GET /approvals of the sandbox'] : [])
    for (const [query, counts] of [
      ['path=a&agent=c', false],
      ['path=a&agent=c&%61gent=other', true],
    ] as const) {
      const [marked, passed] = [outside.length, asked.length]
      const answer = ask(`/workspace/file?${query}`)
      if (!sandbox) t.equal(await answer, 403)
      else while (asked.length === passed) await new Promise(resolve => setTimeout(resolve, 5))
      t.equal(outside.length > marked, sandbox && counts, `the private copy of another conversation: ${query}`)
    }
    await entry.onOutsiders?.()
    t.equal(calls.at(-1), 'kernel.turn.narrow')
    turn.resolve()
  }
})

t.test('a turn that is narrowed to other tools has no credential', async t => {
  const { env, calls } = await world(t, { allowedTools: ['Shell', 'Need'] })
  t.same([env, calls], [{}, []])
  const both = await world(t, { allowedTools: ['Shell', 'Need', 'Propose'] })
  t.match(both.env, { SANDBOX_TURN_TOKEN: TOKEN })
})
