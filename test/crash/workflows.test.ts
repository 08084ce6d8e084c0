import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { judgeOf, runEnd, runUntil, stepIn, stepOf, workflowOf } from '../plugins/workflows/support.js'
import { exactly } from '../support/lists.js'
import { spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { runningCommands } from '../support/running-commands.js'
import { dies, whereIn, WORKFLOWS_POINTS } from './failpoints/failpoints.js'

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
const ONCE = 'run test -e tried || { touch tried; sleep 761; }\nsay over'
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
    const steps = [CHAIN.steps[0]!, stepOf('c', ONCE, { needs: ['b'] })]
    await daemon.client.call('POST /workflows', { workflow: { ...CHAIN, steps }, create: false })
    second = await start({ client: daemon.once }, 'second')
    await died
  })
  let daemon = await spawnDaemon(t, where)
  const { token } = await daemon.client.call('GET /workflows/{id}/gate', { id: 'chain' })
  await runUntil(daemon, second, now => stepIn(now, 'c').loopState === 'running')
  while (!runningCommands().some(line => line.includes('sleep\x00761')))
    await new Promise(resolve => setTimeout(resolve, 5))
  await daemon.kill9()
  daemon = await spawnDaemon(t, where)
  const run = await runEnd(daemon, second)
  t.match(run, { state: 'done', resumed: 2, steps: exactly({ iterations: 1 }, { iterations: 1, report: 'over' }) })
  t.equal(await turnsOf(daemon, second, 'b'), 1)
  t.equal((await daemon.client.call('GET /workflows/{id}/gate', { id: 'chain' })).token, token)
  t.notOk(readFileSync(join(where.workspace, '.sandbox/config/workflows.json')).includes(token))
})
