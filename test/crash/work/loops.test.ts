import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly, spread } from '../../support/lists.js'
import { loopEnd, loopOf, loopUntil } from '../../plugins/loops/support.js'
import { dies, LOOPS_POINTS, whereIn, type Where } from '../failpoints/failpoints.js'

const WORDS = 'append n.txt\n| a line\nsay a line'
const UNTIL_THREE = { kind: 'command', command: 'test $(wc -l < n.txt) -ge 3' } as const
const SETTINGS = '.sandbox/config/settings.json'

const lines = ({ workspace }: Where): number => {
  const path = join(workspace, 'n.txt')
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').length : 0
}
/** Starts the loop, unless it is known already. */
const begin = async ({ client }: Pick<RunningDaemon, 'client'>) => {
  const { loops } = await client.call('GET /loops', {})
  if (loops.length === 0) await client.call('POST /loops', loopOf('lines', { prompt: WORDS, checks: [UNTIL_THREE] }))
}

const POINTS = LOOPS_POINTS.flatMap(name => [name, `${name}:2`])
for (const point of spread(POINTS, 3))
  void t.test(`every round of a loop is made once if the daemon is killed at ${point}`, async t => {
    const where = whereIn(t)
    await dies(t, where, point, async daemon => {
      const died = once(daemon.process, 'exit')
      await begin({ client: daemon.once }).catch(() => {})
      // The loop begins once, so its second pass never comes.
      if (point !== 'loops.begun:2') return died
      await loopEnd({ client: daemon.once }, 'lines')
      daemon.process.kill('SIGKILL')
      return died
    })
    const daemon = await spawnDaemon(t, where)
    await begin(daemon)
    const { state, iterations, resumed } = await loopEnd(daemon, 'lines')
    t.equal(state, 'done')
    t.ok(resumed <= 1)
    t.match(
      iterations,
      exactly({ n: 1, outcome: 'continue' }, { n: 2, outcome: 'continue' }, { n: 3, outcome: 'done' }),
    )
    t.equal(lines(where), 3)
    t.equal((await daemon.client.call('GET /agents/{id}', { id: 'lines' })).turns, 3)
  })

t.test(
  'a round that a kill interrupts is made again, earlier ones stay, and the fourth kill ends the loop',
  async t => {
    const where = whereIn(t, { [SETTINGS]: '{"autoResumeOnRestart":false}\n' })
    let daemon = await spawnDaemon(t, where)
    const prompt = 'run test ! -e second || sleep 600\nrun touch second\nsay over'
    await daemon.client.call('POST /loops', loopOf('dies', { prompt }))
    const [first] = (await loopUntil(daemon, 'dies', ({ iterations }) => iterations.length === 1)).iterations
    const live = async () => {
      while (!(await daemon.client.call('GET /agents/{id}', { id: 'dies' })).startedAt)
        await new Promise(resolve => setTimeout(resolve, 5))
    }
    for (const resumed of [1, 2, 3]) {
      await live()
      await daemon.kill9()
      daemon = await spawnDaemon(t, where)
      const loop = await loopUntil(daemon, 'dies', one => one.resumed === resumed)
      t.match(loop, { state: 'running', iterations: exactly(first!) })
    }
    await live()
    await daemon.kill9()
    daemon = await spawnDaemon(t, where)
    t.match(await loopEnd(daemon, 'dies'), { state: 'error', detail: /ended 4 times/, iterations: exactly(first!) })
    const { startedAt } = await daemon.client.call('GET /agents/{id}', { id: 'dies' })
    t.notOk(startedAt, 'no round runs')
  },
)
