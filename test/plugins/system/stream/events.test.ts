import { createConnection, type Socket } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import type { SystemEvent } from '../../../../plugins/system/contract.js'
import type { AgentCard, Roster } from '../../../../plugins/agents/contract.js'
import { createClient } from '../../../../sdk/client.js'
import type { LiveFrame } from '../../../../sdk/kernel.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { cardOf, openEvents, say } from './events-support.js'
import { inTime, tookLess } from '../../../support/in-time.js'

const FIRST = ['hello', 'agents', 'presence', 'attention']

/** A board that a test changes; every change increases the revision. */
const fleet = () => {
  const roster: Roster = { agents: [], rev: 7, held: [] }
  return {
    fakes: { 'GET /agents': () => structuredClone(roster) },
    put: (...agents: AgentCard[]) => {
      roster.agents = agents
      roster.rev += 1
    },
  }
}

const frame = (n: number, more = ''): LiveFrame => ({
  data: { kind: 'agent', rev: n, removed: `c${n}${more}` } as { kind: string },
  mode: 'delta',
})

t.test('without a credential neither the stream nor the roster is reached', async t => {
  const { url } = await daemonWith(t, ['system'])
  t.equal((await fetch(`${url}/events`)).status, 401)
  t.equal((await fetch(`${url}/events`, { headers: { 'x-sandbox-control': 'sbc_x.y' } })).status, 401)
  t.equal(
    (
      await fetch(`${url}/system/presence`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"clientId":"a","idle":false}',
      })
    ).status,
    401,
  )
})

t.test('a token watches with scope read, drive or land, and never has a presence', async t => {
  const daemon = await daemonWith(t, ['system'])
  for (const scope of ['read', 'drive', 'land', 'editor'] as const) {
    const { token } = await daemon.token(scope)
    const headers = { 'x-sandbox-control': token }
    const stop = new AbortController()
    const watched = await fetch(`${daemon.url}/events`, { headers, signal: stop.signal })
    t.equal(watched.status, scope === 'editor' ? 403 : 200, scope)
    if (scope === 'editor') t.match(await watched.json(), { message: /read or drive or land, found scope editor/ })
    stop.abort()
    const said = await fetch(`${daemon.url}/system/presence`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{"clientId":"a","idle":false}',
    })
    t.equal(said.status, 403, scope)
  }
})

t.test('invalid input is refused, and the stream has no HEAD', async t => {
  const daemon = await daemonWith(t, ['system'])
  for (const query of [
    'roster=x',
    'clientId=',
    `clientId=${'x'.repeat(65)}`,
    `after=${'x'.repeat(65)}`,
    'clientId=a&clientId=b',
    'constructor=1',
  ]) {
    t.equal((await daemon.fetch(`/events?${query}`)).status, 400, query)
  }
  const bodies = [
    {},
    { clientId: 'a' },
    { clientId: '', idle: true },
    { clientId: 'a', idle: 'yes' },
    { clientId: 'a', idle: true, view: 'x'.repeat(81) },
    { clientId: 'a', idle: true, path: 'x'.repeat(401) },
  ]
  for (const body of bodies) t.equal((await say(daemon, body)).status, 400, JSON.stringify(body))
  t.equal((await daemon.fetch('/events', { method: 'HEAD' })).status, 405)
})

t.test('the stream begins with hello and the whole state', async t => {
  const { fakes, put } = fleet()
  put(cardOf('c1', { cards: [{ requestId: 'q', kind: 'question', title: 'Go on?', raisedAt: 1 }] }))
  const daemon = await daemonWith(t, ['system'], {
    fakes: { ...fakes, 'ci.waiting': () => ({ waiting: [{ within: 'app', count: 2 }] }) },
  })
  const events = await openEvents(t, daemon)
  t.match(Object.fromEntries(events.response.headers), {
    'content-type': /^text\/event-stream/,
    'cache-control': 'no-store',
  })
  const hello = await events.until('hello')
  const info = await daemon.client.call('GET /info')
  t.match(hello, {
    workspaceId: info.workspaceId,
    build: info.build,
    resumed: false,
    boot: { ready: true },
    versions: { sessions: 0, members: 0 },
  })
  t.strictSame([hello.routes, hello.shapes, hello.me], [info.routes, info.shapes, info.me])
  t.match(await events.next(), { kind: 'agents', rev: 8, agents: exactly({ id: 'c1' }) })
  t.strictSame(await events.next(), { kind: 'presence', users: [] })
  t.strictSame(await events.next(), {
    kind: 'attention',
    cards: 1,
    approvals: 0,
    needs: 0,
    land: 0,
    ci: 2,
    issues: 0,
    offload: 0,
  })
  t.equal(events.last, `${hello.epoch}-${hello.seq}`)
})

t.test("a token sees neither presence nor the work on other people's computers", async t => {
  const daemon = await daemonWith(t, ['system'])
  const { token } = await daemon.token('read')
  const events = await openEvents(t, daemon, '?clientId=robot', { 'x-sandbox-control': token })
  t.match(await events.next(), { kind: 'hello', me: { kind: 'token', scope: 'read' } })
  t.match(await events.next(), { kind: 'agents', agents: { length: 0 }, rev: 0 })
  t.strictSame(await events.next(), { kind: 'attention', cards: 0, approvals: 0, needs: 0, land: 0, ci: 0, issues: 0 })
  const person = await openEvents(t, daemon, '?clientId=ada')
  t.match(await person.until('presence'), { users: exactly({ clientId: 'ada' }) }, 'the token is not on the roster')
  daemon.kernel.live.bump('system', 'members')
  t.equal((await events.next()).kind, 'runtimeChanged', 'it gets no presence')
})

t.test('a change of a conversation is sent as the whole board, or as one card', async t => {
  const { fakes, put } = fleet()
  put(cardOf('c1'), cardOf('c2'))
  const daemon = await daemonWith(t, ['system'], { fakes })
  const [whole, delta] = [await openEvents(t, daemon), await openEvents(t, daemon, '?roster=delta')]
  t.same([await whole.kinds(4), await delta.kinds(4)], [FIRST, FIRST])
  put(cardOf('c2', { status: 'running', cards: [{ requestId: 'q', kind: 'plan', title: 'A plan', raisedAt: 1 }] }))
  daemon.kernel.events.emit('agent.changed', { id: 'c2' })
  t.match(await whole.next(), { kind: 'agents', rev: 9, agents: exactly({ id: 'c2', status: 'running' }) })
  t.match(await whole.next(), { kind: 'attention', cards: 1 })
  t.match(await delta.next(), { kind: 'agent', rev: 9, agent: { id: 'c2', status: 'running' } })
  t.strictSame(await delta.next(), { kind: 'agent', rev: 9, removed: 'c1' })
  t.match(await delta.next(), { kind: 'attention', cards: 1 })
})

t.test('changes without watchers are sent to the next watcher', async t => {
  const { fakes, put } = fleet()
  put(cardOf('c1'))
  const daemon = await daemonWith(t, ['system'], { fakes })
  const before = await openEvents(t, daemon, '?roster=delta')
  await before.kinds(4)
  await before.close()
  put(cardOf('c1', { status: 'ready' }))
  daemon.kernel.events.emit('agent.changed', { id: 'c1' })
  const after = await openEvents(t, daemon, '?roster=delta', { 'last-event-id': before.last })
  t.match(await after.next(), { kind: 'hello', resumed: true })
  t.match(await after.next(), { kind: 'agent', agent: { status: 'ready' } })
  t.same(await after.kinds(2), ['presence', 'attention'])
})

t.test('a turn is reported from its card to its landing', async t => {
  const daemon = await daemonWith(t, [])
  const events = await openEvents(t, daemon, '?roster=delta')
  t.same(await events.kinds(4), FIRST)
  const id = 'seen'
  await daemon.client.call('POST /agent', {
    conversationId: id,
    isolated: true,
    prompt: 'write made.txt\n| by an agent\nask Go on?\n| yes: go on\n| no: stop\nsay done',
  })
  const asking = await events.until('agent', ({ agent }) => agent?.status === 'awaiting')
  t.match(await events.until('attention'), { cards: 1 })
  const { requestId } = asking.agent!.cards![0]!
  await daemon.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
  t.match(await events.until('agent', ({ agent }) => agent?.status === 'ready'), { agent: { id, diff: { files: 1 } } })
  await daemon.client.call('POST /agents/{id}/land', { id })
  await events.until('agent', ({ agent }) => agent?.status === 'landed')
  await daemon.client.call('POST /agents/{id}/discard', { id })
  await events.until('agent', ({ removed }) => removed === id)
  t.match(await openEvents(t, daemon).then(one => one.until('attention')), { cards: 0 })
})

t.test('a board that cannot be read does not prevent watching', async t => {
  const daemon = await daemonWith(t, ['system'], {
    fakes: {
      'GET /agents': () => {
        throw new Error('broken')
      },
    },
  })
  const events = await openEvents(t, daemon)
  t.same(await events.kinds(3), ['hello', 'presence', 'attention'])
  t.match(daemon.logged.join('\n'), /reading the fleet for the event stream failed/)
})

t.test('a call that changes access publishes its domain before it answers', async t => {
  const daemon = await daemonWith(t, ['system'])
  const events = await openEvents(t, daemon)
  await events.kinds(4)
  const { id } = await daemon.client.call('POST /system/control/tokens', { label: 'a', scope: 'read' })
  const { head } = daemon.kernel.live
  t.match(await events.next(), { kind: 'runtimeChanged', domains: exactly('sessions'), versions: { sessions: 1 } })
  t.equal(events.last.split('-')[1], String(head))
  await daemon.client.call('DELETE /system/control/tokens/{id}', { id })
  t.match(await events.until('runtimeChanged'), { versions: { sessions: 2 } })
  const login = await daemon.auth.mintLogin()
  await daemon.client.call('POST /system/session', { login })
  const domains = new Set<string>()
  while (domains.size < 2) for (const domain of (await events.until('runtimeChanged')).domains) domains.add(domain)
  t.same([...domains].sort(), ['members', 'sessions'])
  t.match((await openEvents(t, daemon).then(one => one.until('hello'))).versions, { sessions: 3, members: 1 })
})

t.test('a landing and a change of the settings publish their domains', async t => {
  const daemon = await daemonWith(t, [])
  const events = await openEvents(t, daemon)
  await runTurn(daemon.client, 'c1', 'write a.txt\n| a', { isolated: true })
  await daemon.client.call('POST /agents/{id}/land', { id: 'c1' })
  t.match(await events.until('runtimeChanged', ({ domains }) => domains.includes('landings')), { keys: exactly('c1') })
  await daemon.client.call('POST /settings/patch', { set: { agentRetentionDays: 9 } })
  t.ok(await events.until('runtimeChanged', ({ domains }) => domains.includes('settings')))
})

t.test('a group publishes the domains of its manifest under its own name', async t => {
  const { kernel } = await daemonWith(t, ['system'])
  const publish = (caller: object, domain: string) =>
    kernel.calls.answer(
      'kernel.events.publish',
      { domain },
      { caller: caller as never, signal: new AbortController().signal, trusted: true },
    )
  const system = { kind: 'plugin', actor: 'sandbox:system', role: 'owner' }
  t.same(await publish(system, 'sessions'), { ok: true })
  await t.rejects(publish(system, 'push'), { message: /system does not declare the domain push/ })
  await t.rejects(publish({ kind: 'session', actor: 'sandbox:system', role: 'owner' }, 'sessions'), {
    message: /a group publishes as itself/,
  })
})

t.test('after ten random interruptions the client still gets every frame once and in order', async t => {
  const daemon = await daemonWith(t, ['system'])
  const TOTAL = 400
  let seed = 20_240_607
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  let cuts = 0
  const cutting: typeof fetch = async (address, options) => {
    const response = await fetch(address, options)
    if (cuts >= 10 || !response.body) return response
    let left = 200 + random(6_000)
    // Breaks the connection in the middle of the data.
    const broken = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, out) => {
          out.enqueue(bytes.subarray(0, left))
          left -= bytes.length
          if (left > 0) return
          cuts += 1
          out.error(new Error('cut'))
        },
      }),
    )
    return new Response(broken, { status: response.status, headers: response.headers })
  }
  const client = createClient({
    url: daemon.url,
    session: daemon.session,
    fetch: cutting,
    retry: { first: 1, most: 2 },
  })
  const revs: number[] = []
  const hellos: boolean[] = []
  let published = 0
  const publish = () => {
    daemon.kernel.live.show([frame(++published)])
    if (published < TOTAL) setImmediate(publish)
  }
  for await (const event of (await client.call('GET /events', { roster: 'delta' })) as AsyncIterable<SystemEvent>) {
    if (event.kind === 'hello') hellos.push(event.resumed)
    if (event.kind === 'attention' && !published) publish()
    if (event.kind === 'agent') revs.push(event.rev)
    if (revs.at(-1) === TOTAL) break
  }
  t.equal(cuts, 10)
  t.ok(hellos.filter(Boolean).length > 5, 'most of them resumed')
  t.strictSame(
    revs,
    Array.from({ length: TOTAL }, (_, n) => n + 1),
  )
})

t.test('an id of another run of the daemon starts a new stream', async t => {
  const first = await daemonWith(t, ['system'])
  const before = await openEvents(t, first)
  await before.kinds(4)
  await first.stop()
  await t.test('the next run', async t => {
    const second = await daemonWith(t, ['system'], { workspace: first.workspace, data: first.data })
    for (const last of [before.last, 'nonsense']) {
      const after = await openEvents(t, second, '', { 'last-event-id': last })
      const hello = await after.until('hello')
      t.equal(hello.resumed, false)
      t.not(hello.epoch, before.last.split('-')[0])
      t.same(await after.kinds(3), FIRST.slice(1))
    }
  })
})

t.test('a reader that stops reading delays no other, and gets new snapshots when it continues', async t => {
  const daemon = await daemonWith(t, ['system'])
  const quick = await openEvents(t, daemon, '?roster=delta')
  const { hostname, port } = new URL(daemon.url)
  const slow: Socket = createConnection(Number(port), hostname)
  t.teardown(() => slow.destroy())
  slow.write(
    `GET /events?roster=delta HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${daemon.session}\r\n\r\n`,
  )
  let text = ''
  slow.setEncoding('utf8').on('data', part => (text = (text + part).slice(-100_000)))
  while (!text.includes('"attention"')) await once(slow, 'data')
  slow.pause()
  await quick.until('attention')
  const TOTAL = 1_500
  const large = 'x'.repeat(30_000)
  const took: number[] = []
  for (let n = 1; n <= TOTAL; n++) {
    const shown = performance.now()
    daemon.kernel.live.show([frame(n, large)])
    if ((await quick.until('agent')).rev !== n) throw new Error('the fast reader got another frame')
    took.push(performance.now() - shown)
  }
  const [late = 0] = took.toSorted((one, other) => other - one).slice(TOTAL / 100)
  t.ok(tookLess(late, 50), `99 of 100 frames took less than ${late.toFixed(1)} ms`)
  t.notMatch(text, '"resync"')
  slow.resume()
  while (!/"resync".*"hello".*"attention"/s.test(text)) await once(slow, 'data')
  t.match(text, '"reason":"slow"')
  daemon.kernel.live.bump('system', 'members')
  while (!text.includes('runtimeChanged')) await once(slow, 'data')
  t.pass('and goes on')
})

t.test('the stream of a revoked token or session ends with an error within a second', async t => {
  const daemon = await daemonWith(t, ['system'])
  const { token, id } = await daemon.token('read')
  const login = await daemon.auth.mintLogin()
  const session = await daemon.client.call('POST /system/session', { login })
  const streams = [
    await openEvents(t, daemon, '', { 'x-sandbox-control': token }),
    await openEvents(t, { url: daemon.url, session: session.token }),
  ]
  const mine = await openEvents(t, daemon)
  for (const stream of [...streams, mine]) await stream.until('attention')
  const began = performance.now()
  await daemon.client.call('DELETE /system/control/tokens/{id}', { id })
  await daemon.client.call('POST /system/sessions/revoke', { id: session.id })
  for (const stream of streams)
    t.match(await stream.end(), {
      event: 'error',
      data: { status: 401, reason: 'unauthenticated', message: /revoked or has expired/ },
    })
  t.ok(inTime(began, 1000))
  daemon.kernel.live.bump('system', 'members')
  t.ok(await mine.until('runtimeChanged', ({ domains }) => domains.includes('members')), 'the others continue')
})

t.test('a watched run ends with the same error, between two of its frames', async t => {
  const daemon = await daemonWith(t, ['system', 'agent'])
  const { token, id } = await daemon.token('read')
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'c', prompt: 'say one\nask Go on?' })
  const watched = await daemon.fetch('/agent/attach', {
    method: 'POST',
    headers: { 'x-sandbox-control': token, 'content-type': 'application/json' },
    body: JSON.stringify({ conversationId: 'c', run }),
  })
  let text = ''
  const read = (async () => {
    for await (const piece of watched.body!.pipeThrough(new TextDecoderStream())) text += piece
  })()
  while (!text.includes('"question"')) await new Promise(resolve => setTimeout(resolve, 20))
  await daemon.client.call('DELETE /system/control/tokens/{id}', { id })
  await read
  const events = text.trimEnd().split('\n\n')
  t.match(events.at(-1), /^event: error\ndata: \{.*revoked or has expired/)
  t.match(events.at(-2), /"question"/)
  t.equal((await framesOf(daemon.client, 'c', { run }).until(({ kind }) => kind === 'question')).kind, 'question')
  await daemon.client.call('POST /agent/stop', { conversationId: 'c' })
})

t.test('the 17th stream of a credential is refused, until another one ends', async t => {
  const daemon = await daemonWith(t, ['system'])
  const streams = []
  for (let n = 0; n < 16; n++) streams.push(await openEvents(t, daemon, `?clientId=${n}`))
  const refused = await daemon.fetch('/events?clientId=17')
  t.equal(refused.status, 429)
  t.ok(refused.headers.has('retry-after'))
  await streams[0]!.until('presence', ({ users }) => users.length === 16)
  await streams[1]!.close()
  t.match(await streams[0]!.until('presence', ({ users }) => users.length === 15), { users: { length: 15 } })
  t.equal((await openEvents(t, daemon)).response.status, 200)
})

t.test('a daemon that stops reports it on every stream', async t => {
  const daemon = await daemonWith(t, ['system'])
  const streams = [await openEvents(t, daemon), await openEvents(t, daemon, '?clientId=a')]
  for (const stream of streams) await stream.kinds(4)
  const stopped = daemon.stop()
  for (const stream of streams)
    t.match(await stream.end(), { event: 'done', data: { reason: 'stopping', retryMs: 1000 } })
  await stopped
})

t.test('the stream works the same with the group in its own process', async t => {
  const { fakes, put } = fleet()
  put(cardOf('c1'))
  const daemon = await daemonWith(t, ['system'], { fakes, apart: ['system'] })
  const watching = await openEvents(t, daemon, '?roster=delta')
  t.same(await watching.kinds(4), FIRST)
  const here = await openEvents(t, daemon, '?clientId=laptop')
  t.same(await here.kinds(4), FIRST)
  t.match(await watching.next(), { kind: 'presence', users: exactly({ clientId: 'laptop' }) })
  await here.close()
  t.match(await watching.next(), { kind: 'presence', users: { length: 0 } })
  put(cardOf('c1', { status: 'landed' }))
  daemon.kernel.events.emit('agent.landed', {})
  t.match(await watching.next(), { kind: 'agent', agent: { status: 'landed' } })
  const { head } = daemon.kernel.live
  await daemon.client.call('POST /system/control/tokens', { label: 'a', scope: 'read' })
  t.ok(daemon.kernel.live.head > head, 'appended before the answer')
  const stopped = daemon.stop()
  t.match(await watching.end(), { event: 'done' })
  await stopped
})
