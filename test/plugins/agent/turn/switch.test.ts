import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { daemonWith, folderOf, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { inner, refusal, state } from '../support.js'
import { exactly } from '../../../support/lists.js'

/** A command that ends once the test writes the file `go`. */
const HELD = 'until [ -e go ]; do sleep 0.02; done'

const texts = (frames: readonly Frame[]) => frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : []))

/** The frames in order, with only the end of each call. */
const order = (frames: readonly Frame[]) =>
  frames.flatMap(frame => {
    if (frame.kind === 'tool_call_update') return frame.status === 'in_progress' ? [] : [frame.status]
    const shown = ['steer', 'queue', 'question', 'permission', 'resolved', 'resumed', 'switched', 'text_end', 'done']
    return shown.includes(frame.kind) ? [frame.kind] : []
  })

t.test('switching a conversation needs the scope drive', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 's', 'say x')
  const body = { conversationId: 's', model: 'script-fast' }
  const none = { method: 'POST', body: JSON.stringify(body), headers: { authorization: 'Bearer nothing' } }
  t.equal((await daemon.fetch('/agent/switch-account', none)).status, 401)
  for (const scope of ['editor', 'read'] as const)
    t.match(await refusal((await daemon.token(scope)).client.call('POST /agent/switch-account', body)), { status: 403 })
  t.match(await (await daemon.token('drive')).client.call('POST /agent/switch-account', body), { applied: 'next' })
})

t.test('a switch to an invalid choice is refused, and nothing changes', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 's', 'say x')
  const { conversation } = await state(daemon, 's')
  const cases: [status: number, body: object][] = [
    [400, {}],
    [400, { when: 'next' }],
    [400, { effort: 1 }],
    [400, { model: 'script', when: 'later' }],
    [400, { model: 'script', conversationId: 'no/slash' }],
    [404, { conversationId: 'nobody', model: 'script' }],
    [422, { agent: 'nobody' }],
    [422, { model: 'gpt-0' }],
    [422, { account: 'mine' }],
  ]
  for (const [status, body] of cases)
    t.match(
      await refusal(daemon.client.call('POST /agent/switch-account', { conversationId: 's', ...body } as never)),
      { status, message: /\w/ },
      JSON.stringify(body),
    )
  t.same((await state(daemon, 's')).conversation, conversation)
})

t.test('a free conversation runs its next turn with the new choice, also after a restart', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  await t.test('the move', async t => {
    const { client } = await daemonWith(t, ['agent'], where)
    await runTurn(client, 's', 'say x')
    const moved = await client.call('POST /agent/switch-account', {
      conversationId: 's',
      model: 'script-fast',
      effort: 'low',
      thinking: false,
    })
    t.same(moved, { applied: 'next', kept: 'session' })
  })
  await t.test('the next start', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    t.match(await state(daemon, 's'), { conversation: { model: 'script-fast', effort: 'low', thinking: false } })
    t.match(
      (await runTurn(daemon.client, 's', 'say y')).find(({ kind }) => kind === 'init'),
      { model: 'script-fast' },
    )
  })
})

t.test('with "next", the running turn continues unchanged, and the next one uses the new choice', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 's', prompt: 'wait words 60000\nsay $words' })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'init')
  const body = { conversationId: 's', model: 'script-fast', when: 'next' } as const
  t.same(await client.call('POST /agent/switch-account', body), { applied: 'next', kept: 'session' })
  await client.call('POST /agent/steer', { conversationId: 's', text: 'on' })
  const frames = (await watched.all()).map(({ event }) => event)
  t.notOk(frames.some(({ kind }) => kind === 'switched'))
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match(
    (await runTurn(client, 's', 'say y')).find(({ kind }) => kind === 'init'),
    { model: 'script-fast' },
  )
})

t.test('a turn that waits for a message switches at once, in the same run, and gets the message', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const { run } = await client.call('POST /agent', {
    conversationId: 's',
    prompt: 'say begun\nmode acceptEdits\nwait words 60000\nsay $words\nusage 3 4',
  })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'mode')
  t.same(await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' }), {
    applied: 'now',
    run,
    kept: 'session',
  })
  t.same(await watched.until(({ kind }) => kind === 'switched'), {
    kind: 'switched',
    provider: 'script',
    harness: 'native',
    model: 'script-fast',
    kept: 'session',
  })
  await client.call('POST /agent/steer', { conversationId: 's', text: 'on' })
  const frames = (await watched.all()).map(({ event }) => event)
  const kinds = (of: string) => frames.filter(({ kind }) => kind === of)
  t.same(texts(frames), ['begun', 'on'])
  for (const once of ['init', 'session', 'commands', 'mode', 'steer', 'switched', 'usage', 'done'])
    t.equal(kinds(once).length, 1, `one ${once}`)
  t.match(kinds('usage'), exactly({ inputTokens: 3, outputTokens: 4 }))
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match(await state(daemon, 's'), { conversation: { model: 'script-fast', session: { id: 'script-s' } } })
  t.match(
    (await runTurn(client, 's', 'say y')).find(({ kind }) => kind === 'init'),
    { model: 'script-fast' },
  )
})

t.test('a wait continues after a switch, and a turn in a private copy keeps its work', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', {
    conversationId: 's',
    isolated: true,
    prompt: 'append a.txt\n| one\nsay begun\nwait 300\nappend a.txt\n| two\nread a.txt\nsay $out',
  })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'text_end')
  const before = Date.now()
  await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  const frames = (await watched.all()).map(({ event }) => event)
  t.ok(Date.now() - before < 5000)
  t.same(texts(frames), ['begun', 'one\ntwo'])
  for (const once of ['worktree', 'checkpoint', 'switched'])
    t.equal(frames.filter(({ kind }) => kind === once).length, 1, once)
})

t.test('a running call ends before the switch; messages sent meanwhile are neither lost nor duplicated', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const { run } = await client.call('POST /agent', {
    conversationId: 's',
    prompt: `run echo x >> count.txt; ${HELD}\nwait words\nsay [$words]`,
  })
  const watched = framesOf(client, 's')
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
  t.same(await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' }), {
    applied: 'now',
    run,
    kept: 'session',
  })
  t.match(await client.call('POST /agent', { conversationId: 's', prompt: 'meanwhile' }), { delivery: 'said', run })
  const next = await client.call('POST /agent', { conversationId: 's', prompt: 'say next', errand: 'ci-fix' })
  writeFileSync(join(workspace, 'go'), '')
  const frames = (await watched.all()).map(({ event }) => event)
  t.same(order(frames), ['steer', 'queue', 'completed', 'switched', 'text_end', 'done'])
  t.same(texts(frames), ['[meanwhile]'])
  t.equal(readFileSync(join(workspace, 'count.txt'), 'utf8'), 'x\n')
  const after = (await framesOf(client, 's', { run: next.run }).all()).map(({ event }) => event)
  t.match(
    after.find(({ kind }) => kind === 'init'),
    { model: 'script-fast' },
  )
  t.same(texts(after), ['next'])
})

t.test('a parked turn keeps its card and switches after the answer', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const { run } = await client.call('POST /agent', { conversationId: 's', prompt: 'ask Which?\n| a\n| b\nsay $answer' })
  const watched = framesOf(client, 's')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  t.same(await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' }), {
    applied: 'now',
    run,
    kept: 'session',
  })
  t.match(await state(daemon, 's'), {
    live: { state: 'parked', cards: exactly({ requestId }) },
    conversation: { model: 'script-fast' },
  })
  await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Which?': 'b' } })
  const frames = (await watched.all()).map(({ event }) => event)
  t.same(order(frames), ['question', 'resolved', 'switched', 'text_end', 'done'])
  t.same(texts(frames), ['b'])
})

t.test('the answer decides about a call that waits for permission, and the turn switches after it', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', {
    conversationId: 's',
    permissionMode: 'default',
    prompt: 'append a.txt\n| x\nread a.txt\nsay $out',
  })
  const watched = framesOf(client, 's')
  const { requestId } = await watched.until(({ kind }) => kind === 'permission')
  await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  await client.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'once' })
  const frames = (await watched.all()).map(({ event }) => event)
  t.same(order(frames), ['permission', 'resolved', 'completed', 'switched', 'completed', 'text_end', 'done'])
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'x\n')
})

t.test('a second switch before the first took effect replaces it', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client, workspace } = daemon
  await client.call('POST /agent', { conversationId: 's', prompt: `run ${HELD}\nsay on` })
  const watched = framesOf(client, 's')
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
  await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  t.match(await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script', effort: 'high' }), {
    applied: 'now',
    kept: 'session',
  })
  writeFileSync(join(workspace, 'go'), '')
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(
    frames.filter(({ kind }) => kind === 'switched'),
    exactly({ model: 'script' }),
  )
  t.same(texts(frames), ['on'])
  t.match(await state(daemon, 's'), { conversation: { model: 'script', effort: 'high' } })
})

t.test('a stop before the switch took effect wins', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', { conversationId: 's', prompt: `run ${HELD}\nsay never` })
  const watched = framesOf(client, 's')
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
  await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  await client.call('POST /agent/stop', { conversationId: 's' })
  const frames = (await watched.all()).map(({ event }) => event)
  t.same(order(frames), ['failed', 'done'])
  t.match(frames.at(-1), { reason: 'stopped' })
  t.match(await state(daemon, 's'), { conversation: { model: 'script-fast', lastEnd: 'stopped' } })
})

t.test('a turn switches only when its background subagents have ended', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', {
    conversationId: 's',
    prompt: `helper& look\n| run ${HELD}\nsay begun\njoin\nsay on`,
  })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'text_end')
  await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  writeFileSync(join(workspace, 'go'), '')
  const frames = (await watched.all()).map(({ event }) => event)
  const ended = frames.findIndex(frame => frame.kind === 'subagent_update' && frame.status === 'completed')
  t.ok(ended >= 0 && ended < frames.findIndex(({ kind }) => kind === 'switched'))
  t.equal(texts(frames).at(-1), 'on')
})

t.test('a turn that an outage ended after a switch resumes with the new choice', async t => {
  const { client, kernel } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 's', model: 'script', prompt: 'wait words 60000\noutage 9' })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'init')
  await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  await client.call('POST /agent/steer', { conversationId: 's', text: 'on' })
  t.match((await watched.all()).at(-1)?.event, { kind: 'done', reason: 'failed' })
  const lines = await kernel.journals.read<{ resumable?: object }>('agent/queue')
  t.match(
    lines.find(({ resumable }) => resumable),
    { resumable: { message: { input: { model: 'script-fast' } } } },
  )
})

for (const goesOn of [true, false]) {
  t.test(
    `killed before the switch took effect, ${goesOn ? 'the turn' : 'the conversation'} has the new choice after `
      + 'the restart',
    async t => {
      const where = { workspace: join(folderOf(t), 'workspace'), data: join(folderOf(t), 'data') }
      makeWorkspace(where.workspace, {
        '.sandbox/config/settings.json': JSON.stringify({ autoResumeOnRestart: goesOn }),
      })
      const daemon = await spawnDaemon(t, where)
      const { run } = await daemon.client.call('POST /agent', {
        conversationId: 's',
        prompt: 'say begun\nrun sleep 60\nsay on',
      })
      const watched = framesOf(daemon.once, 's')
      await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
      await daemon.client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
      await daemon.kill9()
      await watched.all().catch(() => {})
      const next = await spawnDaemon(t, where)
      const frames = (await framesOf(next.client, 's', { run }).all()).map(({ event }) => event)
      t.same(
        order(frames),
        goesOn ? ['text_end', 'resumed', 'switched', 'failed', 'text_end', 'done'] : ['text_end', 'failed', 'done'],
      )
      t.same(texts(frames), goesOn ? ['begun', 'on'] : ['begun'])
      t.match(
        (await runTurn(next.client, 's', 'say y')).find(({ kind }) => kind === 'init'),
        { model: 'script-fast' },
      )
    },
  )
}

t.test('a parked turn with a pending switch switches after the answer that follows a restart', async t => {
  const where = { workspace: join(folderOf(t), 'workspace'), data: join(folderOf(t), 'data') }
  makeWorkspace(where.workspace)
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 's',
    permissionMode: 'default',
    prompt: 'append a.txt\n| x\nread a.txt\nsay $out',
  })
  const watched = framesOf(daemon.once, 's')
  const { requestId } = await watched.until(({ kind }) => kind === 'permission')
  await daemon.client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  await daemon.kill9()
  await watched.all().catch(() => {})
  const next = await spawnDaemon(t, where)
  await next.client.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'once' })
  const frames = (await framesOf(next.client, 's', { run }).all()).map(({ event }) => event)
  t.same(order(frames), ['permission', 'resolved', 'switched', 'completed', 'completed', 'text_end', 'done'])
  t.same(texts(frames), ['x'])
})

t.test('a turn that is stopping refuses', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', { conversationId: 's', prompt: 'run trap "" TERM; sleep 618 & wait' })
  await framesOf(client, 's').until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
  const stopped = client.call('POST /agent/stop', { conversationId: 's' })
  while ((await state(daemon, 's')).live?.state === 'running') await new Promise(resolve => setTimeout(resolve, 5))
  // Not over HTTP, because that could take until the turn has ended.
  const move = inner(daemon, 'POST /agent/switch-account', { conversationId: 's', model: 'script-fast' })
  t.match(await refusal(move), { status: 409, message: /stopping/ })
  await stopped
  t.match(await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' }), {
    applied: 'next',
  })
})
