import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame, SubagentStatus } from '../../../../plugins/agent/contract.js'
import { daemonWith, type Support } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { state, transcript } from '../support.js'

type Kind<K extends Frame['kind']> = Extract<Frame, { kind: K }>

/** A line of a script, nested in `depth` subagents. */
const inside = (depth: number, line: string): string => `${'| '.repeat(depth)}${line}`
const of = <K extends Frame['kind']>(frames: readonly Frame[], kind: K): Kind<K>[] =>
  frames.filter((frame): frame is Kind<K> => frame.kind === kind)
const textOf = (frames: readonly Frame[], parent?: string): string =>
  of(frames, 'delta')
    .filter(frame => frame.parentToolUseId === parent)
    .map(({ text }) => text)
    .join('')
const call = (frames: readonly Frame[], id: string): Kind<'tool_call'> | undefined =>
  of(frames, 'tool_call').find(frame => frame.id === id)
const result = (frames: readonly Frame[], id: string): Kind<'tool_call_update'> | undefined =>
  of(frames, 'tool_call_update').findLast(frame => frame.id === id)
const ends = (frames: readonly Frame[]): [string, SubagentStatus][] =>
  of(frames, 'subagent_update').flatMap(({ id, status }): [string, SubagentStatus][] =>
    status && !['running', 'blocked'].includes(status) ? [[id, status]] : [],
  )

/** Checks rules 5 and 6 of the frame log, and that every subagent ended before the run. */
const isWhole = (t: Test, frames: readonly Frame[]): void => {
  const started = new Set<string>()
  const open = new Set<string>()
  const known = new Set<string>()
  for (const frame of frames) {
    if ('parentToolUseId' in frame && frame.parentToolUseId !== undefined && !started.has(frame.parentToolUseId))
      t.fail(`${frame.kind} of an unknown subagent`)
    if (frame.kind === 'tool_call') {
      if (known.has(frame.id)) t.fail(`two calls ${frame.id}`)
      known.add(frame.id)
      open.add(frame.id)
    }
    if (frame.kind === 'tool_call_update' && (frame.status === 'completed' || frame.status === 'failed'))
      open.delete(frame.id)
    if (frame.kind === 'subagent') started.add(frame.id)
  }
  t.same([...open], [], 'every call is closed')
  t.same(
    ends(frames)
      .map(([id]) => id)
      .sort(),
    [...started].sort(),
    'every subagent ends once',
  )
  t.equal(frames.at(-1)?.kind, 'done')
}

const settings = ({ workspace }: Support, values: object): void => {
  mkdirSync(join(workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(join(workspace, '.sandbox', 'config', 'settings.json'), JSON.stringify(values))
}

t.test('a subagent works in the same tree, its frames are below its call, and its final text is returned', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const frames = await runTurn(
    daemon.client,
    'a',
    'say first\nhelper look around\n| think hm\n| write made.txt\n| | by a helper\n| say found\n| say made '
      + 'it\nsay it said $out',
  )
  isWhole(t, frames)
  t.match(call(frames, 'c2'), {
    name: 'Delegate',
    category: 'other',
    target: 'look around',
    parentToolUseId: undefined,
  })
  const at = (fits: (frame: Frame) => boolean) => frames.findIndex(fits)
  const [began, ended] = [
    at(({ kind }) => kind === 'subagent'),
    at(frame => frame.kind === 'subagent_update' && frame.status !== undefined),
  ]
  t.match(frames[began], { id: 'c2', subagentKind: 'subagent', description: 'look around', model: 'script' })
  t.match(frames[ended], { id: 'c2', status: 'completed', summary: 'made it' })
  t.match(call(frames, 'c2:c2'), { name: 'Write', parentToolUseId: 'c2', target: 'made.txt' })
  for (const [index, frame] of frames.entries())
    if ('parentToolUseId' in frame && frame.parentToolUseId) t.ok(index > began && index < ended, frame.kind)
  t.same(
    of(frames, 'subagent_update').map(({ toolUses, lastTool, tokens }) => [toolUses, lastTool, tokens !== undefined]),
    [
      [1, 'Write', false],
      [undefined, undefined, true],
      [undefined, undefined, false],
    ],
  )
  t.match(result(frames, 'c2'), { status: 'completed', content: exactly({ text: 'made it' }) })
  t.equal(textOf(frames, 'c2'), 'foundmade it')
  t.equal(textOf(frames), 'firstit said made it')
  t.equal(readFileSync(join(daemon.workspace, 'made.txt'), 'utf8'), 'by a helper\n')
  t.equal(of(frames, 'session').length, 1)
  const { messages } = await transcript(daemon, 'a')
  t.match(messages.map(({ text }) => text).slice(1), exactly('first', 'it said made it'))
  t.match(
    messages[1]?.tools,
    exactly({
      id: 'c2',
      thinking: 'hm',
      status: 'completed',
      children: exactly({ id: 'c2:c2', name: 'Write', status: 'completed' }),
    }),
  )
  const { totals } = (await state(daemon, 'a')).conversation
  t.match(totals, { turns: 1, helpers: 1, toolUses: 2 })
  t.equal(
    totals.inputTokens,
    of(frames, 'usage').reduce((sum, { inputTokens = 0 }) => sum + inputTokens, 0),
    'its usage is counted',
  )
  t.equal(of(frames, 'usage').length, 2)
})

t.test('background subagents run beside the script, and join waits for all of them', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const frames = await runTurn(
    client,
    'b',
    [
      'helper& one',
      '| run while [ ! -e go ]; do sleep 0.02; done',
      '| say from one',
      'helper& two',
      '| say from two',
      'say beside',
      'write go',
      'join',
      'say $out',
      'join',
      'say $out',
    ].join('\n'),
  )
  isWhole(t, frames)
  t.match(
    of(frames, 'subagent').map(({ id, background }) => [id, background]),
    exactly(exactly('c1', true), exactly('c2', true)),
  )
  t.match(result(frames, 'c1'), { status: 'completed', content: exactly({ text: /subagent c1 is at work/ }) })
  const [joined, prose] = [
    frames.findIndex(frame => frame.kind === 'tool_call_update' && frame.id === 'c5' && frame.status === 'completed'),
    textOf(frames),
  ]
  for (const [index, frame] of frames.entries())
    if (frame.kind === 'subagent_update' && frame.status) t.ok(index < joined, `${frame.id} has ended`)
  t.match(result(frames, 'c5'), {
    content: exactly({ text: 'c1 (one): completed: from one\nc2 (two): completed: from two' }),
  })
  t.match(prose, /^beside.*from one.*from two.*no subagent works in the background$/s)
  t.ok(existsSync(join(workspace, 'go')))
})

t.test('subagents are nested up to the depth limit, and the next one fails with the limit', async t => {
  const daemon = await daemonWith(t, ['agent', 'settings'])
  const script = [
    'helper a',
    inside(1, 'helper b'),
    inside(2, 'helper c'),
    inside(3, 'say in c'),
    inside(2, 'say $out'),
    inside(1, 'say $out'),
    'say $out',
  ]
  const deep = await runTurn(daemon.client, 'd', script.join('\n'))
  isWhole(t, deep)
  t.same(
    of(deep, 'subagent').map(({ id }) => id),
    ['c1', 'c1:c1', 'c1:c1:c1'],
  )
  t.match(call(deep, 'c1:c1:c1'), { parentToolUseId: 'c1:c1' })
  t.equal(textOf(deep), 'in c')
  const { messages } = await transcript(daemon, 'd')
  t.match(
    messages[1]?.tools,
    exactly({ id: 'c1', children: exactly({ id: 'c1:c1', children: exactly({ id: 'c1:c1:c1' }) }) }),
  )
  settings(daemon, { subagentDepth: 2 })
  const shallow = await runTurn(daemon.client, 'd', script.join('\n'))
  isWhole(t, shallow)
  t.equal(of(shallow, 'subagent').length, 2)
  t.match(result(shallow, 'c1:c1:c1'), { status: 'failed', content: exactly({ text: /2 deep \(subagentDepth\)/ }) })
  t.match(textOf(shallow), /2 deep \(subagentDepth\)/, 'the caller gets the failure, and continues')
  t.match((await state(daemon, 'd')).conversation.totals, { helpers: 5, turns: 2 })
})

t.test('subagents beyond the limit at once or per turn fail with the limit', async t => {
  const daemon = await daemonWith(t, ['agent', 'settings'])
  settings(daemon, { subagentsAtOnce: 2, subagentsPerTurn: 3 })
  const frames = await runTurn(
    daemon.client,
    'l',
    'repeat 3 helper& wait\n| wait 60000\nsay $out\nhelper fourth\n| say no\nsay $out',
  )
  isWhole(t, frames)
  t.match(result(frames, 'c1.3'), {
    status: 'failed',
    content: exactly({ text: /2 subagents may be at work at once \(subagentsAtOnce\).*Join/ }),
  })
  const more = await runTurn(daemon.client, 'l', 'repeat 4 helper quick\n| say done\nsay $out')
  isWhole(t, more)
  t.equal(of(more, 'subagent').length, 3)
  t.match(result(more, 'c1.4'), { status: 'failed', content: exactly({ text: /3 subagents \(subagentsPerTurn\)/ }) })
})

t.test('a subagent that fails or is not joined is reported, and the turn continues', async t => {
  const { client } = await daemonWith(t, ['agent'])
  const frames = await runTurn(
    client,
    'f',
    [
      'helper breaks',
      '| say begun',
      '| fail it broke',
      'say $out',
      'helper& breaks too',
      '| Say',
      '| fail quietly',
      'helper& odd',
      '| say a',
      '| nonsense',
      'join',
      'say $out',
      'helper& left',
      '| wait 60000',
      'say end',
    ].join('\n'),
  )
  isWhole(t, frames)
  t.match(
    of(frames, 'subagent_update').find(({ id, status }) => id === 'c1' && status === 'failed'),
    { error: 'it broke' },
  )
  t.match(result(frames, 'c1'), { status: 'failed', content: exactly({ text: 'it broke' }) })
  t.equal(of(frames, 'error').length, 0)
  t.match(
    ends(frames),
    exactly(exactly('c1', 'failed'), exactly('c3', 'completed'), exactly('c4', 'failed'), exactly('c7', 'killed')),
  )
  t.match(textOf(frames), /^it broke.*c4 \(odd\): failed: line 2.*end$/s)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
})

t.test('a stop ends the subagents with the turn, including their commands', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const { client } = daemon
  const script = [
    'helper& beside',
    '| wait 60000',
    'helper outer',
    inside(1, 'helper inner'),
    inside(2, 'run trap "" TERM; sleep 619'),
  ]
  await client.call('POST /agent', { conversationId: 's', prompt: script.join('\n') })
  const watched = framesOf(client, 's')
  await watched.until(
    frame => frame.kind === 'tool_call_update' && frame.id === 'c2:c1:c1' && frame.status === 'in_progress',
  )
  const card = async () => (await client.call('GET /agents')).agents.find(({ id }) => id === 's')
  t.match(await card(), { subagents: { running: 3, total: 3 }, activity: { tool: 'Shell' } })
  const before = Date.now()
  await client.call('POST /agent/stop', { conversationId: 's' })
  t.ok(Date.now() - before < 15_000)
  const frames = (await watched.all()).map(({ event }) => event)
  isWhole(t, frames)
  t.same(ends(frames).sort(), [
    ['c1', 'killed'],
    ['c2', 'killed'],
    ['c2:c1', 'killed'],
  ])
  for (const id of ['c2', 'c2:c1', 'c2:c1:c1']) t.match(result(frames, id), { status: 'failed' }, id)
  t.match(frames.at(-1), { kind: 'done', reason: 'stopped' })
  t.match((await state(daemon, 's')).conversation, { lastEnd: 'stopped', totals: { helpers: 3 } })
  t.match(await card(), { subagents: { running: 0, total: 3 } })
})

t.test('a subagent asks like the turn, and gets its own answer', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', {
    conversationId: 'q',
    isolated: true,
    prompt: 'helper asks\n| ask which?\n| | red: r\n| | blue: b\n| say chose $answer\nsay $out and $answer',
  })
  const watched = framesOf(client, 'q')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  t.match((await state(daemon, 'q')).live, { state: 'parked', cards: exactly({ requestId, kind: 'question' }) })
  await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'which?': 'blue' } })
  const frames = (await watched.all()).map(({ event }) => event)
  isWhole(t, frames)
  t.equal(of(frames, 'resolved').length, 1)
  t.same(
    of(frames, 'subagent_update')
      .map(({ status }) => status)
      .filter(Boolean),
    ['blocked', 'running', 'completed'],
  )
  t.equal(textOf(frames), 'chose blue and ')
})

t.test('a subagent starts without permission, and its calls need the same permissions as the turn', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', {
    conversationId: 'p',
    permissionMode: 'default',
    prompt: 'helper writes\n| write a.txt\n| | x\n| say $out\nsay $out',
  })
  const watched = framesOf(client, 'p')
  const { requestId } = await watched.until(({ kind }) => kind === 'permission')
  await client.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'deny', feedback: 'not here' })
  const frames = (await watched.all()).map(({ event }) => event)
  isWhole(t, frames)
  t.equal(of(frames, 'permission').length, 1)
  t.match(result(frames, 'c1:c1'), { status: 'failed', content: exactly({ text: /said no: not here/ }) })
  t.notOk(existsSync(join(workspace, 'a.txt')))
  const none = await runTurn(client, 'n', 'helper any\n| say x', { allowedTools: ['Read'] })
  t.match(result(none, 'c1'), { status: 'failed', content: exactly({ text: /may not use Delegate/ }) })
  const only = await runTurn(client, 'o', 'helper any\n| write b.txt\n| say $out', { allowedTools: ['Delegate'] })
  t.match(
    result(only, 'c1:c1'),
    { status: 'failed', content: exactly({ text: /may not use Write/ }) },
    'a subagent may use the tools of the turn',
  )
})

t.test('an open card of a subagent is closed when it ends', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 'c', prompt: 'helper& asks\n| ask which?\nwait words\nsay on' })
  const watched = framesOf(client, 'c')
  await watched.until(({ kind }) => kind === 'question')
  await client.call('POST /agent/steer', { conversationId: 'c', text: 'go on' })
  const frames = (await watched.all()).map(({ event }) => event)
  isWhole(t, frames)
  t.match(
    of(frames, 'resolved').map(({ reply }) => reply),
    exactly(undefined),
  )
  t.same(ends(frames), [['c1', 'killed']])
})

t.test('watchers of the sandbox are notified when subagents start, progress and end', async t => {
  const daemon = await daemonWith(t, ['agent', 'system'])
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const events = (await daemon.client.call('GET /events', {}, { signal: stop.signal })) as AsyncIterable<{
    kind: string
    domains?: string[]
    versions?: { [domain: string]: number }
    keys?: string[]
  }>
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'e', prompt: 'helper h\n| say x' })
  for await (const event of events) {
    if (event.kind !== 'runtimeChanged' || !event.domains?.includes('subagents')) continue
    t.ok(event.versions!.subagents! >= 1)
    t.match(event.keys, exactly(`${run}:c1`))
    break
  }
})
