import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { GateVerdict } from '../../../plugins/workflows/contract.js'
import { judgeOf, runEnd, runUntil, stepIn, stepOf, workflowOf } from '../../plugins/workflows/support.js'
import { exactly } from '../../support/lists.js'
import { spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { runningCommands } from '../../support/running-commands.js'
import { dies, whereIn, WORKFLOWS_POINTS } from '../failpoints/failpoints.js'

const CHAIN = workflowOf(
  'chain',
  [
    judgeOf('b', 'write b.txt\n| b\nverdict done b is good\n| {"data": {"verdict": "go"}}'),
    stepOf('c', 'say c', { needs: ['b'] }),
  ],
  { gate: { step: 'b', field: 'verdict', pass: ['go'] } },
)
/** Interrupts the first run, one after the other; a fourth death while a step runs would end it. */
const FIRST = ['workflows.run.stored', 'workflows.step.noted', 'workflows.step.started', 'workflows.step.result']
/** Ends at once when it finds what its first try left in its private copy. */
const ONCE = judgeOf(
  'c',
  'run test -e tried || { touch tried; sleep 761; }\nverdict done over\n| {"data": {"verdict": "go"}}',
  { needs: ['b'] },
)
/** Passed by both steps of the first run, then by the first of the second run. */
const ENDED = 'workflows.step.ended:3'

const start = async ({ client }: Pick<RunningDaemon, 'client'>, messageId: string): Promise<string> => {
  const { workflows } = await client.call('GET /workflows')
  if (workflows.length === 0) await client.call('POST /workflows', { workflow: CHAIN, create: true })
  return (await client.call('POST /workflows/{id}/run', { id: 'chain', messageId })).runId
}

t.test('a run survives a kill after each of its steps, a step in hand starts over, and none is run twice', async t => {
  t.same([...FIRST, 'workflows.step.ended'].sort(), WORKFLOWS_POINTS, 'each point has its case')
  const where = whereIn(t)
  const turnsOf = async ({ client }: RunningDaemon, runId: string, id: string) =>
    (await client.call('GET /agents/{id}', { id: `w-${runId}-${id}` })).turns
  for (const point of FIRST)
    await dies(t, where, point, async daemon => {
      const died = once(daemon.process, 'exit')
      await start({ client: daemon.once }, 'first').catch(() => {})
      await died
    })
  let second = ''
  await dies(t, where, ENDED, async daemon => {
    const died = once(daemon.process, 'exit')
    const first = await start(daemon, 'first')
    const run = await runEnd(daemon, first)
    t.match(run, {
      state: 'done',
      resumed: 3,
      steps: exactly({ document: { reason: 'b is good' } }, { state: 'done' }),
    })
    t.match((await daemon.client.call('GET /workflows/runs')).runs, exactly({ runId: first }))
    for (const id of ['b', 'c']) t.equal(await turnsOf(daemon, first, id), 1)
    const changed = { steps: [CHAIN.steps[0]!, ONCE], gate: { ...CHAIN.gate!, step: 'c' } }
    await daemon.client.call('POST /workflows', { workflow: { ...CHAIN, ...changed }, create: false })
    second = await start({ client: daemon.once }, 'second')
    await died
  })
  let daemon = await spawnDaemon(t, where)
  const { token } = await daemon.client.call('GET /workflows/{id}/gate', { id: 'chain' })
  const ask = async (headers: { [name: string]: string }): Promise<Partial<GateVerdict>> => {
    const response = await fetch(`${daemon.url}/workflows/chain/gate?token=${token}`, { method: 'POST', headers })
    return (await response.json()) as Partial<GateVerdict>
  }
  const key = { 'idempotency-key': 'the one' }
  const cut = Promise.allSettled([ask(key), ask({})])
  await runUntil(daemon, second, now => stepIn(now, 'c').loopState === 'running')
  const sleeping = () => runningCommands().filter(line => line.startsWith('sleep\x00761')).length
  while (sleeping() < 3) await new Promise(resolve => setTimeout(resolve, 5))
  await daemon.kill9()
  daemon = await spawnDaemon(t, where)
  t.match(await cut, exactly({ status: 'rejected' }, { status: 'rejected' }))
  const verdict = await ask(key)
  t.match(verdict, { outcome: 'pass', reason: 'over' }, 'a key joins its run again')
  const run = await runEnd(daemon, second)
  t.match(run, { state: 'done', resumed: 2, steps: exactly({ iterations: 1 }, { iterations: 1 }) })
  const { runs } = await daemon.client.call('GET /workflows/runs', { workflow: 'chain' })
  t.match(
    runs.filter(({ startedBy, runId }) => startedBy === 'sandbox:gate' && runId !== verdict.runId),
    exactly({ state: 'stopped', detail: /caller does not wait any more/ }),
  )
  t.equal(await turnsOf(daemon, second, 'b'), 1)
  t.equal((await daemon.client.call('GET /workflows/{id}/gate', { id: 'chain' })).token, token)
  t.notOk(readFileSync(join(where.workspace, '.sandbox/config/workflows.json')).includes(token))
})
