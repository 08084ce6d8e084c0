import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createClient } from '../../../sdk/client.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { ADMITTED, freshSession, guarded, isForExtensions, needsOrigin, ROUTED, takesAnyBody } from '../calls.js'
import { connected, head, rawRequest } from '../support.js'
import { inTime, tookLess } from '../../support/in-time.js'

const MIB = 1024 * 1024

const spawned = (t: Test, env: NodeJS.ProcessEnv = {}) => {
  const folder = folderOf(t)
  makeWorkspace(join(folder, 'workspace'))
  return spawnDaemon(t, { workspace: join(folder, 'workspace'), data: join(folder, 'data'), env })
}

/** The current and the maximum memory of a process. */
const memoryOf = (pid: number): { now: number; most: number } => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  return { now: of('VmRSS'), most: of('VmHWM') }
}

/** The duration of one plain call. */
const plainCall = async (url: string): Promise<number> => {
  const began = performance.now()
  const { status } = await fetch(`${url}/health`)
  if (status !== 200) throw new Error(`health answered ${status}`)
  return performance.now() - began
}

const deep = (open: string, close: string, levels: number, inner = '1'): string =>
  open.repeat(levels) + inner + close.repeat(levels)

const TOO_LARGE = 'more than it takes'

/** Bodies that are expensive to parse, with the only allowed answers. */
const BODIES: {
  readonly [what: string]: {
    readonly body: string | Buffer
    readonly status: readonly number[]
    readonly headers?: { [name: string]: string }
  }
} = {
  'objects 100,000 deep': { body: deep('{"a":', '}', 100_000), status: [400] },
  'lists 100,000 deep': { body: `{"a":${deep('[', ']', 100_000)}}`, status: [400] },
  'lists 100,000 deep that never end': { body: `{"a":${'['.repeat(100_000)}`, status: [400] },
  'objects 65 deep': { body: deep('{"a":', '}', 65), status: [400] },
  __proto__: { body: '{"__proto__":{"polluted":true,"isAdmin":true},"prompt":"say x"}', status: [400] },
  '__proto__ in another spelling': {
    body: '{"\\u005f_proto\\u005f_":{"polluted":true},"prompt":"say x"}',
    status: [400],
  },
  '__proto__ inside': {
    body:
      '{"prompt":"say '
      + 'x","set":{"__proto__":{"polluted":true}},"editorContext":{"file":"a","__proto__":{"polluted":true}}}',
    status: [400],
  },
  constructor: { body: '{"set":{"constructor":{"prototype":{"polluted":true}}},"prompt":"x"}', status: [400] },
  prototype: { body: '{"a":[[[{"prototype":{"polluted":true}}]]]}', status: [400] },
  'a bomb of gzip': {
    body: gzipSync(Buffer.alloc(64 * MIB)),
    status: [400, 413, 415],
    headers: { 'content-encoding': 'gzip' },
  },
  'bytes that are not UTF-8': { body: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), status: [400] },
  'a list': { body: '[]', status: [400] },
  null: { body: 'null', status: [400] },
  [TOO_LARGE]: { body: `{"prompt":"${'x'.repeat(5 * MIB)}"}`, status: [413] },
}

t.test('every call refuses an expensive body at once, before its handler', async t => {
  const daemon = await guarded(t)
  const { host } = new URL(daemon.url)
  for (const routed of ROUTED) {
    const { call, method, path, access } = routed
    if (method === 'GET' || takesAnyBody(routed)) continue
    const session = freshSession(daemon)
    for (const [what, { body, status, headers = {} }] of Object.entries(BODIES)) {
      const bytes = Buffer.byteLength(body)
      const all = {
        host,
        authorization: `Bearer ${session}`,
        ...(needsOrigin(routed) && { origin: ADMITTED }),
        'content-type': 'application/json',
        // For calls that accept larger bodies, the announced length decides.
        'content-length': String(what === TOO_LARGE ? Math.max(bytes, (access.body ?? 0) + 1) : bytes),
        ...headers,
      }
      const began = performance.now()
      const answer = await rawRequest(
        daemon.url,
        Buffer.concat([Buffer.from(head(method, path, Object.entries(all))), Buffer.from(body)]),
      )
      // A call with a smaller limit does not read so far.
      const isLarge = answer.status === 413 && bytes > (access.body ?? MIB)
      t.ok(isLarge || status.includes(answer.status), `${call}, ${what}: ${answer.status}`)
      t.ok(inTime(began, 2000), `${call}, ${what}: at once`)
      t.match(JSON.parse(answer.body), { message: String })
    }
    t.same(daemon.reached(), [], call)
  }
  for (const { method, path } of ROUTED.filter(
    // The query of a public page is the page's own.
    one =>
      one.method === 'GET'
      && !('ticket' in one.access)
      && !('publicPage' in one.access)
      && !isForExtensions(one)
      && !needsOrigin(one),
  )) {
    for (const key of ['__proto__', 'constructor', 'prototype', '__proto__[polluted]']) {
      const { status } = await daemon.fetch(`${path}?${key}=x`, { method })
      t.ok(status === 400 || (key.includes('[') && status === 409), `${path}?${key}: ${status}`)
    }
    daemon.reached()
    t.equal((await daemon.fetch(`${path}?limit=1&limit=2`)).status, 400, 'a key given twice')
  }
  t.equal(({} as { polluted?: true }).polluted, undefined)
  t.equal(
    (await daemon.fetch('/agent', { method: 'POST', body: '{"prompt":"say x"}' })).status,
    409,
    'a valid body reaches the call',
  )
})

t.test('slow headers are cut off after 10 s and delay no other client', async t => {
  const { url, client } = await spawned(t)
  const { host } = new URL(url)
  const began = performance.now()
  const slow = await Promise.all(Array.from({ length: 200 }, () => connected(t, url)))
  const gone = slow.map(socket => new Promise(resolve => socket.once('close', resolve)))
  const answers = slow.map(() => '')
  for (const [at, socket] of slow.entries()) socket.on('data', piece => (answers[at] += String(piece)))
  for (const socket of slow) socket.write(`GET /info HTTP/1.1\r\nhost: ${host}\r\nx-a: `)
  // Occasional bytes do not extend the time.
  const drip = setInterval(() => slow.forEach(socket => socket.writable && socket.write('a')), 1000)
  t.teardown(() => clearInterval(drip))
  t.ok(tookLess(await plainCall(url), 1000))
  await client.call('GET /info')
  await Promise.all(gone)
  // A byte that arrives after the close resets the connection, and unread data is lost.
  t.ok(answers.some(answer => answer.startsWith('HTTP/1.1 408')))
  t.same(
    answers.filter(answer => answer && !answer.startsWith('HTTP/1.1 408')),
    [],
  )
  const took = performance.now() - began
  t.ok(took > 9000 && tookLess(took, 15_000), `they are closed after ${Math.round(took)} ms`)
})

t.test('slow bodies delay no other client, and without a credential the daemon does not wait for them', async t => {
  const { url, client } = await spawned(t)
  const { host } = new URL(url)
  const sized = [
    ['host', host],
    ['content-type', 'application/json'],
    ['content-length', '1000'],
  ] as const
  const refused = await rawRequest(url, `${head('POST', '/agent', sized)}{`)
  t.equal(refused.status, 401, 'refused before its body came')
  const slow: Socket[] = []
  for (let n = 0; n < 200; n++) {
    const socket = await connected(t, url)
    socket.write(`${head('POST', '/system/session', sized)}{"login":"`)
    slow.push(socket)
  }
  t.ok(tookLess(await plainCall(url), 1000))
  t.equal((await runTurn(client, 'c-1', 'say hello')).at(-1)?.kind, 'done')
  for (const socket of slow) socket.destroy()
  t.ok(tookLess(await plainCall(url), 1000))
})

t.test('the streams of a credential are limited, dead ones are freed, and memory does not grow', async t => {
  const { url, client, pid } = await spawned(t)
  const { host } = new URL(url)
  await client.call('POST /agent', { conversationId: 'c-1', prompt: 'wait words\nsay over' })
  const body = '{"conversationId":"c-1"}'
  const opened = async (token: string): Promise<{ socket: Socket; status: number }> => {
    const socket = await connected(t, url)
    socket.write(
      head('POST', '/agent/attach', [
        ['host', host],
        ['x-sandbox-control', token],
        ['content-type', 'application/json'],
        ['content-length', String(body.length)],
      ]) + body,
    )
    const [first] = (await once(socket, 'data')) as [Buffer]
    socket.pause()
    return { socket, status: Number(/^HTTP\/1\.1 (\d+)/.exec(first.toString())?.[1]) }
  }
  const tokens = await Promise.all(
    Array.from({ length: 8 }, (_, at) =>
      client.call('POST /system/control/tokens', { label: `t${at}`, scope: 'read' }),
    ),
  )
  const before = memoryOf(pid).now
  for (let round = 0; round < 4; round++) {
    const open = await Promise.all(tokens.flatMap(({ token }) => Array.from({ length: 20 }, () => opened(token))))
    t.equal(open.filter(({ status }) => status === 200).length, 8 * 16, `round ${round}: sixteen each`)
    t.equal(open.filter(({ status }) => status === 429).length, 8 * 4, 'one more is refused')
    // Reset the connection, like a machine that loses power.
    for (const { socket } of open) socket.resetAndDestroy()
    t.ok(tookLess(await plainCall(url), 1000))
    await freed(url, tokens[0]!.token)
  }
  t.ok(
    memoryOf(pid).now - before < 64 * MIB,
    `${Math.round((memoryOf(pid).now - before) / MIB)} MiB more after 512 streams`,
  )
  await client.call('POST /agent/steer', { conversationId: 'c-1', text: 'go on' })
  t.equal((await framesOf(client, 'c-1').all()).at(-1)?.event.kind, 'done')
})

/** Waits until all sixteen streams of a token are free again. */
const freed = async (url: string, token: string): Promise<void> => {
  const client = createClient({ url, token })
  for (let tries = 0; tries < 100; tries++) {
    const stop = new AbortController()
    const streams = await Promise.allSettled(
      Array.from({ length: 16 }, async () => {
        const events = (await client.call('POST /agent/attach', { conversationId: 'c-1' }, { signal: stop.signal }))[
          Symbol.asyncIterator
        ]()
        await events.next()
      }),
    )
    stop.abort()
    if (streams.every(({ status }) => status === 'fulfilled')) return
    await new Promise(resolve => setImmediate(resolve))
  }
  throw new Error('the closed streams of a token are still counted')
}

const sizeOf = (folder: string): number =>
  (readdirSync(folder, { recursive: true }) as string[]).reduce(
    (sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  )

const LARGE = `repeat 100 say ${'x'.repeat(MIB / 2)}`

t.test('a client that reads nothing neither slows a turn that writes 50 MiB nor increases memory', async t => {
  const { url, client, pid, data } = await spawned(t, { NODE_OPTIONS: '--max-old-space-size=256' })
  const { host } = new URL(url)
  const timed = async (conversation: string, readers: number): Promise<number> => {
    const session = createClient({
      url,
      token: (await client.call('POST /system/control/tokens', { label: conversation, scope: 'drive' })).token,
    })
    await session.call('POST /agent', { conversationId: conversation, prompt: `wait words\n${LARGE}` })
    const { token } = await client.call('POST /system/control/tokens', {
      label: `${conversation} readers`,
      scope: 'read',
    })
    const body = JSON.stringify({ conversationId: conversation })
    for (let n = 0; n < readers; n++) {
      const socket = await connected(t, url)
      socket.write(
        head('POST', '/agent/attach', [
          ['host', host],
          ['x-sandbox-control', token],
          ['content-type', 'application/json'],
          ['content-length', String(body.length)],
        ]) + body,
      )
      await once(socket, 'readable')
      socket.pause()
    }
    const began = performance.now()
    await session.call('POST /agent/steer', { conversationId: conversation, text: 'go' })
    for (;;) {
      const { lastEnd, status } = await client.call('GET /agents/{id}', { id: conversation })
      if (lastEnd) return performance.now() - began
      if (status === 'error') throw new Error('the turn failed')
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
  await timed('warm', 0)
  const alone = await timed('alone', 0)
  const before = memoryOf(pid)
  const watched = await timed('watched', 16)
  const after = memoryOf(pid)
  t.comment(
    `alone ${Math.round(alone)} ms, `
      + `watched ${Math.round(watched)} ms, ${Math.round(before.now / MIB)} to ${Math.round(after.now / MIB)} MiB, `
      + `most ${Math.round(before.most / MIB)} to ${Math.round(after.most / MIB)} MiB`,
  )
  t.ok(sizeOf(join(data, 'journals')) > 3 * 50 * MIB, 'the frames are on the disk')
  t.ok(watched < alone * 2 + 1000, 'the turn takes as long as without them')
  t.ok(after.now - before.most < 64 * MIB, 'memory has not grown')
  t.ok(after.most - before.most < 96 * MIB, 'memory never grew')
})
