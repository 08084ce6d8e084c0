import { readFileSync, readdirSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith, inGit } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { inner, refusal, state, transcript } from '../support.js'

/** Whether a process of this machine has this text in its command line. */
const alive = (words: string): boolean =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .some(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(words)
      } catch {
        return false
      }
    })

t.test('a stop ends a child that ignores SIGTERM, keeps the written files, and frees the conversation', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client, workspace } = daemon
  const [seconds, up] = [`617.${process.pid}`, new AbortController()]
  const changes = watch(workspace, { signal: up.signal })
  await client.call('POST /agent', {
    conversationId: 's',
    prompt: `write kept.txt\n| kept\nrun trap "" TERM; sleep ${seconds} & echo up > up.txt; wait`,
  })
  const watched = framesOf(client, 's')
  await watched.until(frame => frame.kind === 'tool_call' && frame.name === 'Shell')
  for await (const { filename } of changes) if (filename === 'up.txt') break
  t.ok(alive(`sleep ${seconds}`))
  const before = Date.now()
  const [one, two] = await Promise.all([
    client.call('POST /agent/stop', { conversationId: 's' }),
    client.call('POST /agent/stop', { conversationId: 's' }),
  ])
  const stopped = { ok: true, stopped: 'turn', ended: 0, running: 0 }
  t.same([one, two], [stopped, stopped], 'a second stop waits for the same end')
  t.ok(Date.now() - before < 15_000)
  t.notOk(alive(`sleep ${seconds}`), 'the process has ended')
  t.equal(readFileSync(join(workspace, 'kept.txt'), 'utf8'), 'kept\n')
  t.match(await client.call('POST /agent', { conversationId: 's', prompt: 'say next' }), { delivery: 'started' })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(frames.at(-1), { kind: 'done', reason: 'stopped' })
  t.match(
    frames.findLast(({ kind }) => kind === 'tool_call_update'),
    { status: 'failed' },
  )
})

t.test('a stop without a running turn returns at once, and an unknown conversation is not found', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await runTurn(client, 's', 'say x')
  t.same(await client.call('POST /agent/stop', { conversationId: 's' }), {
    ...{ ok: true, stopped: 'nothing', ended: 0, running: 0 },
  })
  t.match(await refusal(client.call('POST /agent/stop', { conversationId: 'none' })), { status: 404 })
})

t.test('a stop pauses the queue until the next message, which goes first', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', { conversationId: 's', prompt: 'wait 60000' })
  const held = await client.call('POST /agent', { conversationId: 's', prompt: 'say held', errand: 'ci-fix' })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'queue')
  await client.call('POST /agent/stop', { conversationId: 's' })
  t.match((await watched.all()).findLast(({ event }) => event.kind === 'queue')?.event, {
    paused: true,
    messages: exactly({ run: held.run }),
  })
  t.match(await state(daemon, 's'), { waiting: 1, queuePaused: true, conversation: { lastEnd: 'stopped' } })
  const last = framesOf(client, 's', { run: held.run })
  await client.call('POST /agent', { conversationId: 's', prompt: 'say first' })
  await last.all()
  const said = (await transcript(daemon, 's')).messages
    .filter(({ role }) => role === 'assistant')
    .map(({ text }) => text)
  t.same(said, ['first', 'held'])
})

t.test('discarding a conversation removes its turn, queue, frames, copy and branch, and keeps its record', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client, workspace, kernel } = daemon
  const { run } = await client.call('POST /agent', {
    conversationId: 'd',
    isolated: true,
    prompt: 'write a.txt\n| x\nwait 60000',
  })
  const waiting = await client.call('POST /agent', { conversationId: 'd', prompt: 'say never', errand: 'ci-fix' })
  const watched = framesOf(client, 'd')
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
  const never = framesOf(client, 'd', { run: waiting.run }).all()
  t.same(await inner(daemon, 'agent.discard', { id: 'd' }), { ok: true })
  t.match((await watched.all()).at(-1)?.event, { kind: 'done', reason: 'stopped' })
  await never.catch(() => {})
  t.match(await refusal(state(daemon, 'd')), { status: 404 })
  t.equal(await kernel.journals.stat(`agent/frames/${run}`), undefined)
  t.equal(inGit(workspace, 'branch', '--list', 'agent/d'), '')
  t.match(await kernel.journals.stat('agent/transcripts/d'), { entries: 1 })
})

t.test('while the turn lock is held no turn starts', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client, kernel } = daemon
  await runTurn(client, 'l', 'say x', { isolated: true })
  const release = new AbortController()
  const context = {
    caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
    signal: release.signal,
    trusted: true,
  } as const
  const lock = (await kernel.calls.answer('agent.lock', { id: 'l' }, context)) as AsyncIterable<object>
  const events = lock[Symbol.asyncIterator]()
  t.match(await events.next(), { value: { held: true } })
  await client.call('POST /agent', { conversationId: 'l', prompt: 'say held up' })
  t.match((await state(daemon, 'l')).live, { state: 'running' })
  await inner(daemon, 'agent.landed', {
    id: 'l',
    repos: [{ repo: 'root', base: 'x', landedTip: 'abc' }],
    frame: { kind: 'landed', landed: true },
  })
  const early = await kernel.journals.read<{ event: { kind: string } }>(
    `agent/frames/${(await state(daemon, 'l')).conversation.lastRun}`,
  )
  t.same(
    early.map(({ event }) => event.kind),
    ['landed'],
  )
  release.abort()
  await events.next()
  t.match((await framesOf(client, 'l').all()).at(-1)?.event, { kind: 'done', reason: 'completed' })
  t.match((await state(daemon, 'l')).conversation.repos, exactly({ repo: 'root', landedTip: 'abc' }))
})

t.test('after a stop right after an answer nothing writes into the log of the ended turn', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client, logged } = daemon
  for (const conversationId of ['a', 'b', 'c']) {
    await client.call('POST /agent', { conversationId, prompt: 'ask which?\n| one: first\nsay over', isolated: true })
    const watched = framesOf(client, conversationId)
    const { requestId } = await watched.until(({ kind }) => kind === 'question')
    await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'which?': 'one' } })
    await client.call('POST /agent/stop', { conversationId })
    await watched.all()
    // This waits until the private copy is no longer in use.
    await inner(daemon, 'agent.archive', { id: conversationId })
  }
  t.same(
    logged.filter(line => line.includes('"level":50')),
    [],
  )
})
