import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith, root, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'

const GROUPS = ['agent', 'agents']

/** The calls of group agents to the group of conversations during some work. */
const callsDuring = async ({ kernel: { calls } }: Support, work: () => Promise<unknown>): Promise<string[]> => {
  const made: string[] = []
  const from = calls.from.bind(calls)
  calls.from = (principal, call, ...rest) => {
    if (principal.plugin === 'agents' && /^(agent|checkouts)\./.test(call)) made.push(call)
    return from(principal, call, ...rest)
  }
  try {
    await work()
  } finally {
    calls.from = from
  }
  return made
}

const LANDING = ['agent.conversation', 'agent.lock', 'checkouts.commitRest', 'agent.landed']

t.test('a landing makes at most 6 calls to the group of conversations, one of them under the lock', async t => {
  const daemon = await daemonWith(t, [...GROUPS, 'activity'])
  const { client } = daemon
  await runTurn(client, 'a', 'write a.txt\n| x', { isolated: true })
  await client.call('GET /agents/{id}', { id: 'a' })
  const land = async () => t.match(await client.call('POST /agents/{id}/land', { id: 'a' }), { landed: true })
  const calls = await callsDuring(daemon, land)
  t.ok(calls.length <= 6)
  t.same(calls, LANDING)
  t.same(await callsDuring(daemon, land), LANDING.slice(0, 3), 'with nothing outstanding nothing is recorded')
  await runTurn(client, 'a', 'write a.txt\n| y')
  await client.call('POST /agents/{id}/request-land', { id: 'a' })
  t.same(await callsDuring(daemon, land), LANDING, 'a requested landing makes no more calls')
  t.equal((await client.call('GET /agents/{id}', { id: 'a' })).landRequested, undefined)
})

t.test('a landing with nothing outstanding removes its request, and does not count as activity', async t => {
  const daemon = await daemonWith(t, GROUPS)
  const { client } = daemon
  await runTurn(client, 'a', 'write a.txt\n| x', { isolated: true })
  await client.call('POST /agents/{id}/request-land', { id: 'a' })
  await client.call('POST /agent/rewind', { conversationId: 'a', index: 0 })
  const { landRequested, updatedAt } = await client.call('GET /agents/{id}', { id: 'a' })
  t.ok(landRequested)
  const land = async () => t.match(await client.call('POST /agents/{id}/land', { id: 'a' }), { landed: true })
  t.same(await callsDuring(daemon, land), LANDING)
  t.match(await client.call('GET /agents/{id}', { id: 'a' }), { landRequested: undefined, updatedAt })
})

t.test('several landings make one more call each, and a discard makes two', async t => {
  const daemon = await daemonWith(t, GROUPS)
  const { client } = daemon
  for (const id of ['a', 'b']) {
    await runTurn(client, id, `write ${id}.txt\n| x`, { isolated: true })
    await client.call('GET /agents/{id}', { id })
  }
  const calls = await callsDuring(daemon, async () =>
    t.match(await client.call('POST /agents/land', { ids: ['a', 'b'] }), {
      results: exactly({ id: 'a', result: { landed: true } }, { id: 'b', result: { landed: true } }),
    }),
  )
  t.same(calls, ['agent.conversation', 'agent.conversation', ...LANDING, ...LANDING])
  t.same(await callsDuring(daemon, () => client.call('POST /agents/{id}/discard', { id: 'a' })), [
    'agent.conversation',
    'agent.discard',
  ])
})

t.test('group agents forwards no route, except the discard that must not end a turn', t => {
  const { permissions, routes } = JSON.parse(readFileSync(join(root, '..', 'manifests', 'agents.json'), 'utf8')) as {
    permissions: { daemon: string[]; late: string[] }
    routes: { [route: string]: { id: string } }
  }
  const called = new Set([...permissions.daemon, ...permissions.late])
  const twins = Object.values(routes)
    .map(({ id }) => id.replace(/^agents\./, 'agent.'))
    .filter(id => called.has(id))
  t.same(twins, ['agent.discard'])
  t.end()
})
