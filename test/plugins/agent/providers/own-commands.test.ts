import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf } from '../../../support/turns.js'

/** A program that announces its commands as placeholders, refines them, and runs them by itself. */
const RUNNING = `
import { createInterface } from 'node:readline'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const update = update => send({ method: 'session/update', params: { sessionId: 's-1', update } })
const call = (toolCallId, fields) => update({ sessionUpdate: 'tool_call_update', toolCallId, ...fields })
let prompted
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/prompt') {
    prompted = id
    for (const toolCallId of ['one', 'two', 'three', 'read'])
      update({ sessionUpdate: 'tool_call', toolCallId, title: 'Bash Terminal', status: 'pending',
        kind: toolCallId === 'read' ? 'read' : 'execute' })
    call('one', { rawInput: { command: 'rm -rf build' } })
    call('one', { status: 'completed', rawOutput: { output: 'gone', metadata: { exit: 0 } } })
    call('two', { rawInput: { command: ['make', 'test'] },  status: 'failed',
      content: [{ type: 'content', content: { type: 'text', text: 'no rule' } }] })
    call('read', { status: 'completed' })
    send({ id: 'p', method: 'session/request_permission', params: { sessionId: 's-1',
      toolCall: { toolCallId: 'three', rawInput: { command: 'sleep 1' } },
      options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] } })
  } else if (id === 'p') send({ id: prompted, result: { stopReason: 'end_turn' } })
}
`

t.test('commands that a program runs itself are in the command log and the record', async t => {
  const { client, data } = await daemonWith(t, ['agent', 'activity', 'settings'], {
    files: { 'agent.mjs': RUNNING },
    fakes: {
      'capabilities.records': () => ({
        capabilities: [{ id: 'running', kind: 'agent', label: 'Running', config: {}, secrets: [] }],
      }),
      'capabilities.runtime': ({ id }) => ({ id, label: 'Running', command: [process.execPath, 'agent.mjs'], env: {} }),
    },
  })
  await client.call('POST /agent', { conversationId: 'c', prompt: 'go', permissionMode: 'default' })
  const watched = framesOf(client, 'c')
  const card = (await watched.until(({ kind }) => kind === 'permission')) as unknown as { requestId: string }
  await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, decision: 'once' })
  await watched.all()
  const { events } = await client.call('GET /activity', { type: 'card.answered' })
  t.match(events, exactly({ content: 'sleep 1', conversationId: undefined }))
  const ended = readFileSync(join(data, 'logs/runs/c/commands.log'), 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as { message: string; command: string; said?: string })
    .filter(({ message }) => message === 'a command has ended')
  t.match(
    ended,
    exactly(
      { command: 'rm -rf build', said: 'completed', exit: 0, output: 'gone', level: 'info' },
      { command: 'make test', said: 'failed', output: 'no rule', level: 'warn' },
      { command: 'sleep 1', stopped: true, level: 'warn' },
    ),
  )
})
