import t, { type Test } from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import type { Admission, AdmissionAsked } from '../../../../plugins/usage/contract.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf } from '../../../support/turns.js'

/** A program that pays 0.25 USD for each of four steps, and takes each after the previous payment is reported. */
const PAYING = `
import { createInterface } from 'node:readline'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const update = update => send({ method: 'session/update', params: { sessionId: 's-1', update } })
let prompted
let step = 0
const go = () => {
  if (step === 4) {
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'all four' } })
    return send({ id: prompted, result: { stopReason: 'end_turn' } })
  }
  const id = 'step-' + ++step
  update({ sessionUpdate: 'usage_update', used: 1, size: 10, cost: { amount: 0.25 * step, currency: 'USD' } })
  update({ sessionUpdate: 'tool_call', toolCallId: id, title: id, kind: 'other', status: 'in_progress' })
  send({ id: 'p-' + step, method: 'session/request_permission', params: { sessionId: 's-1',
    toolCall: { toolCallId: id }, options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] } })
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/prompt') { prompted = id; go() }
  else if (method === 'session/cancel') send({ id: prompted, result: { stopReason: 'cancelled' } })
  else if (method === undefined && String(id).startsWith('p-')) go()
}
`

const world = async (t: Test, admit: (asked: AdmissionAsked) => Admission) => {
  const asked: AdmissionAsked[] = []
  const { client } = await daemonWith(t, ['agent'], {
    files: { 'agent.mjs': PAYING },
    fakes: {
      'capabilities.records': () => ({
        capabilities: [{ id: 'paying', kind: 'agent', label: 'Paying', config: {}, secrets: [] }],
      }),
      'capabilities.runtime': ({ id }) => ({ id, label: 'Paying', command: [process.execPath, 'agent.mjs'], env: {} }),
      'usage.record': () => ({ ok: true }),
      'usage.admit': question => {
        asked.push(question)
        return admit(question)
      },
    },
  })
  const turn = async (decision?: 'once' | 'deny'): Promise<Frame[]> => {
    await client.call('POST /agent', { conversationId: 'c', agent: 'agent/paying', prompt: 'go' })
    const watched = framesOf(client, 'c')
    if (decision) {
      const card = (await watched.until(({ kind }) => kind === 'permission')) as unknown as { requestId: string }
      await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, decision })
    }
    return (await watched.all()).map(({ event }) => event)
  }
  return { turn, asked }
}

const steps = (frames: readonly Frame[]): number => frames.filter(({ kind }) => kind === 'tool_call').length
const over =
  (verdict: 'hold' | 'refuse') =>
  ({ runningUsd = 0 }: AdmissionAsked): Admission =>
    runningUsd >= 0.5 ? { verdict, budget: 'day', message: 'the budget day is spent' } : { verdict: 'ok' }

t.test('a budget that refuses ends a program between its steps, by the cost that the program reports', async t => {
  const { turn, asked } = await world(t, over('refuse'))
  const frames = await turn()
  t.match(
    frames.find(({ kind }) => kind === 'error'),
    { code: 'rate_limit', message: 'the budget day is spent' },
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'failed' })
  t.equal(steps(frames), 2, 'no step after the paid one is shown')
  t.match(
    frames.filter(({ kind }) => kind === 'usage' || kind === 'tool_call').slice(0, 4),
    exactly(
      { kind: 'usage', costUsd: 0.25, numTurns: 0 },
      { kind: 'tool_call' },
      { kind: 'usage', costUsd: 0.25 },
      { kind: 'tool_call' },
    ),
    'each payment is in the log before its step',
  )
  t.ok(asked.some(({ runningUsd }) => runningUsd === 0.5))
})

t.test('a budget that holds parks a program on a card; approval lets this turn continue to its end', async t => {
  const { turn } = await world(t, over('hold'))
  const frames = await turn('once')
  t.match(
    frames.find(({ kind }) => kind === 'permission'),
    { toolName: 'Spend' },
  )
  t.equal(frames.filter(({ kind }) => kind === 'permission').length, 1)
  t.equal(steps(frames), 4)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
})

t.test('a refusal of that card ends the program', async t => {
  const { turn } = await world(t, over('hold'))
  const frames = await turn('deny')
  t.match(
    frames.find(({ kind }) => kind === 'error'),
    { code: 'rate_limit', message: /a person said no/ },
  )
  t.equal(steps(frames), 2)
})
