import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { mountsLater } from '../../../../sdk/node/wall/later-mounts.js'
import { daemonWith } from '../../../support/daemon.js'
import { noOpencode as skip, OPENCODE } from '../../../support/peers.js'
import { exactly, spread } from '../../../support/lists.js'
import { framesOf } from '../../../support/turns.js'

const shares = skip || ((await mountsLater()) ? false : 'this machine has no bubblewrap')

/** A request to a chat-completions server. */
interface Asked {
  readonly model: string
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

/** A tool call of the model. */
interface ModelCall {
  readonly name: string
  readonly arguments: object
}

const bash = (command: string): ModelCall => ({ name: 'bash', arguments: { command, description: 'Writes' } })

const HEAD = { id: 'x', object: 'chat.completion.chunk', created: 1 }
const choiceOf = (choice: object) => ({ choices: [{ index: 0, ...choice }] })

/** What the model wants of each turn. */
type Wants = ModelCall | { readonly refuses: 401 | 429 }

/** A model server that answers with a tool call, then with a final text. */
const modelServer = async (t: Test) => {
  let asked: Asked[] = []
  let wants: Wants = bash('true')
  const server = createServer(async (request, answer) => {
    const body = await textOf(request)
    if (!request.url?.includes('chat')) return void answer.end('{"data":[]}')
    if ('refuses' in wants) {
      answer.writeHead(wants.refuses, { 'content-type': 'application/json' })
      const message = wants.refuses === 401 ? 'Incorrect API key provided' : 'You exceeded your current quota'
      return void answer.end(JSON.stringify({ error: { message } }))
    }
    const wanted = JSON.parse(body) as Asked
    asked.push(wanted)
    answer.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (choice: object, rest: object = {}) =>
      answer.write(`data: ${JSON.stringify({ ...HEAD, model: wanted.model, ...choiceOf(choice), ...rest })}\n\n`)
    const over = !wanted.tools || wanted.messages.at(-1)?.role === 'tool'
    const call = {
      index: 0,
      id: 'call_1',
      type: 'function',
      function: { name: wants.name, arguments: JSON.stringify(wants.arguments) },
    }
    send({ delta: { role: 'assistant', ...(over ? { content: 'All done.' } : { tool_calls: [call] }) } })
    send(
      { delta: {}, finish_reason: over ? 'stop' : 'tool_calls' },
      { usage: { prompt_tokens: 90, completion_tokens: 7, total_tokens: 97 } },
    )
    answer.end('data: [DONE]\n\n')
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  return {
    port: (server.address() as AddressInfo).port,
    /** Lets the model want something else from now on; returns what it is asked. */
    wanting: (next: Wants): readonly Asked[] => {
      wants = next
      return (asked = [])
    },
  }
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const piece of request) text += String(piece)
  return text
}

/** One program for all tests, each with its own conversations: a start of it takes seconds of processor time. */
const world = async (t: Test) => {
  const { port, wanting } = await modelServer(t)
  const config = {
    model: 'local/m1',
    // The sandbox asks although the program's own settings allow everything.
    permission: 'allow',
    provider: {
      local: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Local',
        options: { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'k' },
        models: { m1: { name: 'M1' }, m2: { name: 'M2' } },
      },
    },
  }
  const daemon = await daemonWith(t, ['settings', 'agent', 'agents'], {
    fakes: {
      'capabilities.records': () => ({
        capabilities: [{ id: 'opencode', kind: 'agent', label: 'OpenCode', config: {}, secrets: [] }],
      }),
      'capabilities.runtime': () => ({
        id: 'opencode',
        label: 'OpenCode',
        command: [OPENCODE!, 'acp'],
        env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config), OPENCODE_DISABLE_MODELS_FETCH: 'true' },
      }),
    },
  })
  await daemon.client.call('POST /settings/patch', { set: { networkAllow: [`localhost:${port}`] } })
  const turn = async (conversationId: string, input: object, answer?: 'once' | 'deny'): Promise<Frame[]> => {
    await daemon.client.call('POST /agent', {
      conversationId,
      agent: 'agent/opencode',
      isolated: true,
      prompt: 'write made.txt',
      ...input,
    })
    const watched = framesOf(daemon.client, conversationId)
    if (answer) {
      const card = (await watched.until(({ kind }) => kind === 'permission' || kind === 'done')) as unknown as Frame
      if (card.kind === 'permission')
        await daemon.client.call('POST /agent/reply', {
          kind: 'permission',
          requestId: card.requestId,
          decision: answer,
        })
    }
    return (await watched.all()).map(({ event }) => event)
  }
  return { ...daemon, turn, wanting, copyOf: (id: string) => join(daemon.data, 'agent/checkouts', id) }
}

let started: ReturnType<typeof world> | undefined
const shared = () => (started ??= world(t))

t.test('a real agent program asks through a card, and its work lands', { skip }, async t => {
  const { turn, wanting, client, workspace, copyOf } = await shared()
  wanting(bash('echo hi > made.txt'))
  const frames = await turn('c', { permissionMode: 'default' }, 'once')
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { provider: 'agent/opencode', harness: 'vendor-code', model: 'local/m1', unenforced: undefined },
  )
  t.match(
    frames.find(({ kind }) => kind === 'permission'),
    { toolName: 'Shell', description: 'echo hi > made.txt' },
  )
  t.match(
    frames.find(({ kind }) => kind === 'usage'),
    { inputTokens: 90, outputTokens: 7 },
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'c' })
  t.match(
    messages.flatMap(({ tools = [] }) => tools).map(({ target }) => target),
    exactly('echo hi > made.txt', 'made.txt'),
    'the record has the command that ran, not its announcement, and the file that it made',
  )
  await client.call('POST /agents/{id}/land', { id: 'c', mode: 'check' })
  t.equal(readFileSync(join(workspace, 'made.txt'), 'utf8'), 'hi\n')
  writeFileSync(join(copyOf('c'), 'made.txt'), 'as it was')
  const refused = await turn('c', { permissionMode: 'default' }, 'deny')
  t.ok(refused.some(({ kind }) => kind === 'permission'))
  t.equal(readFileSync(join(copyOf('c'), 'made.txt'), 'utf8'), 'as it was', 'a refusal counts, whatever its settings')
})

t.test('one process runs turns of two conversations at once, each in its own copy', { skip: shares }, async t => {
  const { turn, wanting, copyOf, kernel } = await shared()
  wanting(bash('pwd > made.txt'))
  const both = await Promise.all(['d', 'e'].map(id => turn(id, { permissionMode: 'default' }, 'once')))
  for (const frames of both) t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  for (const id of ['d', 'e'])
    t.match(readFileSync(join(copyOf(id), 'made.txt'), 'utf8'), new RegExp(`/copies/${id}/tree\n$`))
  const processes = (await kernel.events.collect('system.processes')).flat() as { conversationIds?: string[] }[]
  t.strictSame(
    processes.map(({ conversationIds }) => conversationIds?.filter(id => id === 'd' || id === 'e').toSorted()),
    [['d', 'e']],
  )
})

t.test('an unknown model is refused with the list of models', { skip }, async t => {
  const { turn, wanting } = await shared()
  const asked = wanting(bash('true'))
  t.match(
    (await turn('m', { model: 'local/none' })).find(({ kind }) => kind === 'error'),
    { code: 'model-invalid', message: /no model "local\/none": expected one of .*local\/m1, local\/m2/ },
  )
  const frames = await turn('m', { model: 'local/m2' })
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { model: 'local/m2' },
  )
  t.ok(asked.length > 0 && asked.every(({ model }) => model === 'm2'))
})

t.test('the tools of the sandbox reach the program: a question of its model is a card', { skip }, async t => {
  const questions = [{ question: 'Which colour?', options: [{ label: 'red' }, { label: 'blue' }] }]
  const { client, wanting } = await shared()
  const asked = wanting({ name: 'sandbox_Ask', arguments: { questions } })
  await client.call('POST /agent', { conversationId: 'q', agent: 'agent/opencode', isolated: true, prompt: 'ask' })
  const watched = framesOf(client, 'q')
  const card = (await watched.until(({ kind }) => kind === 'question' || kind === 'done')) as unknown as {
    requestId: string
  }
  await client.call('POST /agent/reply', {
    kind: 'question',
    requestId: card.requestId,
    answers: { 'Which colour?': 'blue' },
  })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match(
    frames.filter(({ kind }) => kind === 'tool_call'),
    exactly({ name: 'Ask' }),
    'it is shown once',
  )
  t.match(JSON.stringify(asked.at(-1)!.messages.at(-1)), /blue/, 'the model gets the answer')
  const served = asked.find(({ tools }) => tools)!.tools!.map(tool => tool.function.name)
  t.ok(served.includes('sandbox_Delegate') && !served.includes('sandbox_Shell'), 'it has its own file tools')
})

const REFUSALS = [
  [401, 'reauth'],
  [429, 'rate_limit'],
] as const
for (const [refuses, code] of spread(REFUSALS, 1)) {
  t.test(`a model server that answers ${refuses} ends the turn soon, with what to do`, { skip }, async t => {
    const { turn, wanting } = await shared()
    wanting({ refuses })
    const frames = await turn(`refused-${refuses}`, {})
    t.match(
      frames.find(({ kind }) => kind === 'error'),
      { code, message: /model server of OpenCode/ },
    )
    t.match(frames.at(-1), { kind: 'done', reason: 'failed' })
  })
}
