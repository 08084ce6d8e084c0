import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { AutoLand } from '../../../plugins/agent/conversations/auto-land.js'
import type { Frame, TurnInput } from '../../../plugins/agent/contract.js'
import { until } from '../../support/browser/browser.js'
import { daemonWith, folderOf, inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { refusal } from './support.js'

const landings = (frames: readonly Frame[]) => frames.filter(({ kind }) => kind === 'landed')
const LANDS = { isolated: true, autoLand: true } as const

t.test('only callers who may land can request auto-landing, and without group agents nobody can', async t => {
  const { client, token } = await daemonWith(t, ['agent', 'agents'])
  const ask = { conversationId: 'a', prompt: 'say x', ...LANDS } satisfies TurnInput
  for (const scope of ['drive', 'editor'] as const)
    t.match(await refusal((await token(scope)).client.call('POST /agent', ask)), { status: 403, message: /scope land/ })
  t.match(await refusal(client.call('POST /agent', { ...ask, autoLand: 'yes' } as never)), { status: 400 })
  t.match(await (await token('land')).client.call('POST /agent', ask), { delivery: 'started' })
  await framesOf(client, 'a').all()
})

t.test('without group agents it is refused with a message', async t => {
  const { client } = await daemonWith(t, ['agent'])
  t.match(await refusal(client.call('POST /agent', { prompt: 'say x', autoLand: true })), {
    status: 422,
    message: /group agents/,
  })
})

t.test('a completed turn lands its work before done, once and for this turn only', async t => {
  const { client, workspace } = await daemonWith(t, ['agent', 'agents'])
  const frames = await runTurn(client, 'a', 'write a.txt\n| a', LANDS)
  t.same(frames.slice(-2), [
    { kind: 'landed', landed: true },
    { kind: 'done', reason: 'completed' },
  ])
  t.ok(existsSync(join(workspace, 'a.txt')))
  t.equal(inGit(workspace, 'status', '--porcelain').trim(), '?? a.txt')
  t.match(await client.call('GET /agents/{id}', { id: 'a' }), { status: 'landed' })
  t.same(landings(await runTurn(client, 'a', 'write b.txt\n| b')), [])
  t.notOk(existsSync(join(workspace, 'b.txt')))
  t.same(
    landings(await runTurn(client, 'a', 'say nothing new', { autoLand: true })),
    [{ kind: 'landed', landed: true }],
    'earlier outstanding work lands too',
  )
  t.same(landings(await runTurn(client, 'a', 'say nothing at all', { autoLand: true })), [
    { kind: 'landed', landed: true },
  ])
  t.same(
    landings(await runTurn(client, 'shared', 'say x', { autoLand: true })),
    [],
    'the shared tree has nothing to land',
  )
})

t.test('a failed or stopped turn does not land', async t => {
  const { client, workspace } = await daemonWith(t, ['agent', 'agents'])
  t.same(landings(await runTurn(client, 'a', 'write a.txt\n| a\nfail no', LANDS)), [])
  await client.call('POST /agent', { conversationId: 'b', prompt: 'write a.txt\n| a\nwait 60000', ...LANDS })
  const watched = framesOf(client, 'b')
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
  await client.call('POST /agent/stop', { conversationId: 'b' })
  t.same(landings((await watched.all()).map(({ event }) => event)), [])
  t.notOk(existsSync(join(workspace, 'a.txt')))
})

t.test('conflicts are reported, and the turn is still completed', async t => {
  const { client, workspace } = await daemonWith(t, ['agent', 'agents'])
  await runTurn(client, 'a', 'write README.md\n| theirs', { isolated: true })
  writeFileSync(join(workspace, 'README.md'), 'mine, not committed\n')
  const frames = await runTurn(client, 'a', 'say on', { autoLand: true })
  t.match(
    frames.slice(-2),
    exactly(
      { kind: 'landed', landed: false, conflicts: exactly({ repo: 'root', paths: exactly({ path: 'README.md' }) }) },
      { kind: 'done', reason: 'completed' },
    ),
  )
})

t.test('an agent is asked once to make work fit that was to land by itself', async t => {
  const { client, workspace } = await daemonWith(t, ['agent', 'agents'])
  await runTurn(client, 'a', 'write README.md\n| theirs', { isolated: true })
  writeFileSync(join(workspace, 'README.md'), 'mine, not committed\n')
  const said = async () => {
    const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'a' })
    return messages.filter(({ role }) => role === 'user')
  }
  await runTurn(client, 'a', 'say on', { autoLand: true })
  await until(async () => (await said()).length === 3)
  await until(async () => (await client.call('GET /agents/{id}', { id: 'a' })).lastEnd !== undefined)
  const [, , asked] = await said()
  t.match(asked, { errand: 'land-held', by: 'sandbox:landing', text: /does not fit the workspace.*in: README\.md$/s })
  const rows = await said()
  await runTurn(client, 'b', 'say elsewhere')
  t.equal((await said()).length, rows.length, 'what still does not fit waits for a person')
  t.match(await client.call('GET /agents/{id}', { id: 'a' }), { status: 'conflict' })
  t.equal(readFileSync(join(workspace, 'README.md'), 'utf8'), 'mine, not committed\n')
  writeFileSync(join(workspace, 'README.md'), inGit(workspace, 'show', 'HEAD:README.md'))
  t.same(landings(await runTurn(client, 'a', 'say it fits', { autoLand: true })), [{ kind: 'landed', landed: true }])
  t.equal((await said()).length, rows.length + 1)
})

t.test('it is asked with the tools that it had, and not where a message waited', async t => {
  const asked = async (runs: boolean) => {
    const started: object[] = []
    const call = async () => ({ landed: false, conflicts: [{ repo: 'web', paths: [{ path: 'a\n\nb.txt' }] }] })
    const landing = new AutoLand({
      host: { call, serves: async () => true, log: { warn: t.fail, error: t.fail } },
      conversations: { find: () => ({ id: 'a', branch: 'agent/a', landsAlone: true }) },
      rules: { mayLand: async () => false },
      ready: Promise.resolve(),
      runs: () => runs,
      start: async (input: object) => started.push(input),
    } as never)
    await landing.land({
      ...{ conversationId: 'a', run: 'r-1', byOutsiders: false, ended: Promise.resolve() },
      ...{ log: { push: () => {} }, record: { landings: 0 } },
      message: { attended: true, input: { prompt: 'go', autoLand: true, allowedTools: ['Read', 'Edit'] } },
    } as never)
    await new Promise(setImmediate)
    return started
  }
  const [errand, ...more] = await asked(false)
  t.match(errand, {
    errand: 'land-held',
    autoLand: true,
    allowedTools: exactly('Read', 'Edit'),
    prompt: /in: web\/a b\.txt$/,
  })
  t.same(more, [])
  t.same(await asked(true), [])
})

t.test('a message of a token without scope land, or of an outside wake, disables auto-landing', async t => {
  const { client, workspace, token } = await daemonWith(t, ['agent', 'agents'])
  const held = [{ kind: 'landed', landed: false, held: true }]
  t.same(landings(await runTurn(client, 'o', 'write o.txt\n| o', { ...LANDS, outsideWake: 'webhook' })), held)
  const drive = (await token('drive')).client
  for (const [id, say] of [
    ['w', 'POST /agent'],
    ['s', 'POST /agent/steer'],
  ] as const) {
    await client.call('POST /agent', {
      conversationId: id,
      prompt: `write ${id}.txt\n| x\nwait words 60000\nsay $words`,
      ...LANDS,
    })
    const watched = framesOf(client, id)
    await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
    if (say === 'POST /agent') await drive.call(say, { conversationId: id, prompt: 'theirs' })
    else await drive.call(say, { conversationId: id, text: 'theirs' })
    t.same(landings((await watched.all()).map(({ event }) => event)), held, say)
    t.notOk(existsSync(join(workspace, `${id}.txt`)))
  }
  t.match(await client.call('POST /agents/{id}/land', { id: 'w' }), { landed: true }, 'a person lands it')
})

t.test('a turn whose daemon was killed between its end and its landing lands at the next start', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  let run = ''
  await t.test('the crash', async t => {
    const daemon = await daemonWith(t, ['agent', 'agents'], where)
    run = (
      await daemon.client.call('POST /agent', { conversationId: 'a', prompt: 'write a.txt\n| a\nwait 60000', ...LANDS })
    ).run
    await framesOf(daemon.client, 'a').until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
    await daemon.stop()
  })
  await t.test('what a kill leaves', async t => {
    const { JournalStore } = await import('../../../sdk/node/journal/journal-store.js')
    const journals = new JournalStore(join(where.data, 'journals'))
    await journals.append(`agent/runs/${run}`, [{ ending: 'completed' }])
    await journals.shutdown()
    t.ok(run)
  })
  await t.test('the next start', async t => {
    const { client, workspace } = await daemonWith(t, ['agent', 'agents'], where)
    const frames = (await framesOf(client, 'a', { run }).all()).map(({ event }) => event)
    t.same(frames.slice(-2), [
      { kind: 'landed', landed: true },
      { kind: 'done', reason: 'completed' },
    ])
    t.ok(existsSync(join(workspace, 'a.txt')))
  })
})
