import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { RequestPermissionRequest, SessionConfigOption } from '@agentclientprotocol/sdk'
import t from 'tap'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { project } from '../../../support/browser/page.js'
import { editorOf, rawProgram, type Told } from './editor.js'

t.setTimeout(300_000)

const root = folderOf(t)
const workspace = join(root, 'workspace')
makeWorkspace(workspace)
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
mkdirSync(join(workspace, 'deep'), { recursive: true })
writeFileSync(join(workspace, 'deep/pixel.png'), Buffer.from(PIXEL, 'base64'))
inGit(workspace, 'add', '.')
inGit(workspace, 'commit', '-qm', 'Add a picture')
const daemon = await spawnDaemon(t, { workspace, data: join(root, 'data') })
const args = ['--data', daemon.data]
const mcpServers: [] = []
const said = (text: string) => [{ type: 'text' as const, text }]

const COLOUR = 'ask Which colour?\n| red: warm\n| blue: cold\n'
const WORK = `think I look around
todo [~] write a note | [ ] say so
write notes/today.md
| # Today
run wc -l notes/today.md
image deep/pixel.png
todo [x] write a note | [x] say so
say The note is written.`

/** Ids of calls differ from replay to live where the record has fewer steps; what they show does not. */
const shown = (told: readonly Told[]) => ({
  texts: told
    .flatMap(one =>
      one.sessionUpdate === 'agent_message_chunk' && one.content.type === 'text' ? [one.content.text] : [],
    )
    .join(''),
  calls: [...new Set(told.flatMap(one => (one.sessionUpdate === 'tool_call' ? [one.title] : [])))],
})

t.test('a session works in a private copy, shows all it does, and lands by a command', async t => {
  const editor = await editorOf(t, { args })
  const { agent } = editor
  const opened = await agent.request('session/new', { cwd: workspace, mcpServers })
  const { sessionId } = opened
  t.equal(opened.modes?.currentModeId, 'bypassPermissions')
  const { models } = opened as unknown as { models: { availableModels: { modelId: string }[] } }
  t.ok(
    models.availableModels.some(({ modelId }) => modelId.startsWith('script:')),
    'models in the older form',
  )
  t.strictSame(
    opened.configOptions?.map(({ id }) => id),
    ['mode', 'model', 'place'],
  )
  await editor.until(one => one.sessionUpdate === 'available_commands_update')
  const names = editor
    .of('available_commands_update')
    .at(-1)!
    .availableCommands.map(({ name }) => name)
  t.strictSame(names.slice(0, 7), ['diff', 'land', 'discard', 'compact', 'rename', 'fork', 'rewind'])

  t.strictSame(await agent.request('session/prompt', { sessionId, prompt: said(WORK) }), { stopReason: 'end_turn' })
  t.match(editor.text(), /The note is written\./)
  t.match(editor.of('agent_thought_chunk')[0]?.content, { text: /I look around/ })
  t.strictSame(
    editor
      .of('plan')
      .at(-1)
      ?.entries.map(({ content, status }) => [content, status]),
    [
      ['write a note', 'completed'],
      ['say so', 'completed'],
    ],
  )
  const calls = [...editor.of('tool_call'), ...editor.of('tool_call_update')]
  const diff = calls.flatMap(({ content }) => content ?? []).find(({ type }) => type === 'diff')
  t.match(diff, { type: 'diff', path: join(workspace, 'notes/today.md'), newText: '# Today\n' })
  t.ok(
    calls
      .flatMap(({ content }) => content ?? [])
      .some(part => part.type === 'content' && part.content.type === 'image'),
    'the picture is content',
  )
  t.notOk(inGit(workspace, 'status', '--porcelain').includes('notes'), 'nothing is in the workspace yet')

  await agent.request('session/prompt', { sessionId, prompt: said('/diff') })
  t.match(editor.text(), /1 file changed, 1 not in the workspace yet/)
  await agent.request('session/prompt', { sessionId, prompt: said('/land') })
  t.match(editor.text(), /landed: 1 file is in the workspace/)
  t.equal(readFileSync(join(workspace, 'notes/today.md'), 'utf8'), '# Today\n')
  await agent.request('session/prompt', { sessionId, prompt: said('/rename A note') })
  t.equal(editor.of('session_info_update').at(-1)?.title, 'A note')

  await t.test('another editor lists it, and load replays all of it', async t => {
    const other = await editorOf(t, { args })
    const { sessions } = await other.agent.request('session/list', { cwd: workspace })
    t.match(
      sessions.find(one => one.sessionId === sessionId),
      { cwd: workspace, title: 'A note' },
    )
    const below = await other.agent.request('session/list', { cwd: join(workspace, 'deep') })
    t.strictSame(below.sessions, [], 'a folder below has its own')
    const loaded = await other.agent.request('session/load', { sessionId, cwd: workspace, mcpServers })
    t.equal(loaded?.modes?.currentModeId, 'bypassPermissions')
    const live = shown(editor.told.map(({ update }) => update).filter(one => !isDiffCommand(one)))
    const replayed = shown(other.told.map(({ update }) => update))
    t.match(replayed.texts, /The note is written\./)
    t.strictSame(replayed.calls, live.calls, 'every call is there again')
    t.match(other.of('user_message_chunk')[0]?.content, { text: WORK })
    t.match(other.of('plan').at(-1)?.entries[0], { content: 'write a note', status: 'completed' })
    const content = other.of('tool_call').flatMap(call => call.content ?? [])
    t.ok(
      content.some(({ type }) => type === 'diff'),
      'diffs',
    )
    t.ok(
      content.some(part => part.type === 'content' && part.content.type === 'image'),
      'pictures',
    )
  })
})

const isDiffCommand = (one: Told): boolean => one.sessionUpdate === 'tool_call' && one.toolCallId.startsWith('diff-')

t.test('permissions, plans and questions are asked in the editor, and the answers count', async t => {
  const asked: RequestPermissionRequest[] = []
  const editor = await editorOf(t, {
    args,
    capabilities: { elicitation: { form: {} } },
    permission: params => {
      asked.push(params)
      return { outcome: { outcome: 'selected', optionId: params.options[0]!.optionId } }
    },
    form: () => ({ action: 'accept', content: { q1: 'blue' } }),
  })
  const { sessionId } = await editor.agent.request('session/new', { cwd: workspace, mcpServers })
  const prompt = said(`permit Deploy: may I?\nsay $answer\nplan Do it\n| in two steps\n${COLOUR}say $answer`)
  t.strictSame(await editor.agent.request('session/prompt', { sessionId, prompt }), { stopReason: 'end_turn' })
  t.strictSame(
    asked.map(({ options }) => options.map(({ kind }) => kind)),
    [
      ['allow_once', 'reject_once'],
      ['allow_once', 'reject_once'],
    ],
  )
  t.match(asked[1]!.toolCall, { kind: 'switch_mode', title: 'Plan' })
  t.match(editor.text(), /once[^]*blue/)
})

t.test('without forms a question is a choice, and one that takes words is answered by the next message', async t => {
  const editor = await editorOf(t, {
    args,
    permission: ({ options }) => ({ outcome: { outcome: 'selected', optionId: options[1]!.optionId } }),
  })
  const { sessionId } = await editor.agent.request('session/new', { cwd: workspace, mcpServers })
  const prompt = said(`${COLOUR}say $answer\nask What is it called?\nsay it is $answer`)
  t.strictSame(await editor.agent.request('session/prompt', { sessionId, prompt }), { stopReason: 'end_turn' })
  t.match(editor.text(), /blue[^]*What is it called\?[^]*Answer with your next message/)
  t.strictSame(await editor.agent.request('session/prompt', { sessionId, prompt: said('Sky') }), {
    stopReason: 'end_turn',
  })
  t.match(editor.text(), /it is Sky/)
})

t.test('an editor that vanishes in a permission ends nothing: the next one is asked, and goes on', async t => {
  let asked = () => {}
  const waits = new Promise<void>(resolve => {
    asked = resolve
  })
  const first = await editorOf(t, {
    args,
    permission: () => {
      asked()
      return new Promise(() => {})
    },
  })
  const { sessionId } = await first.agent.request('session/new', { cwd: workspace, mcpServers })
  const lost = first.agent.request('session/prompt', {
    sessionId,
    prompt: said('say before\npermit Deploy: may I?\nsay $answer'),
  })
  lost.catch(() => {})
  await waits
  first.vanish()
  await first.ended
  const second = await editorOf(t, {
    args,
    permission: ({ options }) => ({ outcome: { outcome: 'selected', optionId: options[0]!.optionId } }),
  })
  await second.agent.request('session/load', { sessionId, cwd: workspace, mcpServers })
  await second.until(
    one => one.sessionUpdate === 'agent_message_chunk' && one.content.type === 'text' && /once/.test(one.content.text),
  )
  t.match(second.text(), /before[^]*once/, 'what was said before is shown, and the turn went on')
})

t.test('two prompts at once, a cancelled one, and one that fails each end in their own way', async t => {
  const editor = await editorOf(t, { args })
  const { agent } = editor
  const { sessionId } = await agent.request('session/new', { cwd: workspace, mcpServers })
  const first = agent.request('session/prompt', { sessionId, prompt: said('say one\nwait words\nsay heard $words') })
  await editor.until(one => one.sessionUpdate === 'agent_message_chunk')
  const second = agent.request('session/prompt', { sessionId, prompt: said('two') })
  t.strictSame(await first, { stopReason: 'end_turn' })
  t.strictSame(await second, { stopReason: 'end_turn' })
  t.match(editor.text(), /one[^]*heard two/)
  t.strictSame(editor.of('user_message_chunk'), [], 'the editor shows its own messages itself')

  const long = agent.request('session/prompt', { sessionId, prompt: said('say now\nwait 600000') })
  await editor.until(
    one =>
      one.sessionUpdate === 'agent_message_chunk' && one.content.type === 'text' && one.content.text.includes('now'),
  )
  await agent.notify('session/cancel', { sessionId })
  t.strictSame(await long, { stopReason: 'cancelled' })
  await t.rejects(agent.request('session/prompt', { sessionId, prompt: said('fail it broke') }), {
    message: /it broke/,
  })
  t.strictSame(await agent.request('session/prompt', { sessionId, prompt: said('say again') }), {
    stopReason: 'end_turn',
  })
})

t.test('modes, models and options change in both forms, and a fork begins with the same messages', async t => {
  const editor = await editorOf(t, { args })
  const { agent } = editor
  const { sessionId } = await agent.request('session/new', { cwd: workspace, mcpServers })
  await agent.request('session/set_mode', { sessionId, modeId: 'plan' })
  const current = (options: readonly SessionConfigOption[] | undefined, id: string) =>
    options?.find(option => option.id === id)?.currentValue
  t.equal(current(editor.of('config_option_update').at(-1)?.configOptions, 'mode'), 'plan')
  const { configOptions } = await agent.request('session/set_config_option', {
    sessionId,
    configId: 'place',
    value: 'workspace',
  })
  t.equal(current(configOptions, 'place'), 'workspace')
  await agent.request('session/set_config_option', { sessionId, configId: 'mode', value: 'default' })
  t.equal(editor.of('current_mode_update').at(-1)?.currentModeId, 'default')
  const model = configOptions.find(({ id }) => id === 'model') as Extract<SessionConfigOption, { type: 'select' }>
  const script = (model.options as { value: string }[]).find(({ value }) => value.startsWith('script:'))!.value
  await agent.request('session/set_model', { sessionId, modelId: script })
  t.equal(current(editor.of('config_option_update').at(-1)?.configOptions, 'model'), script)
  await agent.request('session/prompt', { sessionId, prompt: said('say the first words') })
  const card = await daemon.client.call('GET /agents/{id}', { id: sessionId })
  t.match(card, { permissionMode: 'default', provider: 'script' })
  t.notOk(card.branch, 'it works in the workspace')

  const forked = await agent.request<{ sessionId: string }>('session/fork', { sessionId, cwd: workspace })
  await agent.request('session/prompt', { sessionId: forked.sessionId, prompt: said('say the second') })
  const { messages } = await daemon.client.call('GET /agents/{id}/transcript', { id: forked.sessionId })
  t.match(messages.map(({ text }) => text).join('\n'), /the first words[^]*the second/)

  for (const [configId, value] of [
    ['mode', 'wild'],
    ['model', 'none'],
    ['colour', 'red'],
    ['place', 'copy'],
  ] as const)
    await t.rejects(agent.request('session/set_config_option', { sessionId, configId, value }), {
      message: /expected|begun/,
    })
})

t.test('files and pictures of the editor come along; a turn that another client begins is shown', async t => {
  const editor = await editorOf(t, { args })
  const { agent } = editor
  const { sessionId } = await agent.request('session/new', { cwd: workspace, mcpServers })
  const uri = pathToFileURL(join(workspace, 'deep/pixel.png')).href
  await agent.request('session/prompt', {
    sessionId,
    prompt: [
      { type: 'text', text: 'say look at ' },
      { type: 'resource_link', uri: `${uri}#L3:9`, name: 'pixel.png' },
      { type: 'image', mimeType: 'image/png', data: PIXEL },
    ],
  })
  t.match(editor.text(), /look at @deep\/pixel\.png:3-9/)
  const { messages } = await daemon.client.call('GET /agents/{id}/transcript', { id: sessionId })
  t.match(messages[0]?.attachments?.[0], /attachments\/.*\/picture\.png$/)
  await daemon.client.call('POST /agent', { conversationId: sessionId, prompt: 'say from elsewhere' })
  await editor.until(
    one =>
      one.sessionUpdate === 'agent_message_chunk'
      && one.content.type === 'text'
      && one.content.text.includes('elsewhere'),
  )
  t.match(editor.of('user_message_chunk')[0]?.content, { text: 'say from elsewhere' })
})

t.test('a discard asks first, and closing, resuming and deleting do what they say', async t => {
  const editor = await editorOf(t, {
    args,
    permission: ({ options }) => ({ outcome: { outcome: 'selected', optionId: options[0]!.optionId } }),
  })
  const { agent } = editor
  const { sessionId } = await agent.request('session/new', { cwd: workspace, mcpServers })
  await agent.request('session/prompt', { sessionId, prompt: said('write dropped.txt\n| x') })
  await agent.request('session/close', { sessionId })
  await t.rejects(agent.request('session/prompt', { sessionId, prompt: said('say x') }), { code: -32002 })
  t.ok(await agent.request('session/resume', { sessionId, cwd: workspace }))
  await agent.request('session/prompt', { sessionId, prompt: said('/discard') })
  t.match(editor.text(), /The work is discarded/)
  const gone = daemon.client.call('GET /agents/{id}', { id: sessionId })
  t.match(await gone.catch((error: unknown) => error), { reason: 'not-found' })

  const { sessionId: kept } = await agent.request('session/new', { cwd: workspace, mcpServers })
  await agent.request('session/prompt', { sessionId: kept, prompt: said('say x') })
  await agent.request('session/delete', { sessionId: kept })
  const { sessions } = await agent.request('session/list', { cwd: workspace })
  t.notOk(sessions.some(one => one.sessionId === kept))
  t.equal((await daemon.client.call('GET /sessions/{id}', { id: kept })).state, 'archived', 'its record stays')
})

t.test('broken lines, other versions and wrong folders are answered in a sentence', async t => {
  const raw = rawProgram(t, args)
  raw.write('{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n')
  raw.write('this is no JSON\n[1]\n\n{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":0}}\n')
  await raw.answers(4)
  raw.write('{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n')
  raw.write('{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"here","mcpServers":[]}}\n')
  raw.write(
    '{"jsonrpc":"2.0","id":4,"method":"session/load","params":{"sessionId":"c-none","cwd":"/","mcpServers":[]}}\n',
  )
  raw.write('{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"c-none","prompt":[]}}\n')
  raw.write('{"jsonrpc":"2.0","id":6,"method":"authenticate","params":{"methodId":"sandbox"}}\n')
  raw.write('{"jsonrpc":"2.0","id":7,"method":"authenticate","params":{"methodId":"other"}}\n')
  raw.write(
    `{"jsonrpc":"2.0","id":8,"method":"session/list","params":{"cwd":${JSON.stringify(workspace)},"cursor":"x"}}\n`,
  )
  raw.write('{"jsonrpc":"2.0","id":9,"method":"session/fork","params":{"sessionId":7}}\n')
  const answers = await raw.answers(12)
  const answer = (id: number | null) =>
    answers.find(one => 'id' in one && one.id === id) as {
      result?: { protocolVersion?: number }
      error?: { code: number; message: string }
    }
  t.equal(answer(0).error?.code, -32600, 'nothing before it is initialized')
  t.equal(answers.filter(one => 'id' in one && one.id === null).length, 2, 'what is no message is answered as such')
  t.equal(answer(1).result?.protocolVersion, 1)
  t.match(answer(2).error, { code: -32602, message: /cwd: expected a folder of the workspace/ })
  t.match(answer(3).error, { code: -32602, message: /cwd: expected an absolute path, found here/ })
  t.ok(answer(4).error)
  t.equal(answer(5).error?.code, -32002)
  t.notOk(answer(6).error)
  t.match(answer(7).error, { code: -32602, message: /methodId: expected sandbox/ })
  t.match(answer(8).error, { code: -32602, message: /cursor/ })
  t.match(answer(9).error, { code: -32602, message: /sessionId: expected a text/ })
  raw.end()
  t.equal(await raw.ended, 0, 'the end of the input is the end of the program')
})

t.test('a token of scope editor opens, lists and loads its own conversations only', async t => {
  const minted = await daemon.client.call('POST /system/control/tokens', { label: 'my editor', scope: 'editor' })
  const asToken = {
    args: ['--url', daemon.url],
    env: { SANDBOX_TOKEN: minted.token },
    permission: ({ options }: RequestPermissionRequest) => ({
      outcome: { outcome: 'selected' as const, optionId: options[0]!.optionId },
    }),
  }
  const first = await editorOf(t, asToken)
  const { sessionId } = await first.agent.request('session/new', { cwd: workspace, mcpServers })
  const prompt = said('say mine\npermit Deploy: may I?\nwait words\nsay heard $words')
  const turn = first.agent.request('session/prompt', { sessionId, prompt })
  await first.until(one => one.sessionUpdate === 'tool_call_update' && one.status === 'completed')
  const second = await editorOf(t, asToken)
  const { sessions } = await second.agent.request('session/list', { cwd: workspace })
  t.strictSame(
    sessions.map(one => one.sessionId),
    [sessionId],
    'its own, also while it runs',
  )
  await second.agent.request('session/load', { sessionId, cwd: workspace, mcpServers })
  t.match(second.text(), /mine/, 'what the running turn has said')
  await second.agent.request('session/prompt', { sessionId, prompt: said('you') })
  t.strictSame(await turn, { stopReason: 'end_turn' })
  t.match(first.text(), /heard you/)
  const [other] = (await daemon.client.call('GET /agents')).agents.filter(({ id }) => id !== sessionId)
  const foreign = second.agent.request('session/load', { sessionId: other!.id, cwd: workspace, mcpServers })
  await t.rejects(foreign, { message: /opened|token|session/i })
})

t.test('a message without an end is refused, and the program ends', async t => {
  const raw = rawProgram(t, args)
  raw.write(`{"jsonrpc":"2.0","id":0,"method":"${'x'.repeat(33 * 1024 * 1024)}`)
  t.equal(await raw.ended, 1)
  t.match(raw.stderr(), /exceeds the configured \d+ byte limit/)
})

t.test('the settings that the guide shows start it', async t => {
  const guide = readFileSync(join(project, 'plugins/agent/README.md'), 'utf8')
  const [, json = ''] = /```json\n(\{ "agent_servers"[^`]*)```/.exec(guide) ?? []
  const { command, args: words } = (JSON.parse(json) as GuideSettings).agent_servers.Sandbox
  t.equal(command, 'sandbox', 'the name of the installed program')
  const editor = await editorOf(t, { words, args: [], cwd: workspace, env: { SANDBOX_DATA: daemon.data } })
  const { sessionId } = await editor.agent.request('session/new', { cwd: workspace, mcpServers })
  await editor.agent.request('session/prompt', { sessionId, prompt: said('say as the guide says') })
  t.match(editor.text(), /as the guide says/)
  const named = [...guide.slice(guide.indexOf('## In an editor')).matchAll(/`\/(\w+)`/g)].map(([, name]) => name)
  const commands = editor
    .of('available_commands_update')
    .at(-1)!
    .availableCommands.map(({ name }) => name)
  t.strictSame(
    named.slice(0, 7).filter(name => !commands.includes(name!)),
    [],
    'the commands that it names are there',
  )
})

interface GuideSettings {
  readonly agent_servers: { readonly Sandbox: { readonly command: string; readonly args: readonly string[] } }
}

t.test('without a daemon the editor gets the way to start one', async t => {
  const editor = await editorOf(t, { args: ['--data', join(root, 'nothing')] })
  await t.rejects(editor.agent.request('session/new', { cwd: workspace, mcpServers }), {
    code: -32000,
    message: /no daemon runs on the data folder .*sandbox serve/,
  })
})
