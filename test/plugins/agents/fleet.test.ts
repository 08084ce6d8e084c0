import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { AgentCard } from '../../../plugins/agents/contract.js'
import { folderOf, inGit, spawnDaemon } from '../../support/daemon.js'
import { makeFleet, spawnsIn, type Kind } from '../../support/repositories/fleet.js'

const MANY = 1_000
/** Ten times the target for such a roster without a new commit: the benchmark measures the exact time. */
const PATIENCE_MS = 3_000
/** Mostly kinds whose status needs no process: the time of git is not measured here. */
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

t.test('a roster of a thousand conversations is right, and starts no process while nothing changed', async t => {
  const folder = folderOf(t)
  const fleet = await makeFleet(folder, MANY, KINDS)
  const { data, workspace } = fleet
  const { env, taken } = spawnsIn(folder)
  const expected = Object.fromEntries(fleet.live.map(({ id, status, paths }) => [id, `${status} ${paths.length}`]))
  const daemon = await spawnDaemon(t, { workspace, data, env })
  const cold = await daemon.client.call('GET /agents')
  t.same(shown(cold.agents), expected)
  t.equal(cold.agents.length, MANY, 'archived ones are not among them')
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
  t.same(warm, cold, 'the revision is unchanged')

  const [first, second] = fleet.live.filter(({ status }) => status === 'ready')
  const [ready, other] = [first!.id, second!.id]
  const tip = inGit(workspace, 'rev-parse', `agent/${ready}`).trim()
  inGit(workspace, 'update-ref', `refs/heads/agent/${ready}`, `agent/${ready}~2`)
  const back = await daemon.client.call('GET /agents')
  t.same(shown(back.agents), { ...expected, [ready]: 'idle 0' })
  inGit(workspace, 'update-ref', `refs/heads/agent/${ready}`, tip)
  taken()
  t.same(shown((await daemon.client.call('GET /agents')).agents), expected)
  t.ok(taken().length <= 12, 'only a changed branch is compared')

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
    'a manually merged branch has landed',
  )
  inGit(workspace, 'reset', '-q', '--hard', 'HEAD~1')
  t.same(
    shown((await daemon.client.call('GET /agents')).agents),
    expected,
    'it is outstanding again when main is reset',
  )

  t.equal(await daemon.terminate(), 0)
  inGit(workspace, 'checkout', '-q', `agent/${other}`, '--', ...second!.paths)
  inGit(workspace, 'commit', '-qm', 'the same work in another commit')
  taken()
  const again = await spawnDaemon(t, { workspace, data, env })
  const later = await again.client.call('GET /agents')
  t.same(
    shown(later.agents),
    { ...expected, [other]: 'landed 2' },
    'changes without a daemon are detected, and the rest is cached',
  )
  t.ok(taken().length <= 40)
  t.ok(later.rev > warm.rev)
})
