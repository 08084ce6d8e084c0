import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { joined, type Joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { openEvents, type Opened } from '../system/stream/events-support.js'
import { noWall } from '../../support/walls.js'
import { inTime } from '../../support/in-time.js'

const PLANTED = 'zirkonia'
const skip = noWall((await wallKind()) !== 'none')
const FILES = { 'README.md': '# work\n', 'docs/a.md': 'one\n', [`src/${PLANTED}.ts`]: PLANTED }

interface World {
  readonly daemon: Support
  readonly ann: Joined
  readonly join: (name: string, areas?: string[]) => Promise<Joined>
}

const world = async (t: Test, apart: readonly string[] = []): Promise<World> => {
  const daemon = await daemonWith(t, ['system', 'areas', 'agent', 'agents'], { files: FILES, apart })
  await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const join: World['join'] = (name, areas) => joined(daemon, name, 'collaborator', areas)
  return { daemon, ann: await join('ann', ['docs']), join }
}

/** Events up to one of a conversation's, as text. */
const upTo = async (events: Opened, id: string): Promise<string> => {
  const seen: unknown[] = []
  for (;;) {
    const event = await events.next()
    seen.push(event)
    if (event.kind === 'agent' && event.agent?.id === id && event.agent.lastEnd) return JSON.stringify(seen)
  }
}

for (const apart of [[], ['system', 'areas', 'agents']]) {
  t.test(
    `somebody limited watches what lies inside and nothing else${apart.length ? ', with groups apart' : ''}`,
    { skip },
    async t => {
      const { daemon, ann } = await world(t, apart)
      await runTurn(daemon.client, `before-${PLANTED}`, `say ${PLANTED}`, { startIn: 'src' })
      const events = await openEvents(t, { url: daemon.url, session: ann.session }, '?roster=delta&clientId=c')
      await openEvents(t, daemon, '?clientId=owner')
      await daemon.client.call('POST /system/presence', {
        clientId: 'owner',
        idle: false,
        view: PLANTED,
        path: `src/${PLANTED}.ts`,
        sessionId: `before-${PLANTED}`,
      })
      await runTurn(daemon.client, `out-${PLANTED}`, `ask ${PLANTED}?\n| yes: x`, {
        title: PLANTED,
        unattended: true,
        isolated: true,
      })
      await runTurn(daemon.client, `wide-${PLANTED}`, `say ${PLANTED}`, { startIn: 'docs', isolated: true })
      await runTurn(ann.client, 'in', 'write docs/b.md\n| x', { startIn: 'docs' })
      const seen = await upTo(events, 'in')
      t.notMatch(seen, PLANTED)
      t.match(seen, '"owner@sandbox.local"', 'who is there is told')
      await daemon.client.call('POST /agents/{id}/discard', { id: `out-${PLANTED}` })
      await daemon.client.call('POST /agents/{id}/land', { id: 'in' })
      t.match(await events.until('runtimeChanged', ({ domains }) => domains.includes('landings')), {
        keys: exactly('in'),
      })
      await daemon.client.call('POST /agents/{id}/discard', { id: 'in' })
      t.match(await events.until('agent', ({ removed }) => removed !== undefined), { removed: 'in' })
    },
  )
}

t.test('the whole fleet and what a badge counts are those inside', { skip }, async t => {
  const { daemon, ann } = await world(t)
  await runTurn(daemon.client, PLANTED, 'say x')
  await ann.client.call('POST /agent', { conversationId: 'in', prompt: 'ask Go on?\n| yes: x', startIn: 'docs' })
  await framesOf(daemon.client, 'in').until(({ kind }) => kind === 'question')
  await daemon.client.call('POST /agent', { conversationId: 'out', prompt: 'ask Go on?\n| yes: x', startIn: 'docs' })
  await framesOf(daemon.client, 'out').until(({ kind }) => kind === 'question')
  const [mine, all] = [await openEvents(t, { url: daemon.url, session: ann.session }), await openEvents(t, daemon)]
  t.match(
    (await mine.until('agents')).agents.map(({ id }) => id),
    exactly('in'),
  )
  t.match(await mine.until('attention'), { cards: 1 })
  t.match(await all.until('attention'), { cards: 2 })
  for (const conversationId of ['in', 'out']) await daemon.client.call('POST /agent/stop', { conversationId })
})

t.test(
  'whoever loses the last area is told, sees nothing any more, and everything again when it is given back',
  { skip },
  async t => {
    const { daemon, ann } = await world(t)
    await runTurn(ann.client, 'in', 'say x', { startIn: 'docs' })
    const events = await openEvents(t, { url: daemon.url, session: ann.session }, '?roster=delta')
    await events.until('attention')
    const turn = framesOf(ann.client, 'in', {})
    await turn.all()
    t.same((await daemon.client.call('POST /areas/{id}/holders', { id: 'docs', remove: [ann.email] })).holders, [])
    t.match(await events.until('resync'), { reason: 'access' })
    t.match(await refusalOf(() => ann.client.call('GET /agents/{id}', { id: 'in' })), { status: 404 })
    t.same((await ann.client.call('GET /agents')).agents, [])
    const after = await openEvents(t, { url: daemon.url, session: ann.session })
    t.match((await after.until('hello')).me, { areas: { length: 0 } })
    t.same((await after.until('agents')).agents, [])
    await daemon.client.call('POST /areas/{id}/holders', { id: 'docs', add: [ann.email] })
    t.match(await after.until('resync'), { reason: 'access' })
    t.match(await ann.client.call('GET /agents/{id}', { id: 'in' }), { id: 'in' }, 'without signing in again')
    t.match(
      (await (await openEvents(t, { url: daemon.url, session: ann.session })).until('agents')).agents,
      exactly({ id: 'in' }),
    )
  },
)

t.test(
  'an area that is written anew counts from the next request, and ends what stands on the old one',
  { skip },
  async t => {
    const { daemon, ann } = await world(t)
    await runTurn(ann.client, 'in', 'say x', { startIn: 'docs' })
    await ann.client.call('POST /agent', { conversationId: 'live', prompt: 'ask Go on?\n| yes: x', startIn: 'docs' })
    const events = await openEvents(t, { url: daemon.url, session: ann.session })
    await events.until('attention')
    const attached = framesOf(ann.client, 'live')
    await attached.until(({ kind }) => kind === 'question')
    await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs of another name', folders: ['docs'] })
    t.match(
      await events.until('runtimeChanged', ({ domains }) => domains.includes('areas')),
      { kind: 'runtimeChanged' },
      'a name alone ends nothing',
    )
    await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['src'] })
    t.match(await events.until('resync'), { reason: 'access' })
    await t.rejects(attached.all(), 'the turn it watched is closed to it')
    t.match(await refusalOf(() => ann.client.call('GET /agents/{id}', { id: 'in' })), { status: 404 })
    await daemon.client.call('POST /agent/stop', { conversationId: 'live' })
  },
)

t.test('a removed folder hides its contents from watchers until it returns', { skip }, async t => {
  const { daemon, ann } = await world(t)
  await runTurn(ann.client, 'in', 'say x', { startIn: 'docs' })
  const at = (path: string) => join(daemon.workspace, path)
  const events = await openEvents(t, { url: daemon.url, session: ann.session })
  t.match((await events.until('agents')).agents, exactly({ id: 'in' }))
  renameSync(at('docs'), at('away'))
  t.match(await events.until('resync'), { reason: 'access' })
  const next = await openEvents(t, { url: daemon.url, session: ann.session })
  t.same((await next.until('agents')).agents, [])
  renameSync(at('away'), at('docs'))
  t.match(await next.until('resync'), { reason: 'access' })
  t.match(
    (await (await openEvents(t, { url: daemon.url, session: ann.session })).until('agents')).agents,
    exactly({ id: 'in' }),
  )
})

for (const apart of [[], ['areas', 'agent']]) {
  t.test(
    'a turn that is watched, and nothing else, is closed within two seconds of its folder going '
      + `away${apart.length ? ', with groups apart' : ''}`,
    { skip },
    async t => {
      const { daemon, ann, join: joins } = await world(t, apart)
      const bob = await joins('bob')
      await ann.client.call('POST /agent', { conversationId: 'live', prompt: 'ask Go on?\n| yes: x', startIn: 'docs' })
      const [mine, whole] = [framesOf(ann.client, 'live'), framesOf(bob.client, 'live')]
      for (const watched of [mine, whole]) await watched.until(({ kind }) => kind === 'question')
      const began = performance.now()
      renameSync(join(daemon.workspace, 'docs'), join(daemon.workspace, 'away'))
      await t.rejects(mine.all())
      t.ok(inTime(began, 2000))
      await daemon.client.call('POST /agent/stop', { conversationId: 'live' })
      t.match((await whole.all()).at(-1)?.event, { kind: 'done' }, 'who is not limited goes on')
    },
  )
}

t.test('a grant names areas that there are, and narrows who had everything', async t => {
  const { daemon, join: joins } = await world(t)
  t.match(await refusalOf(() => daemon.client.call('POST /members', { role: 'viewer', areas: ['docs', 'none'] })), {
    status: 404,
    message: 'none',
  })
  const bob = await joins('bob')
  await runTurn(daemon.client, PLANTED, 'say x')
  const events = await openEvents(t, { url: daemon.url, session: bob.session })
  t.match((await events.until('agents')).agents, exactly({ id: PLANTED }))
  t.match(await refusalOf(() => daemon.client.call('POST /areas/{id}/holders', { id: 'docs', add: [bob.email] })), {
    status: 409,
  })
  await daemon.client.call('POST /areas/{id}/holders', { id: 'docs', add: [bob.email], narrow: true })
  t.match(await events.until('resync'), { reason: 'access' })
  t.same((await bob.client.call('GET /agents')).agents, [])
  const refusal = await refusalOf(() => daemon.client.call('DELETE /areas/{id}', { id: 'docs' }))
  t.match(refusal, { status: 409, message: bob.email })
  mkdirSync(join(daemon.workspace, 'more'))
  const { invitation } = await daemon.client.call('POST /members', { role: 'viewer', areas: ['docs'] })
  const { holders } = (await daemon.client.call('GET /areas')).areas[0]!
  t.match(
    holders?.find(({ pending }) => pending),
    { email: `invitation:${invitation!.id}`, role: 'viewer' },
  )
})

t.test('what happens to areas is on the record, for maintainers', async t => {
  const daemon = await daemonWith(t, ['system', 'areas', 'activity'], { files: FILES })
  const { client } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['src'], access: 'read' })
  const ann = await joined(daemon, 'ann', 'collaborator', [])
  await client.call('POST /areas/{id}/holders', { id: 'docs', add: [ann.email] })
  await client.call('POST /areas/{id}/holders', { id: 'docs', remove: [ann.email] })
  await client.call('DELETE /areas/{id}', { id: 'docs' })
  const { events } = await client.call('GET /activity', { type: 'area.*' })
  const { email } = ann
  t.match(
    events,
    exactly(
      { type: 'area.deleted', extra: { id: 'docs' } },
      { type: 'area.revoked', extra: { id: 'docs', email } },
      { type: 'area.granted', extra: { id: 'docs', email } },
      {
        type: 'area.written',
        extra: { id: 'docs', folders: exactly('src'), access: 'read', before: exactly('docs'), accessBefore: 'work' },
      },
      { type: 'area.written', extra: { id: 'docs', folders: exactly('docs') }, actor: 'owner@sandbox.local' },
    ),
  )
  t.same((await ann.client.call('GET /activity', { type: 'area.*' })).events, [])
})
