import t, { type Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import type { ResolvedPowers } from '../../../plugins/personas/contract.js'
import type { Admission, AdmissionAsked, UsageTurn } from '../../../plugins/usage/contract.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'

const ALL: ResolvedPowers = {
  ...{ files: 'write' as const, shell: true, code: true, web: true, browser: true, delegate: true, sandbox: true },
  ...{ connectors: [], devices: [], mcp: [], extensions: [] },
}
const OK: Admission = { verdict: 'ok' }

/** A sandbox whose budgets answer as the test decides. */
const world = async (t: Test, admit: (asked: AdmissionAsked) => Admission = () => ({ verdict: 'ok' })) => {
  const lines: UsageTurn[] = []
  const asked: AdmissionAsked[] = []
  const { client } = await daemonWith(t, ['agent'], {
    fakes: {
      'usage.record': line => {
        lines.push(line)
        return { ok: true }
      },
      'usage.admit': question => {
        asked.push(question)
        return admit(question)
      },
      'personas.forTurn': ({ actsAs: id }) => ({
        id,
        known: true,
        powers: ALL,
        capabilities: [],
        notes: [],
        models: [],
      }),
    },
  })
  const turn = async (input: object, decision?: 'once' | 'deny'): Promise<Frame[]> => {
    await client.call('POST /agent', { conversationId: 'c', prompt: 'say hi', ...input })
    const watched = framesOf(client, 'c')
    if (decision) {
      const card = (await watched.until(({ kind }) => kind === 'permission')) as unknown as { requestId: string }
      await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, decision })
    }
    return (await watched.all()).map(({ event }) => event)
  }
  return { client, turn, lines, asked }
}

t.test('a settled turn is one line with the usage that its provider reported', async t => {
  const { turn, lines } = await world(t)
  await turn({ prompt: 'usage 110 25 0.75\nsay hi' })
  t.match(
    lines,
    exactly({
      provider: 'script',
      model: 'script',
      harness: 'native',
      conversationId: 'c',
      run: /^r-/,
      part: 0,
      outcome: 'ok',
      unattended: false,
    }),
  )
  t.match(lines[0], { inputTokens: 110, outputTokens: 25, costUsd: 0.75 })
})

t.test('a message that a budget refuses is 429 with its message, and no turn begins', async t => {
  const { client, asked, lines } = await world(t, () => ({
    verdict: 'refuse',
    budget: 'day',
    message: 'the budget day of 1.00 USD is spent; it renews at midnight UTC',
    renewsAt: Date.now() + 60_000,
  }))
  await t.rejects(client.call('POST /agent', { conversationId: 'c', prompt: 'say hi' }), {
    reason: 'too-many',
    message: /budget day of 1.00 USD/,
  })
  t.match(asked, exactly({ provider: 'script', model: 'script', unattended: false }))
  t.same(lines, [])
})

t.test('a budget that holds parks the turn; approval lets exactly this turn continue, a refusal ends it', async t => {
  const { turn } = await world(t, () => ({ verdict: 'hold', budget: 'day', message: 'the budget day is spent' }))
  const yes = await turn({}, 'once')
  t.match(
    yes.find(({ kind }) => kind === 'permission'),
    { toolName: 'Spend', description: 'the budget day is spent' },
  )
  t.match(yes.at(-1), { kind: 'done', reason: 'completed' })
  const no = await turn({}, 'deny')
  t.match(
    no.find(({ kind }) => kind === 'error'),
    { code: 'rate_limit', message: /a person said no/ },
  )
  t.match(no.at(-1), { kind: 'done', reason: 'failed' })
})

t.test('a held turn that nobody watches is refused', async t => {
  const { client } = await world(t, () => ({ verdict: 'hold', message: 'spent' }))
  await t.rejects(client.call('POST /agent', { prompt: 'say hi', unattended: true }), {
    name: 'Refusal',
    reason: 'too-many',
  })
})

t.test('a warning of a budget is a notice', async t => {
  const { turn } = await world(t, () => ({ verdict: 'warn', budget: 'day', message: '80 % of the budget are spent' }))
  t.match(
    (await turn({})).find(({ kind }) => kind === 'notice'),
    { text: '80 % of the budget are spent', source: 'usage' },
  )
})

t.test('budgets of a persona are asked about the messages, the turns and the subagents that wear it', async t => {
  let spent = false
  const { client, turn, asked } = await world(t, ({ persona }) =>
    spent && persona === 'ada' ? { verdict: 'refuse', budget: 'ada', message: 'the budget ada is spent' } : OK,
  )
  await turn({ prompt: 'helper look around: say hi\nsay after', actsAs: 'ada' })
  t.ok(asked.some(({ run = '' }) => run.includes(':')))
  t.same(
    asked.filter(({ persona }) => persona !== 'ada'),
    [],
  )
  spent = true
  const again = client.call('POST /agent', { conversationId: 'c', prompt: 'say more' })
  await t.rejects(again, { reason: 'too-many', message: 'the budget ada is spent' })
  await turn({ conversationId: 'c', actsAs: 'bob' })
  t.match(asked.at(-1), { persona: 'bob' })
})

t.test('a queued message that a budget refuses stays first, with the reason, until it may start', async t => {
  let spent = false
  const { client } = await world(t, ({ run }) =>
    spent && run === undefined ? { verdict: 'refuse', budget: 'day', message: 'the budget day is spent' } : OK,
  )
  await client.call('POST /agent', { conversationId: 'c', prompt: 'ask Which?' })
  const first = framesOf(client, 'c')
  const card = (await first.until(({ kind }) => kind === 'question')) as unknown as { requestId: string }
  const { messageId, delivery } = await client.call('POST /agent', { conversationId: 'c', prompt: 'say second' })
  t.equal(delivery, 'queued')
  spent = true
  await client.call('POST /agent/reply', { kind: 'question', requestId: card.requestId, answers: { 'Which?': 'a' } })
  const frames = (await first.all()).map(({ event }) => event)
  t.ok(frames.some(frame => frame.kind === 'notice' && frame.text === 'the budget day is spent'))
  t.match(await client.call('GET /agents/{id}/queue', { id: 'c' }), {
    paused: true,
    messages: exactly({ messageId, why: 'budget' }),
  })
  const start = { id: 'c', messageIds: [messageId], start: true }
  await t.rejects(client.call('POST /agents/{id}/queue/order', start), { name: 'Refusal', reason: 'too-many' })
  spent = false
  t.match(await client.call('POST /agents/{id}/queue/order', start), { run: /^r-/, paused: false })
  t.match(JSON.stringify(await framesOf(client, 'c').all()), /second/)
})

t.test('budgets are asked about a subagent as a part of its run, and a refused one does not start', async t => {
  const { turn, asked } = await world(t, ({ run = '' }) =>
    run.includes(':') ? { verdict: 'refuse', budget: 'tree', message: 'the budget tree is spent' } : OK,
  )
  const frames = await turn({ prompt: 'helper look around: run touch made-by-subagent.txt\nsay after' })
  const [{ run = '' } = {}] = asked.filter(each => each.run?.includes(':'))
  t.match(run, /^r-[^:]+:.+/)
  t.match(
    frames.find(frame => frame.kind === 'subagent_update' && frame.status === 'failed'),
    { error: 'the budget tree is spent' },
  )
  t.notOk(frames.some(frame => frame.kind === 'tool_call' && frame.name === 'Shell'))
  t.match(JSON.stringify(frames), /after/)
})

t.test('a subagent on another model costs its own price, and budgets count its run as it goes', async t => {
  // The turn delegates, the subagent takes two steps on the dear model, then the turn ends.
  const server = await modelServer(t, 'openai', ({ body }, nth) => {
    const usage = { input: 1000, output: 500 }
    if (nth === 0) {
      const input = { description: 'look', prompt: 'look around', model: 'dear' }
      return { calls: [{ name: 'Delegate', input }], usage }
    }
    if (body['model'] === 'dear' && nth === 1) return { calls: [{ name: 'Todo', input: { items: [] } }], usage }
    return { text: ['done'], usage }
  })
  const models = ['cheap', 'dear'].map(id => ({ id, label: id, efforts: [], badges: [] }))
  const asked: AdmissionAsked[] = []
  const { client, kernel } = await daemonWith(t, ['agent', 'usage'], {
    fakes: {
      'endpoints.choices': () => ({
        endpoints: [{ id: 'local', label: 'Local', models, default: 'cheap', ready: true }],
      }),
      'endpoints.target': () => server.target(),
      'definitions.price': ({ model }) => ({
        price: model === 'dear' ? { input: 100, output: 200 } : { input: 1, output: 2 },
      }),
    },
  })
  const answer = kernel.calls.answer.bind(kernel.calls)
  kernel.calls.answer = (call, input, ...more) => {
    if (call === 'usage.admit') asked.push(input as AdmissionAsked)
    return answer(call, input, ...more)
  }
  await client.call('POST /agent', {
    conversationId: 'c',
    agent: 'endpoint/local',
    model: 'cheap',
    prompt: 'go',
    permissionMode: 'bypassPermissions',
  })
  const frames = (await framesOf(client, 'c').all()).map(({ event }) => event)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' }, JSON.stringify(frames.slice(-4)))
  t.match(
    server.requests.map(({ body }) => body['model']),
    exactly('cheap', 'dear', 'dear', 'cheap'),
  )
  const { rows, total } = await client.call('GET /usage/rollup', { by: 'model' })
  t.match(
    rows.map(({ model, inputTokens, outputTokens, costUsd }) => [model, inputTokens, outputTokens, costUsd]),
    exactly(exactly('dear', 2000, 1000, 0.4), exactly('cheap', 2000, 1000, 0.004)),
  )
  t.equal(total.costUsd, 0.404)
  t.match(
    asked.map(({ run = '', model, runningTokens }) => [/:/.test(run), model, runningTokens?.input ?? 0]),
    exactly(
      exactly(false, 'cheap', 0),
      exactly(false, 'cheap', 0),
      exactly(false, 'cheap', 0),
      exactly(true, 'dear', 0),
      exactly(true, 'dear', 0),
      exactly(true, 'dear', 1000),
      exactly(true, 'dear', 2000),
      exactly(false, 'cheap', 1000),
    ),
    'each with its own usage, and a subagent that ended with all of it',
  )
})
