import t from 'tap'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { refusal } from '../agent/support.js'

t.test('reading needs a credential, and an editor token reads only its own records', async t => {
  const daemon = await daemonWith(t, ['system', 'agent'])
  t.equal((await fetch(`${daemon.url}/system/subagents`)).status, 401)
  const { client: editor } = await daemon.token('editor')
  await runTurn(editor, 'mine', 'helper one\n| say of the editor')
  await runTurn(daemon.client, 'other', 'helper two\n| say of the owner')
  t.match(await refusal(editor.call('GET /system/subagents', {})), { status: 403 })
  const { sessions } = await daemon.client.call('GET /system/subagents', {})
  const idOf = (conversation: string) => sessions.find(({ conversationId }) => conversationId === conversation)!.id
  const { messages } = await editor.call('GET /system/subagents/{id}/transcript', { id: idOf('mine') })
  t.match(messages, exactly({ role: 'user' }, { role: 'assistant', text: 'of the editor' }))
  t.match(await refusal(editor.call('GET /system/subagents/{id}/transcript', { id: idOf('other') })), {
    status: 404,
    message: /no subagent/,
  })
  t.match(
    await (await daemon.token('read')).client.call('GET /system/subagents/{id}/transcript', { id: idOf('other') }),
    { messages: exactly({}, { text: 'of the owner' }) },
  )
})

t.test('the list is paged, and filtered by conversation and by running subagents', async t => {
  const { client } = await daemonWith(t, ['system', 'agent'])
  await runTurn(client, 'a', 'helper one\n| say 1\nwait 5\nhelper two\n| say 2\nwait 5\nhelper three\n| say 3')
  await runTurn(client, 'b', 'helper four\n| say 4')
  const first = await client.call('GET /system/subagents', { limit: 2 })
  t.match(
    first.sessions.map(({ description }) => description),
    exactly('four', 'three'),
  )
  const second = await client.call('GET /system/subagents', { before: first.next! })
  t.match(
    second.sessions.map(({ description }) => description),
    exactly('two', 'one'),
  )
  t.equal(second.next, undefined)
  t.equal(
    (await client.call('GET /system/subagents', { limit: 1000, conversationId: 'b' })).sessions.length,
    1,
    'a limit above the maximum counts as the maximum',
  )
  t.same((await client.call('GET /system/subagents', { status: 'live' })).sessions, [])
  t.match(await refusal(client.call('GET /system/subagents', { limit: 0 as never })), { status: 400 })
  t.match(await refusal(client.call('GET /system/subagents/{id}/transcript', { id: 'none' })), { status: 404 })
})

t.test('without the group that runs agents there are no subagents', async t => {
  const { client } = await daemonWith(t, ['system'])
  t.same(await client.call('GET /system/subagents', {}), { sessions: [] })
  t.match(await refusal(client.call('GET /system/subagents/{id}/transcript', { id: 'x' })), { status: 404 })
})

t.test('a person limited to areas sees no subagents of conversations outside them', async t => {
  const daemon = await daemonWith(t, ['system', 'agent', 'agents'])
  await runTurn(daemon.client, 'root', 'helper one\n| say secret')
  const limited = {
    caller: { kind: 'session', actor: 'v@example.org', email: 'v@example.org', role: 'viewer', areas: ['docs'] },
    signal: new AbortController().signal,
    trusted: true,
  } as const
  t.same(await daemon.kernel.calls.answer('GET /system/subagents', {}, limited), { sessions: [] })
  const { id } = (await daemon.client.call('GET /system/subagents', {})).sessions[0]!
  t.match(await refusal(daemon.kernel.calls.answer('GET /system/subagents/{id}/transcript', { id }, limited)), {
    status: 404,
  })
})
