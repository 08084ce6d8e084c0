import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { JournalStore } from '../../../../sdk/node/journal/journal-store.js'
import { journalSessions, type SessionEntry } from '../../../../plugins/agent/providers/native/session.js'
import type { ScriptedCall, SeenRequest } from '../../../support/servers/model-server.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { done, nativeRun, NativeWorld } from './native-support.js'

const models = (contextWindow: number) => [{ id: 'm', label: 'M', efforts: [], badges: [], contextWindow }]
const reads = (count: number): ScriptedCall[] =>
  Array.from({ length: count }, (_, n) => ({ name: 'Read', input: { path: `f${n}` }, id: `r${n}` }))

void t.test('at most eight read-only calls run at once, all others one after another and in order', async t => {
  let [now, most] = [0, 0]
  const seen: string[] = []
  const server = await modelServer(t, 'openai', [
    {
      calls: [
        ...reads(20),
        { name: 'Write', input: { path: 'a', content: '1' }, id: 'w1' },
        { name: 'Shell', input: { command: 'x' }, id: 's1' },
        { name: 'Plan', input: { text: 'p' }, id: 'p1' },
        { name: 'Read', input: { path: 'last' }, id: 'l1' },
      ],
    },
    { text: ['ok'] },
  ])
  await nativeRun(server.target(), {
    tool: async ({ name, input }) => {
      most = Math.max(most, ++now)
      seen.push(name)
      if (name !== 'Read') t.equal(now, 1, `${name} runs alone`)
      await delay(name === 'Read' ? 20 * Math.random() : 5)
      now--
      return done(`result of ${JSON.stringify(input)}`)
    },
  })
  t.equal(most, 8)
  t.strictSame(seen.slice(20), ['Write', 'Shell', 'Plan', 'Read'])
  const results = server.body(1).messages?.filter(({ role }) => role === 'tool')
  t.strictSame(
    results?.slice(0, 20).map(({ tool_call_id: id }) => id),
    reads(20).map(({ id }) => id),
    'results are in the order of their calls',
  )
})

void t.test('at 85 % of the window old results are dropped first', async t => {
  const server = await modelServer(t, 'openai', (request, nth) =>
    nth < 11
      ? {
          calls: [{ name: 'Read', input: { path: `${nth}` } }],
          usage: { input: Math.round(request.text.length / 3.5), output: 10 },
        }
      : { text: ['ok'] },
  )
  const world = await nativeRun(server.target({ models: models(12_000) }), { tool: () => done('x'.repeat(3500)) })
  const compacts = world.find('compact')
  t.equal(compacts.length, 1)
  t.ok(compacts[0]!.preTokens! >= 10_200 && compacts[0]!.postTokens! < compacts[0]!.preTokens!)
  t.equal(world.prose, 'ok\n')
  t.match(server.requests.at(-1)!.text, /left out to save room/)
  const numbers = (await world.sessions.read('native-c-1'))!.map(({ n }) => n)
  t.strictSame(
    numbers,
    [...numbers].sort((one, other) => one - other),
  )
})

/** A conversation of text only that is too long for the window. */
const chat = (request: SeenRequest): string => {
  return JSON.stringify(request.body.messages?.at(-1)?.content)
}

void t.test('if no results can be dropped, a summary replaces older messages', async t => {
  const server = await modelServer(t, 'anthropic', request =>
    /Write a summary/.test(chat(request))
      ? { text: ['They asked much.'], usage: { input: 5, output: 6 } }
      : { text: ['y'.repeat(7000)], usage: { input: 2300 * (request.body.messages?.length ?? 0), output: 2000 } },
  )
  const world = await nativeRun(server.target({ models: models(10_000) }), { request: { prompt: 'x'.repeat(7000) } })
  await world.next()
  await world.next({ prompt: 'the newest words' })
  t.equal(world.find('compact').length, 1)
  t.equal(world.find('delta').length, 1, 'the summary is not shown')
  const { messages = [] } = server.body(-1)
  t.match(JSON.stringify(messages[0]), /They asked much\./)
  t.match(chat(server.requests.at(-1)!), /the newest words/)
  t.ok(messages.length < 5)
  t.match(
    world.find('usage'),
    exactly({ inputTokens: 5, outputTokens: 6, numTurns: 1 }, { outputTokens: 2000, numTurns: 1 }),
    'the summary is counted',
  )
})

void t.test('if the server refuses the conversation as too long, a shorter one is sent once', async t => {
  let asked = 0
  const server = await modelServer(t, 'openai', request => {
    if (request.text.length > 60_000)
      return { status: 400, body: '{"error":{"message":"maximum context length exceeded"}}' }
    if (/Write a summary/.test(chat(request))) return { text: ['It read much.'] }
    return asked++ < 12 ? { calls: [{ name: 'Read', input: { path: 'a' } }] } : { text: ['ok'] }
  })
  const world = await nativeRun(server.target({ models: [] }), { tool: () => done('x'.repeat(7000)) })
  t.match(world.find('compact'), exactly({ trigger: 'too-long' }))
  t.equal(world.prose, 'ok\n')
  t.match(server.requests.at(-1)!.text, /It read much\./, 'the summary covers the part that fits')
})

void t.test('another process reads sessions from journals, and ignores an unreadable one', async t => {
  const folder = t.testdir()
  const entry = (n: number): SessionEntry => ({ kind: 'words', n, run: 'r-1', text: `words ${n}` })
  const open = () => {
    const store = new JournalStore(folder)
    return { store, sessions: journalSessions(journalsOf(store)) }
  }
  const { store, sessions } = open()
  t.equal(await sessions.read('s'), undefined)
  await sessions.write('s', [entry(1)])
  await sessions.add('s', [entry(2), entry(3)])
  await store.shutdown()
  const later = open()
  t.strictSame(await later.sessions.read('s'), [entry(1), entry(2), entry(3)])
  await later.store.append('agent/sessions/odd', [{ kind: 'nothing' }])
  t.equal(await later.sessions.read('odd'), undefined)
  await later.sessions.remove('s')
  t.equal(await later.sessions.read('s'), undefined)
  await later.store.shutdown()
})

/** The journals of a group in a store. */
const journalsOf = (store: JournalStore) => ({
  append: (name: string, entries: readonly unknown[]) => store.append(`agent/${name}`, entries),
  read: <T>(name: string) => store.read<T>(`agent/${name}`, 0),
  rewrite: (name: string, entries: readonly unknown[]) => store.rewrite(`agent/${name}`, entries),
  remove: (name: string) => store.remove(`agent/${name}`),
})

void t.test('a missing session is rebuilt from the record', async t => {
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const world = new NativeWorld({
    target: server.target(),
    request: { sessionId: 'native-c-1', history: [{ index: 0, role: 'user', text: 'long ago' }] },
  })
  await world.run()
  t.match(server.requests[0]!.text, /long ago/)
  t.equal(world.prose, 'ok\n')
})
