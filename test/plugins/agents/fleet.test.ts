import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { AgentCard } from '../../../plugins/agents/contract.js'
import { folderOf, inGit, spawnDaemon } from '../../support/daemon.js'
import { makeFleet, spawnsIn, type Kind } from '../../support/fleet.js'

const MANY = 1_000
/** Ten times what a roster of so many may take when no commit moved: the figure itself is the benchmark's. */
const PATIENCE_MS = 3_000
/** Mostly such whose standing costs no process: what is counted here is not how long git takes. */
const KINDS: readonly Kind[] = [
  'none',
  'shared',
  'ready',
  'none',
  'merged',
  'shared',
  'picked',
  'none',
  'shared',
  'none',
  'held',
  'none',
  'diverged',
  'shared',
  'none',
  'failed',
  'none',
  'shared',
  'none',
  'shared',
  'none',
  'shared',
  'none',
  'shared',
  'none',
  'shared',
  'none',
  'shared',
  'none',
  'shared',
]

const shown = (agents: readonly AgentCard[]) =>
  Object.fromEntries(agents.map(({ id, status, diff }) => [id, `${status} ${diff?.files ?? 0}`]))

t.test('a roster of a thousand conversations is right, and costs no process while nothing moved', async t => {
  const folder = folderOf(t)
  const fleet = await makeFleet(folder, MANY, KINDS)
  const { data, workspace } = fleet
  const { env, taken } = spawnsIn(folder)
  const expected = Object.fromEntries(fleet.live.map(({ id, status, paths }) => [id, `${status} ${paths.length}`]))
  const daemon = await spawnDaemon(t, { workspace, data, env })
  const cold = await daemon.client.call('GET /agents')
  t.same(shown(cold.agents), expected)
  t.equal(cold.agents.length, MANY, 'those that were put away are not among them')
  t.same(
    cold.agents.map(({ id }) => id),
    fleet.live.map(({ id }) => id).reverse(),
    'newest activity first',
  )
  t.ok(taken().length > 0, 'processes are counted')

  const started = performance.now()
  const warm = await daemon.client.call('GET /agents')
  t.ok(performance.now() - started < PATIENCE_MS)
  t.same(taken(), [])
  t.same(warm, cold, 'nor is the revision another')

  const [first, second] = fleet.live.filter(({ status }) => status === 'ready')
  const [ready, other] = [first!.id, second!.id]
  const tip = inGit(workspace, 'rev-parse', `agent/${ready}`).trim()
  inGit(workspace, 'update-ref', `refs/heads/agent/${ready}`, `agent/${ready}~2`)
  const back = await daemon.client.call('GET /agents')
  t.same(shown(back.agents), { ...expected, [ready]: 'idle 0' })
  inGit(workspace, 'update-ref', `refs/heads/agent/${ready}`, tip)
  taken()
  t.same(shown((await daemon.client.call('GET /agents')).agents), expected)
  t.ok(taken().length <= 12, 'a branch that moved is compared alone')

  writeFileSync(join(workspace, 'by-hand.txt'), 'new\n')
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'by hand')
  taken()
  t.same(shown((await daemon.client.call('GET /agents')).agents), expected)
  t.ok(taken().length <= 6, "a commit on main that touches nobody's work is compared once for all")

  inGit(workspace, 'merge', '-q', '--no-edit', `agent/${ready}`)
  t.same(
    shown((await daemon.client.call('GET /agents')).agents),
    { ...expected, [ready]: 'landed 2' },
    'merged by hand is landed',
  )
  inGit(workspace, 'reset', '-q', '--hard', 'HEAD~1')
  t.same(
    shown((await daemon.client.call('GET /agents')).agents),
    expected,
    'and it is outstanding again when main goes back',
  )

  t.equal(await daemon.terminate(), 0)
  inGit(workspace, 'checkout', '-q', `agent/${other}`, '--', ...second!.paths)
  inGit(workspace, 'commit', '-qm', 'the same work by another road')
  taken()
  const again = await spawnDaemon(t, { workspace, data, env })
  const later = await again.client.call('GET /agents')
  t.same(
    shown(later.agents),
    { ...expected, [other]: 'landed 2' },
    'what moved while no daemon ran is seen, and the rest still known',
  )
  t.ok(taken().length <= 40)
  t.ok(later.rev > warm.rev)
})
