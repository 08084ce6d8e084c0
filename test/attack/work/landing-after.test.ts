import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { folderOf, makeWorkspace } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { autoLands, isHeld, landings, parked, worldOf, WRITES } from './landing-world.js'

t.test('work that a person landed once lands automatically again, until another person writes', async t => {
  const {
    daemon: { workspace },
    owner,
    other,
  } = await worldOf(t, 'collaborator')
  const there = (file: string) => existsSync(join(workspace, file))
  t.same(landings(await autoLands(owner, 'c')), [])
  await runTurn(owner, 'c', 'write one.txt\n| 1')
  t.ok(there('one.txt'), "the owner's work lands automatically")
  await runTurn(other, 'c', WRITES)
  t.match(await owner.call('POST /agents/{id}/land', { id: 'c' }), { landed: true })
  t.ok(there('theirs.txt'))
  t.same(landings(await runTurn(owner, 'c', 'write two.txt\n| 2')), [{ kind: 'landed', landed: true }])
  t.ok(there('two.txt'))
  await runTurn(other, 'c', 'write three.txt\n| 3')
  await runTurn(owner, 'c', 'say on')
  t.notOk(there('three.txt'))
})

t.test('a rewind to a state that was never landed does not land it', async t => {
  const {
    daemon: { workspace },
    owner,
    other,
  } = await worldOf(t, 'collaborator')
  await autoLands(owner, 'c')
  await runTurn(other, 'c', WRITES)
  await runTurn(owner, 'c', 'delete theirs.txt\nwrite good.txt\n| x')
  await owner.call('POST /agents/{id}/land', { id: 'c' })
  t.notOk(existsSync(join(workspace, 'theirs.txt')))
  const { messages } = await owner.call('GET /agents/{id}/transcript', { id: 'c' })
  await other.call('POST /agent/rewind', {
    conversationId: 'c',
    index: messages.findLastIndex(({ role }) => role === 'user'),
  })
  t.same(landings(await runTurn(owner, 'c', 'say on')), [{ kind: 'landed', landed: false, held: true }])
  t.notOk(existsSync(join(workspace, 'theirs.txt')))
})

t.test('callers who may not land cannot make anything land automatically', async t => {
  const { daemon, owner, other } = await worldOf(t, 'collaborator')
  t.match(
    await refusalOf(() =>
      other.call('POST /agent', { conversationId: 'c', prompt: WRITES, isolated: true, autoLand: true }),
    ),
    { status: 403, message: /agents\.land needs role maintainer, found role collaborator/ },
  )
  await runTurn(owner, 'c', 'say x', { isolated: true })
  t.match(await refusalOf(() => other.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })), {
    status: 403,
  })
  for (const scope of ['drive', 'editor'] as const)
    t.match(
      await refusalOf(async () =>
        (await daemon.token(scope)).client.call('POST /agent', {
          conversationId: 'd',
          prompt: WRITES,
          isolated: true,
          autoLand: true,
        }),
      ),
      { status: 403 },
    )
  const maintainer = (await joined(daemon, 'mae', 'maintainer')).client
  t.same(landings(await runTurn(maintainer, 'm', 'write m.txt\n| m', { isolated: true, autoLand: true })), [
    { kind: 'landed', landed: true },
  ])
  t.same(
    landings(
      await runTurn((await daemon.token('land')).client, 'l', 'write l.txt\n| l', { isolated: true, autoLand: true }),
    ),
    [{ kind: 'landed', landed: true }],
  )
})

t.test('a restart keeps the authors of messages and of waiting work', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  let requestId = ''
  await t.test('before', async t => {
    const world = await worldOf(t, 'token', where)
    const { daemon, owner, other } = world
    await autoLands(owner, 'said')
    const { watched } = await parked(owner, 'said')
    requestId = (watched.seen.find(({ event }) => event.kind === 'question')!.event as { requestId: string }).requestId
    await other.call('POST /agent/steer', { conversationId: 'said', text: 'theirs' })
    await autoLands(owner, 'waits')
    await runTurn(other, 'waits', WRITES)
    await daemon.stop()
  })
  await t.test('after', async t => {
    const world = await worldOf(t, 'token', where)
    const { owner } = world
    const run = framesOf(owner, 'said')
    await run.until(({ kind }) => kind === 'question')
    await owner.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
    isHeld(
      t,
      world,
      (await run.all()).map(({ event }) => event),
      'messages from before it',
    )
    isHeld(t, world, await runTurn(owner, 'waits', 'say on'), 'work from before it')
  })
})

t.test('runs, records and conversations from versions without stored authors wait for a person', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  let run = ''
  await t.test('before', async t => {
    const { daemon, owner } = await worldOf(t, 'token', where)
    await autoLands(owner, 'c')
    run = (await owner.call('POST /agent', { conversationId: 'c', prompt: 'write mine.txt\n| mine\nwait 60000' })).run
    await framesOf(owner, 'c').until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
    await daemon.stop()
  })
  await t.test('the files of an older daemon', async t => {
    const journals = new JournalStore(join(where.data, 'journals'))
    const [first, ...more] = await journals.read<{ message: { lands?: boolean } }>(`agent/runs/${run}`)
    t.ok(first!.message.lands, 'the author is stored now')
    await journals.rewrite(`agent/runs/${run}`, [
      { ...first, message: { ...first!.message, lands: undefined }, ending: 'completed' },
      ...more,
    ])
    await journals.shutdown()
  })
  await t.test('after', async t => {
    const world = await worldOf(t, 'token', where)
    isHeld(
      t,
      world,
      (await framesOf(world.owner, 'c', { run }).all()).map(({ event }) => event),
      'a run',
    )
    isHeld(t, world, await runTurn(world.owner, 'c', 'say on'), 'also for the next one')
  })
})
