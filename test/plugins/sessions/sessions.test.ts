import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SessionPage } from '../../../plugins/sessions/contract.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import { daemonWith, folderOf, makeWorkspace, type Support, type SupportOptions } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { noWall } from '../../support/walls.js'
import { stored } from '../activity/support.js'
import { refusal } from '../agent/support.js'

const ISOLATED = { isolated: true }
const GROUPS = ['sessions', 'agent', 'agents']
const skip = noWall((await wallKind()) !== 'none')

const start = (t: Test, options?: SupportOptions): Promise<Support> => daemonWith(t, GROUPS, options)
const placeIn = (t: Test) => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(place.workspace)
  return place
}
const list = ({ client }: Pick<Support, 'client'>, asked = {}): Promise<SessionPage> =>
  client.call('GET /sessions', asked)
const ids = async (daemon: Pick<Support, 'client'>, asked = {}): Promise<string[]> =>
  (await list(daemon, asked)).sessions.map(({ id }) => id)
const discard = ({ client }: Support, id: string) => client.call('POST /agents/{id}/discard', { id })
const transcriptOf = ({ data }: { data: string }, id: string): string =>
  join(data, 'journals', 'agent', 'transcripts', `${id}.jsonl`)

t.test('without a credential nothing is read or deleted', async t => {
  const daemon = await start(t)
  await runTurn(daemon.client, 'c-1', 'say hello')
  for (const [method, path] of [
    ['GET', '/sessions'],
    ['GET', '/sessions/c-1'],
    ['DELETE', '/sessions/c-1'],
  ])
    t.equal((await fetch(daemon.url + path!, { method: method! })).status, 401, `${method} ${path}`)
})

t.test('a record is deleted by a maintainer or a token of scope land, and by nobody else', async t => {
  const daemon = await daemonWith(t, [...GROUPS, 'system', 'areas'])
  await runTurn(daemon.client, 'c-1', 'say hello', ISOLATED)
  await discard(daemon, 'c-1')
  const people = [await joined(daemon, 'ann', 'collaborator'), await joined(daemon, 'vic', 'viewer')]
  const tokens = await Promise.all((['editor', 'read', 'drive'] as const).map(scope => daemon.token(scope)))
  for (const { client } of [...people, ...tokens])
    t.match(await refusal(client.call('DELETE /sessions/{id}', { id: 'c-1' })), { status: 403 })
  for (const { client } of [...people, ...tokens.slice(1)]) t.same(await ids({ client }), ['c-1'])
  const { client } = await daemon.token('land')
  t.same(await client.call('DELETE /sessions/{id}', { id: 'c-1' }), { ok: true })
})

t.test('bad input is refused by its field', async t => {
  const daemon = await start(t)
  for (const [query, path] of [
    ['limit=0', 'limit'],
    ['limit=501', 'limit'],
    ['state=lost', 'state'],
    ['before=yesterday', 'before'],
    ['before=1.../x', 'before'],
    [`query=${'x'.repeat(201)}`, 'query'],
  ]) {
    const response = await daemon.fetch(`/sessions?${query}`)
    t.match(
      { status: response.status, body: await response.json() },
      { status: 400, body: { errors: exactly({ path }) } },
    )
  }
  for (const method of ['GET', 'DELETE'])
    t.equal((await daemon.fetch('/sessions/none', { method })).status, 404, method)
  t.equal((await daemon.fetch('/sessions/c-1?limit=1001')).status, 400)
})

t.test('discarded sessions are found by their words and read in full, also after a restart', async t => {
  const place = placeIn(t)
  const first = await start(t, place)
  await runTurn(first.client, 'gone', '# Mach den worktree über Nacht\nsay it said "done, Ärger" twice\nsay b', {
    title: 'Nights',
    ...ISOLATED,
  })
  await runTurn(first.client, 'gone', 'say third')
  await runTurn(first.client, 'away', 'say hello')
  await runTurn(first.client, 'here', 'say hello')
  const before = await first.client.call('GET /agents/{id}/transcript', { id: 'gone' })
  await discard(first, 'gone')
  await first.client.call('POST /agents/archive', { ids: ['away'] })
  const check = async (daemon: Support) => {
    const { sessions, indexing } = await list(daemon)
    t.match(
      sessions.map(({ id, state }) => [id, state]),
      exactly(exactly('here', 'live'), exactly('away', 'archived'), exactly('gone', 'discarded')),
    )
    t.equal(indexing, false)
    t.match(sessions[2], {
      title: 'Nights',
      provider: 'script',
      harness: 'native',
      openedBy: 'owner@sandbox.local',
      total: before.total,
    })
    for (const words of ['worktre', 'ÜBER nacht', '"done, ärger"', ' worktre '])
      t.match(
        await list(daemon, { query: words }),
        { sessions: exactly({ id: 'gone', snippet: { speaker: 'user' } }), indexing: false },
        words,
      )
    t.same(await ids(daemon, { query: 'ÜBER', caseSensitive: true }), [])
    t.same(await ids(daemon, { query: 'night' }), ['gone'])
    t.equal((await list(daemon, { query: 'night' })).sessions[0]?.snippet, undefined, 'the title shows the match')
    t.same(await ids(daemon, { query: '' }), ['here', 'away', 'gone'], 'an empty query lists')
    t.same(await ids(daemon, { state: 'archived' }), ['away'])
    t.same(await ids(daemon, { state: 'discarded', query: 'hello' }), [])
    const session = await daemon.client.call('GET /sessions/{id}', { id: 'gone' })
    t.same(
      session.messages,
      before.messages.map(({ checkpointId: _gone, ...row }) => row),
    )
    t.match(await daemon.client.call('GET /sessions/{id}', { id: 'gone', limit: 1, before: 2 }), {
      messages: exactly({ index: 1 }),
      total: before.total,
    })
    t.same((await daemon.client.call('GET /agents/search', { query: 'worktre' })).matches, [], 'it is not on the board')
  }
  await check(first)
  await first.stop()
  const second = await start(t, place)
  await check(second)
  await runTurn(second.client, 'gone', 'say back again', ISOLATED)
  t.match((await list(second)).sessions[0], { id: 'gone', state: 'live', total: before.total + 2 })
})

t.test('an index that was deleted is made anew, and one damaged line hides no other', async t => {
  const place = placeIn(t)
  const first = await start(t, place)
  for (const word of ['pelican', 'albatross', 'penguin']) await runTurn(first.client, 'c-1', `say a ${word}`, ISOLATED)
  await discard(first, 'c-1')
  const whole = await first.client.call('GET /sessions/{id}', { id: 'c-1' })
  t.same(await ids(first, { query: 'albatross' }), ['c-1'])
  await first.stop()
  rmSync(join(place.data, 'agent', 'search.sqlite'))
  const lines = readFileSync(transcriptOf(place, 'c-1'), 'utf8').split('\n')
  writeFileSync(transcriptOf(place, 'c-1'), [lines[0], lines[1]!.replaceAll('"', '?'), ...lines.slice(2)].join('\n'))

  const second = await start(t, place)
  const found = await list(second, { query: 'penguin' })
  t.ok(found.indexing || found.sessions.length === 1, 'it answers at once')
  while ((await list(second, { query: 'penguin' })).indexing);
  t.same(await ids(second, { query: 'penguin' }), ['c-1'])
  t.same(await ids(second, { query: 'pelican' }), ['c-1'])
  t.same(await ids(second, { query: 'albatross' }), [])
  const { messages, total } = await second.client.call('GET /sessions/{id}', { id: 'c-1' })
  const texts = messages.map(({ text }) => text)
  t.same(
    texts,
    [...whole.messages.slice(0, 2), ...whole.messages.slice(4)].map(({ text }) => text),
  )
  t.same([messages.length, total], [4, 5], 'the damaged line counts as one row')
})

t.test('a discarded session is forked: exactly the rows kept are copied', async t => {
  const daemon = await start(t)
  await runTurn(daemon.client, 'old', 'say one', ISOLATED)
  await runTurn(daemon.client, 'old', 'say two')
  await discard(daemon, 'old')
  const forkOf = { conversationId: 'old', keep: 3, files: 'now' }
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'new',
    prompt: 'say three',
    forkOf,
  } as never)
  await framesOf(daemon.client, 'new', { run }).all()
  const { messages } = await daemon.client.call('GET /sessions/{id}', { id: 'new' })
  t.same(
    messages.map(({ text }) => text.trim()),
    ['say one', 'one', 'say two', 'say three', 'three'],
  )
})

t.test('a record is deleted whole, and only that of a discarded conversation', async t => {
  const place = placeIn(t)
  const daemon = await daemonWith(t, [...GROUPS, 'activity'], place)
  await runTurn(daemon.client, 'c-1', 'run echo zebrafish\nsay zebrafish', ISOLATED)
  await runTurn(daemon.client, 'c-2', 'say hello')
  t.same(await ids(daemon, { query: 'zebrafish' }), ['c-1'])
  const remove = (id: string) => daemon.client.call('DELETE /sessions/{id}', { id })
  t.match(await refusal(remove('c-1')), { status: 409, message: /on the board/ })
  await daemon.client.call('POST /agents/archive', { ids: ['c-1'] })
  t.match(await refusal(remove('c-1')), { status: 409, message: /archived/ })
  t.equal((await daemon.client.call('GET /sessions/{id}', { id: 'c-1' })).total, 3, 'nothing changed')
  await daemon.client.call('POST /agents/unarchive', { ids: ['c-1'] })
  await discard(daemon, 'c-1')
  t.same(await remove('c-1'), { ok: true })
  t.match(await refusal(remove('c-1')), { status: 404 })
  t.match(await refusal(daemon.client.call('GET /sessions/{id}', { id: 'c-1' })), { status: 404 })
  t.same(await ids(daemon), ['c-2'])
  t.same(await ids(daemon, { query: 'zebrafish' }), [])
  t.equal(existsSync(transcriptOf(place, 'c-1')), false)
  t.notMatch(readFileSync(join(place.data, 'agent', 'search.sqlite')).toString('latin1'), /zebrafish/)
  t.same(globSync('**/c-1*', { cwd: join(place.data, 'logs') }), [])
  t.match(
    stored(daemon).filter(({ type }) => type === 'session.removed'),
    exactly({ title: 'run echo zebrafish', extra: { id: 'c-1' }, audience: 'maintainer' }),
  )
})

t.test('the attachments of a record go with it, unless another record refers to them', async t => {
  const folder = '.sandbox/records/artifacts/attachments'
  const [own, shared, waiting] = ['a/own.md', 'b/shared.md', 'c/waiting.md'].map(name => `${folder}/${name}`)
  const others = [`${folder}/c/other.md`, 'notes/plan.md']
  const names = [own!, shared!, waiting!, ...others]
  const daemon = await start(t, { files: Object.fromEntries(names.map(name => [name, name])) })
  const { client, workspace } = daemon
  const attachments = [own!, shared!, waiting!, 'notes/plan.md']
  await runTurn(client, 'old', 'say one', { ...ISOLATED, attachments })
  const forkOf = { conversationId: 'old', keep: 1, files: 'now' } as const
  await runTurn(client, 'fork', 'say two', { ...ISOLATED, forkOf })
  await runTurn(client, 'last', 'say three', { ...ISOLATED, attachments: [shared!] })
  await client.call('POST /agent', { conversationId: 'busy', prompt: 'ask Which?' })
  await framesOf(client, 'busy').until(({ kind }) => kind === 'question')
  await client.call('POST /agent', { conversationId: 'busy', prompt: 'say four', attachments: [waiting!] })
  const left = () => names.filter(name => existsSync(join(workspace, name)))
  const remove = async (id: string) => {
    await discard(daemon, id)
    await client.call('DELETE /sessions/{id}', { id })
  }
  await remove('old')
  t.same(left(), names, 'the fork refers to all of them')
  await remove('fork')
  t.same(left(), [shared, waiting, ...others], 'a record and a waiting message refer to two')
  t.equal(existsSync(join(workspace, folder, 'a')), false)
  await client.call('POST /agents/archive', { ids: ['last'] })
  await client.call('POST /agents/purge', { ids: ['last'] })
  t.same(left(), [waiting, ...others])
})

t.test('an editor token lists and reads what it opened, also once that is discarded', async t => {
  const daemon = await start(t)
  const mine = await daemon.token('editor')
  await runTurn(mine.client, 'mine', 'say hello', ISOLATED)
  await runTurn(daemon.client, 'theirs', 'say hello', ISOLATED)
  await discard(daemon, 'mine')
  await discard(daemon, 'theirs')
  t.same(await ids(mine), ['mine'])
  t.same(await ids(mine, { query: 'hello' }), ['mine'])
  t.match(await mine.client.call('GET /sessions/{id}', { id: 'mine' }), { total: 2 })
  t.match(await refusal(mine.client.call('GET /sessions/{id}', { id: 'theirs' })), { status: 403 })
})

t.test('somebody limited to areas lists and reads what lies there, also once it is discarded', { skip }, async t => {
  const daemon = await daemonWith(t, [...GROUPS, 'areas', 'system'], { files: { 'docs/a': 'a', 'src/b': 'b' } })
  await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const ann = await joined(daemon, 'ann', 'collaborator', ['docs'])
  await runTurn(ann.client, 'own', 'say hello', { startIn: 'docs', ...ISOLATED })
  await runTurn(daemon.client, 'beside', 'say hello', { startIn: 'src', ...ISOLATED })
  for (const state of ['live', 'discarded']) {
    t.same(await ids(ann), ['own'], state)
    t.same(await ids(ann, { query: 'hello' }), ['own'], state)
    t.match(await refusal(ann.client.call('GET /sessions/{id}', { id: 'beside' })), { status: 404 })
    if (state === 'live') for (const id of ['own', 'beside']) await discard(daemon, id)
  }
})

t.test('paging shows every session once while new ones are written', async t => {
  const daemon = await start(t)
  const old = Array.from({ length: 120 }, (_, n) => `old-${n}`)
  for (let at = 0; at < old.length; at += 10)
    await Promise.all(old.slice(at, at + 10).map(id => runTurn(daemon.client, id, 'say x')))
  const seen: string[] = []
  let before: string | undefined
  do {
    const page = await list(daemon, { limit: 50, ...(before !== undefined && { before }) })
    seen.push(...page.sessions.map(({ id }) => id))
    before = page.next
    await runTurn(daemon.client, `new-${seen.length}`, 'say x')
  } while (before !== undefined)
  t.same(seen.toSorted(), old.toSorted())
})

t.test('a conversation without a title is called by its attachments', async t => {
  const daemon = await start(t, { files: { 'notes/plan.md': 'x' } })
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'c-1',
    prompt: '',
    attachments: ['notes/plan.md'],
  })
  await framesOf(daemon.client, 'c-1', { run }).all()
  t.match((await list(daemon)).sessions, exactly({ title: 'plan.md' }))
})
