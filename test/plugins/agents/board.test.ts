import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import type { SystemEvent } from '../../../plugins/system/contract.js'
import { daemonWith, folderOf, inGit, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'

const GROUPS = ['system', 'agent', 'agents']
const CALLS = [
  ['GET', '/archived'],
  ['GET', '/search?query=ab'],
  ['POST', '/x/place'],
  ['POST', '/x/rename'],
  ['POST', '/x/seen'],
  ['POST', '/seen'],
  ['POST', '/x/request-land'],
  ['GET', '/x/queue'],
  ['DELETE', '/x/queue/m'],
  ['POST', '/x/queue/order'],
  ['POST', '/archive'],
  ['POST', '/unarchive'],
  ['POST', '/purge'],
] as const

/** A conversation whose turn waits, with messages behind it. */
const queued = async (client: Client, id: string, words: readonly string[]): Promise<string[]> => {
  await client.call('POST /agent', { conversationId: id, prompt: 'say first\nwait words 60000' })
  await framesOf(client, id).until(frame => frame.kind === 'delta' && frame.text.includes('first'))
  const runs: string[] = []
  for (const word of words) {
    const { run, delivery } = await client.call('POST /agent', {
      conversationId: id,
      messageId: `m-${word}`,
      prompt: `say ${word}`,
      errand: 'ci-fix',
    })
    if (delivery !== 'queued') throw new Error(`${word} was ${delivery}`)
    runs.push(run)
  }
  return runs
}

const said = async (client: Client, id: string): Promise<string[]> =>
  (await client.call('GET /agents/{id}/transcript', { id })).messages
    .filter(({ role }) => role === 'assistant')
    .map(({ text }) => text.trim())

const parked = (workspace: string): string =>
  inGit(workspace, 'for-each-ref', '--format=%(refname)', 'refs/sandbox/parked', 'refs/heads/agent').trim()

t.test('without a credential every call is refused', async t => {
  const { url } = await daemonWith(t, GROUPS)
  for (const [method, path] of CALLS)
    t.equal((await fetch(`${url}/agents${path}`, { method })).status, 401, `${method} ${path}`)
})

t.test('a token reaches the calls of its scope', async t => {
  const { client, token, url } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'say hello')
  const [read, drive, land, editor] = await Promise.all([token('read'), token('drive'), token('land'), token('editor')])
  const status = async ({ token }: { token: string }, method: string, path: string, body: object = {}) =>
    (
      await fetch(`${url}/agents${path}`, {
        method,
        headers: { 'x-sandbox-control': token, 'content-type': 'application/json' },
        ...(method === 'POST' && { body: JSON.stringify(body) }),
      })
    ).status
  for (const [method, path] of CALLS) {
    t.equal(await status(editor, method, path), 403, `editor on ${method} ${path}`)
    if (method !== 'GET') t.equal(await status(read, method, path), 403, `read on ${method} ${path}`)
  }
  t.equal(await status(land, 'POST', '/c-1/place', { text: 'x' }), 403, 'no token can place a line')
  t.equal(await status(drive, 'POST', '/purge'), 403)
  t.equal(await status(read, 'GET', '/c-1/queue'), 200)
  t.equal(await status(drive, 'POST', '/c-1/rename', { title: 'x' }), 200)
  t.equal(await status(land, 'POST', '/purge'), 200)
})

t.test('bad input and unknown conversations are refused, and nothing changes', async t => {
  const { client, fetch } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'say hello')
  const status = async (method: string, path: string, body?: object) =>
    (await fetch(`/agents${path}`, { method, ...(body && { body: JSON.stringify(body) }) })).status
  for (const query of ['', '?query=a', `?query=${'x'.repeat(201)}`])
    t.equal(await status('GET', `/search${query}`), 400, `search${query.slice(0, 20)}`)
  t.equal(await status('GET', '/archived?limit=0'), 400)
  for (const title of ['', '   ', 'x'.repeat(81), '🦩'.repeat(81)])
    t.equal(await status('POST', '/c-1/rename', { title }), 400, `title ${title.slice(0, 5)}`)
  const long = await fetch('/agents/c-1/rename', { method: 'POST', body: JSON.stringify({ title: '🦩'.repeat(81) }) })
  t.match(await long.json(), { message: /^title: expected .*at most 80 characters/ })
  const flock = '🦩'.repeat(80)
  t.match(await client.call('POST /agents/{id}/rename', { id: 'c-1', title: flock }), { title: flock })
  t.equal(await status('POST', '/c-1/rename', { title: 'say hello' }), 200)
  t.equal(await status('POST', '/c-1/place', { text: '' }), 400)
  t.equal(await status('POST', '/unarchive', { ids: [] }), 400)
  for (const [method, path, body] of [
    ['POST', '/none/rename', { title: 'x' }],
    ['POST', '/none/seen', {}],
    ['POST', '/none/place', { text: 'x' }],
    ['GET', '/none/queue'],
    ['DELETE', '/none/queue/m'],
    ['POST', '/none/queue/order', { messageIds: [] }],
    ['POST', '/none/request-land', {}],
    ['POST', '/seen', { ids: ['c-1', 'none'] }],
    ['POST', '/archive', { ids: ['c-1', 'none'] }],
    ['POST', '/unarchive', { ids: ['none'] }],
    ['POST', '/purge', { ids: ['none'] }],
  ] as const)
    t.equal(await status(method, path, body), 404, `${method} ${path}`)
  const {
    agents: [card],
  } = await client.call('GET /agents')
  t.match(card, { id: 'c-1', title: 'say hello', seenAt: undefined })
})

t.test('a chosen title and the read marks are stored and do not count as activity', async t => {
  const { client } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'say hello')
  await runTurn(client, 'c-2', 'say hello')
  const { updatedAt } = await client.call('GET /agents/{id}', { id: 'c-1' })
  t.match(await client.call('POST /agents/{id}/rename', { id: 'c-1', title: ' Mine ' }), { title: 'Mine', updatedAt })
  const { seenAt } = await client.call('POST /agents/{id}/seen', { id: 'c-1' })
  t.ok(seenAt)
  const { agents, rev } = await client.call('POST /agents/seen')
  t.ok(agents.every(({ seenAt: at = 0 }) => at >= seenAt!))
  t.same((await client.call('GET /agents')).rev, rev)
  await client.call('POST /agent', { conversationId: 'c-1', prompt: 'ask Go on?\n| yes: on', title: 'other' })
  await framesOf(client, 'c-1').until(({ kind }) => kind === 'question')
  t.match(await client.call('POST /agents/{id}/rename', { id: 'c-1', title: 'While it works' }), {
    title: 'While it works',
    status: 'awaiting',
  })
  await client.call('POST /agent/stop', { conversationId: 'c-1' })
})

t.test('queued messages are listed, withdrawn and reordered, and start on request', async t => {
  const { client } = await daemonWith(t, GROUPS)
  const [, runB] = await queued(client, 'c-1', ['a', 'b', 'c'])
  const frames = framesOf(client, 'c-1')
  const line = await client.call('GET /agents/{id}/queue', { id: 'c-1' })
  t.match(line, {
    paused: false,
    messages: exactly({ messageId: 'm-a', text: 'say a' }, { messageId: 'm-b' }, { messageId: 'm-c' }),
  })
  t.equal(line.running, (await client.call('GET /agents/{id}', { id: 'c-1' })).run)
  const watching = framesOf(client, 'c-1', { run: runB! }).all()
  const { removed, messages } = await client.call('DELETE /agents/{id}/queue/{messageId}', {
    id: 'c-1',
    messageId: 'm-b',
  })
  t.match(removed, { messageId: 'm-b', text: 'say b', run: runB })
  t.same(
    messages.map(({ messageId }) => messageId),
    ['m-a', 'm-c'],
  )
  t.same(await watching, [], 'watchers of a run that never starts are released')
  await frames.until(frame => frame.kind === 'queue' && frame.messages.length === 2)
  await t.rejects(client.call('DELETE /agents/{id}/queue/{messageId}', { id: 'c-1', messageId: 'm-b' }), {
    name: 'Refusal',
    reason: 'not-found',
  })
  t.match(await client.call('POST /agent', { conversationId: 'c-1', messageId: 'm-b', prompt: 'say b' }), {
    run: runB,
    delivery: 'queued',
  })
  for (const messageIds of [['m-a'], ['m-a', 'm-a'], ['m-a', 'm-b'], ['m-a', 'm-c', 'm-c']]) {
    await t.rejects(
      client.call('POST /agents/{id}/queue/order', { id: 'c-1', messageIds }),
      { name: 'Refusal', reason: 'conflict' },
      messageIds.join(),
    )
  }
  const ordered = await client.call('POST /agents/{id}/queue/order', { id: 'c-1', messageIds: ['m-c', 'm-a'] })
  t.same(
    [ordered.messages.map(({ messageId }) => messageId), ordered.paused, ordered.run],
    [['m-c', 'm-a'], false, undefined],
  )
  await client.call('POST /agent/stop', { conversationId: 'c-1' })
  t.match(await client.call('GET /agents/{id}/queue', { id: 'c-1' }), { paused: true, running: undefined })
  const { run, paused } = await client.call('POST /agents/{id}/queue/order', {
    id: 'c-1',
    messageIds: ['m-c', 'm-a'],
    start: true,
  })
  t.equal(paused, false)
  await framesOf(client, 'c-1', { run: run! }).all()
  await framesOf(client, 'c-1', { run: ordered.messages[1]!.run }).all()
  t.same(await said(client, 'c-1'), ['first', 'c', 'a'])
  await t.rejects(client.call('DELETE /agents/{id}/queue/{messageId}', { id: 'c-1', messageId: 'm-c' }), {
    name: 'Refusal',
    reason: 'conflict',
    message: /delivered/,
  })
  await t.rejects(client.call('POST /agents/{id}/queue/order', { id: 'c-1', messageIds: [], start: true }), {
    name: 'Refusal',
    reason: 'unprocessable',
  })
})

t.test('a landing request for work that could not be committed says why, and takes effect once it could', async t => {
  const { client, data } = await daemonWith(t, GROUPS)
  const { run } = await client.call('POST /agent', {
    conversationId: 'c-1',
    prompt: 'write a.txt\n| a\nthink on it\nwait 60000',
    isolated: true,
  })
  const watched = framesOf(client, 'c-1', { run: run! })
  await watched.until(({ kind }) => kind === 'thinking')
  const folder = join(data, 'agent', 'git')
  // The copy that is prepared for the next conversation has one too.
  const [gitdir] = readdirSync(folder).filter(name => existsSync(join(folder, name, 'refs', 'heads', 'agent', 'c-1')))
  const objects = join(folder, gitdir!, 'objects')
  renameSync(objects, `${objects}-away`)
  await client.call('POST /agent/stop', { conversationId: 'c-1' })
  await watched.all()
  await t.rejects(client.call('POST /agents/{id}/request-land', { id: 'c-1' }), {
    name: 'Refusal',
    reason: 'dependency',
    message: /^the work of c-1 is not on its branch yet: the private copy is damaged/,
  })
  renameSync(`${objects}-away`, objects)
  t.match((await client.call('POST /agents/{id}/request-land', { id: 'c-1' })).landRequested, { at: Number })
})

t.test('a landing request names the first requester, until the work lands', async t => {
  const { client, token } = await daemonWith(t, GROUPS)
  await runTurn(client, 'shared', 'say hello')
  await runTurn(client, 'idle', 'say hello', { isolated: true })
  await runTurn(client, 'c-1', 'write a.txt\n| a', { isolated: true })
  await t.rejects(client.call('POST /agents/{id}/request-land', { id: 'shared' }), {
    name: 'Refusal',
    reason: 'unprocessable',
  })
  await t.rejects(client.call('POST /agents/{id}/request-land', { id: 'idle' }), {
    name: 'Refusal',
    reason: 'conflict',
  })
  const drive = await token('drive', 'ci')
  const watching = new AbortController()
  t.teardown(() => watching.abort())
  const events = (await client.call('GET /events', {}, { signal: watching.signal }))[Symbol.asyncIterator]()
  const attention = async (land: number): Promise<SystemEvent> => {
    for (;;) {
      const { value, done } = await events.next()
      if (done) throw new Error('the stream ended')
      if (value.kind === 'attention' && value.land === land) return value
    }
  }
  await attention(0)
  const { landRequested } = await drive.client.call('POST /agents/{id}/request-land', { id: 'c-1' })
  t.match(landRequested, { email: 'token:ci', at: Number })
  t.same((await client.call('POST /agents/{id}/request-land', { id: 'c-1' })).landRequested, landRequested)
  t.match(await attention(1), { cards: 0 })
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).landRequested, undefined)
  t.match(await attention(0), { cards: 0 })
})

t.test('an archived conversation keeps its work on a parked branch, and its next turn finds it again', async t => {
  const { client, workspace, data } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'write a.txt\n| a\nrun echo more > b.txt', { isolated: true })
  const { moved, rev, failed } = await client.call('POST /agents/archive', { ids: ['c-1', 'c-1'] })
  const tip = inGit(workspace, 'rev-parse', 'refs/sandbox/parked/c-1')
  t.match(moved, exactly({ id: 'c-1', status: 'ready', diff: { files: 2 }, archivedAt: Number }))
  t.equal(failed, undefined)
  t.equal(parked(workspace), 'refs/sandbox/parked/c-1')
  t.notOk(existsSync(join(data, 'agent', 'checkouts', 'c-1')))
  const left = () => {
    const held = readdirSync(join(data, 'agent/made')).flatMap(
      name =>
        (JSON.parse(readFileSync(join(data, 'agent/made', name), 'utf8')) as { repos: { gitdir: string }[] }).repos,
    )
    return readdirSync(join(data, 'agent/git')).filter(
      name => !held.some(({ gitdir }) => join(data, 'agent/git', name).startsWith(gitdir)),
    )
  }
  // The warm copy has a git dir before it is complete.
  for (let look = 0; look < 200 && left().length > 0; look++) await delay(50)
  t.same(left(), [], 'its git dir is removed too')
  t.match(await client.call('GET /agents'), { agents: { length: 0 }, rev })
  t.match(await client.call('GET /agents/archived'), { agents: exactly({ id: 'c-1' }), held: { length: 0 } })
  t.equal((await client.call('POST /agents/archive', { ids: ['c-1'] })).moved.length, 1, 'repeating it succeeds')
  t.match(
    (await client.call('POST /agents/unarchive', { ids: ['c-1'] })).moved,
    exactly({ id: 'c-1', archivedAt: undefined }),
  )
  t.match((await client.call('GET /agents')).agents, exactly({ id: 'c-1', status: 'ready' }))
  await client.call('POST /agents/archive', { ids: ['c-1'] })
  await runTurn(client, 'c-1', 'run cat a.txt b.txt\nexpect more\nsay back')
  t.match(await client.call('GET /agents/{id}', { id: 'c-1' }), {
    lastEnd: 'completed',
    archivedAt: undefined,
    diff: { files: 2 },
  })
  t.equal(parked(workspace), 'refs/heads/agent/c-1')
  t.equal(inGit(workspace, 'rev-parse', 'agent/c-1'), tip)
})

t.test('a conversation whose archiving was interrupted loses nothing', async t => {
  const { client, workspace, data } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'write a.txt\n| a', { isolated: true })
  await client.call('GET /agents')
  inGit(workspace, 'update-ref', 'refs/sandbox/parked/c-1', 'HEAD')
  rmSync(join(data, 'agent', 'made', 'c-1.json'))
  await runTurn(client, 'c-1', 'read a.txt\nwrite b.txt\n| b')
  t.match(await client.call('GET /agents/{id}', { id: 'c-1' }), { lastEnd: 'completed', diff: { files: 2 } })
  const tip = inGit(workspace, 'rev-parse', 'agent/c-1')
  t.match((await client.call('POST /agents/archive', { ids: ['c-1'] })).moved, exactly({ diff: { files: 2 } }))
  t.equal(inGit(workspace, 'rev-parse', 'refs/sandbox/parked/c-1'), tip)
})

t.test('a retired copy lands from its parked branch', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'write a.txt\n| a', { isolated: true })
  await client.call('POST /agents/archive', { ids: ['c-1'] })
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'a\n')
})

t.test(
  'a running conversation is not archived, nor is a copy off its branch; without ids all finished ones are',
  async t => {
    const { client, data } = await daemonWith(t, GROUPS)
    await runTurn(client, 'ready', 'write a.txt\n| a', { isolated: true })
    await runTurn(client, 'idle', 'say hello')
    await runTurn(client, 'off', 'run git checkout -q --detach\nrun echo x > x.txt', { isolated: true })
    await queued(client, 'works', ['a'])
    await t.rejects(client.call('POST /agents/archive', { ids: ['idle', 'works'] }), {
      name: 'Refusal',
      reason: 'conflict',
      message: /running/,
    })
    t.equal((await client.call('GET /agents')).agents.length, 4, 'nothing moved')
    await t.rejects(client.call('POST /agents/{id}/place', { id: 'works', text: 'x' }), {
      name: 'Refusal',
      reason: 'conflict',
    })
    const { moved, failed } = await client.call('POST /agents/archive', { ids: ['off', 'ready'] })
    t.same(
      moved.map(({ id }) => id),
      ['ready'],
    )
    t.match(failed, exactly({ id: 'off', message: /is not on its branch/ }))
    t.equal(readFileSync(join(data, 'agent', 'checkouts', 'off', 'x.txt'), 'utf8'), 'x\n')
    await client.call('POST /agent/stop', { conversationId: 'works' })
    t.same(
      (await client.call('POST /agents/archive')).moved.map(({ id }) => id),
      ['idle'],
    )
  },
)

t.test('the archive is paged by the time of archiving', async t => {
  const { client } = await daemonWith(t, GROUPS)
  const ids = ['a', 'b', 'c', 'd', 'e']
  for (const id of ids) await runTurn(client, id, 'say hello')
  await client.call('POST /agents/archive', { ids })
  const seen: string[] = []
  for (let before: number | undefined; ;) {
    const { agents } = await client.call('GET /agents/archived', { limit: 2, ...(before !== undefined && { before }) })
    if (agents.length === 0) break
    seen.push(...agents.map(({ id }) => id))
    before = agents.at(-1)!.archivedAt
  }
  t.same(seen, [...ids].reverse())
  t.equal((await client.call('GET /agents/archived', { limit: 9999 })).agents.length, 5)
})

t.test('purging deletes branch, record and transcript, and only of archived conversations', async t => {
  const { client, workspace, data } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'write a.txt\n| a\nsay zebrafish', { isolated: true })
  await runTurn(client, 'c-2', 'say hello')
  await client.call('GET /agents/search', { query: 'zebrafish' })
  await client.call('POST /agents/archive', { ids: ['c-1'] })
  await t.rejects(client.call('POST /agents/purge', { ids: ['c-1', 'c-2'] }), {
    name: 'Refusal',
    reason: 'conflict',
    message: /c-2/,
  })
  t.equal((await client.call('GET /agents/archived')).agents.length, 1, 'nothing was removed')
  t.same(await client.call('POST /agents/purge'), { removed: ['c-1'] })
  t.equal(parked(workspace), '')
  await t.rejects(client.call('GET /agents/{id}', { id: 'c-1' }), { name: 'Refusal', reason: 'not-found' })
  t.same((await client.call('GET /agents/search', { query: 'zebrafish' })).matches, [])
  const folder = join(data, 'agent')
  t.notMatch(readFileSync(join(folder, 'search.sqlite')).toString('latin1'), /zebrafish/)
  const holding = readdirSync(data, { recursive: true, encoding: 'utf8' }).filter(
    path => /transcripts|frames/.test(path) && /c-1/.test(path),
  )
  t.same(holding, [])
  await runTurn(client, 'c-1', 'say anew', { isolated: true })
  t.equal((await client.call('GET /agents/{id}/transcript', { id: 'c-1' })).total, 2)
  t.notOk(existsSync(join(folder, 'checkouts', 'c-1', 'a.txt')))
})

t.test("conversations are found by title and by text, live and archived, with the person's own line first", async t => {
  const { client } = await daemonWith(t, GROUPS)
  await runTurn(client, 'title', 'say nothing', { title: 'About Pelicans' })
  await runTurn(client, 'agent', 'say one\n| two pelicans three\n| four')
  await runTurn(client, 'both', '# first line\n# a pelicanish wish\nsay pelican')
  await runTurn(client, 'think', 'think of penguins\nsay done')
  await client.call('POST /agents/archive', { ids: ['both'] })
  const find = async (query: string, caseSensitive?: boolean) => {
    const { matches, indexing, scanned } = await client.call('GET /agents/search', {
      query,
      ...(caseSensitive && { caseSensitive }),
    })
    t.same([indexing, scanned >= 4], [false, true])
    return new Map(matches.map(({ id, snippet }) => [id, snippet]))
  }
  const found = await find('PELICAN')
  t.same([...found.keys()].sort(), ['agent', 'both', 'title'])
  t.same(found.get('both'), { text: '# a pelicanish wish', speaker: 'user' })
  t.equal(found.get('title'), undefined)
  t.same([...(await find('Pelicans', true)).keys()], ['title'])
  t.equal((await find('pe')).size, 4, 'two letters')
  t.equal((await find('"pelican')).size, 0)
  await client.call('POST /agent', { conversationId: 'live', prompt: 'say an albatross\nwait words 60000' })
  await framesOf(client, 'live').until(({ kind }) => kind === 'text_end')
  t.same([...(await find('n albatros')).keys()], ['live'])
  await client.call('POST /agent/stop', { conversationId: 'live' })
  t.same([...(await find('n albatros')).keys()], ['live'], 'also in its record')
})

t.test('an unreadable index is rebuilt, and an outdated one is updated', async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(place.workspace)
  const file = join(place.data, 'agent', 'search.sqlite')
  for (const [at, word] of ['pelican', 'albatross', 'penguin'].entries()) {
    await t.test(word, async t => {
      if (at === 2) writeFileSync(file, 'x'.repeat(40_000))
      const { client } = await daemonWith(t, GROUPS, place)
      await runTurn(client, 'c-1', `say a ${word}`)
      if (at === 0) await client.call('GET /agents/search', { query: word })
      const { matches, indexing } = await client.call('GET /agents/search', { query: 'a pelican' })
      t.match([matches, indexing], exactly(exactly({ id: 'c-1' }), false))
      t.equal((await client.call('GET /agents/search', { query: word })).matches.length, 1)
    })
  }
})

t.test('a line placed in the name of the agent is in the record, marked, and is found', async t => {
  const { client } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'say hello')
  t.ok((await client.call('GET /agents/{id}', { id: 'c-1' })).sessionId)
  t.same(await client.call('POST /agents/{id}/place', { id: 'c-1', text: 'we ship on Friday' }), { ok: true })
  const { messages, sessionId } = await client.call('GET /agents/{id}/transcript', { id: 'c-1' })
  t.match(messages.at(-1), { index: 2, role: 'assistant', text: 'we ship on Friday', placed: true })
  t.equal(sessionId, undefined)
  t.match(
    (await client.call('GET /agents/search', { query: 'on Friday' })).matches,
    exactly({ id: 'c-1', snippet: { speaker: 'agent' } }),
  )
  await runTurn(client, 'c-1', 'say again')
  t.same(await said(client, 'c-1'), ['hello', 'we ship on Friday', 'again'])
})

const folders = (t: Test) => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  mkdirSync(join(where.workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(
    join(where.workspace, '.sandbox', 'config', 'settings.json'),
    JSON.stringify({ autoResumeOnRestart: false }),
  )
  return where
}

t.test('acknowledged changes survive a kill', async t => {
  const where = folders(t)
  const one = await spawnDaemon(t, where)
  await runTurn(one.client, 'away', 'write a.txt\n| a\nsay pelican', { isolated: true })
  await runTurn(one.client, 'gone', 'write b.txt\n| b', { isolated: true })
  await runTurn(one.client, 'asked', 'write c.txt\n| c', { isolated: true })
  await queued(one.client, 'works', ['a', 'b', 'c'])
  await one.client.call('POST /agents/archive', { ids: ['away', 'gone'] })
  const tip = inGit(where.workspace, 'rev-parse', 'refs/sandbox/parked/away')
  await one.client.call('POST /agents/purge', { ids: ['gone'] })
  const { landRequested } = await one.client.call('POST /agents/{id}/request-land', { id: 'asked' })
  await one.client.call('POST /agents/{id}/place', { id: 'asked', text: 'placed' })
  const { seenAt } = await one.client.call('POST /agents/{id}/seen', { id: 'works' })
  await one.client.call('DELETE /agents/{id}/queue/{messageId}', { id: 'works', messageId: 'm-b' })
  await one.client.call('POST /agents/{id}/queue/order', { id: 'works', messageIds: ['m-c', 'm-a'] })
  await one.client.call('POST /agents/{id}/rename', { id: 'works', title: 'Chosen' })
  await one.kill9()

  const { client, ...two } = await spawnDaemon(t, where)
  t.match(await client.call('GET /agents/{id}', { id: 'works' }), {
    title: 'Chosen',
    seenAt,
    waiting: 2,
    queuePaused: true,
  })
  t.match(await client.call('GET /agents/{id}', { id: 'asked' }), { landRequested })
  t.equal((await said(client, 'asked')).at(-1), 'placed')
  t.same(
    (await client.call('GET /agents/archived')).agents.map(({ id }) => id),
    ['away'],
  )
  t.match((await client.call('GET /agents/search', { query: 'pelican' })).matches, exactly({ id: 'away' }))
  const line = await client.call('GET /agents/{id}/queue', { id: 'works' })
  t.same(
    line.messages.map(({ messageId }) => messageId),
    ['m-c', 'm-a'],
  )
  await client.call('POST /agents/{id}/queue/order', { id: 'works', messageIds: ['m-c', 'm-a'], start: true })
  await framesOf(client, 'works', { run: line.messages[1]!.run }).all()
  t.same(await said(client, 'works'), ['first', 'c', 'a'])
  await runTurn(client, 'away', 'read a.txt\nsay back')
  t.equal(inGit(where.workspace, 'rev-parse', 'agent/away'), tip)
  t.equal(inGit(two.workspace, 'for-each-ref', '--format=%(refname)', 'refs/sandbox').trim(), '')
})

t.test('messages to a provider without steering run in the order that a person set, and a kill loses none', async t => {
  const where = folders(t)
  const one = await spawnDaemon(t, where)
  await one.client.call('POST /agent', {
    conversationId: 'v',
    harness: 'vendor-code',
    prompt: 'say first\nwait 60000',
  })
  await framesOf(one.client, 'v').until(({ kind }) => kind === 'delta')
  for (const word of ['a', 'b', 'c']) {
    t.match(
      await one.client.call('POST /agent', { conversationId: 'v', messageId: `m-${word}`, prompt: `say ${word}` }),
      { delivery: 'queued' },
    )
  }
  t.match((await one.client.call('GET /agents/{id}/queue', { id: 'v' })).messages[0], {
    messageId: 'm-a',
    why: 'no-mid-turn-words',
  })
  await one.client.call('DELETE /agents/{id}/queue/{messageId}', { id: 'v', messageId: 'm-b' })
  const { messages } = await one.client.call('POST /agents/{id}/queue/order', { id: 'v', messageIds: ['m-c', 'm-a'] })
  await one.kill9()

  const { client, ...two } = await spawnDaemon(t, where)
  t.match(await client.call('GET /agents/{id}/queue', { id: 'v' }), { messages, paused: true, running: undefined })
  const { run } = await client.call('POST /agents/{id}/queue/order', {
    id: 'v',
    messageIds: ['m-c', 'm-a'],
    start: true,
  })
  t.equal(run, messages[0]!.run)
  await framesOf(client, 'v', { run: messages[1]!.run }).all()
  t.same(await said(client, 'v'), ['first', 'c', 'a'])
  t.match(await client.call('GET /agents/{id}/queue', { id: 'v' }), { messages: { length: 0 }, paused: false })
  await two.terminate()
})
