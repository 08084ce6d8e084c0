import { join } from 'node:path'
import t from 'tap'
import { daemonWith, folderOf, makeWorkspace } from '../support/daemon.js'
import { framesOf, runTurn } from '../support/turns.js'
import { refusal, state } from './agent-support.js'

t.test('moving a conversation needs a credential that drives', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 's', 'say x')
  const body = { conversationId: 's', model: 'script-fast' }
  const none = { method: 'POST', body: JSON.stringify(body), headers: { authorization: 'Bearer nothing' } }
  t.equal((await daemon.fetch('/agent/switch-account', none)).status, 401)
  for (const scope of ['editor', 'read'] as const)
    t.match(await refusal((await daemon.token(scope)).client.call('POST /agent/switch-account', body)), { status: 403 })
  t.match(await (await daemon.token('drive')).client.call('POST /agent/switch-account', body), { applied: 'next' })
})

t.test('what cannot be moved to is refused, and nothing changes', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 's', 'say x')
  const { conversation } = await state(daemon, 's')
  const cases: [status: number, body: object][] = [
    [400, {}], [400, { when: 'next' }], [400, { effort: 1 }], [400, { model: 'script', when: 'later' }], [400, { model: 'script', conversationId: 'no/slash' }],
    [404, { conversationId: 'nobody', model: 'script' }],
    [422, { agent: 'nobody' }], [422, { model: 'gpt-0' }], [422, { account: 'mine' }],
  ]
  for (const [status, body] of cases)
    t.match(await refusal(daemon.client.call('POST /agent/switch-account', { conversationId: 's', ...body } as never)), { status, message: /\w/ }, JSON.stringify(body))
  t.same((await state(daemon, 's')).conversation, conversation)
})

t.test('a free conversation runs its next turn there, also after a restart', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  await t.test('the move', async t => {
    const { client } = await daemonWith(t, ['agent'], where)
    await runTurn(client, 's', 'say x')
    const moved = await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast', effort: 'low', thinking: false })
    t.same(moved, { applied: 'next', kept: 'session' })
  })
  await t.test('the next start', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    t.match(await state(daemon, 's'), { conversation: { model: 'script-fast', effort: 'low', thinking: false } })
    t.match((await runTurn(daemon.client, 's', 'say y')).find(({ kind }) => kind === 'init'), { model: 'script-fast' })
  })
})

t.test('a turn under way goes on as it began, and the next one runs there', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', { conversationId: 's', prompt: 'wait words 60000\nsay $words' })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'init')
  const body = { conversationId: 's', model: 'script-fast' } as const
  t.match(await refusal(client.call('POST /agent/switch-account', body)), { status: 422, message: /when "next"/ })
  t.same(await client.call('POST /agent/switch-account', { ...body, when: 'next' }), { applied: 'next', kept: 'session' })
  await client.call('POST /agent/steer', { conversationId: 's', text: 'on' })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(frames.find(({ kind }) => kind === 'init'), { model: 'script' })
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match((await runTurn(client, 's', 'say y')).find(({ kind }) => kind === 'init'), { model: 'script-fast' })
})

t.test('a turn that is stopping refuses', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', { conversationId: 's', prompt: 'run trap "" TERM; sleep 618 & wait' })
  await framesOf(client, 's').until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
  const stopped = client.call('POST /agent/stop', { conversationId: 's' })
  // A turn of the event loop besides: the stop arrives over HTTP.
  while ((await state(daemon, 's')).live?.state === 'running') await new Promise(resolve => setImmediate(resolve))
  const move = client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast', when: 'next' })
  t.match(await refusal(move), { status: 409, message: /stopping/ })
  await stopped
  t.match(await client.call('POST /agent/switch-account', { conversationId: 's', model: 'script-fast' }), { applied: 'next' })
})
