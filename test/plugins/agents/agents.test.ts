import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { AgentCard } from '../../../plugins/agents/contract.js'
import { daemonWith, folderOf, inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { treeOf } from './support.js'

const GROUPS = ['system', 'agent', 'agents']
const WORK = 'write new.txt\n| new\nwrite deep/b.txt\n| b\nedit README.md\n| - # work\n| + # agent\nsay done'

const statusOf = async (read: Promise<AgentCard>): Promise<string> => (await read).status

t.test('without a credential every call is refused', async t => {
  const { url } = await daemonWith(t, GROUPS)
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/x'],
    ['GET', '/x/transcript'],
    ['GET', '/x/diff'],
    ['GET', '/x/root/file-diff?path=a'],
    ['POST', '/x/land'],
    ['POST', '/x/discard'],
  ] as const) {
    t.equal((await fetch(`${url}/agents${path}`, { method })).status, 401, `${method} /agents${path}`)
  }
})

t.test('a token reaches the calls of its scope, and an editor only its own transcript', async t => {
  const { client, token } = await daemonWith(t, GROUPS)
  await runTurn(client, 'mine', WORK, { isolated: true })
  const [drive, read, editor, other] = await Promise.all([
    token('drive'),
    token('read'),
    token('editor'),
    token('editor', 'other'),
  ])
  t.equal((await read.client.call('GET /agents')).agents.length, 1)
  for (const call of ['POST /agents/{id}/land', 'POST /agents/{id}/discard'] as const) {
    await t.rejects(drive.client.call(call, { id: 'mine' }), { message: /land/ }, `drive on ${call}`)
  }
  await t.rejects(editor.client.call('GET /agents'), { message: /read|drive|land/ })
  await runTurn(editor.client, 'its-own', 'say hello')
  t.equal((await editor.client.call('GET /agents/{id}/transcript', { id: 'its-own' })).total, 2)
  await t.rejects(editor.client.call('GET /agents/{id}/transcript', { id: 'mine' }), {
    message: /only conversations it opened/,
  })
  await t.rejects(other.client.call('GET /agents/{id}/transcript', { id: 'its-own' }), {
    message: /only conversations it opened/,
  })
})

t.test('bad input is refused before anything is read', async t => {
  const { client, fetch } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', WORK, { isolated: true })
  await runTurn(client, 'shared', 'say hello')
  const status = async (path: string, init?: RequestInit) => (await fetch(`/agents/${path}`, init as never)).status
  t.equal(await status('none'), 404)
  t.equal(await status('none/diff'), 404)
  t.equal(await status('shared/diff'), 422)
  t.equal(await status('shared/land', { method: 'POST', body: '{}' }), 422)
  t.equal(await status('shared/discard', { method: 'POST', body: '{}' }), 422)
  t.equal(await status('c-1/elsewhere/file-diff?path=a'), 404)
  for (const path of ['../x', '/etc/passwd', 'a//b', 'a%00b', '.', 'a/../b'])
    t.equal(await status(`c-1/root/file-diff?path=${path}`), 400, path)
  t.equal(await status('c-1/root/file-diff?path=none.txt'), 404)
  t.equal(await status('c-1/root/file-diff?path=.git/config'), 404)
  t.equal(await status('c-1/root/file-diff'), 400)
  t.equal(await status('c-1/land', { method: 'POST', body: '{"span":"all"}' }), 400)
  t.equal(await status('c-1/land', { method: 'POST', body: '{"mode":"sideways"}' }), 400)
  t.equal(await status('c-1/transcript?limit=0'), 400)
})

t.test('the work of an isolated turn is shown, lands once, and the card follows', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', WORK, { isolated: true })
  const card = await client.call('GET /agents/{id}', { id: 'c-1' })
  t.match(card, {
    status: 'ready',
    branch: 'agent/c-1',
    lastEnd: 'completed',
    diff: { files: 3, insertions: 3, deletions: 1 },
    attention: { conflict: false },
  })
  const { repos, conflicts } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
  t.equal(conflicts, undefined)
  t.same(repos[0]?.changes, [
    { path: 'README.md', status: 'modified', additions: 1, deletions: 1, landed: false },
    { path: 'deep/b.txt', status: 'added', additions: 1, deletions: 0, landed: false },
    { path: 'new.txt', status: 'added', additions: 1, deletions: 0, landed: false },
  ])
  t.same(await client.call('GET /agents/{id}/{repo}/file-diff', { id: 'c-1', repo: 'root', path: 'README.md' }), {
    before: '# work\n',
    after: '# agent\n',
  })
  t.same(await client.call('GET /agents/{id}/{repo}/file-diff', { id: 'c-1', repo: 'root', path: 'new.txt' }), {
    after: 'new\n',
  })
  const before = [readFileSync(join(workspace, '.git/index')), inGit(workspace, 'rev-parse', 'HEAD')]
  t.same(await client.call('POST /agents/{id}/land', { id: 'c-1' }), {
    landed: true,
    uncommitted: [{ repo: 'root', paths: ['README.md', 'deep/b.txt', 'new.txt'] }],
  })
  t.same([readFileSync(join(workspace, '.git/index')), inGit(workspace, 'rev-parse', 'HEAD')], before)
  t.match(treeOf(workspace), { 'README.md': 'file # agent\n', 'new.txt': 'file new\n', 'deep/b.txt': 'file b\n' })
  t.equal(await statusOf(client.call('GET /agents/{id}', { id: 'c-1' })), 'landed')
  t.ok((await client.call('GET /agents/{id}/diff', { id: 'c-1' })).repos[0]?.changes.every(({ landed }) => landed))
  t.same(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
})

t.test('conflicts are an answer, stay on the card, and are checked again against the current tree', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', WORK, { isolated: true })
  writeFileSync(join(workspace, 'README.md'), '# mine\n')
  const refused = await client.call('POST /agents/{id}/land', { id: 'c-1' })
  t.same(refused, {
    landed: false,
    conflicts: [{ repo: 'root', paths: [{ path: 'README.md', reason: 'workspace' }], clean: 2, mainBranch: 'main' }],
  })
  t.same(
    Object.keys(treeOf(workspace)).filter(path => !path.startsWith('.sandbox')),
    ['README.md'],
  )
  t.match(await client.call('GET /agents/{id}', { id: 'c-1' }), { status: 'conflict', attention: { conflict: true } })
  const { repos, conflicts } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
  t.same(conflicts, refused.conflicts)
  t.match(repos[0]?.changes[0], { path: 'README.md', status: 'conflicted', landed: false })
  writeFileSync(join(workspace, 'README.md'), '# work\n')
  t.equal((await client.call('GET /agents/{id}/diff', { id: 'c-1' })).conflicts, undefined)
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.match(await client.call('GET /agents/{id}', { id: 'c-1' }), { status: 'landed', attention: { conflict: false } })
})

t.test('a writing agent prevents a landing unless forced, a parked one does not', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await client.call('POST /agent', {
    conversationId: 'c-1',
    isolated: true,
    prompt: 'write a.txt\n| a\nask Go on?\n| yes: on\nwrite b.txt\n| b\nwait words 60000',
  })
  const watched = framesOf(client, 'c-1')
  const card = await watched.until(({ kind }) => kind === 'question')
  t.match(await client.call('GET /agents/{id}', { id: 'c-1' }), {
    status: 'awaiting',
    attention: { question: true },
    cards: exactly({ kind: 'question' }),
  })
  await t.rejects(client.call('POST /agents/{id}/discard', { id: 'c-1' }), { message: /parked/ })
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'a\n')
  await client.call('POST /agent/reply', { kind: 'question', requestId: card.requestId, answers: {} })
  await watched.until(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
  t.equal(await statusOf(client.call('GET /agents/{id}', { id: 'c-1' })), 'running')
  await t.rejects(client.call('POST /agents/{id}/land', { id: 'c-1' }), { message: /writing/ })
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1', force: true }), { landed: true })
  t.equal(readFileSync(join(workspace, 'b.txt'), 'utf8'), 'b\n')
  await client.call('POST /agent/stop', { conversationId: 'c-1' })
  t.equal(await statusOf(client.call('GET /agents/{id}', { id: 'c-1' })), 'stopped')
})

t.test('discarding removes the branch and the card, and keeps landed work and the transcript', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', WORK, { isolated: true })
  await client.call('POST /agents/{id}/land', { id: 'c-1' })
  t.same(await client.call('POST /agents/{id}/discard', { id: 'c-1' }), { ok: true })
  t.equal(inGit(workspace, 'branch', '--list', 'agent/*'), '')
  t.equal(readFileSync(join(workspace, 'new.txt'), 'utf8'), 'new\n')
  t.same((await client.call('GET /agents')).agents, [])
  await t.rejects(client.call('GET /agents/{id}', { id: 'c-1' }), { message: /c-1/ })
})

t.test('two repositories land independently, and one that cannot land is reported', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS, { files: { 'a.txt': 'a\n', '.gitignore': 'nested\n' } })
  const nested = join(workspace, 'nested')
  mkdirSync(nested)
  writeFileSync(join(nested, 'n.txt'), 'n\n')
  inGit(nested, 'init', '-q', '-b', 'trunk')
  inGit(nested, 'add', '-A')
  inGit(nested, 'commit', '-q', '-m', 'first')
  await runTurn(client, 'c-1', 'write a.txt\n| agent\nwrite nested/n.txt\n| agent\nsay done', { isolated: true })
  writeFileSync(join(nested, 'n.txt'), 'mine\n')
  inGit(nested, 'commit', '-q', '-a', '-m', 'mine')
  t.same(await client.call('POST /agents/{id}/land', { id: 'c-1' }), {
    landed: false,
    conflicts: [{ repo: 'nested', paths: [{ path: 'n.txt', reason: 'diverged' }], clean: 0, mainBranch: 'trunk' }],
    uncommitted: [{ repo: 'root', paths: ['a.txt'] }],
  })
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'agent\n')
  t.equal(readFileSync(join(nested, 'n.txt'), 'utf8'), 'mine\n')
  t.match(
    (await client.call('GET /agents/{id}/diff', { id: 'c-1' })).repos.map(({ repo, changes }) => [
      repo,
      changes[0]?.landed,
    ]),
    exactly(exactly('root', true), exactly('nested', false)),
  )
})

t.test('work of a conversation is not lost when a person removes one of its repositories', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS, { files: { 'a.txt': 'a\n', '.gitignore': 'nested\n' } })
  const nested = join(workspace, 'nested')
  makeWorkspace(nested, { 'n.txt': 'n\n' })
  await runTurn(client, 'c-1', 'write a.txt\n| agent\nwrite nested/n.txt\n| agent\nsay done', { isolated: true })
  rmSync(nested, { recursive: true })
  const changes = async () =>
    (await client.call('GET /agents/{id}/diff', { id: 'c-1' })).repos.map(({ repo, changes }) => [
      repo,
      changes.map(({ path }) => path),
    ])
  t.same(await changes(), [['root', ['a.txt']]], 'an unreadable repository is left out')
  t.same(await client.call('POST /agents/{id}/land', { id: 'c-1' }), {
    landed: false,
    conflicts: [{ repo: 'nested', paths: [], clean: 0 }],
    uncommitted: [{ repo: 'root', paths: ['a.txt'] }],
  })
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'agent\n', 'the other one landed')
  t.same((await client.call('POST /agents/{id}/sync', { id: 'c-1' })).repos, [])
  t.equal((await runTurn(client, 'c-1', 'append a.txt\n| on')).at(-1)?.kind, 'done')
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'agent\non\n')
  t.match(await client.call('GET /agents/{id}', { id: 'c-1' }), { status: 'landed', attention: { conflict: false } })
  t.notOk(existsSync(nested))
})

t.test('the revision of the roster only increases, also across a restart', async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(place.workspace)
  let last = 0
  await t.test('before', async t => {
    const { client } = await daemonWith(t, GROUPS, place)
    const one = (await client.call('GET /agents')).rev
    await runTurn(client, 'c-1', 'say hello', { isolated: true })
    last = (await client.call('GET /agents')).rev
    t.ok(last > one)
    t.equal((await client.call('GET /agents')).rev, last, 'nothing moved')
  })
  await t.test('after', async t => {
    const { client } = await daemonWith(t, GROUPS, place)
    const { agents, rev } = await client.call('GET /agents')
    t.ok(rev > last)
    t.match(agents, exactly({ id: 'c-1', status: 'idle' }))
  })
})

t.test('work that reaches main in another way counts as landed, and the work of a failed run lands too', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'merged', 'write a.txt\n| a\nsay done', { isolated: true })
  t.equal(await statusOf(client.call('GET /agents/{id}', { id: 'merged' })), 'ready')
  inGit(workspace, 'merge', '-q', '--ff-only', 'agent/merged')
  t.equal(await statusOf(client.call('GET /agents/{id}', { id: 'merged' })), 'landed')
  t.match(
    (await client.call('GET /agents/{id}/diff', { id: 'merged' })).repos[0]?.changes,
    exactly({ path: 'a.txt', landed: true }),
  )
  await runTurn(client, 'failed', 'write b.txt\n| b\nfail it broke', { isolated: true })
  t.match(await client.call('GET /agents/{id}', { id: 'failed' }), {
    status: 'error',
    failure: /it broke/,
    diff: { files: 1 },
  })
  await client.call('POST /agents/{id}/land', { id: 'failed' })
  const { status, failure } = await client.call('GET /agents/{id}', { id: 'failed' })
  t.same([status, failure], ['landed', undefined])
})

t.test('after a manual merge of a conflicting branch the next roster shows it as landed', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', WORK, { isolated: true })
  writeFileSync(join(workspace, 'README.md'), '# mine\n')
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: false })
  t.match((await client.call('GET /agents')).agents, exactly({ status: 'conflict', attention: { conflict: true } }))
  inGit(workspace, 'checkout', '-q', '--', 'README.md')
  writeFileSync(join(workspace, 'mine.txt'), 'mine\n')
  inGit(workspace, 'add', 'mine.txt')
  inGit(workspace, 'commit', '-qm', 'the main line moved')
  inGit(workspace, 'merge', '-q', '--no-ff', '-m', 'by hand', 'agent/c-1')
  t.match((await client.call('GET /agents')).agents, exactly({ status: 'landed', attention: { conflict: false } }))
  const { repos, conflicts } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
  t.same([conflicts, repos[0]?.changes.filter(({ landed }) => !landed)], [undefined, []])
  t.same((await client.call('GET /agents/{id}/conflicts', { id: 'c-1' })).files, [])
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(inGit(workspace, 'status', '--porcelain'), '', 'nothing is left to do')
})

t.test('uncommitted work of a running turn is in the diff, and reading it changes nothing', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await client.call('POST /agent', {
    conversationId: 'c-1',
    isolated: true,
    prompt:
      'write package.json\n| {"name": "thing"}\nwrite src/a.bin\n| a\nrun printf "\\0\\1" > src/a.bin\nask Go '
      + 'on?\n| yes: on',
  })
  await framesOf(client, 'c-1').until(({ kind }) => kind === 'question')
  const tip = inGit(workspace, 'rev-parse', 'agent/c-1')
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
  t.same(
    repos[0]?.changes.map(({ path, additions }) => [path, additions]),
    [
      ['package.json', 1],
      ['src/a.bin', undefined],
    ],
  )
  t.same(repos[0]?.modules, [{ dir: '', name: 'thing' }])
  t.same(await client.call('GET /agents/{id}/{repo}/file-diff', { id: 'c-1', repo: 'root', path: 'src/a.bin' }), {
    binary: true,
  })
  t.equal(inGit(workspace, 'rev-parse', 'agent/c-1'), tip)
  await client.call('POST /agent/stop', { conversationId: 'c-1' })
  t.match(
    await client.call('GET /agents/{id}', { id: 'c-1' }),
    { status: 'stopped', diff: { files: 2 } },
    'its work is on its branch',
  )
})

t.test('an isolated turn that plants filters, hooks, refs and links lands nothing of them', async t => {
  const { client, workspace, data } = await daemonWith(t, GROUPS)
  const trap = join(data, '..', 'trap')
  const config = readFileSync(join(workspace, '.git/config'), 'utf8')
  const head = inGit(workspace, 'rev-parse', 'main')
  await runTurn(
    client,
    'c-1',
    [
      'write README.md',
      '| # agent',
      'write .gitattributes',
      '| * filter=x diff=x',
      `run git config filter.x.smudge 'touch ${trap}'; git config core.fsmonitor 'touch ${trap}'; true`,
      `run mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ${trap}' > "$(git rev-parse `
        + '--git-common-dir)/hooks/post-checkout"; true',
      'run git commit -q --allow-empty -m x; git update-ref refs/heads/main HEAD; true',
      'run ln -s /etc out; true',
      'say done',
    ].join('\n'),
    { isolated: true },
  )
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), {
    landed: false,
    conflicts: exactly({
      repo: 'root',
      paths: exactly({ path: 'out', reason: 'workspace', inTheWay: { what: 'outside' } }),
    }),
  })
  t.equal(readFileSync(join(workspace, 'README.md'), 'utf8'), '# work\n')
  await runTurn(client, 'c-1', 'run rm out\nsay done', { isolated: true })
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(readFileSync(join(workspace, 'README.md'), 'utf8'), '# agent\n')
  t.equal(inGit(workspace, 'rev-parse', 'main'), head)
  t.equal(readFileSync(join(workspace, '.git/config'), 'utf8'), config)
  t.notOk(existsSync(trap))
})
