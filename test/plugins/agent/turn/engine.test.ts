import t from 'tap'
import type { ProviderAdapter, ToolResult, TurnRequest } from '../../../../plugins/agent/providers/adapter.js'
import type { Toolbox } from '../../../../plugins/agent/tools/toolbox.js'
import { refuse, type Journals } from '../../../../sdk/index.js'
import { journalsIn } from '../../../support/journals.js'
import { asking, engineOn } from './engine-support.js'
import { exactly } from '../../../support/lists.js'

t.test('an adapter that ignores a stop is abandoned, and the conversation becomes free', async t => {
  const { engine, send, frames } = engineOn(t, async function* () {
    yield { kind: 'tool_call', id: 'c1', name: 'Endless', category: 'execute', status: 'in_progress' }
    await new Promise(() => {})
  })
  const { run } = await send({})
  await engine.live('c')!.log.opened
  await engine.stop('c')
  t.same((await frames(run)).slice(-2), [
    { kind: 'tool_call_update', id: 'c1', status: 'failed', content: [{ type: 'text', text: 'stopped' }] },
    { kind: 'done', reason: 'stopped' },
  ])
  t.match(await send({}), { delivery: 'started' })
  await engine.stop('c')
})

for (const [moment, isAt] of Object.entries({
  'is written down': (name: string) => name.startsWith('transcripts'),
  'leaves its conversation': (name: string, entries: readonly unknown[]) =>
    JSON.stringify(entries).includes('"line":"ended"'),
})) {
  t.test(
    `a stop that comes as a completed turn ${moment} leaves the conversation free and its queue paused`,
    async t => {
      const whole = journalsIn(t)
      let stopped: Promise<unknown> | undefined
      const journal: Journals = {
        ...whole,
        append: (name, entries, options) => {
          if (isAt(name, entries)) stopped ??= engine.stop('c')
          return whole.append(name, entries, options)
        },
      }
      const gate = Promise.withResolvers<void>()
      const { engine, send, frames, queue } = engineOn(
        t,
        async function* () {
          await gate.promise
          yield { kind: 'delta', text: 'said' }
        },
        { words: false, journal },
      )
      const { run } = await send({})
      await send({ prompt: 'later' })
      gate.resolve()
      await engine.live('c')?.ended
      await stopped
      t.equal(engine.live('c'), undefined)
      t.match((await frames(run)).at(-1), { kind: 'done', reason: 'completed' })
      t.match([queue.waiting('c').length, queue.paused('c')], exactly(1, true))
    },
  )
}

t.test('if an adapter throws, the turn fails with a fixed message, and the log has the details', async t => {
  const { engine, send, frames, logged, conversations } = engineOn(t, async function* () {
    yield { kind: 'delta', text: 'so far' }
    throw new Error('secret detail')
  })
  const { run } = await send({})
  await engine.live('c')?.ended
  const seen = await frames(run)
  t.match(
    seen,
    exactly({ kind: 'delta' }, { kind: 'error', message: /unexpectedly/ }, { kind: 'done', reason: 'failed' }),
  )
  t.notMatch(JSON.stringify(seen), 'secret detail')
  t.same(logged, ['a turn failed because of a bug'])
  t.match(conversations.get('c').failure, /unexpectedly/)
})

t.test('calls that an adapter leaves open are closed before done, and its own done is ignored', async t => {
  const { engine, send, frames, cards, emitted } = engineOn(t, async function* (_, io) {
    yield { kind: 'done', reason: 'failed' }
    yield { kind: 'tool_call', id: 'c1', name: 'Left', category: 'other', status: 'pending' }
    void io.raise({ kind: 'plan', text: 'do it' })
    while (!engine.live('c')?.live.cards.length) await new Promise(resolve => setImmediate(resolve))
  })
  const { run } = await send({})
  await engine.live('c')?.ended
  const seen = await frames(run)
  t.equal(seen.filter(({ kind }) => kind === 'done').length, 1)
  t.match(seen.at(-1), { kind: 'done', reason: 'completed' })
  const plan = seen.find(frame => frame.kind === 'plan')!
  t.same(
    seen.filter(({ kind }) => kind === 'resolved'),
    [{ kind: 'resolved', requestId: plan.requestId }],
  )
  t.match(
    seen.find(({ kind }) => kind === 'tool_call_update'),
    { id: 'c1', status: 'failed' },
  )
  await t.rejects(
    cards.reply({ kind: 'plan', requestId: plan.requestId, approve: true }, { by: 'ada@example.org', lands: true }),
    /ended before/,
  )
  t.same(emitted, ['card.raised', 'card.resolved', 'turn.settled'])
})

t.test('messages that a provider cannot take during a turn stay in the queue, and start after it', async t => {
  const gate = Promise.withResolvers<void>()
  const { engine, send, frames, queue } = engineOn(
    t,
    async function* ({ words }) {
      await gate.promise
      yield { kind: 'delta', text: words }
    },
    { words: false },
  )
  await send({})
  const second = await send({ prompt: 'later' })
  t.equal(second.delivery, 'queued')
  t.match(queue.waiting('c'), exactly({ why: 'no-mid-turn-words' }))
  gate.resolve()
  await engine.live('c')?.ended
  await engine.live('c')?.ended
  t.match(
    (await frames(second.run)).find(({ kind }) => kind === 'delta'),
    { text: 'later' },
  )
})

t.test('a message that cannot be stored is refused, and the conversation is unchanged', async t => {
  const whole = journalsIn(t)
  let full = true
  const append: Journals['append'] = (name, ...rest) =>
    full && name === 'queue'
      ? Promise.reject(Object.assign(new Error('no space'), { code: 'ENOSPC' }))
      : whole.append(name, ...rest)
  const { send, conversations, engine } = engineOn(t, async function* () {}, { journal: { ...whole, append } })
  await t.rejects(send({ messageId: 'm-1' }), /disk of the sandbox is full/)
  t.equal(conversations.find('c'), undefined)
  t.equal(engine.live('c'), undefined)
  full = false
  t.match(await send({ messageId: 'm-1' }), { delivery: 'started' })
  await engine.live('c')?.ended
})

t.test('a turn whose frames cannot be written is stopped, and ends as failed once they can', async t => {
  const whole = journalsIn(t)
  let full = false
  const append: Journals['append'] = (name, ...rest) =>
    full && name.startsWith('frames/') ? Promise.reject(new Error('no space')) : whole.append(name, ...rest)
  const { send, frames, engine } = engineOn(
    t,
    async function* (_, io) {
      yield { kind: 'thinking', text: 'written' }
      await new Promise(resolve => setImmediate(resolve))
      full = true
      yield { kind: 'thinking', text: 'late' }
      await new Promise(resolve => io.signal.addEventListener('abort', resolve))
      full = false
    },
    { journal: { ...whole, append } },
  )
  const { run } = await send({})
  await engine.live('c')?.ended
  t.match(
    (await frames(run)).map(({ kind }) => kind),
    exactly('thinking', 'thinking', 'error', 'done'),
  )
  t.match((await frames(run)).at(-1), { reason: 'failed' })
})

t.test('a turn whose tree cannot be prepared ends as failed with the reason, and frees its conversation', async t => {
  let missing = true
  const { engine, send, frames, conversations } = engineOn(
    t,
    async function* () {
      yield { kind: 'delta', text: 'worked' }
    },
    {
      prepare: async () =>
        missing
          ? refuse('missing-program', 'git is missing: install it')
          : { root: '/', cwd: '/', preamble: '', attachments: [], mentions: [] },
    },
  )
  const { run } = await send({})
  await engine.live('c')?.ended
  t.match(
    await frames(run),
    exactly({ kind: 'error', message: 'git is missing: install it' }, { kind: 'done', reason: 'failed' }),
  )
  t.match(conversations.get('c'), { lastEnd: 'failed', failure: 'git is missing: install it' })
  missing = false
  const { run: next, delivery } = await send({})
  t.equal(delivery, 'started')
  await engine.live('c')?.ended
  t.match((await frames(next)).at(-1), { kind: 'done', reason: 'completed' })
})

t.test('a turn whose end cannot be written is abandoned: its conversation has the reason, and is free', async t => {
  const { setTimeout: later } = globalThis
  t.intercept(globalThis, 'setTimeout', {
    value: (work: () => void, ms: number, ...more: []) => later(work, ms >= 500 && ms <= 5_000 ? 1 : ms, ...more),
  })
  const whole = journalsIn(t)
  let broken = true
  let tries = 0
  const append: Journals['append'] = (name, ...rest) => {
    if (!broken || !name.startsWith('transcripts/')) return whole.append(name, ...rest)
    tries += 1
    return Promise.reject(new Error('the disk is broken'))
  }
  const { engine, send, frames, conversations, journal } = engineOn(
    t,
    async function* () {
      yield { kind: 'delta', text: 'worked' }
    },
    { journal: { ...whole, append } },
  )
  const { run } = await send({})
  await engine.live('c')?.ended
  t.equal(tries, 4)
  t.equal(engine.live('c'), undefined)
  t.match(conversations.get('c'), { lastEnd: 'failed', failure: 'the end of the turn could not be written' })
  t.same(await journal.list('runs/'), [`runs/${run}`], 'the next start ends it')
  broken = false
  const { run: next, delivery } = await send({})
  t.equal(delivery, 'started')
  await engine.live('c')?.ended
  t.match((await frames(next)).at(-1), { kind: 'done', reason: 'completed' })
})

t.test('a harness the provider does not have is refused, and leaves no trace', async t => {
  const { send, conversations } = engineOn(t, async function* () {})
  await t.rejects(send({ harness: 'vendor-code' }), {
    reason: 'unprocessable',
    message: /provider test has no harness vendor-code: expected native/,
  })
  t.equal(conversations.find('c'), undefined)
})

/** Tools made of one function. */
const shellOf = (run: (signal: AbortSignal) => Promise<ToolResult>): Toolbox => ({
  face: () => ({ category: 'execute' }),
  run: (_name, _input, signal) => run(signal),
  stamp: async () => undefined,
  offered: async () => [],
  walled: () => Promise.reject(new Error('no programs here')),
  shared: async () => undefined,
})

/** Resolves when a signal is aborted. */
const aborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

t.test('a call that delays a switch is aborted after a time, and later frames of its adapter are ignored', async t => {
  const begun = Promise.withResolvers<void>()
  const requests: TurnRequest[] = []
  const { engine, send, move, frames } = engineOn(
    t,
    async function* (request, io) {
      requests.push(request)
      if (request.resume) return yield { kind: 'delta', text: `on as ${request.model}` }
      await io.state({ at: 1 })
      const result = io.tool('Shell', {}, 'c1').then(() => 'heard')
      await aborted(io.signal)
      void io.state({ at: 2 })
      yield { kind: 'delta', text: await Promise.race([result, Promise.resolve('nothing')]) }
    },
    {
      holdMs: 30,
      toolbox: shellOf(async signal => {
        begun.resolve()
        await aborted(signal)
        return { ok: false, text: 'stopped', content: [] }
      }),
    },
  )
  const { run } = await send({})
  await begun.promise
  t.same(await move({ effort: 'high' }), { applied: 'now', run, kept: 'session' })
  await engine.live('c')?.ended
  t.match(
    await frames(run),
    exactly(
      { kind: 'tool_call', id: 'c1' },
      { kind: 'tool_call_update', status: 'in_progress' },
      {
        kind: 'tool_call_update',
        id: 'c1',
        status: 'failed',
        content: exactly({ text: /cut short: .* model one of test/ }),
      },
      { kind: 'switched', provider: 'test', model: 'one', kept: 'session' },
      { kind: 'delta', text: 'on as one' },
      { kind: 'done', reason: 'completed' },
    ),
  )
  t.equal((await frames(run)).length, 6)
  t.match(requests[1], { effort: 'high', state: { at: 1 }, resume: { reason: 'switched' }, since: { length: 4 } })
})

t.test('an adapter that ignores the abort is abandoned with its call', async t => {
  const begun = Promise.withResolvers<void>()
  const { engine, send, move, frames } = engineOn(
    t,
    async function* ({ resume }, io) {
      if (resume) return yield { kind: 'delta', text: 'on' }
      await io.tool('Shell', {}, 'c1')
    },
    { holdMs: 10, patienceMs: 50, toolbox: shellOf(() => (begun.resolve(), new Promise(() => {}))) },
  )
  const { run } = await send({})
  await begun.promise
  await move({ fast: true })
  await engine.live('c')?.ended
  t.match(
    (await frames(run)).slice(2),
    exactly(
      { kind: 'tool_call_update', status: 'failed' },
      { kind: 'switched' },
      { kind: 'delta' },
      { kind: 'done', reason: 'completed' },
    ),
  )
})

t.test('an open card of a switching turn has no time limit', async t => {
  const { engine, send, move, frames, cards } = engineOn(
    t,
    async function* ({ resume }, io) {
      if (resume) return
      await io.raise({ kind: 'plan', text: 'do it' })
      await io.state('answered')
      if (!(await io.gap())) yield { kind: 'delta', text: 'not moved' }
    },
    { holdMs: 5 },
  )
  const { run } = await send({})
  await engine.live('c')!.log.opened
  const [plan] = await frames(run)
  await move({ fast: true })
  await new Promise(resolve => setTimeout(resolve, 30))
  t.equal(engine.live('c')?.state, 'parked')
  await cards.reply(
    { kind: 'plan', requestId: (plan as { requestId: string }).requestId, approve: true },
    { by: 'ada@example.org', lands: true },
  )
  await engine.live('c')?.ended
  t.match(
    (await frames(run)).map(({ kind }) => kind),
    exactly('plan', 'resolved', 'switched', 'done'),
  )
})

t.test('another provider continues from the record and all frames of the run, once no call is open', async t => {
  const open = Promise.withResolvers<void>()
  const requests: TurnRequest[] = []
  const other: ProviderAdapter = {
    id: 'other',
    label: 'Other',
    harnesses: ['vendor-code'],
    ownHarness: 'vendor-code',
    models: ['two'],
    commands: [],
    abilities: () => ({
      words: false,
      permissions: 'plan',
      questions: false,
      commands: false,
      terminals: false,
      state: false,
      offline: true,
    }),
    run: async function* (request) {
      requests.push(request)
      yield { kind: 'delta', text: 'taken over' }
    },
  }
  const { engine, send, move, frames, conversations } = engineOn(
    t,
    async function* (_, io) {
      yield { kind: 'session', sessionId: 'mine' }
      yield { kind: 'delta', text: 'half a sen' }
      yield { kind: 'tool_call', id: 'c1', name: 'Own', category: 'other', status: 'in_progress' }
      await open.promise
      yield { kind: 'tool_call_update', id: 'c1', status: 'completed' }
      yield { kind: 'delta', text: 'and then' }
      await aborted(io.signal)
      yield { kind: 'delta', text: 'too late' }
    },
    { state: false, others: [other] },
  )
  const { run } = await send({})
  while ((await frames(run)).at(-1)?.kind !== 'tool_call') await new Promise(resolve => setImmediate(resolve))
  t.same(await move({ agent: 'other' }), { applied: 'now', run, kept: 'record' })
  t.notOk(requests.length, 'a call is open')
  open.resolve()
  await engine.live('c')?.ended
  t.match(
    (await frames(run)).map(({ kind }) => kind),
    exactly('session', 'delta', 'tool_call', 'tool_call_update', 'switched', 'delta', 'done'),
  )
  t.match(
    requests,
    exactly({
      model: 'two',
      harness: 'vendor-code',
      resume: { reason: 'switched' },
      state: undefined,
      since: { length: 5 },
    }),
  )
  t.match(conversations.get('c'), { provider: 'other', model: 'two', session: undefined })
})

t.test('a question that the tool Ask asks twice is answered twice', async t => {
  const told: string[] = []
  const questions = [{ question: 'Go on?', options: [] }]
  const { send, cards, engine } = engineOn(
    t,
    async function* (_, io) {
      for (const id of ['c1', 'c2']) told.push((await io.tool('Ask', { questions }, id)).text)
    },
    { toolbox: asking },
  )
  await send({})
  for (const answer of ['yes', 'no']) {
    let card
    while (!(card = engine.live('c')?.live.cards[0])) await new Promise(resolve => setImmediate(resolve))
    await cards.reply(
      { kind: 'question', requestId: card.requestId, answers: { 'Go on?': [answer] } },
      { by: 'ada', lands: true },
    )
  }
  await engine.live('c')?.ended
  t.same(told, ['Go on?: yes', 'Go on?: no'])
})

t.test('the tools Ask and Plan open cards, and approval of a plan ends plan mode', async t => {
  const told: string[] = []
  const questions = [
    { question: 'Which?', options: [{ label: 'a' }, { label: 'b' }] },
    { question: 'How many?', options: [] },
  ]
  const { send, frames, cards, engine } = engineOn(
    t,
    async function* (_, io) {
      told.push(
        (await io.tool('Ask', { questions }, 'c1')).text,
        (await io.tool('Plan', { text: 'all of it' }, 'c2')).text,
      )
    },
    { toolbox: asking },
  )
  const { run } = await send({ permissionMode: 'plan' })
  const up = async () => {
    for (;;) {
      const card = engine.live('c')?.live.cards[0]
      if (card) return card.requestId
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  await cards.reply(
    { kind: 'question', requestId: await up(), answers: { 'Which?': ['a', 'b'] } },
    { by: 'ada', lands: true },
  )
  await cards.reply(
    { kind: 'plan', requestId: await up(), approve: true, feedback: 'gladly' },
    { by: 'ada', lands: true },
  )
  await engine.live('c')?.ended
  t.same(told, ['Which?: a, b\nHow many?: (skipped)', 'the plan was approved: gladly'])
  t.same(
    (await frames(run)).map(({ kind }) => kind),
    [
      'tool_call',
      'tool_call_update',
      'question',
      'resolved',
      'tool_call_update',
      'tool_call',
      'tool_call_update',
      'plan',
      'resolved',
      'mode',
      'tool_call_update',
      'done',
    ],
  )
  t.match(
    (await frames(run)).find(({ kind }) => kind === 'mode'),
    { mode: 'bypassPermissions' },
  )
})
