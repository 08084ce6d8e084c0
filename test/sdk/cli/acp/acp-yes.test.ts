import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { type Editor, editorOf } from './editor.js'

t.setTimeout(300_000)

const root = folderOf(t)
const workspace = join(root, 'workspace')
makeWorkspace(workspace)
const daemon = await spawnDaemon(t, { workspace, data: join(root, 'data') })
const args = ['--data', daemon.data]
const said = (text: string) => [{ type: 'text' as const, text }]
const pick =
  (at: number) =>
  ({ options }: RequestPermissionRequest) => ({
    outcome: { outcome: 'selected' as const, optionId: options[at]!.optionId },
  })
const cardOf = (id: string) => daemon.client.call('GET /agents/{id}', { id })
const opened = async ({ agent }: Editor) =>
  (await agent.request('session/new', { cwd: workspace, mcpServers: [] })).sessionId
const asToken = async (label: string) => {
  const { token } = await daemon.client.call('POST /system/control/tokens', { label, scope: 'editor' })
  return { args: ['--url', daemon.url], env: { SANDBOX_TOKEN: token } }
}

t.test('a conversation keeps the mode that it has, whoever opens or forks it', async t => {
  const editor = await editorOf(t, { args })
  const sessionId = await opened(editor)
  const prompt = (text: string, id = sessionId) =>
    editor.agent.request('session/prompt', { sessionId: id, prompt: said(text) })
  await prompt('say one')
  t.equal((await cardOf(sessionId)).permissionMode, 'bypassPermissions', 'a new one has what its menu shows')
  await daemon.client.call('POST /agent', { conversationId: sessionId, prompt: 'say two', permissionMode: 'default' })
  await editor.until(one => one.sessionUpdate === 'current_mode_update' && one.currentModeId === 'default')
  await prompt('say three')
  t.equal((await cardOf(sessionId)).permissionMode, 'default', 'a mode that another client chose stays')
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'acceptEdits' })
  await prompt('say four')
  t.equal((await cardOf(sessionId)).permissionMode, 'acceptEdits', 'one that is chosen here counts')

  const forked = await editor.agent.request<{ sessionId: string; modes: { currentModeId: string } }>('session/fork', {
    sessionId,
    cwd: workspace,
  })
  t.equal(forked.modes.currentModeId, 'acceptEdits')
  await prompt('say five', forked.sessionId)
  t.equal((await cardOf(forked.sessionId)).permissionMode, 'acceptEdits')
  await prompt('/fork say six')
  const [, other] = /The conversation (c-\w+) goes on/.exec(editor.text(sessionId)) ?? []
  t.equal((await cardOf(other!)).permissionMode, 'acceptEdits')
})

t.test('a token of scope editor, which cannot read the mode, leaves it as it is', async t => {
  const options = await asToken('keeps')
  const first = await editorOf(t, options)
  const sessionId = await opened(first)
  await first.agent.request('session/set_mode', { sessionId, modeId: 'default' })
  await first.agent.request('session/prompt', { sessionId, prompt: said('say one') })
  const second = await editorOf(t, options)
  const loaded = await second.agent.request('session/load', { sessionId, cwd: workspace, mcpServers: [] })
  t.equal(loaded?.modes?.currentModeId, 'kept')
  await second.agent.request('session/set_mode', { sessionId, modeId: 'kept' })
  await second.agent.request('session/prompt', { sessionId, prompt: said('say two') })
  t.equal((await cardOf(sessionId)).permissionMode, 'default')
  const { modes } = await second.agent.request<{ modes: { currentModeId: string } }>('session/fork', {
    sessionId,
    cwd: workspace,
  })
  t.equal(modes.currentModeId, 'default', 'a fork of what cannot be read asks')
  await second.agent.request('session/set_mode', { sessionId, modeId: 'bypassPermissions' })
  await second.agent.request('session/prompt', { sessionId, prompt: said('say three') })
  t.equal((await cardOf(sessionId)).permissionMode, 'bypassPermissions')
})

t.test('a rewind asks first, and says what it takes back', async t => {
  const asked: string[] = []
  let answer = 1
  const editor = await editorOf(t, {
    args,
    permission: params => {
      asked.push(JSON.stringify(params.toolCall.content))
      return pick(answer)(params)
    },
  })
  const sessionId = await opened(editor)
  await editor.agent.request('session/set_config_option', { sessionId, configId: 'place', value: 'workspace' })
  const prompt = (text: string) => editor.agent.request('session/prompt', { sessionId, prompt: said(text) })
  await prompt('write mine.txt\n| one')
  await prompt('write mine.txt\n| two')
  const total = async () => (await daemon.client.call('GET /agents/{id}/transcript', { id: sessionId })).messages.length
  const before = await total()
  await prompt('/rewind')
  const [index] = [...editor.text().matchAll(/^- (\d+):/gm)].map(([, number]) => number).slice(-1)
  await prompt(`/rewind ${index}`)
  t.match(editor.text(), /Nothing was dropped/)
  t.equal(await total(), before)
  t.equal(readFileSync(join(workspace, 'mine.txt'), 'utf8'), 'two\n')
  answer = 0
  await prompt(`/rewind ${index}`)
  t.match(asked, exactly(/anybody has changed in the workspace/, /anybody has changed in the workspace/))
  t.ok((await total()) < before)
  t.equal(readFileSync(join(workspace, 'mine.txt'), 'utf8'), 'one\n')
})

t.test('an editor that cannot ask is no dead end: the next message answers, and only a plain yes is one', async t => {
  const editor = await editorOf(t, {
    args,
    permission: () => {
      throw new Error('this editor has no dialogs')
    },
  })
  const sessionId = await opened(editor)
  const prompt = (text: string) => editor.agent.request('session/prompt', { sessionId, prompt: said(text) })
  for (const [words, answer] of [
    ['ok, but why?', 'deny'],
    ['once', 'once'],
  ] as const) {
    await prompt('permit Deploy: may I?\nsay it was $answer')
    t.match(editor.text(), /Answer with your next message: once or deny\.$/)
    if (answer === 'once')
      await t.rejects(
        editor.agent.request('session/prompt', {
          sessionId,
          prompt: [...said('once'), { type: 'image', mimeType: 'image/png', data: 'aaaa' }],
        }),
        { message: /expected words/ },
      )
    await prompt(words)
    t.match(editor.text(), new RegExp(`it was ${answer}\\s*$`), words)
  }
})

t.test('an editor hears only of calls that it knows, also after a permission for one of them', async t => {
  const editor = await editorOf(t, { args, permission: pick(0) })
  const sessionId = await opened(editor)
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'default' })
  await editor.agent.request('session/prompt', {
    sessionId,
    prompt: said('write asked.txt\n| one\npermit Deploy: may I?'),
  })
  const known = new Set(editor.of('tool_call').map(({ toolCallId }) => toolCallId))
  const updates = editor.of('tool_call_update')
  t.strictSame(
    updates.filter(({ toolCallId }) => !known.has(toolCallId)),
    [],
  )
  t.ok(
    updates.some(({ rawOutput }) => rawOutput !== undefined),
    'a card without a call ends as one',
  )
})

t.test('after a diff only what it showed lands', async t => {
  const editor = await editorOf(t, { args })
  const sessionId = await opened(editor)
  const prompt = (text: string) => editor.agent.request('session/prompt', { sessionId, prompt: said(text) })
  await prompt('write shown.txt\n| one')
  await prompt('/diff')
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: sessionId,
    prompt: 'write unseen.txt\n| two',
  })
  for await (const event of await daemon.client.call('POST /agent/attach', { conversationId: sessionId, run }))
    if (event.kind === 'end') break
  await t.rejects(prompt('/land'), { message: /work|changed|shown/ })
  t.throws(() => readFileSync(join(workspace, 'shown.txt')), { code: 'ENOENT' })
  await prompt('/diff')
  await prompt('/land')
  t.equal(readFileSync(join(workspace, 'unseen.txt'), 'utf8'), 'two\n')
})

t.test('a message that a token may not take back is not waited for, and the editor says so', async t => {
  const editor = await editorOf(t, { ...(await asToken('waits')), permission: () => new Promise(() => {}) })
  const sessionId = await opened(editor)
  const prompt = (text: string) => editor.agent.request('session/prompt', { sessionId, prompt: said(text) })
  const first = prompt('permit Deploy: may I?\nsay $answer')
  await editor.until(one => one.sessionUpdate === 'tool_call')
  const second = prompt('say the second')
  while ((await daemon.client.call('GET /agents/{id}/queue', { id: sessionId })).messages.length === 0) await delay(20)
  await editor.agent.notify('session/cancel', { sessionId })
  t.strictSame(await Promise.all([first, second]), [{ stopReason: 'cancelled' }, { stopReason: 'cancelled' }])
  const thoughts = editor.of('agent_thought_chunk').map(({ content }) => (content.type === 'text' ? content.text : ''))
  t.strictSame(thoughts, ['A message still waits, which this token may not take back: it runs after your next one.\n'])
  t.strictSame(await prompt('say the third'), { stopReason: 'end_turn' })
  await editor.until(
    one =>
      one.sessionUpdate === 'agent_message_chunk' && one.content.type === 'text' && /second/.test(one.content.text),
  )
  t.match(editor.text(), /the third[^]*the second/)
})

t.test('a session that cannot be deleted stays open', async t => {
  const editor = await editorOf(t, { args })
  const sessionId = await opened(editor)
  const prompt = (text: string) => editor.agent.request('session/prompt', { sessionId, prompt: said(text) })
  const turn = prompt('say now\nwait words\nsay heard $words')
  await editor.until(one => one.sessionUpdate === 'agent_message_chunk')
  await t.rejects(editor.agent.request('session/delete', { sessionId }), { message: /running|turn/ })
  await prompt('you')
  t.strictSame(await turn, { stopReason: 'end_turn' })
  t.match(editor.text(), /heard you/)
})
