import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { WireProtocol } from '../../../../plugins/endpoints/contract.js'
import type { ConnectedTool, ElicitAnswer } from '../../../../plugins/capabilities/contract.js'
import type { Frame } from '../../../../plugins/agent/contract.js'
import type { UsageTurn } from '../../../../plugins/usage/contract.js'
import { DEFAULTS } from '../../../../plugins/settings/current-settings.js'
import { daemonWith, type SupportOptions } from '../../../support/daemon.js'
import { modelServer, type ModelServer } from '../../../support/servers/model-server.js'
import { exactly } from '../../../support/lists.js'
import { framesOf } from '../../../support/turns.js'

const LOOKUP: ConnectedTool = {
  server: 'docs',
  name: 'lookup',
  agentName: 'docs_lookup',
  description: 'Looks a word up.',
  input: { type: 'object', properties: { word: { type: 'string' } } },
  readOnly: true,
  destructive: false,
  approve: false,
}

/** A sandbox with one model server, and one connected server with a tool that asks a person first. */
const world = async (t: Test, server: ModelServer, fakes: SupportOptions['fakes'] = {}) => {
  const lines: UsageTurn[] = []
  let lists = 0
  const answers: ElicitAnswer[] = []
  const answered = Promise.withResolvers<void>()
  const daemon = await daemonWith(t, ['agent', 'agents'], {
    fakes: {
      ...fakes,
      'endpoints.choices': () => ({
        endpoints: [
          {
            id: 'local',
            label: 'Local',
            models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
            default: 'm',
            ready: true,
          },
        ],
      }),
      'endpoints.target': () => server.target(),
      'usage.record': line => {
        lines.push(line)
        return { ok: true }
      },
      'usage.admit': () => ({ verdict: 'ok' }),
      'mcp.tools': () => {
        lists++
        return { tools: [LOOKUP], problems: ['files cannot be reached: it ended with exit code 1'] }
      },
      'mcp.call': async function* ({ input }) {
        yield {
          kind: 'elicit' as const,
          id: 'e-1',
          message: 'Which language?',
          schema: { type: 'object', properties: { language: { type: 'string', enum: ['English', 'French'] } } },
        }
        await answered.promise
        yield { kind: 'result' as const, ok: true, text: `meaning of ${String(input.word)}` }
      },
      'mcp.answer': answer => {
        answers.push(answer)
        answered.resolve()
        return { ok: true }
      },
    },
  })
  const start = (input: object = {}) =>
    daemon.client.call('POST /agent', {
      conversationId: 'c',
      agent: 'endpoint/local',
      isolated: true,
      prompt: 'write it',
      ...input,
    })
  const turn = async (input: object = {}): Promise<Frame[]> => {
    await start(input)
    return (await framesOf(daemon.client, 'c').all()).map(({ event }) => event)
  }
  return { ...daemon, start, turn, lines, answers, listed: () => lists }
}

for (const protocol of ['openai', 'anthropic', 'ollama'] as const satisfies WireProtocol[]) {
  t.test(`a model server that speaks ${protocol} works in a private copy, and the work lands`, async t => {
    const server = await modelServer(t, protocol, [
      { calls: [{ name: 'Write', input: { path: 'made.txt', content: 'hi\n' } }], usage: { input: 90, output: 7 } },
      { text: ['Done.'], usage: { input: 100, output: 3 } },
    ])
    const { turn, client, workspace, lines } = await world(t, server)
    const frames = await turn()
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    t.match(
      frames.find(({ kind }) => kind === 'init'),
      { provider: 'endpoint/local', harness: 'native', model: 'm' },
    )
    await client.call('POST /agents/{id}/land', { id: 'c', mode: 'check' })
    t.equal(readFileSync(join(workspace, 'made.txt'), 'utf8'), 'hi\n')
    t.match(
      lines,
      exactly({
        provider: 'endpoint/local',
        model: 'm',
        harness: 'native',
        inputTokens: 190,
        outputTokens: 10,
        turns: 2,
      }),
    )
  })
}

t.test('a tool of a connected server is called by the model; its questions are cards', async t => {
  const server = await modelServer(t, 'openai', [
    { calls: [{ name: 'docs_lookup', input: { word: 'house' } }] },
    { text: ['It means that.'] },
  ])
  const { client, start, answers } = await world(t, server)
  await start({ permissionMode: 'default' })
  const watched = framesOf(client, 'c')
  const card = (await watched.until(({ kind }) => kind === 'question' || kind === 'done')) as unknown as {
    requestId: string
  }
  await client.call('POST /agent/reply', {
    kind: 'question',
    requestId: card.requestId,
    answers: { 'Which language?': 'French' },
  })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.same(answers, [{ id: 'e-1', action: 'accept', content: { language: 'French' } }])
  t.match(JSON.stringify(server.requests[1]!.body.messages), /meaning of house/)
  t.match(
    frames.filter(({ kind }) => kind === 'notice'),
    exactly({ text: /files cannot be reached/, source: 'capabilities' }),
  )
})

t.test('a turn that uses no connected server does not list their tools', async t => {
  const { turn, listed } = await world(t, await modelServer(t, 'openai', [{ text: ['x'] }]))
  await turn({ agent: 'script', prompt: 'write a.txt\n| hi' })
  t.equal(listed(), 0)
})

t.test('an unknown model is refused with the list of models', async t => {
  const { start } = await world(t, await modelServer(t, 'openai', [{ text: ['x'] }]))
  await t.rejects(start({ model: 'none' }), { name: 'Refusal', message: /no model "none": expected m/ })
})

t.test(
  'with hashlineEdits a model edits lines by their hashes, and an outdated name is refused with the lines',
  async t => {
    let name = ''
    const server = await modelServer(t, 'openai', ({ text }, nth) => {
      const edit = (input: object) => ({ calls: [{ name: 'Edit', input: { path: 'lines.txt', ...input } }] })
      if (nth === 0) return { calls: [{ name: 'Write', input: { path: 'lines.txt', content: 'one\ntwo\n' } }] }
      if (nth === 1) return { calls: [{ name: 'Read', input: { path: 'lines.txt' } }] }
      name ||= /2:[0-9a-f]{4}(?=\|two)/.exec(text)?.[0] ?? 'no name was read'
      if (nth === 2) return edit({ from: name, new: 'TWO' })
      if (nth === 3) return edit({ from: name, new: 'twice' })
      return { text: ['Done.'] }
    })
    const { data, turn } = await world(t, server, { 'settings.get': () => ({ ...DEFAULTS, hashlineEdits: true }) })
    const frames = await turn({ permissionMode: 'bypassPermissions' })
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    const ends = frames.filter(frame => frame.kind === 'tool_call_update' && frame.status !== 'in_progress')
    t.match(ends, exactly(...(['completed', 'completed', 'completed', 'failed'] as const).map(status => ({ status }))))
    t.match(server.told(4), /has no line 2:[0-9a-f]{4}: the file has changed/)
    t.match(server.told(4), /2:[0-9a-f]{4}\|TWO/)
    t.equal(readFileSync(join(data, 'agent/checkouts/c/lines.txt'), 'utf8'), 'one\nTWO\n')
    t.match(JSON.stringify(server.body(0).tools), /"after":/)
  },
)

t.test('a list of what is to do is shown as a list, without what a model adds to it; a wrong one is not', async t => {
  const items = [
    { content: 'read', status: 'completed', note: 'x' },
    { content: 'write', status: 'in_progress', activeForm: 'writing' },
  ]
  const server = await modelServer(t, 'openai', [
    { calls: [{ name: 'Todo', input: { items } }] },
    { calls: [{ name: 'Todo', input: { items: [{ content: 'a', status: 'odd' }] } }] },
    { text: ['ok'], everyMs: 100 },
  ])
  const { start, client } = await world(t, server)
  await start()
  const watched = framesOf(client, 'c')
  await watched.until(({ kind }) => kind === 'todos')
  t.match(await client.call('GET /agents/{id}', { id: 'c' }), { activity: { todo: 'write' } })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(
    frames.filter(({ kind }) => kind === 'todos'),
    exactly({
      items: exactly(
        { content: 'read', status: 'completed', note: undefined },
        { content: 'write', status: 'in_progress', activeForm: 'writing' },
      ),
    }),
  )
})
