import { join } from 'node:path'
import t from 'tap'
import { Caps } from '../../../plugins/activity/caps.js'
import { listed } from '../../../plugins/activity/listing.js'
import { Segments } from '../../../plugins/activity/segments.js'
import { BEGINNING, ChainCheck } from '../../../sdk/node/record/chain.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { record, stored, storedLines } from './support.js'
import { openEvents } from '../system/stream/events-support.js'

t.test('without a credential, and with a token of another scope, nothing is listed', async t => {
  const daemon = await daemonWith(t, ['activity'])
  t.equal((await fetch(`${daemon.url}/activity`)).status, 401)
  t.match(await refusalOf(async () => (await daemon.token('editor')).client.call('GET /activity')), { status: 403 })
  for (const scope of ['read', 'drive', 'land'] as const)
    t.same(await (await daemon.token(scope)).client.call('GET /activity'), { events: [] }, scope)
})

t.test('what does not fit is refused by its path', async t => {
  const daemon = await daemonWith(t, ['activity'])
  for (const query of [
    'limit=0',
    'limit=x',
    'direction=up',
    'outcome=maybe',
    'from=-1',
    'before=x',
    `query=${'x'.repeat(201)}`,
  ]) {
    const response = await daemon.fetch(`/activity?${query}`)
    t.equal(response.status, 400, query)
    t.match(await response.json(), { errors: exactly({ path: query.split('=')[0] }) })
  }
})

t.test('an entry is listed with its actor, and newest first', async t => {
  const daemon = await daemonWith(t, ['activity'])
  await record(daemon, { type: 'test.first', direction: 'system' }, { actor: 'sandbox:test' })
  await record(
    daemon,
    { type: 'test.second', direction: 'out', conversationId: 'c', outcome: 'ok', extra: { a: 1 } },
    { kind: 'session', actor: 'ada@example.org' },
  )
  await record(
    daemon,
    { type: 'other.third', direction: 'in', actor: 'token:ci' },
    { kind: 'session', actor: 'ada@example.org' },
  )
  const { events, next } = await daemon.client.call('GET /activity')
  t.equal(next, undefined)
  t.match(
    events,
    exactly(
      { type: 'other.third', actor: 'token:ci', seq: 3, audience: 'viewer' },
      { type: 'test.second', actor: 'ada@example.org', conversationId: 'c', outcome: 'ok', extra: { a: 1 }, seq: 2 },
      { type: 'test.first', actor: 'sandbox:test', seq: 1, prev: BEGINNING },
    ),
  )
  const types = async (query: object) =>
    (await daemon.client.call('GET /activity', query)).events.map(({ type }) => type)
  t.same(await types({ type: 'test.*' }), ['test.second', 'test.first'])
  t.same(await types({ type: 'test.first' }), ['test.first'])
  t.same(await types({ actor: 'token:ci' }), ['other.third'])
  t.same(await types({ conversationId: 'c' }), ['test.second'])
  t.same(await types({ direction: 'in' }), ['other.third'])
  t.same(await types({ outcome: 'error' }), [])
  t.same(await types({ query: 'ADA@' }), ['test.second'])
  t.same(await types({ from: events[1]!.at }), ['other.third', 'test.second'])
  t.same(await types({ to: events[1]!.at }), ['test.second', 'test.first'])
})

t.test('pages repeat and lose nothing while entries are written', async t => {
  const daemon = await daemonWith(t, ['activity'])
  await Promise.all(
    Array.from({ length: 25 }, (_, n) => record(daemon, { type: 'test.row', direction: 'system', extra: { n } })),
  )
  const seen: number[] = []
  let before: number | undefined
  do {
    const page = await daemon.client.call('GET /activity', { limit: 10, ...(before !== undefined && { before }) })
    seen.push(...page.events.map(({ extra }) => extra!.n as number))
    before = page.next
    await record(daemon, { type: 'test.late', direction: 'system', extra: { n: -1 } })
  } while (before !== undefined)
  t.same(
    seen,
    Array.from({ length: 25 }, (_, n) => 24 - n),
  )
})

t.test('5,000 entries of 50 writers at once have no gap, times that only grow, and a chain that holds', async t => {
  const daemon = await daemonWith(t, ['activity'])
  const told = await Promise.all(
    Array.from({ length: 50 }, async (_, writer) => {
      const seqs: number[] = []
      for (let n = 0; n < 100; n++)
        seqs.push((await record(daemon, { type: 'test.written', direction: 'system', extra: { writer, n } })).seq)
      return seqs
    }),
  )
  t.equal(new Set(told.flat()).size, 5000)
  t.ok(
    told.every(seqs => seqs.every((seq, at) => at === 0 || seq > seqs[at - 1]!)),
    'each writer was told in its order',
  )
  const entries = stored(daemon)
  t.same(
    entries.map(({ seq }) => seq),
    Array.from({ length: 5000 }, (_, at) => at + 1),
  )
  t.ok(entries.every(({ at }, index) => index === 0 || at > entries[index - 1]!.at))
  const check = new ChainCheck({ seq: 0, hash: BEGINNING })
  for (const line of storedLines(daemon)) check.read(line)
  t.equal(check.brokenAt, undefined)
  t.equal(check.head?.seq, 5000)
})

t.test('a restart goes on with the chain where it ended', async t => {
  const first = await daemonWith(t, ['activity'])
  await record(first, { type: 'test.before', direction: 'system' })
  await first.stop()
  const second = await daemonWith(t, ['activity'], { workspace: first.workspace, data: first.data })
  await record(second, { type: 'test.after', direction: 'system' })
  const [before, after] = stored(second)
  t.match([before, after], exactly({ seq: 1 }, { seq: 2, prev: before!.hash }))
})

t.test('neither a bearer header nor a key in the query of an outbound call is in its entry', async t => {
  const daemon = await daemonWith(t, ['activity'])
  await record(daemon, {
    type: 'http.request',
    direction: 'out',
    method: 'GET',
    endpoint: 'https://ada:pw4711@api.example.org/v1/things?key=k-4711&x=1#t-4711',
    content: 'sent authorization: Bearer b-4711-b-4711 and https://x.example/?ticket=t-4711&n=1',
    extra: {
      headers: { Authorization: 'Bearer b-4711-b-4711', accept: '*/*' },
      url: 'wss://h/?a=1&token=t-4711',
      password: 'p-4711',
    },
  })
  const [line] = storedLines(daemon)
  t.notMatch(line, /4711/)
  t.match(JSON.parse(line!), {
    endpoint: 'https://[redacted]@api.example.org/v1/things',
    extra: { headers: { accept: '*/*' } },
  })
})

t.test('viewers and tokens see what viewers may see, and tokens see no account', async t => {
  const daemon = await daemonWith(t, ['activity'])
  await record(daemon, { type: 'session.opened', direction: 'system', audience: 'maintainer' })
  await record(daemon, { type: 'message.sent', direction: 'out', account: 'ada-mail' })
  const { client } = await daemon.token('read')
  t.match(
    (await client.call('GET /activity')).events.map(({ type, account }) => ({ type, account })),
    exactly({ type: 'message.sent', account: undefined }),
  )
  t.same((await client.call('GET /activity', { type: 'session.*' })).events, [])
  t.same(
    (await daemon.client.call('GET /activity')).events.map(({ type }) => type),
    ['message.sent', 'session.opened'],
  )
})

t.test('landing and discarding are written down, with who did it and what the conversation was called', async t => {
  const daemon = await daemonWith(t, [])
  for (const id of ['c', 'd']) await runTurn(daemon.client, id, `write ${id}.txt\n| text\nsay done`, { isolated: true })
  await daemon.client.call('POST /agents/{id}/rename', { id: 'c', title: 'A \u202enote\nof mine' })
  const { client } = await daemon.token('land', 'ci')
  await client.call('POST /agents/{id}/land', { id: 'c' })
  await daemon.client.call('POST /agents/{id}/discard', { id: 'd' })
  const { events } = await daemon.client.call('GET /activity', { type: 'agent.*' })
  t.match(
    events,
    exactly(
      { type: 'agent.discarded', actor: 'owner@sandbox.local', conversationId: 'd', outcome: 'ok', audience: 'viewer' },
      { type: 'agent.landed', actor: 'token:ci', conversationId: 'c', title: 'A note of mine' },
    ),
  )
})

t.test(
  'whoever is limited to areas sees entries of conversations inside them only, and a viewer none for maintainers',
  async t => {
    const daemon = await daemonWith(t, ['activity'])
    const asked: string[] = []
    for (const conversationId of ['inside', 'outside', 'inside'])
      await record(daemon, { type: 'agent.landed', direction: 'system', conversationId })
    await record(daemon, { type: 'settings.changed', direction: 'system' })
    await record(daemon, {
      type: 'member.granted',
      direction: 'system',
      audience: 'maintainer',
      conversationId: 'inside',
    })
    const days = new Segments(join(daemon.data, 'activity'), 'days')
    const seen = async (role: 'viewer' | 'collaborator' | 'maintainer', areas?: string[]) => {
      const options = { segments: [days], seesConversation: async (id: string) => (asked.push(id), id === 'inside') }
      return (await listed({}, { kind: 'session', actor: 'x', role, ...(areas && { areas }) }, options)).events.map(
        ({ seq }) => seq,
      )
    }
    t.same(await seen('collaborator', ['docs']), [3, 1])
    t.same(asked, ['inside', 'outside'], 'each conversation is asked for once')
    t.same(await seen('viewer'), [4, 3, 2, 1])
    t.same(await seen('maintainer'), [5, 4, 3, 2, 1])
    await days.close()
  },
)

t.test('looking takes two seconds at most, and the next page goes on from there', async t => {
  const daemon = await daemonWith(t, ['activity'])
  for (let n = 0; n < 3; n++) await record(daemon, { type: 'test.row', direction: 'system', extra: { n } })
  const days = new Segments(join(daemon.data, 'activity'), 'days')
  let now = 0
  const options = { segments: [days], seesConversation: async () => true, now: () => (now += 3000) }
  const owner = { kind: 'session', actor: 'x', role: 'owner' } as const
  const first = await listed({ type: 'none.such' }, owner, options)
  t.match(first, { events: { length: 0 }, next: stored(daemon)[0]!.at })
  t.same(await listed({ type: 'none.such', before: first.next! }, owner, options), { events: [] })
  await days.close()
})

t.test('of what one stranger causes 5,000 entries a day are kept, and the rest is one', t => {
  const clock = { now: Date.UTC(2026, 0, 1) }
  const caps = new Caps(() => clock.now, 3)
  const facts = { type: 'message.received', direction: 'in', audience: 'viewer', actor: 'stranger' } as const
  t.same(caps.due('daily'), [])
  t.same(
    Array.from({ length: 5 }, () => caps.admits('stranger', facts)),
    [true, true, true, false, false],
  )
  t.equal(caps.admits('extension:x', facts), true, 'each source has its own')
  for (let n = 0; n < 400; n++) caps.admits(`address-${n}`, facts)
  t.equal(caps.admits('address-399', facts), false, 'more sources than are counted share one')
  clock.now += 24 * 60 * 60_000
  const due = caps.due('daily')
  t.match(due[0], { type: 'message.received', actor: 'stranger', extra: { source: 'stranger', further: 2 } })
  t.equal(due.length, 2)
  t.equal(caps.admits('stranger', facts), true, 'and begins anew the next day')
  t.end()
})

t.test('watchers are notified of new entries, once per burst', async t => {
  const daemon = await daemonWith(t, ['activity', 'system'])
  const events = await openEvents(t, daemon)
  await events.until('hello')
  for (let n = 0; n < 20; n++) await record(daemon, { type: 'test.row', direction: 'system' })
  const changed = await events.until('runtimeChanged', ({ domains }) => domains.includes('activity'))
  t.equal(changed.versions.activity, 1)
})

t.test('turns, answers and settings are written down once each, with who asked for them', async t => {
  const daemon = await daemonWith(t, [])
  const { client } = await daemon.token('drive', 'ci')
  const said = { conversationId: 'c', messageId: 'm-1', isolated: true, prompt: 'ask Go on?\n| yes\nwait 60000' }
  const { run } = await client.call('POST /agent', said)
  await client.call('POST /agent', said)
  const { requestId } = await framesOf(client, 'c').until(({ kind }) => kind === 'question')
  await daemon.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
  await client.call('POST /agent/stop', { conversationId: 'c' })
  await daemon.client.call('POST /settings/patch', { set: { agentRetentionDays: 5 } })
  let { events } = await daemon.client.call('GET /activity')
  while (!events.some(({ type }) => type === 'settings.changed'))
    ({ events } = await daemon.client.call('GET /activity'))
  const rows = events
    .toReversed()
    .filter(({ type }) => !/^(session|token|owner)\./.test(type))
    .map(({ type, actor, conversationId, turnId, extra }) => ({ type, actor, conversationId, turnId, extra }))
  t.match(
    rows,
    exactly(
      { type: 'turn.started', actor: 'token:ci', conversationId: 'c', turnId: run, extra: { messageId: 'm-1' } },
      { type: 'card.answered', actor: 'owner@sandbox.local', turnId: run, extra: { kind: 'question', requestId } },
      { type: 'turn.stopped', actor: 'token:ci', conversationId: 'c' },
      { type: 'settings.changed', actor: 'owner@sandbox.local', extra: { keys: exactly('agentRetentionDays') } },
    ),
  )
  t.equal(rows.length, 4)
})

t.test('an export comes whole from a group in a process of its own', async t => {
  const daemon = await daemonWith(t, ['activity', 'logs'], { apart: ['activity', 'logs'] })
  await Promise.all(
    Array.from({ length: 2000 }, (_, n) =>
      record(daemon, { type: 'test.row', direction: 'system', content: 'x'.repeat(500), extra: { n } }),
    ),
  )
  const lines = (await (await daemon.fetch('/activity/export')).text()).trimEnd().split('\n')
  t.match(JSON.parse(lines.at(-1)!), { kind: 'end', entries: 2001 })
  t.equal(lines.length, 2002)
  t.same(await daemon.client.call('GET /logs'), { files: [] })
})
