import t, { type Test } from 'tap'
import type {
  SubagentLimits,
  ProviderAdapter,
  ToolResult,
  TurnIo,
  TurnRequest,
} from '../../../../plugins/agent/providers/adapter.js'
import { OpenCards } from '../../../../plugins/agent/cards/cards.js'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { framesOf } from '../../../../plugins/agent/turn/frames/frame-log.js'
import { ownFrames } from '../../../../plugins/agent/subagents/frames.js'
import { AdapterRun } from '../../../../plugins/agent/turn/adapter-run.js'
import { Providers } from '../../../../plugins/agent/providers/providers.js'
import type { ToolContext } from '../../../../plugins/agent/tools/tool.js'
import { tools } from '../../../../plugins/agent/tools/tools.js'
import { Turn } from '../../../../plugins/agent/turn/turn.js'
import { closeRun } from '../../../../plugins/agent/turn/end.js'
import type { WorkingIo } from '../../../../plugins/agent/turn/environment/environment.js'
import { turnIo } from '../../../../plugins/agent/turn/io.js'
import { refuse } from '../../../../sdk/index.js'
import { journalsIn, memoryStore } from '../../../support/journals.js'
import { exactly } from '../../../support/lists.js'

type Run = (request: TurnRequest, io: TurnIo) => AsyncIterable<Frame>

const adapterOf = (id: string, models: string[], run: Run): ProviderAdapter => ({
  id,
  label: id,
  harnesses: ['native'],
  ownHarness: 'native',
  models,
  commands: [],
  run,
  abilities: () => ({
    words: true,
    permissions: 'modes',
    questions: true,
    commands: false,
    terminals: false,
    state: true,
    offline: true,
  }),
})

/** The io of a turn whose subagents run one function, with the real tools for subagents. */
const ioOf = (t: Test, run: Run, helpers: SubagentLimits = { atOnce: 5, perTurn: 50, depth: 3 }) => {
  const [journal, logged, helped]: [ReturnType<typeof journalsIn>, string[], string[]] = [journalsIn(t), [], []]
  const say = (message: string) => void logged.push(message)
  const log = { info: () => {}, warn: say, error: say }
  const providers = new Providers(memoryStore(), log, [
    adapterOf('test', ['one', 'two'], run),
    adapterOf('other', ['far'], run),
  ])
  const host = {
    journal,
    log,
    cards: new OpenCards(),
    changed: () => {},
    helped: (key: string) => void helped.push(key),
    emit: () => {},
  }
  const message = {
    run: 'r-1',
    conversationId: 'c',
    messageId: 'm',
    input: { prompt: 'go' },
    by: 'ada@example.org',
    attended: true,
    at: 0,
  }
  const turn = new Turn(
    host,
    { cancel: async () => {}, afterAnswer: async () => {} },
    {
      message,
      startedAt: 0,
      attempt: 1,
      boots: 0,
      provider: 'test',
      harness: 'native',
      model: 'one',
      permissionMode: 'plan',
      parked: [],
    },
  )
  const adapterRun = new AdapterRun(turn, { asks: true, holdMs: 30_000 })
  const io: WorkingIo = turnIo(
    turn,
    { root: '/', cwd: '/', preamble: '', attachments: [], mentions: [], helpers, allowedTools: ['Delegate', 'Join'] },
    adapterRun,
    {
      remembered: { names: () => new Set(), add: () => {} },
      subagentDeps: { providers, log },
      expose: () => Promise.reject(new Error('no programs here')),
      toolbox: {
        face: (name, input) => {
          try {
            return { category: tools[name]!.category, ...tools[name]!.describe(tools[name]!.check(input)) }
          } catch (error) {
            return { refused: String(error) }
          }
        },
        run: (name, input, signal, callContext) =>
          tools[name]!.run(tools[name]!.check(input), { signal, ...callContext } as ToolContext),
        stamp: async () => undefined,
        offered: async () => [],
        walled: () => Promise.reject(new Error('no programs')),
        shared: async () => undefined,
      },
    },
  )
  const frames = async () => {
    await turn.log.settled()
    return (await journal.read<{ event: Frame }>(framesOf('r-1'))).map(({ event }) => event)
  }
  const textOf = async (call: Promise<ToolResult>) => (await call).text
  return { turn, io, frames, logged, helped, providers, textOf }
}

const says = (text: string): Run =>
  async function* () {
    yield { kind: 'delta', text }
    yield { kind: 'text_end' }
  }
const waits: Run = async function* (_, { signal }) {
  await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
const ask = { description: 'd', prompt: 'p' }

t.test('a subagent is a separate turn, one level deeper, with its own messages and the same permissions', async t => {
  const seen: TurnRequest[] = []
  const { io, turn, helped } = ioOf(t, async function* (request, inner) {
    seen.push(request)
    t.same(inner.takeWords(), [])
    t.equal(await inner.waitWords(), undefined)
    await inner.state({ not: 'kept' })
    inner.mode('bypassPermissions')
    yield* says('hi')(request, inner) as AsyncGenerator<Frame>
  })
  turn.words.put({ text: 'for the turn', attachments: [] })
  t.same(await io.helper({ ...ask, agentType: 'reader', model: 'two' }, 'a'), { status: 'completed', summary: 'hi' })
  t.match(
    seen,
    exactly({
      run: 'r-1',
      depth: 1,
      words: 'p',
      prompt: 'p',
      model: 'two',
      permissionMode: 'plan',
      attended: true,
      attempt: 1,
      allowedTools: exactly('Delegate', 'Join'),
      helpers: { depth: 3 },
      state: undefined,
      resume: undefined,
    }),
  )
  t.equal(turn.entry.fields.state, undefined)
  t.equal(io.takeWords().length, 1)
  t.same(helped, ['r-1:a', 'r-1:a'])
})

t.test('a model of another provider is run by that provider, and an unknown model is refused', async t => {
  const { io, frames } = ioOf(t, async function* ({ model, harness }) {
    yield* says(`${model} ${harness}`)({} as TurnRequest, {} as TurnIo) as AsyncGenerator<Frame>
  })
  t.match(await io.helper({ ...ask, model: 'far' }, 'a'), { status: 'completed', summary: 'far native' })
  t.match(await io.helper({ ...ask, model: 'none' }, 'b'), {
    status: 'failed',
    summary: /no provider has a model "none".*one, two/,
  })
  t.same((await frames()).filter(({ kind }) => kind === 'subagent').length, 1)
})

t.test('frames about the whole turn are not accepted from a subagent', async t => {
  const { io, frames, turn } = ioOf(t, async function* () {
    yield { kind: 'session', sessionId: 's' }
    yield { kind: 'init', model: 'x' }
    yield { kind: 'commands', items: [] }
    yield { kind: 'todos', items: [] }
    yield { kind: 'mode', mode: 'default' }
    yield { kind: 'tool_call', id: 't', name: 'Own', category: 'read', status: 'in_progress' }
    yield { kind: 'usage', inputTokens: 3, outputTokens: 4, costUsd: 1 }
    yield { kind: 'usage', inputTokens: 10, costUsd: 2 }
    yield { kind: 'error', message: 'broken', code: 'reauth' }
    yield { kind: 'done', reason: 'completed' }
  })
  t.same(await io.helper(ask, 'a'), { status: 'failed', summary: 'broken' })
  t.match(
    await frames(),
    exactly(
      { kind: 'subagent' },
      { kind: 'tool_call', id: 'a:t', parentToolUseId: 'a' },
      { kind: 'subagent_update', toolUses: 1, lastTool: 'Own' },
      { kind: 'subagent_update', tokens: 7 },
      { kind: 'usage', subagent: 'a', inputTokens: 3, outputTokens: 4, costUsd: 1 },
      { kind: 'subagent_update', tokens: 17 },
      { kind: 'usage', subagent: 'a', inputTokens: 10, costUsd: 2 },
      { kind: 'tool_call_update', id: 'a:t', status: 'failed' },
      { kind: 'subagent_update', status: 'failed', error: 'broken' },
    ),
  )
  t.equal((await frames()).length, 9)
  t.match(turn.record, { failure: undefined, sessionId: undefined, costUsd: 3, toolUses: 1 })
})

t.test('the summary is the last block of prose, shortened', async t => {
  const long = 'x'.repeat(10_000)
  const { io } = ioOf(t, async function* () {
    yield { kind: 'delta', text: 'first' }
    yield { kind: 'text_end' }
    yield { kind: 'delta', text: long }
  })
  const { summary } = await io.helper(ask, 'a')
  t.equal(summary, `${'x'.repeat(4000)}…`)
})

t.test('a subagent that throws has failed: after a bug with a fixed message, after a refusal with its own', async t => {
  const { io, logged } = ioOf(t, async function* ({ words }) {
    if (words === 'bug') throw new Error('secret detail')
    refuse('unprocessable', 'not like this')
  })
  t.match(await io.helper({ ...ask, prompt: 'bug' }, 'a'), { status: 'failed', summary: /failed unexpectedly/ })
  t.match(logged, exactly('a subagent failed because of a bug'))
  t.match(await io.helper(ask, 'b'), { status: 'failed', summary: 'not like this' })
  t.equal(logged.length, 1)
})

t.test(
  'a provider that throws before its first frame has failed too, and a long answer is cut at its limit',
  async t => {
    const { io, frames } = ioOf(t, ({ words }) => {
      if (words === 'bug') throw new Error('before anything')
      return (async function* () {
        for (let n = 0; n < 5000; n++) yield { kind: 'delta' as const, text: ' word' }
      })()
    })
    await io.helper({ ...ask, prompt: 'bug', background: true }, 'a')
    t.match(await io.tool('Join', {}, 'j'), { ok: false, text: /a \(d\): failed: the subagent failed unexpectedly/ })
    const { summary } = await io.helper(ask, 'b')
    t.match(summary, /^word word.*…$/)
    t.equal(summary.length, 4001)
    t.equal((await frames()).filter(({ kind }) => kind === 'subagent').length, 2)
  },
)

t.test('a turn that the next start continues leaves its subagents unchanged', async t => {
  const { io, turn, frames } = ioOf(t, waits)
  void io.helper(ask, 'a')
  await turn.log.settled()
  const before = (await frames()).length
  await turn.freeze()
  await io.idle()
  t.equal((await frames()).length, before)
  t.match(turn.record.helpers.open, exactly({ id: 'a' }))
})

t.test('Join waits for the named subagents or for all, or for a time, and only for own subagents', async t => {
  const go = Promise.withResolvers<void>()
  const { io, textOf } = ioOf(t, async function* (request, inner) {
    if (request.words === 'slow') await Promise.race([go.promise, inner.waitWords().then(() => go.promise)])
    if (request.words === 'foreign')
      return yield* says((await inner.tool('Join', { ids: ['a'] }, 'j')).text)(request, inner) as AsyncGenerator<Frame>
    yield* says(request.words)(request, inner) as AsyncGenerator<Frame>
  })
  t.match(await textOf(io.tool('Join', {}, 'j0')), 'no subagent works in the background')
  t.match(await io.tool('Delegate', { description: 'slow one', prompt: 'slow', background: true }, 'a'), {
    ok: true,
    text: /subagent a is at work/,
  })
  await io.tool('Delegate', { description: 'quick one', prompt: 'quick', background: true }, 'b')
  t.match(await textOf(io.tool('Join', { ids: ['b'] }, 'j1')), 'b (quick one): completed: quick')
  t.match(await io.tool('Join', { timeoutMs: 1 }, 'j2'), { ok: false, text: 'a (slow one): still at work' })
  t.match(await textOf(io.tool('Delegate', { ...ask, prompt: 'foreign' }, 'c')), /expected none.*found "a"/)
  t.match(await io.tool('Join', { ids: ['x'] }, 'j3'), { ok: false, text: /one of a, b, found "x"/ })
  for (const bad of [{ ids: [] }, { ids: 'a' }, { ids: [1] }, { timeoutMs: 0 }])
    t.match(await io.tool('Join', bad, `j-${JSON.stringify(bad)}`), { ok: false, text: /Join takes (ids|timeoutMs)/ })
  go.resolve()
  t.match(await io.tool('Join', {}, 'j4'), { ok: true, text: 'a (slow one): completed: slow' })
  t.match(await textOf(io.tool('Join', { ids: ['a', 'b'] }, 'j5')), /a .*\nb /, 'results are returned again')
  for (const bad of [
    {},
    { description: '', prompt: 'x' },
    { description: 'x' },
    { ...ask, background: 1 },
    { ...ask, model: '' },
  ]) {
    t.match(await io.tool('Delegate', bad, `d-${JSON.stringify(bad)}`), { ok: false, text: /Delegate takes/ })
  }
})

t.test('a repeated call returns the result of the subagent it started, and starts no other', async t => {
  const { io, frames } = ioOf(t, says('once'))
  const [one, two] = await Promise.all([io.helper(ask, 'a'), io.helper(ask, 'a')])
  t.same([one, two, await io.helper(ask, 'a')], Array(3).fill({ status: 'completed', summary: 'once' }))
  t.equal((await frames()).filter(({ kind }) => kind === 'subagent').length, 1)
})

t.test('an agent that ends stops its running subagents', async t => {
  const { io, frames } = ioOf(t, async function* (request, inner) {
    if (request.words === 'outer') await inner.helper({ ...ask, prompt: 'inner', background: true }, 'x')
    else yield* waits(request, inner)
  })
  t.match(await io.helper({ ...ask, prompt: 'outer' }, 'a'), { status: 'completed' })
  t.match(
    (await frames()).filter(({ kind }) => kind === 'subagent_update'),
    exactly({ id: 'a:x', status: 'killed' }, { id: 'a', status: 'completed' }),
  )
  await io.helper({ ...ask, background: true }, 'b')
  await io.idle()
  t.match((await frames()).at(-1), { kind: 'subagent_update', id: 'b', status: 'killed' })
})

t.test('a subagent that ignores its end is abandoned with the turn, and its later frames are ignored', async t => {
  const late = Promise.withResolvers<void>()
  const spoken = Promise.withResolvers<void>()
  const { io, turn, frames } = ioOf(t, async function* (_, inner) {
    yield { kind: 'delta', text: 'begun' }
    await late.promise
    void inner.tool('Join', {}, 'j')
    yield { kind: 'delta', text: 'too late' }
    spoken.resolve()
  })
  void io.helper(ask, 'a')
  await turn.stop()
  closeRun(turn, 'stopped')
  late.resolve()
  await new Promise(resolve => setImmediate(resolve))
  t.match((await frames()).at(-1), { kind: 'subagent_update', id: 'a', status: 'killed' })
})

t.test('the state of subagents is read from the frames of the turn', t => {
  const own: Frame[] = [
    { kind: 'delta', text: 'mine' },
    { kind: 'tool_call', id: 'c1', name: 'Delegate', category: 'other', status: 'pending' },
    { kind: 'subagent', id: 'c1', subagentKind: 'subagent' },
    { kind: 'subagent_update', id: 'c1', tokens: 5 },
    { kind: 'permission', requestId: 'r-1.1', toolName: 'Write' },
    { kind: 'tool_call_update', id: 'c1', status: 'completed' },
    { kind: 'usage', inputTokens: 1 },
  ]
  const foreign: Frame[] = [
    { kind: 'delta', text: 'its', parentToolUseId: 'c1' },
    { kind: 'tool_call', id: 'c1:c1', name: 'Write', category: 'edit', status: 'pending', parentToolUseId: 'c1' },
    { kind: 'tool_call_update', id: 'c1:c1', status: 'completed' },
    { kind: 'permission', requestId: 'r-1.h2', toolName: 'Write' },
    { kind: 'resolved', requestId: 'r-1.h2' },
    { kind: 'usage', subagent: 'c1', inputTokens: 5 },
  ]
  const all = [
    own[0]!,
    own[1]!,
    own[2]!,
    foreign[0]!,
    foreign[1]!,
    foreign[2]!,
    foreign[3]!,
    foreign[4]!,
    own[3]!,
    foreign[5]!,
    own[4]!,
    own[5]!,
    own[6]!,
  ]
  t.same(ownFrames(all), own)
  t.end()
})
