import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { GateVerdict, Workflow } from '../../../plugins/workflows/contract.js'
import { DayCounts } from '../../../plugins/workflows/gate/day-counts.js'
import { exactly } from '../../support/lists.js'
import { runningCommands } from '../../support/running-commands.js'
import { judgeOf, refusal, runUntil, stepIn, stepOf, workflowOf, workflowsDaemon } from './support.js'

const daemon = await workflowsDaemon(t)
const { client, workspace } = daemon
const VERDICT = 'verdict done it is judged\n| {"data": {"verdict": "go"}}'
const GATE = { step: 'j', field: 'verdict', pass: ['go', 'maybe'] }

/** Saves a design with a gate, and asks it. */
const gateOf = async (id: string, prompt: string, more: Partial<Workflow> = {}) => {
  const workflow = workflowOf(id, [judgeOf('j', prompt)], { gate: GATE, ...more })
  await client.call('POST /workflows', { workflow, create: true })
  const { url, token } = await client.call('GET /workflows/{id}/gate', { id })
  const ask = async (
    { given = token, wait = 60, body = '{"sha":"1f"}', key }: Asked = {},
    signal?: AbortSignal,
  ): Promise<Partial<GateVerdict> & { code: number; message?: string }> => {
    const response = await fetch(`${url}?token=${given}&wait=${wait}`, {
      ...{ method: 'POST', body, headers: { ...(key !== undefined && { 'idempotency-key': key }) } },
      ...(signal && { signal }),
    })
    return { ...((await response.json()) as GateVerdict), code: response.status }
  }
  return { ask, token, url }
}
interface Asked {
  given?: string
  wait?: number
  body?: string
  key?: string
}
const runsOf = async (workflow: string) => (await client.call('GET /workflows/runs', { workflow })).runs
const isRunning = (words: string): boolean => runningCommands().some(line => line.includes(words))
const running = async (words: string): Promise<void> => {
  while (!isRunning(words)) await new Promise(resolve => setTimeout(resolve, 5))
}

t.test('only the token of the gate opens it, in either place, and it is in no file of the workspace', async t => {
  const { ask, token, url } = await gateOf('opens', VERDICT)
  t.match(url, /\/workflows\/opens\/gate$/)
  t.match(await ask({ given: '' }), { code: 401, message: /no token/ })
  t.match(await ask({ given: 'wrong' }), { code: 401, message: /is wrong/ })
  t.match(await ask(), { code: 200, outcome: 'pass', step: 'completed', value: 'go', reason: 'it is judged' })
  const bearer = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  t.match(await bearer.json(), { outcome: 'pass' }, 'a gate whose steps need no request takes no body')
  t.notMatch(readFileSync(join(workspace, '.sandbox/config/workflows.json'), 'utf8'), token)
  const [newest, first] = await runsOf('opens')
  t.same([newest!.request, first!.request, first!.startedBy], [undefined, '{"sha":"1f"}', 'sandbox:gate'])
  const { messages } = await client.call('GET /agents/{id}/transcript', {
    id: first!.steps[0]!.conversationId as string,
  })
  t.match(messages[0]!.text, /## Request\n\n\{"sha":"1f"\}/)
  const revealed = await client.call('GET /workflows/{id}/gate', { id: 'opens' })
  t.match(revealed, { token, usedToday: 2, dailyMax: 50, lastUsedAt: Number })
  const { workflows } = await client.call('GET /workflows')
  t.match(workflows, exactly({ id: 'opens', gateTokenAt: revealed.createdAt }))
  t.notMatch(JSON.stringify(workflows), token)
  for (const scope of ['editor', 'read', 'drive', 'land'] as const) {
    const weak = (await daemon.token(scope)).client
    t.equal(await refusal(weak.call('GET /workflows/{id}/gate', { id: 'opens' })), 403, scope)
    t.equal(await refusal(weak.call('POST /workflows/{id}/gate/rotate', { id: 'opens' })), 403, scope)
  }
  const rotated = await client.call('POST /workflows/{id}/gate/rotate', { id: 'opens' })
  t.not(rotated.token, token)
  t.equal((await ask()).code, 401)
  t.equal((await ask({ given: rotated.token })).code, 200)
  const held = { set: { admission: { workflow: 'hold' } } } as never
  t.equal(await refusal(client.call('POST /settings/patch', held)), 400, 'a gate is allowed or denied')
  await client.call('POST /settings/patch', { set: { admission: { workflow: 'deny' } } })
  t.match(await ask({ given: rotated.token }), { code: 403, message: /settings deny/ })
  await client.call('POST /settings/patch', { unset: ['admission'] })
  const told = (await client.call('GET /activity', {})).events.map(({ type }) => type)
  for (const type of ['workflow.gate', 'workflow.gate_revealed', 'workflow.gate_rotated'])
    t.ok(told.includes(type), type)
})

t.test('the verdict follows the value of the field, and what did not judge is blocked', async t => {
  const said = async (id: string, prompt: string, more: Partial<Workflow> = {}) =>
    (await gateOf(id, prompt, more)).ask()
  const spends = { steps: [judgeOf('j', 'usage 1 1 0.60', { maxSpendUsd: 0.5 })] }
  const fields = [{ name: 'n', type: 'number' as const, description: 'n', required: true }]
  const number = [judgeOf('j', 'verdict done n\n| {"data": {"n": 3}}', { output: { kind: 'json', fields } })]
  const verdicts = await Promise.all([
    said('maybe', 'verdict done b\n| {"data": {"verdict": "maybe"}}'),
    said('stop', 'verdict done no\n| {"data": {"verdict": "stop"}}'),
    said('number', '', { steps: number, gate: { step: 'j', field: 'n', pass: ['3'] } }),
    said('blocked', '', spends),
  ])
  t.match(
    verdicts,
    exactly(
      { code: 200, outcome: 'pass', step: 'completed', value: 'maybe', reason: 'b' },
      { code: 200, outcome: 'fail', step: 'completed', value: 'stop', reason: 'no' },
      { code: 200, outcome: 'pass', value: '3' },
      { code: 200, outcome: 'blocked', step: 'failed', value: undefined, reason: /cost 0.6 USD/ },
    ),
  )
})

t.test('bodies that are too large, days that are used up and faulty requests start nothing', async t => {
  const { ask } = await gateOf('limits', VERDICT, { gate: { ...GATE, dailyMax: 1 } })
  t.equal((await ask({ body: 'x'.repeat(64_001) })).code, 413)
  t.match(await ask({ wait: 0 }), { code: 400 })
  t.match(await ask({ wait: 10_801 }), { code: 400 })
  t.match(await ask({ key: 'k'.repeat(129) }), { code: 400, message: /idempotency-key/ })
  t.match(await ask({ body: 'x'.repeat(64_000) }), { code: 200, outcome: 'pass' })
  t.match(await ask(), { code: 429, message: /all 1 runs of this day/ })
  t.equal((await runsOf('limits')).length, 1)
  const open = await gateOf('asks', '', { steps: [{ ...judgeOf('j', VERDICT), goal: undefined } as never] })
  t.match(await open.ask({ body: '' }), { code: 422, message: /request/ })
  const gone = await gateOf('gone', VERDICT)
  const [workflow] = (await client.call('GET /workflows')).workflows.filter(({ id }) => id === 'gone')
  const { gate: _gate, runs: _runs, gateTokenAt: _at, ...without } = workflow!
  await client.call('POST /workflows', { workflow: without, create: false })
  t.equal((await gone.ask()).code, 404)
  t.equal(await refusal(client.call('GET /workflows/{id}/gate', { id: 'gone' })), 404)
  await client.call('POST /workflows', { workflow: { ...without, gate: GATE }, create: false })
  t.equal((await gone.ask()).code, 401, 'a gate that comes back has a new token')
})

t.test('at its deadline a gate stops the run, and says whether a person is needed', async t => {
  const late = await gateOf('late', 'run sleep 751')
  t.match(await late.ask({ wait: 2 }), { code: 200, outcome: 'blocked', step: 'timeout', reason: /after 2 s/ })
  t.notOk(isRunning('sleep\x00751'))
  const [run] = await runsOf('late')
  t.match(run, { state: 'stopped', detail: /nobody waits/, steps: exactly({ state: 'stopped' }) })
  const parked = await gateOf('parked', 'need information Which socket?\nsay waiting')
  const leave = new AbortController()
  const waits = parked.ask({ key: 'same' }, leave.signal)
  while ((await runsOf('parked')).length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  const { runId } = (await runsOf('parked'))[0]!
  await runUntil(daemon, runId, now => stepIn(now, 'j').waitingFor !== undefined)
  t.match(await parked.ask({ key: 'same', wait: 1 }), {
    code: 200,
    outcome: 'blocked',
    step: 'parked',
    reason: /a person/,
  })
  t.equal((await runsOf('parked'))[0]!.state, 'running', 'another caller still waits')
  leave.abort()
  await t.rejects(waits)
  await runUntil(daemon, runId, ({ state }) => state === 'stopped')
})

t.test('a caller that hangs up stops the run, and a key joins it or gets its verdict again', async t => {
  const hung = await gateOf('hangs', 'run sleep 752')
  const leave = new AbortController()
  const left = hung.ask({}, leave.signal)
  await running('sleep\x00752')
  leave.abort()
  await t.rejects(left)
  const [run] = await runsOf('hangs')
  await runUntil(daemon, run!.runId, ({ state }) => state === 'stopped')
  t.notOk(isRunning('sleep\x00752'))
  const joined = await gateOf('joins', `wait words\n${VERDICT}`)
  const first = new AbortController()
  const one = joined.ask({ key: 'same' }, first.signal)
  while ((await runsOf('joins')).length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  const { runId, steps } = (await runsOf('joins'))[0]!
  const used = async () => (await client.call('GET /workflows/{id}/gate', { id: 'joins' })).lastUsedAt!
  const before = await used()
  const other = joined.ask({ key: 'same', wait: 61 })
  while ((await used()) === before) await new Promise(resolve => setTimeout(resolve, 5))
  const conversationId: string = steps[0]!.conversationId
  await runUntil(daemon, runId, now => stepIn(now, 'j').loopState !== undefined)
  first.abort()
  await t.rejects(one)
  while (
    !(await client.call('POST /agent/steer', { conversationId, text: 'go on' }).then(
      () => true,
      () => false,
    ))
  )
    await new Promise(resolve => setTimeout(resolve, 5))
  const verdict = await other
  t.match(verdict, { outcome: 'pass', runId })
  t.same(await joined.ask({ key: 'same' }), verdict)
  t.equal((await runsOf('joins')).length, 1)
})

t.test('the runs of a day are counted by UTC, also after a restart', async t => {
  const kept = new Map<string, unknown>()
  const store = { set: async (key: string, value: unknown) => void kept.set(key, value) }
  let now = Date.parse('2026-03-01T23:59:59Z')
  const counts = new DayCounts(store, () => now)
  await counts.add('a')
  await counts.add('a')
  const again = new DayCounts(store, () => now)
  again.load([...kept])
  t.same([again.of('a'), again.of('b')], [2, 0])
  now += 1000
  t.equal(again.of('a'), 0)
  await again.add('a')
  t.equal(again.of('a'), 1)
})

t.test('the run goes on after the verdict of its gate', async t => {
  const steps = [judgeOf('j', VERDICT), stepOf('after', 'say after', { needs: ['j'] })]
  const { ask } = await gateOf('goes-on', '', { steps })
  const { runId } = await ask()
  t.match(await runUntil(daemon, runId!, ({ state }) => state === 'done'), { detail: undefined })
})

t.test('ten wrong tokens within a minute close the gates for their address to other wrong ones', async t => {
  const { ask } = await gateOf('guessed', VERDICT)
  const tries = []
  for (let at = 0; at < 11; at++) tries.push((await ask({ given: `guess-${at}` })).code)
  t.ok(tries.includes(401))
  t.equal(tries.at(-1), 429)
  t.equal((await ask()).code, 200, 'the right one opens it')
})
