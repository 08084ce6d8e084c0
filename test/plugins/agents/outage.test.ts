import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import type { ErrorFrame, Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { inner, refusal, state } from '../agent/support.js'

const GROUPS = ['system', 'agent', 'agents', 'settings']
const CALLS = ['auto-land', 'resume-after-outage'] as const
const WORK = 'append log.txt\n| once\noutage\nappend log.txt\n| after\nsay $conversation is done'

const errorOf = (frames: readonly Frame[]): ErrorFrame | undefined => frames.find(frame => frame.kind === 'error')
const statusOf = async (client: Client, id: string): Promise<string> =>
  (await client.call('GET /agents/{id}', { id })).status

/** A daemon whose turns are resumed after an outage. */
const resuming = async (t: Test): Promise<Support> => {
  const daemon = await daemonWith(t, GROUPS)
  await daemon.client.call('POST /settings/patch', { set: { resumeAfterOutage: true } })
  return daemon
}

/**
 * Runs another turn twice, so that the resumes which the first one triggers have begun when the second one has ended.
 */
const answered = async (client: Client): Promise<void> => {
  for (const words of ['say here', 'say here again']) await runTurn(client, 'other', words)
}

/** Waits for a newer run of a conversation than this one, and returns its frames. */
const nextRun = async ({ client, kernel }: Support, id: string, run: string): Promise<Frame[]> => {
  const began = Promise.withResolvers<void>()
  kernel.events.on('agent.changed', `test-${run}`, async () => {
    const { run: newest } = await client.call('GET /agents/{id}', { id })
    if (newest !== run) began.resolve()
  })
  await runTurn(client, 'other', 'say here')
  await began.promise
  return (await framesOf(client, id).all()).map(({ event }) => event)
}

t.test('without a credential a choice is refused', async t => {
  const { url } = await daemonWith(t, GROUPS)
  for (const call of CALLS) t.equal((await fetch(`${url}/agents/x/${call}`, { method: 'POST' })).status, 401, call)
})

t.test('a token can make the choices of its scope', async t => {
  const { client, token } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c', 'say x', { isolated: true })
  for (const scope of ['editor', 'read', 'drive'] as const) {
    const tokens = (await token(scope)).client
    t.match(
      await refusal(tokens.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })),
      { status: 403 },
      scope,
    )
    if (scope !== 'drive')
      t.match(
        await refusal(tokens.call('POST /agents/{id}/resume-after-outage', { id: 'c', resumeAfterOutage: true })),
        { status: 403 },
        scope,
      )
  }
  t.same((await client.call('GET /agents/{id}', { id: 'c' })).autoLand, undefined)
  t.match(await (await token('land')).client.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true }), {
    autoLand: true,
  })
  t.match(
    await (
      await token('drive', 'other')
    ).client.call('POST /agents/{id}/resume-after-outage', { id: 'c', resumeAfterOutage: false }),
    { resumeAfterOutage: false },
  )
})

t.test('bad input, unknown conversations and the shared tree are refused, and nothing changes', async t => {
  const { client, fetch } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c', 'say x', { isolated: true })
  await runTurn(client, 'shared', 'say x')
  const status = async (path: string, body: unknown) =>
    (await fetch(`/agents/${path}`, { method: 'POST', body: JSON.stringify(body) })).status
  for (const [call, key] of [
    ['auto-land', 'autoLand'],
    ['resume-after-outage', 'resumeAfterOutage'],
  ] as const) {
    for (const value of ['yes', 1, [], {}, undefined])
      t.equal(await status(`c/${call}`, { [key]: value }), 400, `${call} ${JSON.stringify(value)}`)
    for (const value of [true, false, null]) t.equal(await status(`none/${call}`, { [key]: value }), 404)
  }
  for (const autoLand of [true, false, null]) t.equal(await status('shared/auto-land', { autoLand }), 422)
  const { autoLand, resumeAfterOutage } = await client.call('GET /agents/{id}', { id: 'c' })
  t.same([autoLand, resumeAfterOutage], [undefined, undefined])
})

// Auto-landing -------------------------------------------------------------------------------------------------------

t.test('a conversation with auto-landing lands the running turn, until it follows the rules again', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  const there = (name: string) => existsSync(join(workspace, name))
  await client.call('POST /agent', {
    conversationId: 'c',
    isolated: true,
    prompt: 'write a.txt\n| a\nwait words 60000',
  })
  const watched = framesOf(client, 'c')
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
  t.match(await client.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true }), {
    status: 'running',
    autoLand: true,
  })
  t.match(
    await client.call('POST /agent', { conversationId: 'c', prompt: 'say no', autoLand: false }),
    { delivery: 'queued' },
    'a message that must not land is not steered into it',
  )
  await client.call('POST /agent/steer', { conversationId: 'c', text: 'on' })
  t.same((await watched.all()).map(({ event }) => event).slice(-2), [
    { kind: 'landed', landed: true },
    { kind: 'done', reason: 'completed' },
  ])
  t.ok(there('a.txt'))
  await framesOf(client, 'c').all()
  await runTurn(client, 'c', 'write b.txt\n| b', { autoLand: false })
  t.notOk(there('b.txt'), "the turn's own word counts first")
  t.equal((await client.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: null })).autoLand, undefined)
  await runTurn(client, 'c', 'say x')
  t.notOk(there('b.txt'))
})

t.test('work that an outsider or an outside wake started waits for a person, despite auto-landing', async t => {
  const { client, token, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c', 'say x', { isolated: true })
  await client.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })
  const held = [{ kind: 'landed', landed: false, held: true }]
  const drive = (await token('drive')).client
  for (const turn of [
    runTurn(drive, 'c', 'write a.txt\n| a'),
    runTurn(client, 'c', 'write a.txt\n| b', { outsideWake: 'webhook' }),
  ])
    t.same(
      (await turn).filter(({ kind }) => kind === 'landed'),
      held,
    )
  t.notOk(existsSync(join(workspace, 'a.txt')))
  t.same(
    (await runTurn(client, 'c', 'fail no')).filter(({ kind }) => kind === 'landed'),
    [],
    'failed turns do not land',
  )
})

// Outages ------------------------------------------------------------------------------------------------------------

t.test('by default a turn that an outage ended stays failed, and says that it could be resumed', async t => {
  const { client } = await daemonWith(t, GROUPS)
  t.same(errorOf(await runTurn(client, 'c', 'outage')), {
    kind: 'error',
    code: 'provider-outage',
    message: 'the provider is out of service, as the script asked',
    autoResume: 'available',
  })
  await answered(client)
  t.match(await client.call('GET /agents/{id}', { id: 'c' }), {
    status: 'error',
    failure: /out of service/,
    lastEnd: 'failed',
    resumeAfterOutage: undefined,
  })
})

t.test('a turn that an outage ended continues where it stopped once its provider answers', async t => {
  const daemon = await resuming(t)
  const { client, workspace } = daemon
  const before = Date.now()
  const first = await client.call('POST /agent', { conversationId: 'c', messageId: 'm', prompt: WORK })
  const error = errorOf((await framesOf(client, 'c').all()).map(({ event }) => event))
  t.match(error, { code: 'provider-outage', autoResume: 'scheduled', outage: { attempt: 1, maxAttempts: 6 } })
  const wait = error!.outage!.retryAt - before
  t.ok(wait >= 15_000 && wait < 50_000, `${wait} ms`)
  t.match(await client.call('GET /agents/{id}', { id: 'c' }), {
    status: 'resuming',
    failure: undefined,
    run: first.run,
  })
  t.match((await client.call('GET /agents')).agents, exactly({ id: 'c', status: 'resuming' }))
  const frames = await nextRun(daemon, 'c', first.run)
  t.same(frames[0], { kind: 'resumed', reason: 'outage', attempt: 2, resumedFrom: first.run })
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.equal(readFileSync(join(workspace, 'log.txt'), 'utf8'), 'once\nafter\n', 'nothing was done twice')
  t.equal(await statusOf(client, 'c'), 'idle')
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'c' })
  t.same(
    messages.filter(({ role }) => role !== 'assistant').map(({ role, text }) => [role, text.split('\n')[0]]),
    [
      ['user', 'append log.txt'],
      ['notice', 'the provider is out of service, as the script asked'],
      ['notice', 'went on after an outage'],
    ],
    'the message is in the record once',
  )
  t.same(
    await client.call('POST /agent', { conversationId: 'c', messageId: 'm', prompt: WORK }),
    first,
    'the repeated message gets its first answer',
  )
})

t.test('after an outage it is still known that a message came from a caller who may not land', async t => {
  const daemon = await resuming(t)
  const { client, token, workspace } = daemon
  const { run } = await client.call('POST /agent', {
    conversationId: 'c',
    isolated: true,
    autoLand: true,
    prompt: 'write a.txt\n| a\nwait words 60000\noutage\nsay on',
  })
  const first = framesOf(client, 'c')
  await first.until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
  await (await token('drive')).client.call('POST /agent/steer', { conversationId: 'c', text: 'theirs' })
  await first.all()
  t.same(
    (await nextRun(daemon, 'c', run)).filter(({ kind }) => kind === 'landed'),
    [{ kind: 'landed', landed: false, held: true }],
  )
  t.notOk(existsSync(join(workspace, 'a.txt')))
})

t.test('in a private copy the resumed turn auto-lands as requested, and a rewind removes both runs', async t => {
  const daemon = await resuming(t)
  const { client, workspace } = daemon
  const started = await client.call('POST /agent', {
    conversationId: 'c',
    isolated: true,
    autoLand: true,
    prompt: WORK,
  })
  const first = (await framesOf(client, 'c').all()).map(({ event }) => event)
  t.notOk(existsSync(join(workspace, 'log.txt')), 'the failed run does not land')
  const second = await nextRun(daemon, 'c', started.run)
  t.match(second.map(({ kind }) => kind).slice(0, 3), exactly('resumed', 'worktree', 'checkpoint'))
  t.same(second.slice(-2), [
    { kind: 'landed', landed: true },
    { kind: 'done', reason: 'completed' },
  ])
  t.equal(readFileSync(join(workspace, 'log.txt'), 'utf8'), 'once\nafter\n')
  const { messages, total } = await client.call('GET /agents/{id}/transcript', { id: 'c' })
  const begun = first.find(frame => frame.kind === 'checkpoint')
  t.same(
    messages.map(({ checkpointId }) => checkpointId).filter(Boolean),
    [begun?.id],
    'one checkpoint: before the message',
  )
  t.match(await client.call('POST /agent/rewind', { conversationId: 'c', index: 0 }), {
    dropped: total,
    snapshot: begun?.id,
  })
  t.match(await client.call('GET /agents/{id}/diff', { id: 'c' }), { repos: exactly({ changes: { length: 0 } }) })
})

t.test('a long outage is counted across runs', async t => {
  const daemon = await resuming(t)
  const { client } = daemon
  const { run } = await client.call('POST /agent', { conversationId: 'c', prompt: 'outage 2\nsay on' })
  await framesOf(client, 'c').all()
  const second = await nextRun(daemon, 'c', run)
  t.match(errorOf(second), { autoResume: 'scheduled', outage: { attempt: 2, maxAttempts: 6 } })
  const third = await nextRun(daemon, 'c', (await client.call('GET /agents/{id}', { id: 'c' })).run!)
  t.match([third[0], third.at(-1)], exactly({ kind: 'resumed', attempt: 3 }, { kind: 'done', reason: 'completed' }))
})

t.test('messages that were queued behind the turn follow after its resume', async t => {
  const { client } = await resuming(t)
  await client.call('POST /agent', { conversationId: 'c', prompt: 'wait words 60000\noutage\nsay first' })
  const { run } = await client.call('POST /agent', { conversationId: 'c', prompt: 'say second', errand: 'ci-fix' })
  const watched = framesOf(client, 'c')
  await client.call('POST /agent/steer', { conversationId: 'c', text: 'on' })
  await watched.all()
  t.match(await client.call('GET /agents/{id}', { id: 'c' }), { status: 'resuming', waiting: 1, queuePaused: true })
  const last = framesOf(client, 'c', { run }).all()
  await runTurn(client, 'other', 'say here')
  t.match((await last).at(-1)?.event, { kind: 'done', reason: 'completed' })
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'c' })
  t.same(
    messages.filter(({ role }) => role === 'assistant').map(({ text }) => text.trim()),
    ['first', 'second'],
  )
})

t.test("a person's message, a stop, a rewind, archiving and a discard cancel a planned resume", async t => {
  const { client } = await resuming(t)
  const drops: { [id: string]: () => Promise<unknown> } = {
    message: () => runTurn(client, 'message', 'say instead'),
    stop: () => client.call('POST /agent/stop', { conversationId: 'stop' }),
    rewind: () => client.call('POST /agent/rewind', { conversationId: 'rewind', index: 0 }),
    archive: () => client.call('POST /agents/archive', { ids: ['archive'] }),
    discard: () => client.call('POST /agents/{id}/discard', { id: 'discard' }),
  }
  for (const id of Object.keys(drops)) {
    await runTurn(client, id, WORK, { isolated: true })
    t.equal(await statusOf(client, id), 'resuming', id)
  }
  const { run } = await client.call('GET /agents/{id}', { id: 'stop' })
  // The answer to the person's message is an answer of the provider too: it comes last.
  for (const id of ['stop', 'rewind', 'archive', 'discard', 'message']) await drops[id]!()
  await answered(client)
  t.match(await client.call('GET /agents/{id}', { id: 'stop' }), { status: 'stopped', lastEnd: 'stopped', run })
  t.match(await client.call('GET /agents/{id}', { id: 'rewind' }), { status: 'idle', run: undefined })
  t.match(await client.call('GET /agents/{id}', { id: 'archive' }), { archivedAt: Number, lastEnd: 'failed' })
  t.match(await refusal(client.call('GET /agents/{id}', { id: 'discard' })), { status: 404 })
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'message' })
  t.same(messages.findLast(({ role }) => role === 'assistant')?.text.trim(), 'instead')
  t.notOk(messages.some(({ text }) => /went on/.test(text)))
})

t.test(
  "a conversation's choice overrides the setting, and turning it on resumes turns that an outage ended",
  async t => {
    const daemon = await daemonWith(t, GROUPS)
    const { client } = daemon
    const choose = (resumeAfterOutage: boolean | null) =>
      client.call('POST /agents/{id}/resume-after-outage', { id: 'c', resumeAfterOutage })
    const first = await client.call('POST /agent', { conversationId: 'c', prompt: WORK })
    await framesOf(client, 'c').all()
    t.match(await choose(false), { status: 'error', resumeAfterOutage: false })
    t.match(await choose(true), { status: 'resuming', resumeAfterOutage: true })
    t.match(await choose(null), { status: 'error', resumeAfterOutage: undefined })
    t.match(await choose(true), { status: 'resuming' })
    t.match((await nextRun(daemon, 'c', first.run)).at(-1), { kind: 'done', reason: 'completed' })
    await choose(false)
    await client.call('POST /settings/patch', { set: { resumeAfterOutage: true } })
    t.match(errorOf(await runTurn(client, 'c', 'outage')), { autoResume: 'available' })
    t.match(await choose(null), { status: 'resuming' })
    t.match(errorOf(await runTurn(client, 'd', 'fail no')), { autoResume: undefined })
    t.match(
      await client.call('POST /agents/{id}/resume-after-outage', { id: 'd', resumeAfterOutage: true }),
      { status: 'error' },
      'only an outage is resumed',
    )
  },
)

t.test('stopped turns are not resumed, and turning the setting off cancels planned resumes', async t => {
  const daemon = await resuming(t)
  const { client, kernel } = daemon
  for (const id of ['stopped', 'own', 'follows']) await runTurn(client, id, WORK, { isolated: true })
  await client.call('POST /agent/stop', { conversationId: 'stopped' })
  t.match(await client.call('POST /agents/{id}/resume-after-outage', { id: 'stopped', resumeAfterOutage: true }), {
    status: 'stopped',
  })
  await client.call('POST /agents/{id}/resume-after-outage', { id: 'own', resumeAfterOutage: true })
  const told = new Promise<void>(resolve =>
    kernel.events.on('agent.changed', 'test', async (_, input) => {
      const { id } = (input as { data: { id: string } }).data
      if (id === 'follows' && (await state(daemon, id)).resumesAt === undefined) resolve()
    }),
  )
  await client.call('POST /settings/patch', { set: { resumeAfterOutage: false } })
  await told
  t.same(await Promise.all(['stopped', 'own', 'follows'].map(id => statusOf(client, id))), [
    'stopped',
    'resuming',
    'error',
  ])
  t.equal((await state(daemon, 'follows')).resumesAt, undefined)
  t.match(await inner(daemon, 'agent.conversation', { id: 'own' }), { resumesAt: Number })
})

t.test(
  'a refusal of any code ends the turn and, for some codes, blocks the provider; an unknown code runs nothing',
  async t => {
    const { client } = await resuming(t)
    t.match(errorOf(await runTurn(client, 'c', 'refuse rate_limit the month is spent')), {
      code: 'rate_limit',
      message: 'the month is spent',
      autoResume: undefined,
    })
    t.match((await client.call('GET /agent/refusals')).refusals, {
      script: { kind: 'limit', message: 'the month is spent' },
    })
    t.equal(await statusOf(client, 'c'), 'error')
    t.match(errorOf(await runTurn(client, 'd', 'refuse provider-outage gone')), {
      code: 'provider-outage',
      autoResume: 'scheduled',
    })
    t.match(errorOf(await runTurn(client, 'e', 'write e.txt\n| e\nrefuse no-such-code gone')), {
      code: 'script-syntax',
      message: /line 3.*refuse CODE MESSAGE/,
    })
    t.match(
      (await client.call('GET /agent/refusals')).refusals,
      { script: { kind: 'limit' } },
      'no answer of the provider yet',
    )
    await runTurn(client, 'f', 'say on')
    t.same((await client.call('GET /agent/refusals')).refusals, {})
  },
)
