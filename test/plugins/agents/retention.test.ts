import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import t from 'tap'
import { Archive } from '../../../plugins/agents/roster/archive.js'
import type { AgentCard } from '../../../plugins/agents/contract.js'
import { Retention } from '../../../plugins/agents/roster/retention.js'
import { DEFAULTS } from '../../../plugins/settings/current-settings.js'
import { daemonWith, folderOf, inGit, makeWorkspace, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'

const GROUPS = ['system', 'agent', 'agents']
const DAY_MS = 86_400_000
const NOW = 10 * DAY_MS
/** Less than a millisecond, in days. */
const AT_ONCE = 1e-9

type Settled = Pick<AgentCard, 'id' | 'status' | 'updatedAt' | 'waiting' | 'archivedAt'>

const card = (id: string, status: AgentCard['status'], days: number, more: Partial<Settled> = {}): Settled => ({
  id,
  status,
  updatedAt: NOW - days * DAY_MS,
  ...more,
})

const stateOf = (conversation: Settled) => ({
  conversation,
  ...(['running', 'awaiting'].includes(conversation.status) && { live: { state: 'running' } }),
})

/** A board of these cards, with archived ids and log lines; `again` returns the state of a card when it is checked. */
const board = (
  cards: readonly Settled[],
  days: number | Error,
  again: (id: string) => Settled = id => cards.find(each => each.id === id)!,
) => {
  const put: string[] = []
  const logged: { level: string; message: string; fields?: object }[] = []
  const log = (level: string) => (message: string, fields?: object) =>
    void logged.push({ level, message, ...(fields && { fields }) })
  const stop = new AbortController()
  const heard = new Map<string, () => void>()
  const host = {
    signal: stop.signal,
    emit: () => {},
    log: { info: log('info'), warn: log('warn'), error: log('error') },
    on: (event: string, listener: () => void) => void heard.set(event, listener),
    serves: async () => true,
    call: async (call: string, input?: { id: string }) => {
      if (call === 'settings.get') {
        if (days instanceof Error) throw days
        return { ...DEFAULTS, agentRetentionDays: days }
      }
      if (call === 'agent.archive') put.push(input!.id)
      return stateOf(again(input!.id))
    },
  }
  const roster = { card: async ({ conversation }: { conversation: Settled }) => conversation }
  const archive = new Archive({ host, roster, conversations: async () => cards.map(stateOf) } as never)
  const retention = new Retention({ host, archive, now: () => NOW } as never)
  return { put, logged, heard, stop, host, retention }
}

/** The next archived conversation, also if that was before the call. */
const archived = async ({ client, kernel }: Support): Promise<string> => {
  const { promise, resolve } = Promise.withResolvers<string>()
  kernel.events.on('agent.archived', 'test', async (_, input) =>
    resolve((input as { data: { agentId: string } }).data.agentId),
  )
  const {
    agents: [first],
  } = await client.call('GET /agents/archived')
  return first ? first.id : promise
}

const keep = (workspace: string, agentRetentionDays: number): void => {
  mkdirSync(join(workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(join(workspace, '.sandbox', 'config', 'settings.json'), JSON.stringify({ agentRetentionDays }))
}

t.test('exactly the conversations that finished more days ago than the setting are archived', async t => {
  const cards = [
    card('landed', 'landed', 4),
    card('idle', 'idle', 4),
    card('new', 'landed', 2),
    card('just', 'idle', 3),
    card('ready', 'ready', 4),
    card('waits', 'idle', 4, { waiting: 1 as never }),
    card('failed', 'error', 9),
    card('stopped', 'stopped', 9),
    card('cut', 'interrupted', 9),
    card('runs', 'running', 9),
    card('asks', 'awaiting', 9),
    card('torn', 'conflict', 9),
  ]
  const { put, logged, retention } = board(cards, 3)
  await retention.sweep()
  t.same([put, logged], [['landed', 'idle'], []])
  const part = board(cards, 1.5)
  await part.retention.sweep()
  t.same(part.put, ['landed', 'idle', 'new', 'just'], 'parts of days count')
})

t.test('with 0 days or without the settings nothing is archived', async t => {
  const never = board([card('old', 'idle', 9)], 0)
  await never.retention.sweep()
  const without = board([card('old', 'idle', 9)], 3)
  without.host.serves = async () => false
  await without.retention.sweep()
  t.same([never.put, without.put], [[], []])
})

t.test('a conversation that was resumed during the sweep is not archived', async t => {
  const cards = [
    card('a', 'idle', 4),
    card('b', 'idle', 4),
    card('c', 'landed', 4),
    card('d', 'idle', 4),
    card('e', 'idle', 4),
  ]
  const since: { [id: string]: Settled } = {
    a: card('a', 'running', 4),
    b: card('b', 'idle', 0),
    c: card('c', 'landed', 4, { waiting: 1 as never }),
    d: card('d', 'idle', 4, { archivedAt: NOW }),
  }
  const { put, retention } = board(cards, 3, id => since[id] ?? cards.find(each => each.id === id)!)
  await retention.sweep()
  t.same(put, ['e'])
})

t.test('a failed sweep is logged and the next one tries again; one at a time, none after the stop', async t => {
  const failing = board([card('old', 'idle', 4)], new Error('EMFILE'))
  await failing.retention.sweep()
  await failing.retention.sweep()
  t.match(failing.logged, exactly({ level: 'warn', fields: { error: /EMFILE/ } }, { level: 'warn' }))
  const one = board([card('old', 'idle', 4)], 3)
  await Promise.all([one.retention.sweep(), one.retention.sweep()])
  t.same(one.put, ['old'])
  const stopped = board([card('old', 'idle', 4)], 3)
  stopped.stop.abort()
  await stopped.retention.sweep()
  t.same(stopped.put, [])
})

t.test('a sweep runs when the sandbox is ready and every hour until it stops', async t => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const { heard, host, put, retention, stop } = board([card('old', 'idle', 4)], 3)
  const sweep = async (begin: () => void) => {
    const before = put.length
    begin()
    await retention.sweep()
    return put.length - before
  }
  retention.begin()
  let asked = 0
  const serves = host.serves
  host.serves = () => (asked++, serves())
  mock.timers.tick(3_599_999)
  t.equal(asked, 0)
  t.equal(await sweep(() => heard.get('daemon.ready')!()), 1)
  t.equal(await sweep(() => mock.timers.tick(1)), 1)
  t.equal(await sweep(() => mock.timers.tick(3_600_000)), 1)
  t.equal(asked, 3)
  stop.abort()
  mock.timers.tick(7_200_000)
  t.equal(asked, 3)
})

t.test('a start archives conversations that finished long ago, with their work on parked branches', async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(place.workspace)
  keep(place.workspace, 0)
  await t.test('a first start, which never archives anything', async t => {
    const { client } = await daemonWith(t, [...GROUPS, 'settings'], place)
    await runTurn(client, 'landed', 'write a.txt\n| a', { isolated: true })
    await client.call('POST /agents/{id}/land', { id: 'landed' })
    await runTurn(client, 'ready', 'write b.txt\n| b', { isolated: true })
    await client.call('POST /agent', { conversationId: 'waits', prompt: 'wait words 60000' })
    await client.call('POST /agent', { conversationId: 'waits', prompt: 'say later' })
    await client.call('POST /agent/stop', { conversationId: 'waits' })
    await client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Go on?\n| yes: on' })
    await framesOf(client, 'asks').until(({ kind }) => kind === 'question')
    t.equal((await client.call('GET /agents')).agents.length, 4)
  })
  keep(place.workspace, AT_ONCE)
  await t.test('the next start', async t => {
    const daemon = await daemonWith(t, [...GROUPS, 'settings'], { ...place, apart: ['agents'] })
    t.equal(await archived(daemon), 'landed')
    t.same((await daemon.client.call('GET /agents')).agents.map(({ id }) => id).sort(), ['asks', 'ready', 'waits'])
    t.equal(
      inGit(place.workspace, 'for-each-ref', '--format=%(refname)', 'refs/sandbox/parked').trim(),
      'refs/sandbox/parked/landed',
    )
    t.notOk(existsSync(join(place.data, 'agent', 'checkouts', 'landed')))
    await daemon.client.call('POST /agent/stop', { conversationId: 'asks' })
  })
})

t.test('the start does not wait for the sweep', async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(place.workspace)
  await t.test('a first start', async t => {
    const { client } = await daemonWith(t, GROUPS, place)
    await runTurn(client, 'c-1', 'say hello')
  })
  await t.test('the next start', async t => {
    const held = Promise.withResolvers<void>()
    const daemon = await daemonWith(t, GROUPS, {
      ...place,
      fakes: {
        'settings.get': async () => (await held.promise, { ...DEFAULTS, agentRetentionDays: AT_ONCE }),
      } as never,
    })
    t.equal((await daemon.client.call('GET /agents')).agents.length, 1)
    held.resolve()
    t.equal(await archived(daemon), 'c-1')
  })
})

t.test('the time of a restored conversation counts from its restore', async t => {
  const { client } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'say hello')
  await client.call('POST /agents/archive', { ids: ['c-1'] })
  const { archivedAt } = (await client.call('GET /agents/archived')).agents[0]!
  const {
    moved: [back],
  } = await client.call('POST /agents/unarchive', { ids: ['c-1'] })
  t.ok(back!.updatedAt >= archivedAt!, 'the next sweep does not archive it again')
  t.equal(back!.archivedAt, undefined)
})
