import t, { type Test } from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { titleIn } from '../../../../plugins/agent/conversations/titles.js'
import { entryFrom, RunEntry, type EntryFields } from '../../../../plugins/agent/turn/run-entry.js'
import { TurnTiers } from '../../../../plugins/agent/turn/tier/tiers.js'
import { Turn } from '../../../../plugins/agent/turn/turn.js'
import { scoreIn } from '../../../../plugins/agent/turn/tier/judge.js'
import { FailedRounds } from '../../../../plugins/agent/turn/tier/failed-rounds.js'
import type { SettingsGiven } from '../../../../plugins/settings/contract.js'
import type { UsageTurn } from '../../../../plugins/usage/contract.js'
import { daemonWith } from '../../../support/daemon.js'
import { until } from '../../../support/browser/browser.js'
import { exactly } from '../../../support/lists.js'
import { modelServer, type ScriptedReply, type SeenRequest } from '../../../support/servers/model-server.js'
import { framesOf } from '../../../support/turns.js'

const FAST = ['endpoint/local:small']
const ROW = { efforts: [], badges: [], contextWindow: 100_000 }
const EASY: ScriptedReply = { text: ['```json\n{"score": 0.1}\n```'], usage: { input: 40, output: 8 } }
const HARD: ScriptedReply = { text: ['{"score":0.9}'] }
const DONE: ScriptedReply = { text: ['done'], usage: { input: 10, output: 5 } }
const FAILS: ScriptedReply = { text: ['try'], calls: [{ name: 'Shell', input: { command: 'exit 3' } }] }

interface Answers {
  judge?: ScriptedReply
  small?: ScriptedReply | ((nth: number) => ScriptedReply)
  big?: ScriptedReply | ((nth: number) => ScriptedReply)
}

/** A sandbox with a judge, and a server with a big and a small model. */
const world = async (t: Test, answers: Answers = {}) => {
  const asked: string[] = []
  const server = await modelServer(t, 'openai', ({ body }: SeenRequest) => {
    const model = String(body.model) as keyof Answers
    const nth = asked.filter(one => one === model).length
    asked.push(model)
    const usual = model === 'judge' ? EASY : DONE
    const answer = answers[model] ?? usual
    return typeof answer === 'function' ? answer(nth) : answer
  })
  const lines: UsageTurn[] = []
  const choice = { label: 'Local', ready: true, fast: true }
  const models = ['big', 'small'].map(id => ({ id, label: id, ...ROW }))
  const judges = [{ id: 'judge', label: 'Judge', ...ROW }]
  const { client } = await daemonWith(t, ['agent', 'agents', 'settings'], {
    fakes: {
      'endpoints.choices': () => ({
        endpoints: [
          { ...choice, id: 'local', models, default: 'big' },
          { ...choice, id: 'quick', models: judges, default: 'judge' },
        ],
      }),
      'endpoints.target': ({ id }) =>
        server.target(id === 'quick' ? { models: judges, default: 'judge' } : { models, default: 'big' }),
      'usage.record': line => {
        lines.push(line)
        return { ok: true }
      },
    },
  })
  const set = (given: SettingsGiven) =>
    client.call('POST /settings', { quickModel: ['endpoint/quick:judge'], ...given })
  let nth = 0
  const turn = async (input: object = {}): Promise<Frame[]> => {
    const conversationId = `c-${++nth}`
    await client.call('POST /agent', {
      conversationId,
      agent: 'endpoint/local',
      prompt: 'rename x to y',
      title: 't',
      ...input,
    })
    return (await framesOf(client, conversationId).all()).map(({ event }) => event)
  }
  /** The lines of turns, without those of judges. */
  const ledger = () => lines.filter(({ run }) => run !== undefined)
  return { client, server, asked, lines, ledger, set, turn }
}
const tierOf = (frames: readonly Frame[]) => frames.find(({ kind }) => kind === 'tier')

t.test('an easy turn runs on the fast model, and says so on the wire, in its frames and in the ledger', async t => {
  const { turn, set, asked, ledger, server } = await world(t)
  await set({ autoTier: 'on', autoFastModels: FAST })
  const frames = await turn({ effort: 'low' })
  t.same(asked, ['judge', 'small'])
  t.match(tierOf(frames), { tier: 'fast', model: 'small', routed: true, score: 0.1, rules: exactly('judge') })
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { model: 'small' },
  )
  t.match(server.told(0), /rename x to y/)
  t.notOk('reasoning_effort' in server.body(1), 'the effort was chosen for the other model')
  t.match(ledger(), exactly({ model: 'small', tierScore: 0.1, tierFast: true, tierRouted: true }))
})

t.test('in shadow a turn is judged beside its work, recorded, and runs on the chosen model', async t => {
  const { turn, set, asked, ledger } = await world(t, { big: { ...DONE, everyMs: 150 } })
  await set({ autoFastModels: FAST })
  const frames = await turn()
  t.same([...asked].sort(), ['big', 'judge'])
  t.match(tierOf(frames), { tier: 'fast', model: 'small', routed: false })
  t.match(ledger(), exactly({ model: 'big', tierFast: true, tierRouted: false }))
})

t.test('nothing is judged where it is off, held, has no fast model, has no judge, or is on the fast model', async t => {
  const { turn, set, asked } = await world(t)
  const none = async (why: string, given: SettingsGiven, input: object = {}, ran = 'big') => {
    await set(given)
    asked.length = 0
    t.same([tierOf(await turn(input)), asked], [undefined, [ran]], why)
  }
  const on = { autoTier: 'on', autoFastModels: FAST } as const
  await none('as installed', {})
  await none('off', { ...on, autoTier: 'off' })
  await none('held', on, { tierHold: true })
  await none('of another provider', { ...on, autoFastModels: ['endpoint/other:small'] })
  await none('no judge', { ...on, quickModel: ['endpoint/gone:judge'] })
  await none('the fast one itself', on, { model: 'small' }, 'small')
})

t.test('without models of small jobs the fast model itself judges: no other provider sees the words', async t => {
  const { turn, set, asked, server } = await world(t, { small: nth => (nth === 0 ? EASY : DONE) })
  await set({ autoTier: 'on', autoFastModels: FAST, quickModel: [] })
  t.match(tierOf(await turn()), { routed: true })
  t.same(asked, ['small', 'small'])
  t.match(JSON.stringify(server.body(0).messages), /sort requests/)
})

t.test('what is hard by its signs is not sent to a judge, and eagerness says what is easy', async t => {
  const answers: Answers = { judge: { text: ['{"score":0.3}'] } }
  const { turn, set, asked, ledger } = await world(t, answers)
  const on = { autoTier: 'on', autoFastModels: FAST } as const
  await set(on)
  t.match(tierOf(await turn({ prompt: 'x'.repeat(5_000) })), {
    tier: 'standard',
    model: 'big',
    routed: false,
    rules: exactly('long'),
  })
  t.same(asked, ['big'])
  t.match(ledger(), exactly({ tierScore: 0.5, tierFast: false, tierRouted: false }))
  for (const [autoTierEagerness, routed] of [
    ['cautious', false],
    ['balanced', true],
    ['eager', true],
  ] as const) {
    await set({ ...on, autoTierEagerness })
    t.match(tierOf(await turn()), { score: 0.3, routed })
  }
})

t.test('a judge that finds it hard, is silent or answers nonsense leaves the turn on its model', async t => {
  for (const judge of [HARD, { text: ['it is easy'] }, { status: 500 }] satisfies ScriptedReply[]) {
    const { turn, set, asked } = await world(t, { judge })
    await set({ autoTier: 'on', autoFastModels: FAST })
    await turn()
    t.equal(asked.at(-1), 'big')
  }
})

t.test('after two rounds of failed calls the turn goes on with the chosen model, and the ledger has both', async t => {
  const { turn, set, asked, ledger, server } = await world(t, { small: FAILS })
  await set({ autoTier: 'on', autoFastModels: FAST })
  const frames = await turn()
  t.same(asked, ['judge', 'small', 'small', 'big'])
  const kinds = frames.map(({ kind }) => kind)
  t.ok(kinds.indexOf('switched') > kinds.indexOf('tool_call_update'))
  t.match(
    frames.find(frame => frame.kind === 'notice' && frame.source === 'tier'),
    { text: /small was too small .*calls of 2 rounds failed.*goes on with big/ },
  )
  t.match(frames.at(-1), { reason: 'completed' })
  t.match(server.told(-1), /exit 3/, 'with what was tried')
  t.match(
    ledger(),
    exactly({ model: 'small', tierEscalated: true, tierRouted: true }, { model: 'big', tierScore: undefined }),
  )
})

t.test('a fast model that its server refuses is replaced, and the turn does not fail', async t => {
  for (const small of [{ status: 404, body: '{"error":"no such model"}' }, { status: 400 }] satisfies ScriptedReply[]) {
    const { turn, set, asked } = await world(t, { small })
    await set({ autoTier: 'on', autoFastModels: FAST })
    const frames = await turn()
    t.same(asked, ['judge', 'small', 'big'])
    t.match(frames.at(-1), { reason: 'completed' })
    t.notOk(frames.some(({ kind }) => kind === 'error'))
    t.match(
      frames.filter(({ kind }) => kind === 'init').map(frame => 'model' in frame && frame.model),
      exactly('small', 'big'),
    )
  }
})

t.test('an easy turn without a fast model that can be used is denied, and runs as chosen', async t => {
  const { turn, set, ledger } = await world(t)
  await set({ autoTier: 'on', autoFastModels: ['endpoint/local:gone'] })
  const frames = await turn()
  t.match(tierOf(frames), { tier: 'fast', routed: false, rules: exactly('judge', 'denied') })
  t.match(ledger(), exactly({ model: 'big', tierDenied: true, tierRouted: false }))
})

t.test('words that name the chosen model go into a turn on the fast one; the next turn has the chosen one', async t => {
  const { client, set, asked } = await world(t, { small: { ...DONE, everyMs: 300 } })
  await set({ autoTier: 'on', autoFastModels: FAST })
  const to = { conversationId: 'w', agent: 'endpoint/local', model: 'big', title: 't' }
  await client.call('POST /agent', { ...to, prompt: 'rename it' })
  const watched = framesOf(client, 'w')
  await watched.until(({ kind }) => kind === 'init')
  t.match(await client.call('POST /agent', { ...to, prompt: 'and this' }), { delivery: 'said' })
  await watched.all()
  await set({ autoTier: 'off' })
  asked.length = 0
  await client.call('POST /agent', { conversationId: 'w', prompt: 'more' })
  await framesOf(client, 'w').all()
  t.same(asked, ['big'])
})

t.test('the score is read out of what small models write', t => {
  const read = [
    '{"score":0}',
    ' {"score" : 0.25 } ok',
    '{"score":1.0,"why":"x"}',
    '{"score":7}',
    'score 0.1',
    '{"score":-1}',
  ]
  t.same(read.map(scoreIn), [0, 0.25, 1, undefined, undefined, undefined])
  t.end()
})

t.test('calls of one answer fail as one round, and those of subagents do not count', t => {
  const rounds = new FailedRounds()
  const failed = (id: string): Frame => ({ kind: 'tool_call_update', id, status: 'failed' })
  const call = (id: string, parentToolUseId?: string): Frame => ({
    ...{ kind: 'tool_call', id, name: 'Shell', category: 'execute', status: 'pending' },
    ...(parentToolUseId !== undefined && { parentToolUseId }),
  })
  const frames: Frame[] = [
    ...[call('a'), failed('a'), call('b'), failed('b')],
    ...[call('s', 'a'), { kind: 'delta', text: 'x', parentToolUseId: 'a' }, failed('s')],
    ...[{ kind: 'usage', inputTokens: 1 }, call('d'), failed('d')],
  ] as Frame[]
  t.same(
    frames.map(frame => rounds.add(frame)),
    [0, 1, 1, 1, 1, 1, 1, 1, 1, 2],
  )
  t.end()
})

t.test('wherever a kill cuts an escalation off, the turn moves or has not told that it does', async t => {
  const lines: object[] = []
  const journals = {
    append: async (_: string, added: readonly unknown[]) => lines.push(...(added as object[])),
    rewrite: async () => void t.fail('it is short'),
    remove: async () => {},
  }
  const chosen = { provider: 'p', harness: 'native', model: 'big' } as const
  const entry = new RunEntry(journals, {
    ...{ ...chosen, model: 'small', startedAt: 0, attempt: 1, boots: 0, permissionMode: 'default', parked: [] },
    message: { run: 'r', conversationId: 'c', input: { prompt: 'x' } } as EntryFields['message'],
    tier: { tier: 'fast', score: 0, rules: [], chosen, routed: 'small' },
  })
  await entry.open()
  const turn = { entry, record: { switches: 0 }, log: { push: () => {} }, move: Turn.prototype.move } as unknown as Turn
  const tiers = new TurnTiers({
    host: {} as never,
    providers: { find: () => undefined },
    settings: async () => undefined,
  })
  t.equal(await tiers.replaces(turn, { kind: 'error', message: 'no such model' }), true)
  t.match(entry.fields, { moving: { model: 'big' }, tier: { escalated: 'no such model' } })
  for (let cut = 1; cut <= lines.length; cut++) {
    const { tier, moving } = entryFrom(lines.slice(0, cut))!
    t.ok(moving || tier!.escalated === undefined, `after ${cut} of ${lines.length} lines`)
  }
})

t.test('a name is read out of what small models write, however long that is', t => {
  t.equal(titleIn(' “Rename x\u202e to\ty.”\nmore'), 'Rename x to y')
  t.equal(titleIn('"..."'), '')
  const began = performance.now()
  t.equal(titleIn(`Fix it ${'.'.repeat(64 * 1024)}x`), 'Fix it')
  t.ok(performance.now() - began < 500)
  t.end()
})

t.test('a conversation is named by a model of small jobs after its first turn, unless a person did', async t => {
  const { client, set } = await world(t, { judge: { text: ['“Rename x to y.”'] } })
  const started = async (conversationId: string, more: object = {}) => {
    await client.call('POST /agent', { conversationId, agent: 'endpoint/local', prompt: 'rename it', ...more })
    await framesOf(client, conversationId).all()
  }
  const titleOf = async (id: string) => (await client.call('GET /agents/{id}', { id })).title
  await set({})
  await started('own', { title: 'Mine' })
  await started('named')
  await until(async () => (await titleOf('named')) === 'Rename x to y')
  t.equal(await titleOf('own'), 'Mine')
  await set({ quickModel: [] })
  await started('unnamed')
  t.equal(await titleOf('unnamed'), 'rename it', 'nobody chose a model for it')
})
