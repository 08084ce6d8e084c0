import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { daemonWith, folderOf, inGit, makeWorkspace, spawnDaemon, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { treeOf } from './support.js'

const GROUPS = ['system', 'agent', 'agents']
const KILLER = fileURLToPath(new URL('kill-child.js', import.meta.url))

const lines = (count: number, change: { [line: number]: string } = {}): string =>
  Array.from({ length: count }, (_, at) => change[at + 1] ?? `line ${at + 1}`).join('\n') + '\n'
const read = (folder: string, path: string): string => readFileSync(join(folder, path), 'utf8')
const books = (workspace: string): string =>
  readFileSync(join(workspace, '.git/index')).toString('hex') + inGit(workspace, 'rev-parse', 'HEAD')
const work = (workspace: string) =>
  Object.fromEntries(Object.entries(treeOf(workspace)).filter(([path]) => !path.startsWith('.sandbox')))

/** Makes a nested repository with a first commit. */
const makeNested = (workspace: string): string => {
  const nested = join(workspace, 'nested')
  mkdirSync(nested)
  writeFileSync(join(nested, 'n.txt'), lines(5))
  inGit(nested, 'init', '-q', '-b', 'trunk')
  inGit(nested, 'add', '-A')
  inGit(nested, 'commit', '-q', '-m', 'first')
  return nested
}

const disputed = async (t: Test): Promise<Support> => {
  const support = await daemonWith(t, GROUPS, {
    files: { '.gitignore': 'nested\n', 'a.txt': lines(5), 'b.txt': lines(5), 'big.txt': 'line 1\n' },
  })
  const { workspace, client } = support
  const nested = makeNested(workspace)
  const edits = ['a.txt', 'b.txt', 'nested/n.txt'].map(path => `edit ${path}\n| - line 3\n| + agent`).join('\n')
  await runTurn(
    client,
    'c-1',
    `${edits}\nwrite big.txt\n| agent\nwrite fits.txt\n| fits\nrun printf '\\000\\001' > picture\nsay done`,
    { isolated: true },
  )
  writeFileSync(join(nested, 'n.txt'), lines(5, { 3: 'mine' }))
  inGit(nested, 'commit', '-q', '-a', '-m', 'mine')
  writeFileSync(join(workspace, 'b.txt'), lines(5, { 3: 'mine' }))
  inGit(workspace, 'commit', '-q', '-a', '-m', 'mine')
  writeFileSync(join(workspace, 'a.txt'), lines(5, { 3: 'mine', 5: 'mine' }))
  writeFileSync(join(workspace, 'big.txt'), 'é'.repeat(200_000))
  writeFileSync(join(workspace, 'picture'), Buffer.from([0, 2]))
  return support
}

t.test('without a credential or with too low a role or scope every call is refused', async t => {
  const { url, token, client } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'write a.txt\n| a\nsay done', { isolated: true })
  for (const [method, path] of [
    ['GET', 'c-1/conflicts'],
    ['POST', 'land'],
    ['POST', 'c-1/sync'],
    ['POST', 'c-1/land'],
  ] as const) {
    t.equal((await fetch(`${url}/agents/${path}`, { method })).status, 401, path)
  }
  const [read, drive, editor] = await Promise.all([token('read'), token('drive'), token('editor')])
  t.same((await read.client.call('GET /agents/{id}/conflicts', { id: 'c-1' })).files, [])
  await t.rejects(editor.client.call('GET /agents/{id}/conflicts', { id: 'c-1' }), { message: /read/ })
  await t.rejects(read.client.call('POST /agents/{id}/sync', { id: 'c-1' }), { message: /drive/ })
  t.same((await drive.client.call('POST /agents/{id}/sync', { id: 'c-1' })).repos, [])
  await t.rejects(drive.client.call('POST /agents/land', { ids: ['c-1'] }), { message: /land/ })
  t.same(await (await token('land')).client.call('POST /agents/land', { ids: ['c-1'] }), {
    results: [{ id: 'c-1', result: { landed: true, uncommitted: [{ repo: 'root', paths: ['a.txt'] }] } }],
  })
})

t.test(
  'every path that would not land is listed with its reason, over all repositories, and nothing changes',
  async t => {
    const { client, workspace } = await disputed(t)
    const before = [work(workspace), books(workspace), books(join(workspace, 'nested'))]
    const { files, mainBranch } = await client.call('GET /agents/{id}/conflicts', { id: 'c-1' })
    t.same(files, [
      { repo: 'root', path: 'a.txt', reason: 'workspace', hunks: 1 },
      { repo: 'root', path: 'b.txt', reason: 'diverged', hunks: 1 },
      { repo: 'root', path: 'big.txt', reason: 'workspace', hunks: 1 },
      { repo: 'root', path: 'picture', reason: 'workspace' },
      { repo: 'nested', path: 'n.txt', reason: 'diverged', hunks: 1 },
    ])
    t.same(mainBranch, { root: 'main', nested: 'trunk' })
    t.same([work(workspace), books(workspace), books(join(workspace, 'nested'))], before)
    t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'ready', 'no refusal is recorded')
  },
)

t.test('one file is shown with all its sides and the merge with markers', async t => {
  const { client } = await disputed(t)
  const [file] = (await client.call('GET /agents/{id}/conflicts', { id: 'c-1', repo: 'root', path: 'a.txt' })).files
  const sized = (text: string) => ({ size: Buffer.byteLength(text), text })
  t.same(file, {
    repo: 'root',
    path: 'a.txt',
    reason: 'workspace',
    hunks: 1,
    base: sized(lines(5)),
    agent: sized(lines(5, { 3: 'agent' })),
    workspace: sized(lines(5, { 3: 'mine', 5: 'mine' })),
    merged: sized('line 1\nline 2\n<<<<<<< workspace\nmine\n=======\nagent\n>>>>>>> agent/c-1\nline 4\nmine\n'),
  })
  const picture = (await client.call('GET /agents/{id}/conflicts', { id: 'c-1', repo: 'root', path: 'picture' })).files
  t.same(picture, [
    {
      repo: 'root',
      path: 'picture',
      reason: 'workspace',
      base: { missing: true },
      agent: { size: 2, binary: true },
      workspace: { size: 2, binary: true },
    },
  ])
  const [big] = (await client.call('GET /agents/{id}/conflicts', { id: 'c-1', repo: 'root', path: 'big.txt' })).files
  t.match(big?.workspace, { size: 400_000, truncated: true })
  t.equal(big?.workspace?.text, 'é'.repeat(131_072), 'cut between characters')
  t.match(
    (await client.call('GET /agents/{id}/conflicts', { id: 'c-1', repo: 'nested', path: 'n.txt' })).files,
    exactly({ workspace: { text: lines(5, { 3: 'mine' }) } }),
  )
})

t.test('conflicts with only repo or path, of an unknown file or of the shared tree are refused', async t => {
  const { client, fetch } = await disputed(t)
  await runTurn(client, 'shared', 'say hello')
  const status = async (path: string) => (await fetch(`/agents/${path}`)).status
  t.equal(await status('c-1/conflicts?repo=root'), 400)
  t.equal(await status('c-1/conflicts?path=a.txt'), 400)
  t.equal(await status('c-1/conflicts?repo=root&path=../a.txt'), 400)
  t.equal(await status('c-1/conflicts?repo=root&path=none.txt'), 404)
  t.equal(await status('c-1/conflicts?repo=root&path=fits.txt'), 404)
  t.equal(await status('c-1/conflicts?repo=elsewhere&path=a.txt'), 404)
  t.equal(await status('none/conflicts'), 404)
  t.equal(await status('shared/conflicts'), 422)
})

t.test(
  'several conversations land in order, each on top of the previous one, and a refused one stops no other',
  async t => {
    const { client, workspace, fetch } = await daemonWith(t, GROUPS, { files: { 'a.txt': lines(5) } })
    await runTurn(client, 'one', 'edit a.txt\n| - line 3\n| + one\nsay done', { isolated: true })
    await runTurn(client, 'two', 'edit a.txt\n| - line 3\n| + two\nwrite two.txt\n| two\nsay done', { isolated: true })
    await runTurn(client, 'three', 'write three.txt\n| three\nsay done', { isolated: true })
    await runTurn(client, 'shared', 'say hello')
    const many = async (body: object) =>
      (await fetch('/agents/land', { method: 'POST', body: JSON.stringify(body) })).status
    t.equal(await many({ ids: ['one', 'one'] }), 400)
    t.equal(await many({ ids: [] }), 400)
    t.equal(await many({ ids: ['one'], mode: 'measure' }), 400)
    t.equal(await many({ ids: Array.from({ length: 101 }, (_, at) => `c-${at}`) }), 400)
    t.equal(await many({ ids: ['one', 'none'] }), 404)
    t.same(work(workspace), { 'a.txt': `file ${lines(5)}` }, 'nothing landed')
    const { results } = await client.call('POST /agents/land', { ids: ['one', 'shared', 'two', 'three'] })
    t.match(
      results,
      exactly(
        { id: 'one', result: { landed: true } },
        { id: 'shared', error: { status: 422, message: /shared tree/ } },
        {
          id: 'two',
          result: {
            landed: false,
            conflicts: exactly({ paths: exactly({ path: 'a.txt', reason: 'workspace' }), clean: 1 }),
          },
        },
        { id: 'three', result: { landed: true } },
      ),
    )
    t.same(work(workspace), { 'a.txt': `file ${lines(5, { 3: 'one' })}`, 'three.txt': 'file three\n' })
    inGit(workspace, 'add', '-A')
    inGit(workspace, 'commit', '-q', '-m', 'took in')
    const merged = await client.call('POST /agents/land', { ids: ['two'], mode: 'merge' })
    t.match(
      merged.results,
      exactly({ id: 'two', result: { landed: true, resolving: exactly({ repo: 'root', paths: exactly('a.txt') }) } }),
    )
    t.equal(
      read(workspace, 'a.txt'),
      'line 1\nline 2\n<<<<<<< workspace\none\n=======\ntwo\n>>>>>>> agent/two\nline 4\nline 5\n',
    )
  },
)

t.test('a sync rebases the branch onto the main line, reports the changes, and changes nothing else', async t => {
  const { client, workspace, fetch } = await daemonWith(t, GROUPS, { files: { 'a.txt': lines(20), 'b.txt': lines(5) } })
  await runTurn(client, 'c-1', 'edit a.txt\n| - line 3\n| + agent\nsay done', { isolated: true })
  await runTurn(client, 'shared', 'say hello')
  t.same((await client.call('POST /agents/{id}/sync', { id: 'c-1' })).repos, [], 'it is up to date already')
  writeFileSync(join(workspace, 'a.txt'), lines(20, { 18: 'mine' }))
  writeFileSync(join(workspace, 'b.txt'), 'mine\n')
  inGit(workspace, 'commit', '-q', '-a', '-m', 'mine')
  writeFileSync(join(workspace, 'b.txt'), 'uncommitted\n')
  const head = inGit(workspace, 'rev-parse', 'HEAD').trim()
  const index = readFileSync(join(workspace, '.git/index'))
  const { repos, agent } = await client.call('POST /agents/{id}/sync', { id: 'c-1' })
  t.same(repos, [{ repo: 'root', onto: head, commits: 1, moved: ['a.txt', 'b.txt'], overlap: ['a.txt'] }])
  t.match(agent, { id: 'c-1', base: head.slice(0, 10), status: 'ready', diff: { files: 1, insertions: 1 } })
  t.equal(inGit(workspace, 'show', 'agent/c-1:a.txt'), lines(20, { 3: 'agent', 18: 'mine' }))
  t.same(readFileSync(join(workspace, '.git/index')), index)
  t.equal(inGit(workspace, 'rev-parse', 'HEAD').trim(), head)
  t.equal(read(workspace, 'b.txt'), 'uncommitted\n')
  writeFileSync(join(workspace, 'a.txt'), lines(20, { 3: 'mine', 18: 'mine' }))
  inGit(workspace, 'commit', '-q', '-m', 'in the way', 'a.txt')
  const tip = inGit(workspace, 'rev-parse', 'agent/c-1')
  const blocked = await client.call('POST /agents/{id}/sync', { id: 'c-1' })
  t.match(
    blocked.repos,
    exactly({ commits: 0, moved: exactly('a.txt'), overlap: exactly('a.txt'), blocked: true, paths: exactly('a.txt') }),
  )
  t.equal(inGit(workspace, 'rev-parse', 'agent/c-1'), tip, 'it is unchanged')
  t.equal(blocked.agent.base, head.slice(0, 10))
  t.equal((await fetch('/agents/none/sync', { method: 'POST', body: '{}' })).status, 404)
  t.equal((await fetch('/agents/shared/sync', { method: 'POST', body: '{}' })).status, 422)
})

t.test('a sync is refused while a turn is parked', async t => {
  const { client } = await daemonWith(t, GROUPS)
  await client.call('POST /agent', { conversationId: 'c-1', isolated: true, prompt: 'ask Go on?\n| yes: on' })
  await framesOf(client, 'c-1').until(({ kind }) => kind === 'question')
  await t.rejects(client.call('POST /agents/{id}/sync', { id: 'c-1' }), { message: /parked/ })
  await client.call('POST /agent/stop', { conversationId: 'c-1' })
})

t.test('skipped work is still outstanding after a sync', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS, { files: { 'a.txt': lines(5), 'b.txt': lines(5) } })
  await runTurn(client, 'c-1', 'edit a.txt\n| - line 3\n| + agent\nedit b.txt\n| - line 3\n| + agent\nsay done', {
    isolated: true,
  })
  await client.call('POST /agents/{id}/land', { id: 'c-1', only: [{ repo: 'root', path: 'a.txt' }] })
  inGit(workspace, 'commit', '-q', '-a', '-m', 'took a in')
  t.match((await client.call('POST /agents/{id}/sync', { id: 'c-1' })).repos, exactly({ commits: 1 }))
  t.same(
    (await client.call('GET /agents/{id}/diff', { id: 'c-1' })).repos[0]?.changes.map(({ path, landed }) => [
      path,
      landed,
    ]),
    [['b.txt', false]],
  )
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(read(workspace, 'b.txt'), lines(5, { 3: 'agent' }))
})

t.test('killed between two repositories of one landing, each is landed and recorded or untouched', async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(place.workspace, { '.gitignore': 'nested\n', 'a.txt': lines(5), 'mine.txt': 'a\n' })
  const nested = makeNested(place.workspace)
  mkdirSync(place.data, { mode: 0o700 })
  writeFileSync(join(place.workspace, 'mine.txt'), 'mine\n')
  const before = work(nested)
  const first = await spawnDaemon(t, {
    ...place,
    env: { NODE_OPTIONS: `--import ${pathToFileURL(KILLER).href}`, KILL_BELOW: realpathSync(nested) },
  })
  await runTurn(
    first.client,
    'c-1',
    'edit a.txt\n| - line 3\n| + agent\nwrite new.txt\n| new\nedit nested/n.txt\n| - line 3\n| + agent\nsay done',
    { isolated: true },
  )
  const died = new Promise(resolve => first.process.once('exit', (_, signal) => resolve(signal)))
  await t.rejects(first.once.call('POST /agents/{id}/land', { id: 'c-1' }))
  t.equal(await died, 'SIGKILL')
  t.equal(read(place.workspace, 'a.txt'), lines(5, { 3: 'agent' }), 'the first had landed')
  const second = await spawnDaemon(t, place)
  const { repos } = await second.client.call('GET /agents/{id}/diff', { id: 'c-1' })
  t.same(
    repos.map(({ repo, changes }) => [repo, changes.map(({ landed }) => landed)]),
    [
      ['root', [true, true]],
      ['nested', [false]],
    ],
  )
  t.same(work(nested), before, 'the second is unchanged, without staged files')
  t.equal(read(place.workspace, 'mine.txt'), 'mine\n')
  t.equal((await second.client.call('GET /agents/{id}', { id: 'c-1' })).status, 'ready')
  writeFileSync(join(place.workspace, 'a.txt'), lines(5))
  t.match(await second.client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(read(nested, 'n.txt'), lines(5, { 3: 'agent' }))
  t.equal(read(place.workspace, 'a.txt'), lines(5), 'the first was recorded and is not landed again')
  await second.terminate()
})
