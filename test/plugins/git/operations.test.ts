import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inGit } from '../../support/daemon.js'
import { commitAll, gitWorld, put, repoAt, tryGit } from './support.js'

const { client, workspace, daemon, as } = await gitWorld(t, { 'README.md': '# work\n' }, ['history'])
const status = (at: string) => inGit(at, 'status', '--porcelain=v2', '--branch', '-uall')
const head = (at: string, name = 'HEAD') => inGit(at, 'rev-parse', name).trim()
let made = 0

/** A repository whose branches `main` and `side` both change `f`, with an untracked and an edited file. */
const forked = () => {
  const repo = `op${made++}`
  const at = join(workspace, repo)
  repoAt(at, { f: 'base\n', g: 'g\n' })
  inGit(at, 'checkout', '-q', '-b', 'side')
  put(at, { s: 's\n' })
  const clean = commitAll(at, 'adds s')
  put(at, { f: 'side\n' })
  const clash = commitAll(at, 'changes f')
  inGit(at, 'checkout', '-q', 'main')
  put(at, { f: 'main\n' })
  commitAll(at, 'main moves')
  put(at, { new: 'untracked\n' })
  return { repo, at, clean, clash }
}

t.test('operations are for maintainers and not for tokens, and unknown names are not found', async t => {
  const { repo } = forked()
  for (const path of ['merge', 'rebase', 'checkout', 'reset', 'abort', 'undo', 'stash', 'branches'])
    t.equal((await fetch(`${daemon.url}/git/${repo}/${path}`, { method: 'POST' })).status, 401, path)
  t.match(await refusalOf(() => as('col').call('POST /git/{repo}/abort', { repo })), { status: 403 })
  for (const [code, ask] of [
    [404, () => client.call('POST /git/{repo}/merge', { repo, sha: 'dead' })],
    [400, () => client.call('POST /git/{repo}/merge', { repo, sha: '--output=x' })],
    [404, () => client.call('POST /git/{repo}/checkout', { repo, ref: 'nothing' })],
    [404, () => client.call('POST /git/{repo}/checkout', { repo, ref: 'f' })],
    [400, () => client.call('POST /git/{repo}/checkout', { repo, ref: '-f' })],
    [400, () => client.call('POST /git/{repo}/branches', { repo, name: 'a..b' })],
    [400, () => client.call('POST /git/{repo}/branches', { repo, name: 'HEAD' })],
    [409, () => client.call('POST /git/{repo}/branches', { repo, name: 'side' })],
    [409, () => client.call('POST /git/{repo}/branches', { repo, name: 'side/below' })],
    [409, () => client.call('POST /git/{repo}/continue', { repo })],
    [404, () => client.call('POST /git/{repo}/branches/delete', { repo, name: 'nothing' })],
  ] as const)
    t.match(await refusalOf(ask), { status: code }, String(ask))
  t.match(await client.call('POST /git/{repo}/abort', { repo }), { ok: false, code: 'nothing' })
})

t.test('a merge that conflicts leaves all as it was, or is kept, resolved and continued', async t => {
  const { repo, at, clash } = forked()
  const before = status(at)
  const refused = await client.call('POST /git/{repo}/merge', { repo, sha: clash })
  t.match(refused, { ok: false, code: 'conflict', conflicts: { 0: 'f', length: 1 }, head: head(at) })
  t.equal(status(at), before)
  t.match(await client.call('POST /git/{repo}/merge', { repo, sha: clash, onConflict: 'keep' }), { code: 'conflict' })
  t.match(await client.call('GET /git/{repo}/operation', { repo }), { operation: 'merge', unmerged: 1 })
  for (const ask of [
    () => client.call('POST /git/{repo}/checkout', { repo, ref: 'side' }),
    () => client.call('POST /git/{repo}/rebase', { repo, sha: clash }),
    () => client.call('POST /git/{repo}/stash', { repo }),
    () => client.call('POST /git/{repo}/continue', { repo }),
  ])
    t.match(await refusalOf(ask), { status: 409 })
  await client.call('POST /git/{repo}/stage', { repo, paths: ['f'], take: 'theirs' })
  t.match(await client.call('POST /git/{repo}/continue', { repo, message: 'both' }), { ok: true })
  t.equal(inGit(at, 'log', '-1', '--format=%s %P').trim().split(' ').length, 3)
  t.equal(readFileSync(join(at, 'f'), 'utf8'), 'side\n')
  t.match(await client.call('POST /git/{repo}/merge', { repo, sha: clash }), { ok: true, head: head(at) })
  t.match(await client.call('POST /git/{repo}/merge', { repo, sha: clash, expectHead: clash }).catch(error => error), {
    status: 409,
  })
})

t.test('merges: fast-forward or not, and uncommitted work in the way', async t => {
  const { repo, at, clean } = forked()
  inGit(at, 'checkout', '-q', 'main~1', '-b', 'low')
  t.match(await client.call('POST /git/{repo}/merge', { repo, sha: clean, fastForward: 'only' }), { head: clean })
  inGit(at, 'checkout', '-q', 'main')
  t.match(await client.call('POST /git/{repo}/merge', { repo, sha: clean, fastForward: 'only' }), {
    ok: false,
    code: 'not-fast-forward',
  })
  put(at, { s: 'mine\n' })
  t.match(await client.call('POST /git/{repo}/merge', { repo, sha: clean }), { code: 'dirty', conflicts: { 0: 's' } })
  t.equal(readFileSync(join(at, 's'), 'utf8'), 'mine\n')
})

t.test(
  'a rebase replays, is undone on a conflict, stops where it is kept, and is aborted to where it began',
  async t => {
    const { repo, at } = forked()
    const onto = head(at)
    inGit(at, 'checkout', '-q', 'side')
    const before = status(at)
    t.match(await client.call('POST /git/{repo}/rebase', { repo, sha: onto }), { code: 'conflict', pushed: false })
    t.equal(status(at), before)
    put(at, { g: 'dirty\n' })
    t.match(await client.call('POST /git/{repo}/rebase', { repo, sha: onto }), { code: 'dirty' })
    inGit(at, 'checkout', '-q', 'g')
    await client.call('POST /git/{repo}/rebase', { repo, sha: onto, onConflict: 'keep' })
    t.match(await client.call('GET /git/{repo}/operation', { repo }), { operation: 'rebase', step: 2, total: 2 })
    t.match(await refusalOf(() => client.call('POST /git/{repo}/commit', { repo, message: 'm' })), { status: 409 })
    put(at, { f: 'resolved\n' })
    const aborted = await client.call('POST /git/{repo}/abort', { repo })
    t.equal(status(at), before)
    await client.call('POST /history/restore', { id: aborted.point!, scope: repo, paths: ['f'] })
    t.equal(readFileSync(join(at, 'f'), 'utf8'), 'resolved\n', 'the resolution is in the saved point')
    inGit(at, 'checkout', '-q', 'f')
    await client.call('POST /git/{repo}/rebase', { repo, sha: onto, onConflict: 'keep' })
    put(at, { f: 'resolved\n' })
    await client.call('POST /git/{repo}/stage', { repo, paths: ['f'] })
    t.match(await client.call('POST /git/{repo}/continue', { repo }), { ok: true })
    t.same(inGit(at, 'log', '--format=%s').trim().split('\n'), ['changes f', 'adds s', 'main moves', 'first'])
    await client.call('POST /git/{repo}/undo', {
      repo,
      previousSha: (await client.call('GET /git/{repo}/undo', { repo })).action!.previousSha,
      discardChanges: true,
    })
    await client.call('POST /git/{repo}/rebase', { repo, sha: onto, onConflict: 'keep' })
    t.match(await client.call('POST /git/{repo}/continue', { repo, skip: true }), { ok: true })
    t.same(inGit(at, 'log', '--format=%s').trim().split('\n'), ['adds s', 'main moves', 'first'])
  },
)

t.test('cherry-pick, revert and drop move one commit, or nothing', async t => {
  const { repo, at, clean, clash } = forked()
  t.match(await client.call('POST /git/{repo}/cherry-pick', { repo, sha: clean }), { ok: true })
  t.match(await client.call('POST /git/{repo}/cherry-pick', { repo, sha: clean }), { ok: false, code: 'nothing' })
  t.notOk('operation' in (await client.call('GET /git/{repo}/operation', { repo })))
  t.match(await client.call('POST /git/{repo}/cherry-pick', { repo, sha: clash }), { code: 'conflict' })
  const picked = head(at)
  t.match(await client.call('POST /git/{repo}/revert', { repo, sha: picked }), { ok: true })
  t.notOk(existsSync(join(at, 's')))
  const dropped = await client.call('POST /git/{repo}/drop', { repo, sha: head(at) })
  t.match(dropped, { ok: true, head: picked, pushed: false })
  t.match(await client.call('POST /git/{repo}/drop', { repo, sha: picked }), { ok: true })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/drop', { repo, sha: clash })), { status: 422 })
  t.match(await refusalOf(() => client.call('POST /git/{repo}/drop', { repo, sha: head(at, 'main~1') })), {
    status: 422,
  })
  inGit(at, 'merge', '-q', '--no-edit', '--no-ff', clean)
  const merge = head(at)
  t.match(await refusalOf(() => client.call('POST /git/{repo}/revert', { repo, sha: merge })), { status: 422 })
  t.match(await client.call('POST /git/{repo}/revert', { repo, sha: merge, mainline: 1 }), { ok: true })
  inGit(at, 'checkout', '-q', '--detach')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/drop', { repo, sha: head(at) })), { status: 409 })
})

t.test('undo does what its preview showed, a second undo redoes, and an old preview is refused', async t => {
  const { repo, at, clean } = forked()
  const preview = async () => (await client.call('GET /git/{repo}/undo', { repo })).action!
  const undo = (previousSha: string, discardChanges = false) =>
    client.call('POST /git/{repo}/undo', { repo, previousSha, discardChanges })
  const moves: [kind: string, recommended: string, ...args: string[]][] = [
    ['commit', 'soft', 'commit', '-q', '--allow-empty', '-m', 'empty'],
    ['amend', 'soft', 'commit', '-q', '--amend', '--allow-empty', '-m', 'other words'],
    ['merge', 'hard', 'merge', '-q', '--no-edit', clean],
    ['reset', 'hard', 'reset', '-q', '--hard', 'HEAD~1'],
    ['rebase', 'hard', 'rebase', '-q', clean],
  ]
  for (const [kind, recommended, ...args] of moves) {
    const before = head(at)
    inGit(at, ...args)
    const after = head(at)
    const found = await preview()
    t.match(found, { kind, recommended, branch: 'main', sha: after, previousSha: before, pushed: false })
    t.same(
      found.commits.map(({ sha }) => sha),
      inGit(at, 'rev-list', after, `^${before}`).split('\n').filter(Boolean),
      kind,
    )
    put(at, { g: 'edited\n' })
    t.same((await preview()).wouldLose, ['g'])
    t.match(await undo(before, true), { ok: true, head: before })
    t.equal(readFileSync(join(at, 'g'), 'utf8'), 'g\n')
    t.match(await undo((await preview()).previousSha, true), { ok: true, head: after })
  }
  const stale = (await preview()).previousSha
  inGit(at, 'commit', '-q', '--allow-empty', '-m', 'meanwhile')
  t.match(await undo(stale === head(at, 'HEAD~1') ? clean : stale), { ok: false })
  inGit(at, 'checkout', '-q', '-b', 'just-made')
  t.match(await client.call('GET /git/{repo}/undo', { repo }), { none: 'created' })
  inGit(at, 'checkout', '-q', '--detach')
  t.match(await client.call('GET /git/{repo}/undo', { repo }), { none: 'detached' })
})

t.test('branches, tags and checkout: made, switched with work, refused where work would be lost, deleted', async t => {
  const { repo, at, clean } = forked()
  await client.call('POST /git/{repo}/branch', { repo, sha: clean, name: 'at-clean' })
  await client.call('POST /git/{repo}/tag', { repo, sha: clean.slice(0, 10), name: 'v1', message: '# one' })
  t.equal(inGit(at, 'tag', '-l', '--format=%(contents)', 'v1').trim(), '# one')
  put(at, { g: 'carried\n' })
  await client.call('POST /git/{repo}/branches', { repo, name: 'feature', checkout: true })
  t.equal(inGit(at, 'branch', '--show-current').trim(), 'feature')
  t.equal(readFileSync(join(at, 'g'), 'utf8'), 'carried\n')
  put(at, { f: 'mine\n' })
  const dirty = await client.call('POST /git/{repo}/checkout', { repo, ref: 'side' })
  t.match(dirty, { ok: false, code: 'dirty', conflicts: { 0: 'f', length: 1 } })
  inGit(at, 'checkout', '-q', 'f', 'g')
  for (const [ref, branch] of [
    ['side', 'side'],
    ['v1', ''],
    [clean, ''],
    ['main', 'main'],
  ] as const) {
    t.match(await client.call('POST /git/{repo}/checkout', { repo, ref }), { ok: true })
    t.equal(inGit(at, 'branch', '--show-current').trim(), branch, ref)
  }
  inGit(at, 'remote', 'add', 'origin', 'https://example.org/x.git')
  inGit(at, 'update-ref', 'refs/remotes/origin/theirs', clean)
  await client.call('POST /git/{repo}/checkout', { repo, ref: 'origin/theirs' })
  t.equal(inGit(at, 'rev-parse', '--abbrev-ref', 'theirs@{u}').trim(), 'origin/theirs')
  inGit(at, 'checkout', '-q', 'main')
  const remove = (name: string, force = false) => client.call('POST /git/{repo}/branches/delete', { repo, name, force })
  const message = 'side has 2 commits that HEAD does not have: delete it with force'
  t.match(await refusalOf(() => remove('side')), { status: 409, message })
  t.match(await refusalOf(() => remove('main', true)), { status: 409 })
  const side = head(at, 'side')
  t.same(await remove('side', true), { ok: true, sha: side })
})

t.test('the stash sets work aside and puts it back, whole or not at all', async t => {
  const { repo, at } = forked()
  repoAt(join(at, 'inner'), { i: 'i\n' })
  const push = (more: object = {}) => client.call('POST /git/{repo}/stash', { repo, ...more })
  const apply = (more: object = {}) => client.call('POST /git/{repo}/stash/apply', { repo, ref: 'stash@{0}', ...more })
  t.match(await push(), { ok: false, code: 'nothing' })
  put(at, { f: 'edited\n', g: 'edited\n' })
  t.match(await push({ paths: ['g'], message: 'only g' }), { ok: true })
  t.equal(readFileSync(join(at, 'f'), 'utf8'), 'edited\n')
  t.match(await push({ includeUntracked: true }), { ok: true })
  t.notOk(existsSync(join(at, 'new')))
  t.ok(existsSync(join(at, 'inner/i')), 'another repository is none of its work')
  t.match(await apply({ pop: true }), { ok: true })
  t.equal(readFileSync(join(at, 'new'), 'utf8'), 'untracked\n')
  put(at, { g: 'g2\n' })
  commitAll(at, 'g moves')
  put(at, { f: 'unsaved\n' })
  const before = status(at)
  t.match(await apply({ onConflict: 'abort' }), { ok: false, code: 'conflict', conflicts: { 0: 'g', length: 1 } })
  t.equal(status(at), before)
  t.equal(readFileSync(join(at, 'f'), 'utf8'), 'unsaved\n')
  t.match(await apply({ pop: true }), { code: 'conflict' })
  t.match(readFileSync(join(at, 'g'), 'utf8'), /^<<<<<<< /)
  const { stashes } = await client.call('GET /git/{repo}/stashes', { repo })
  t.equal(stashes.length, 1, 'an entry that conflicted is kept')
  const wrong = { repo, ref: 'stash@{0}', sha: head(at) }
  t.match(await refusalOf(() => client.call('POST /git/{repo}/stash/drop', wrong)), { status: 409 })
  t.match(await client.call('POST /git/{repo}/stash/drop', { repo, ref: 'stash@{0}' }), { sha: stashes[0]!.sha })
})

t.test('a stale lock file is removed only on request', async t => {
  const { repo, at } = forked()
  const lock = join(at, '.git/index.lock')
  writeFileSync(lock, '')
  t.match(await refusalOf(() => client.call('POST /git/{repo}/abort', { repo, staleLock: true })), { status: 409 })
  const old = new Date(Date.now() - 120_000)
  utimesSync(lock, old, old)
  t.match(await client.call('GET /git/{repo}/operation', { repo }), { lock: { file: 'index.lock', stale: true } })
  t.match(await client.call('POST /git/{repo}/abort', { repo, staleLock: true }), { ok: true })
  t.notOk(existsSync(lock))
  t.ok(tryGit(at, 'status').ok)
})
