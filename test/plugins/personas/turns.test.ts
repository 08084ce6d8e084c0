import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import type { PersonaCard } from '../../../plugins/personas/contract.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, makeWorkspace, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { modelServer, type ScriptedAnswer, type SeenBody } from '../../support/servers/model-server.js'
import { clientOf, People } from '../../support/people.js'
import { runTurn } from '../../support/turns.js'
import { noWall } from '../../support/walls.js'

const skip = noWall((await wallKind()) !== 'none')

/** A program that tries what it may not do by itself, and says what came of it. */
const PROGRAM = `
import { createInterface } from 'node:readline'
import { readFileSync, writeFileSync, readdirSync } from 'node:fs'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const attempt = work => { try { return String(work()) } catch (error) { return error.code } }
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/prompt') {
    const text = JSON.stringify({
      wrote: attempt(() => writeFileSync(import.meta.dirname + '/by-program.txt', 'x') ?? 'it'),
      sees: attempt(() => readdirSync(import.meta.dirname + '/..').sort()),
      told: params.prompt.map(part => part.text).join('|'),
    })
    send({ method: 'session/update', params: { sessionId: 's-1', update:
      { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
    send({ id, result: { stopReason: 'end_turn' } })
  }
}
`

/** Each request to the model, and the calls that it answers with next. */
const seen: SeenBody[] = []
let next: ScriptedAnswer = { text: ['Done.'] }
const server = await modelServer(t, 'openai', ({ body, text }) => {
  if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
  seen.push(body)
  const answer = next
  next = { text: ['Done.'] }
  return answer
})

const people = new People()
people.add('owner@sandbox.local', 'owner')
people.add('ann@example.org', 'collaborator', ['docs'])
const connected = (id: string, kind: string) => ({ id, kind, label: id, config: {}, secrets: [] })
const daemon: Support = await daemonWith(
  t,
  ['personas', 'skills', 'settings', 'agent', 'agents', 'activity', 'areas'],
  {
    files: { 'docs/a.md': 'alpha\n', 'src/b.ts': 'beta\n', 'docs/agent.mjs': PROGRAM },
    fakes: {
      ...people.fakes,
      'capabilities.records': ({ kind }) => ({
        capabilities: [connected('a', 'cli'), connected('b', 'cli'), connected('program', 'agent')].filter(
          each => kind === undefined || each.kind === kind,
        ),
      }),
      'capabilities.runtime': ({ id }) => ({
        id,
        label: 'Program',
        command: [process.execPath, join(daemon.workspace, 'docs/agent.mjs')],
        env: {},
      }),
      'env.variables': ({ capabilities = ['a', 'b'] }) => ({
        variables: Object.fromEntries(capabilities.map(id => [`TOKEN_${id.toUpperCase()}`, `value-${id}`])),
      }),
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
    },
  },
)
people.admit(daemon)
const { client, workspace } = daemon
await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })

const card = (id: string, more: Partial<PersonaCard> = {}) =>
  client.call('POST /personas', { id, capabilities: [], ...more })
const shown = (frames: readonly Frame[]): string => JSON.stringify(frames)
const systemOf = ({ messages = [] }: SeenBody): unknown => messages.find(({ role }) => role === 'system')?.content
const toolsOf = ({ tools = [] }: SeenBody): string[] =>
  (tools as { function: { name: string } }[]).map(tool => tool.function.name)
const asModel = { agent: 'endpoint/local', model: 'm' }

t.test(
  'a card that only reads is given no tool that writes or runs, and the gate refuses them all the same',
  { skip },
  async t => {
    await card('reader', { powers: { files: 'read', shell: false, code: false } })
    next = {
      calls: [
        { name: 'Write', input: { path: 'docs/a.md', content: 'x' } },
        { name: 'Shell', input: { command: 'id' } },
      ],
    }
    const frames = await runTurn(client, 'n1', 'go', { ...asModel, actsAs: 'reader' })
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    const tools = toolsOf(seen.at(-2)!)
    for (const name of ['Write', 'Append', 'Edit', 'Delete', 'Move', 'Shell', 'Code'])
      t.notOk(tools.includes(name), name)
    t.ok(tools.includes('Read'))
    t.match(shown(frames), /may not use Write: its card says so \(powers.files\)/)
    t.match(shown(frames), /may not use Shell: its card says so \(powers.shell\)/)
    t.match(
      shown(await runTurn(client, 's1', 'write docs/a.md\n| x\nrun id', { actsAs: 'reader' })),
      /powers.files.*powers.shell/,
    )
    t.equal(readFileSync(join(workspace, 'docs/a.md'), 'utf8'), 'alpha\n')
    const { withheld } = await client.call('GET /personas/{id}/resolved', { id: 'reader' })
    t.same(withheld.map(({ tool }) => tool).sort(), [
      'Append',
      'Code',
      'Delete',
      'Edit',
      'Move',
      'Process',
      'Shell',
      'Write',
    ])
  },
)

t.test('a card that reads and may run commands is held by the wall', { skip }, async t => {
  await card('runner', { powers: { files: 'read' } })
  const frames = await runTurn(client, 'w1', 'run cat docs/a.md; echo x > docs/a.md', { actsAs: 'runner' })
  t.match(shown(frames), /alpha.*[Rr]ead-only file system/)
  t.equal(readFileSync(join(workspace, 'docs/a.md'), 'utf8'), 'alpha\n')
  await card('blind', { powers: { files: 'none' } })
  t.match(shown(await runTurn(client, 'w2', 'run ls\nread docs/a.md', { actsAs: 'blind' })), /powers.files/)
  t.notMatch(shown(await runTurn(client, 'w3', 'run ls; cat docs/a.md', { actsAs: 'blind' })), /alpha|README|docs\\n/)
})

t.test('a turn reaches the folders of its card alone, in the workspace and in a private copy', { skip }, async t => {
  await card('writer', { workspace: { folders: ['docs'], startIn: 'docs' } })
  for (const [id, isolated] of [
    ['f1', false],
    ['f2', true],
  ] as const) {
    const prompt = 'run pwd; ls -A ..; cat ../src/b.ts\nread src/b.ts\nwrite src/new.ts\n| x\nread docs/a.md'
    const text = shown(await runTurn(client, id, prompt, { actsAs: 'writer', isolated, startIn: 'src' }))
    t.match(text, /workspace\/docs\\n/, 'it begins in the folder of the card')
    t.notMatch(text, /beta/, id)
    t.match(text, /nothing in the workspace is named src\/b.ts/)
    t.match(text, /alpha/)
  }
  t.notOk(existsSync(join(workspace, 'src/new.ts')))
})

t.test('a shell has the variables of the accounts that the card names and of no other', { skip }, async t => {
  const prompt = 'run env'
  const variables = async (id: string, more: object) => {
    const text = shown(await runTurn(client, id, prompt, more))
    return ['a', 'b'].filter(name => text.includes(`value-${name}`))
  }
  await card('speaks-a', { capabilities: ['a'] })
  await card('lists-b', { powers: { connectors: ['b'] } })
  await card('lists-none', { capabilities: ['a'], powers: { connectors: [] } })
  t.same(await variables('v0', {}), ['a', 'b'], 'without a card all')
  t.same(await variables('v1', { actsAs: 'speaks-a' }), ['a'])
  t.same(await variables('v2', { actsAs: 'lists-b' }), ['b'])
  t.same(await variables('v3', { actsAs: 'lists-none' }), [])
})

t.test('a card that does not exist gives a turn no account and no tools, and activity says so', { skip }, async t => {
  const frames = await runTurn(client, 'u1', 'run env', { actsAs: 'typo' })
  t.match(shown(frames), /there is no persona typo/)
  t.notMatch(shown(frames), /value-/)
  await runTurn(client, 'u2', 'go', { ...asModel, actsAs: 'typo' })
  t.same(toolsOf(seen.at(-1)!), [])
  const { events } = await client.call('GET /activity', {})
  t.match(
    events.find(({ type }) => type === 'persona.unknown'),
    { conversationId: 'u2' },
  )
})

t.test('the prompt of a card in custom mode is the text of the system, until it is empty', { skip }, async t => {
  await card('custom', { systemPromptMode: 'custom' })
  await client.call('POST /personas/{id}/prompt', { id: 'custom', prompt: 'You are a poet.\n' })
  await runTurn(client, 'p1', 'go', { ...asModel, actsAs: 'custom' })
  t.equal(systemOf(seen.at(-1)!), 'You are a poet.\n')
  await client.call('POST /personas/{id}/prompt', { id: 'custom', prompt: '' })
  await runTurn(client, 'p1', 'again', asModel)
  t.match(systemOf(seen.at(-1)!), /coding agent/)
})

t.test('a message that names no model runs on the first of the card that can be used', { skip }, async t => {
  const models = [
    { provider: 'endpoint/gone', model: 'x' },
    { provider: 'endpoint/local', model: 'm', effort: 'low' },
  ]
  await card('modelled', { models })
  const frames = await runTurn(client, 'm1', 'go', { actsAs: 'modelled' })
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { provider: 'endpoint/local', model: 'm' },
  )
  t.match(await client.call('GET /personas/{id}/resolved', { id: 'modelled' }), {
    model: models[1],
    usedBy: exactly({ kind: 'conversation', id: 'm1', label: 'go' }),
  })
  const other = await runTurn(client, 'm2', 'say hi', { actsAs: 'modelled', agent: 'script' })
  t.match(shown(other), /"hi/, 'what the message names wins')
})

t.test(
  'a skill of a kit is told to turns that wear the card and to no other, and is read by its tool',
  { skip },
  async t => {
    await card('skilled')
    await client.call('POST /personas/{id}/skills', {
      id: 'skilled',
      name: 'greet',
      description: 'Use it to greet.',
      body: 'Say ahoy.',
    })
    next = { calls: [{ name: 'Skill', input: { name: 'greet' } }] }
    await runTurn(client, 'k1', 'go', { ...asModel, actsAs: 'skilled' })
    t.match(JSON.stringify(seen.at(-2)), /greet: Use it to greet/)
    t.match(JSON.stringify(seen.at(-1)), /Say ahoy/)
    next = { calls: [{ name: 'Skill', input: { name: 'greet' } }] }
    await runTurn(client, 'k2', 'go', asModel)
    t.notMatch(JSON.stringify(seen.slice(-2)), /Use it to greet|ahoy/)
    await card('skilled', { briefing: { omit: ['skills'] } })
    await runTurn(client, 'k3', 'go', { ...asModel, actsAs: 'skilled' })
    t.notMatch(JSON.stringify(seen.at(-1)!.messages), /Use it to greet/)
    await card('skilled')
    await client.call('POST /personas/{id}/skills/remove', { id: 'skilled', name: 'greet' })
    await runTurn(client, 'k4', 'go', { ...asModel, actsAs: 'skilled' })
    t.notMatch(JSON.stringify(seen.at(-1)), /Use it to greet/)
  },
)

t.test('a skill that is switched off is named to no turn until it is on again', { skip }, async t => {
  await client.call('POST /skills', { name: 'whistle', description: 'Use it to whistle.', body: 'Whistle.' })
  const isNamed = async (id: string) => {
    await runTurn(client, id, 'go', asModel)
    return JSON.stringify(seen.at(-1)).includes('whistle: Use it to whistle.')
  }
  t.ok(await isNamed('o1'))
  await client.call('POST /skills/enabled', { id: 'whistle', enabled: false })
  t.notOk(await isNamed('o2'))
  await client.call('POST /skills/enabled', { id: 'whistle', enabled: true })
  t.ok(await isNamed('o3'))
})

t.test('a card without the power to delegate starts no subagent', { skip }, async t => {
  await card('alone', { powers: { delegate: false } })
  next = { calls: [{ name: 'Delegate', input: { description: 'd', prompt: 'p' } }] }
  const frames = await runTurn(client, 'd1', 'go', { ...asModel, actsAs: 'alone' })
  t.match(shown(frames), /powers.delegate/)
  t.notOk(frames.some(({ kind }) => kind === 'subagent'))
})

t.test(
  'a conversation of somebody limited to areas reaches what both the areas and the card have',
  { skip },
  async t => {
    const ann = clientOf(daemon, 'ann@example.org')
    await card('wide', { workspace: { folders: ['docs', 'src'] } })
    const text = shown(
      await runTurn(ann, 'l1', 'read docs/a.md\nread src/b.ts\nrun ls -A ..', { actsAs: 'wide', startIn: 'docs' }),
    )
    t.match(text, /alpha/)
    t.notMatch(text, /beta|src\\n/)
    await card('elsewhere', { workspace: { startIn: 'src', folders: ['src'] } })
    t.match(
      await refusalOf(() =>
        ann.call('POST /agent', { conversationId: 'l2', prompt: 'say hi', actsAs: 'elsewhere', startIn: 'docs' }),
      ),
      {
        status: 404,
      },
    )
  },
)

t.test(
  'an external program is told the prompt of the card, and the wall holds it to its files and folders',
  { skip },
  async t => {
    await card('program', { powers: { files: 'read' }, systemPromptMode: 'custom' })
    await client.call('POST /personas/{id}/prompt', { id: 'program', prompt: 'You are a poet.' })
    const said = async (id: string, more: object) => {
      const frames = await runTurn(client, id, 'go', { agent: 'agent/program', isolated: true, ...more })
      const text = frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')
      if (!text) throw new Error(shown(frames))
      return { frames, ...(JSON.parse(text) as { wrote: string; sees: string; told: string }) }
    }
    const read = await said('x1', { actsAs: 'program' })
    t.equal(read.wrote, 'EROFS')
    t.match(read.told, /You are a poet/)
    t.match(
      read.frames.find(({ kind }) => kind === 'init'),
      { unenforced: exactly('tools') },
      'its own tools are its own',
    )
    await card('program', { workspace: { folders: ['docs'] } })
    const narrow = await said('x2', { actsAs: 'program' })
    t.equal(narrow.wrote, 'it')
    t.notMatch(narrow.sees, /src/)
  },
)

t.test('a turn sees the nested repositories that its card names and no other', { skip }, async t => {
  for (const name of ['one', 'two']) makeWorkspace(join(workspace, name), { 'text.txt': `in ${name}\n` })
  await card('sees-one', { context: { repos: ['one'] } })
  for (const isolated of [false, true]) {
    const prompt = 'run cat one/text.txt; cat two/text.txt; cat two/.git/HEAD\nread two/text.txt\nlist .'
    const text = shown(await runTurn(client, `r-${isolated}`, prompt, { actsAs: 'sees-one', isolated }))
    t.match(text, /in one/)
    t.notMatch(text, /in two|refs\/heads|two\/\\n/, `isolated: ${isolated}`)
  }
  t.match(shown(await runTurn(client, 'r-all', 'run cat two/text.txt')), /in two/)
})
