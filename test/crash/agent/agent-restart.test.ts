import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf } from '../../support/turns.js'

/** The folders that successive daemons share. */
const folders = (t: Test, { goesOn = false } = {}) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  mkdirSync(join(workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(join(workspace, '.sandbox', 'config', 'settings.json'), JSON.stringify({ autoResumeOnRestart: goesOn }))
  return { workspace, data }
}

/** Watches until a frame matches, then kills the daemon and starts the next one. */
const killedAt = async (
  t: Test,
  where: { workspace: string; data: string },
  daemon: RunningDaemon,
  id: string,
  fits: (frame: Frame) => boolean,
) => {
  const watched = framesOf(daemon.once, id)
  const frame = await watched.until(fits)
  await daemon.kill9()
  await watched.all().catch(() => {})
  return { seen: watched.seen, frame, next: await spawnDaemon(t, where) }
}

const texts = (frames: readonly { event: Frame }[]) =>
  frames.flatMap(({ event }) => (event.kind === 'delta' ? [event.text] : []))
const done = (frames: readonly { event: Frame }[]) =>
  frames.filter(({ event }) => event.kind === 'done').map(({ event }) => event)

t.test('with automatic resume, the same run continues after a kill during a wait', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'w',
    prompt: 'say before\nwait 1500\nsay after',
  })
  const { seen, next } = await killedAt(t, where, daemon, 'w', ({ kind }) => kind === 'text_end')
  const rest = await framesOf(next.client, 'w', { run, after: seen.length }).all()
  t.equal(rest[0]?.seq, seen.length + 1)
  t.match(rest.find(({ event }) => event.kind === 'resumed')?.event, { reason: 'restart', attempt: 2 })
  t.same(texts([...seen, ...rest]), ['before', 'after'])
  t.same(done(rest), [{ kind: 'done', reason: 'completed' }])
  const { messages } = await next.client.call('GET /agents/{id}/transcript', { id: 'w' })
  t.match(
    messages.map(({ role }) => role),
    exactly('user', 'assistant', 'notice', 'assistant'),
  )
})

t.test(
  'without automatic resume, the run ends as interrupted, the queue is held, and the text is in the record',
  async t => {
    const where = folders(t)
    const daemon = await spawnDaemon(t, where)
    const { run } = await daemon.client.call('POST /agent', { conversationId: 'w', prompt: 'say before\nwait 60000' })
    const held = await daemon.client.call('POST /agent', { conversationId: 'w', prompt: 'say held', errand: 'ci-fix' })
    const { next } = await killedAt(t, where, daemon, 'w', ({ kind }) => kind === 'text_end')
    const frames = await framesOf(next.client, 'w', { run }).all()
    t.same(done(frames), [{ kind: 'done', reason: 'interrupted' }])
    t.match(frames.findLast(({ event }) => event.kind === 'queue')?.event, {
      paused: true,
      messages: exactly({ run: held.run }),
    })
    const { messages } = await next.client.call('GET /agents/{id}/transcript', { id: 'w' })
    t.match(messages, exactly({ role: 'user' }, { role: 'assistant', text: 'before' }))
    const last = framesOf(next.client, 'w', { run: held.run })
    t.match(await next.client.call('POST /agent', { conversationId: 'w', prompt: 'say on' }), { delivery: 'started' })
    t.same(texts(await last.all()), ['held'])
  },
)

t.test('a question survives two kills, and its answer continues the turn', async t => {
  const where = folders(t)
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'q',
    isolated: true,
    prompt: 'append a.txt\n| one\nask which?\n| red: r\n| blue: b\nappend a.txt\n| $answer\nrun cat a.txt\nsay $out',
  })
  const first = await killedAt(t, where, daemon, 'q', ({ kind }) => kind === 'question')
  await first.next.kill9()
  const next = await spawnDaemon(t, where)
  const { requestId, questions } = first.frame as Extract<Frame, { kind: 'question' }>
  const watched = framesOf(next.client, 'q', { run, after: first.seen.length })
  const reply = { kind: 'question', requestId, answers: { [questions[0]!.question]: 'blue' } } as const
  t.same(await next.client.call('POST /agent/reply', reply), { ok: true })
  const rest = await watched.all()
  t.match(texts(rest), exactly('one\nblue'))
  t.same(done(rest), [{ kind: 'done', reason: 'completed' }])
  t.equal(
    [...first.seen, ...rest].filter(({ event }) => event.kind === 'question').length,
    1,
    'the card was raised once',
  )
  await next.kill9()
  const last = await spawnDaemon(t, where)
  t.same(
    await last.client.call('POST /agent/reply', reply),
    { ok: true },
    'the same answer succeeds after another kill',
  )
  await last.terminate()
})

t.test('a call that waits for permission is not asked again: the restored card decides', async t => {
  const where = folders(t)
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'p',
    permissionMode: 'default',
    prompt: 'write a.txt\n| x\nsay written',
  })
  const { frame, seen, next } = await killedAt(t, where, daemon, 'p', ({ kind }) => kind === 'permission')
  const { requestId } = frame as Extract<Frame, { kind: 'permission' }>
  const watched = framesOf(next.client, 'p', { run, after: seen.length })
  await next.client.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'once' })
  const rest = await watched.all()
  t.equal(rest.filter(({ event }) => event.kind === 'permission').length, 0)
  t.equal(readFileSync(join(where.workspace, 'a.txt'), 'utf8'), 'x\n')
  const calls = [...seen, ...rest].filter(({ event }) => event.kind === 'tool_call')
  t.equal(calls.length, 1)
  t.match(rest.findLast(({ event }) => event.kind === 'tool_call_update')?.event, { status: 'completed' })
})

t.test('a command that ran when the daemon was killed has failed and is not run again', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'c',
    prompt: 'run echo x >> count.txt; sleep 60\nsay on',
  })
  const { next } = await killedAt(
    t,
    where,
    daemon,
    'c',
    frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress',
  )
  const frames = await framesOf(next.client, 'c', { run }).all()
  t.match(frames.findLast(({ event }) => event.kind === 'tool_call_update')?.event, {
    status: 'failed',
    content: exactly({ text: /interrupted by a restart/ }),
  })
  t.same(texts(frames), ['on'])
})

t.test('an accepted message gets the same answer after a kill, and exists once', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const input = { conversationId: 'm', messageId: 'm-1', prompt: 'say once' }
  const first = await daemon.client.call('POST /agent', input)
  await daemon.kill9()
  const next = await spawnDaemon(t, where)
  t.same(await next.client.call('POST /agent', input), first)
  t.same(texts(await framesOf(next.client, 'm', { run: first.run }).all()), ['once'])
  const { messages } = await next.client.call('GET /agents/{id}/transcript', { id: 'm' })
  t.equal(messages.filter(({ role }) => role === 'user').length, 1)
})

t.test('messages steered into a turn are delivered after a kill', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 's',
    prompt: 'say begun\nwait 1000\nwait words\nsay $words',
  })
  const watched = framesOf(daemon.once, 's')
  await watched.until(({ kind }) => kind === 'text_end')
  t.match(await daemon.client.call('POST /agent', { conversationId: 's', prompt: 'left' }), { delivery: 'said', run })
  await daemon.kill9()
  await watched.all().catch(() => {})
  const next = await spawnDaemon(t, where)
  const frames = await framesOf(next.client, 's', { run }).all()
  t.same(texts(frames), ['begun', 'left'])
  t.equal(frames.filter(({ event }) => event.kind === 'steer').length, 1)
})

t.test('after a clean stop the next start continues the turn by the same rules as after a kill', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'e',
    prompt: 'say before\nwait 1500\nrun echo x >> count.txt\nsay after',
  })
  const watched = framesOf(daemon.once, 'e')
  await watched.until(({ kind }) => kind === 'text_end')
  const over = watched.all().catch(() => {})
  t.equal(await daemon.terminate(), 0)
  await over
  t.same(done(watched.seen), [], 'the run has not ended')
  const next = await spawnDaemon(t, where)
  const frames = await framesOf(next.client, 'e', { run }).all()
  t.same(texts(frames), ['before', 'after'])
  t.equal(readFileSync(join(where.workspace, 'count.txt'), 'utf8'), 'x\n')
})

t.test('a turn that was stopping is stopped, and a run resumes only once', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'x',
    prompt: 'run trap "" TERM; echo $$; sleep 60',
  })
  const watched = framesOf(daemon.once, 'x')
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
  const stopping = daemon.once.call('POST /agent/stop', { conversationId: 'x' }).catch(() => {})
  while (
    !readFileSync(join(where.data, 'journals', 'agent', 'runs', `${run}.jsonl`), 'utf8').includes('"stopping":true')
  )
    await new Promise(resolve => setTimeout(resolve, 5))
  await daemon.kill9()
  await stopping
  const next = await spawnDaemon(t, where)
  t.same(done(await framesOf(next.client, 'x', { run }).all()), [{ kind: 'done', reason: 'stopped' }])

  const again = await next.client.call('POST /agent', { conversationId: 'y', prompt: 'say a\nwait 60000' })
  const second = await killedAt(t, where, next, 'y', ({ kind }) => kind === 'text_end')
  const third = await killedAt(t, where, second.next, 'y', ({ kind }) => kind === 'resumed')
  t.same(done(await framesOf(third.next.client, 'y', { run: again.run }).all()), [
    { kind: 'done', reason: 'interrupted' },
  ])
})

t.test('an unreadable journal is moved aside, and the start continues', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'b', prompt: 'say a\nwait 60000' })
  await framesOf(daemon.once, 'b').until(({ kind }) => kind === 'text_end')
  await daemon.kill9()
  writeFileSync(join(where.data, 'journals', 'agent', 'runs', `${run}.jsonl`), '{"state":7}\n')
  const next = await spawnDaemon(t, where)
  t.same(done(await framesOf(next.client, 'b', { run }).all()), [{ kind: 'done', reason: 'interrupted' }])
  t.match(await next.client.call('POST /agent', { conversationId: 'b', prompt: 'say next' }), { delivery: 'started' })
  t.match(readFileSync(join(where.data, 'journals', 'agent', 'bad', `${run}.jsonl`), 'utf8'), '{"state":7}')
})

t.test('a journal with a broken line in its middle is moved aside once, byte for byte', async t => {
  const where = folders(t, { goesOn: true })
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'b', prompt: 'say a\nwait 60000' })
  await framesOf(daemon.once, 'b').until(({ kind }) => kind === 'text_end')
  await daemon.kill9()
  const entry = join(where.data, 'journals', 'agent', 'runs', `${run}.jsonl`)
  const [first, ...rest] = readFileSync(entry, 'utf8').split('\n')
  const broken = [first, 'no JSON', ...rest].join('\n')
  writeFileSync(entry, broken)
  const next = await spawnDaemon(t, where)
  t.same(done(await framesOf(next.client, 'b', { run }).all()), [{ kind: 'done', reason: 'interrupted' }])
  t.match(next.stderr(), /kept aside/)
  t.equal(readFileSync(join(where.data, 'journals', 'agent', 'bad', `${run}.jsonl`), 'utf8'), broken)
  await next.kill9()
  const third = await spawnDaemon(t, where)
  t.notMatch(third.stderr(), /kept aside/, 'the next start does not report it again')
})

t.test('an entry that was begun and never written leaves the message in the queue', async t => {
  const where = folders(t)
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'e', prompt: 'wait 200\nsay once' })
  await daemon.kill9()
  mkdirSync(join(where.data, 'journals', 'agent', 'runs'), { recursive: true })
  writeFileSync(join(where.data, 'journals', 'agent', 'runs', `${run}.jsonl`), '{"mess')
  const next = await spawnDaemon(t, where)
  t.same(texts(await framesOf(next.client, 'e', { run }).all()), ['once'])
})

t.test(
  'an offer does not survive a kill: it is withdrawn with a notice, and the script continues without it',
  async t => {
    const where = folders(t, { goesOn: true })
    const daemon = await spawnDaemon(t, where)
    const { run } = await daemon.client.call('POST /agent', {
      conversationId: 'o',
      prompt: 'offer service translate 3\nsay took $answer',
    })
    const { frame, seen, next } = await killedAt(t, where, daemon, 'o', ({ kind }) => kind === 'service_offer')
    const { requestId } = frame as Extract<Frame, { kind: 'service_offer' }>
    const rest = await framesOf(next.client, 'o', { run, after: seen.length }).all()
    t.match(
      rest.slice(0, 3).map(({ event }) => event),
      exactly(
        { kind: 'resolved', requestId, reply: undefined },
        { kind: 'notice', level: 'warning' },
        { kind: 'resumed', attempt: 2 },
      ),
    )
    t.equal(rest.filter(({ event }) => event.kind === 'service_offer').length, 0)
    t.same(texts(rest), ['took no'])
    const late = await next.client
      .call('POST /agent/reply', { kind: 'service_offer', requestId, approve: true })
      .catch((error: unknown) => error)
    t.match(late, { status: 409 })
  },
)

t.test('an open offer of a turn that does not resume is withdrawn, and the turn ends as interrupted', async t => {
  const where = folders(t)
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'o',
    prompt: 'offer payment https://shop.example/a 1\nsay never',
  })
  const { seen, next } = await killedAt(t, where, daemon, 'o', ({ kind }) => kind === 'payment_offer')
  const rest = await framesOf(next.client, 'o', { run, after: seen.length }).all()
  t.match(
    rest.map(({ event }) => event),
    exactly({ kind: 'resolved' }, { kind: 'notice' }, { kind: 'done', reason: 'interrupted' }),
  )
})
