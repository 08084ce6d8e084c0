import { appendFileSync, chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { GitChange } from '../../../plugins/git/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { commitAll, gitWorld, put, repoAt, tryGit } from './support.js'

const world = await gitWorld(t, {
  'README.md': '# work\n',
  'docs/a.md': 'one\ntwo\nthree\n',
  'docs/deep/b.md': 'b\n',
  'src/main.ts': 'export const a = 1\n',
})
const { client, workspace, daemon, as } = world
const repo = 'root'
const names = (rows: readonly GitChange[]) => rows.map(({ path }) => path)

t.test('without a credential, or with a token of scope editor, nothing is read', async t => {
  for (const path of [
    '/git/changes',
    '/git/repos',
    '/git/root/log',
    '/git/root/status',
    '/git/root/file?path=README.md',
  ]) {
    t.equal((await fetch(daemon.url + path)).status, 401, path)
    const { token } = await daemon.token('editor', `editor${path}`)
    t.equal((await fetch(daemon.url + path, { headers: { 'x-sandbox-control': token } })).status, 403, path)
  }
})

t.test('bad input is refused and runs nothing', async t => {
  const asked: [number, string][] = [
    [400, '/git/root/commit-diff?sha=--output=x'],
    [404, '/git/root/log?ref=-f'],
    [404, '/git/root/log?ref=HEAD~1'],
    [404, '/git/root/log?ref=a..b'],
    [404, '/git/root/file?path=:(top)*'],
    [400, '/git/root/file?path=../x'],
    [404, '/git/root/file?path=.git/config'],
    [404, '/git/root/file?path=.GIT/config'],
    [404, '/git/root/file-diff?path=.git/HEAD&side=unstaged'],
    [400, '/git/root/file-diff?path=README.md&side=x'],
    [404, '/git/nowhere/log'],
    [404, '/git/.git/log'],
    [404, '/git/docs/status'],
    [404, '/git/changes?repo=docs/a.md'],
    [404, '/git/README.md/operation'],
    [404, '/git/root/commit-diff?sha=dead'],
    [400, '/git/root/stash-diff?ref=HEAD'],
    [404, '/git/root/stash-diff?ref=stash@{0}'],
  ]
  for (const [status, path] of asked) t.equal((await daemon.fetch(path)).status, status, path)
})

t.test(
  'changes are what git status says: staged, edited again, renamed, retyped, untracked, strange names',
  async t => {
    const at = join(workspace, 'kinds')
    const strange = ['with space', 'quo"te', 'new\nline', '-dash', 'tab\there', 'ünï', ':(top)*']
    repoAt(at, { both: 'a\n', moved: 'x\n'.repeat(20), typed: 'link\n', gone: 'g\n', kept: 'k\n' })
    put(at, { both: 'b\n' })
    inGit(at, 'add', 'both')
    put(at, { both: 'c\n' })
    inGit(at, 'mv', 'moved', 'renamed')
    appendFileSync(join(at, 'renamed'), 'y\n')
    rmSync(join(at, 'typed'))
    symlinkSync('kept', join(at, 'typed'))
    rmSync(join(at, 'gone'))
    for (const name of strange) put(at, { [name]: '1\n2\n' })
    writeFileSync(join(at, 'binary'), Buffer.from([0, 1, 2]))
    inGit(at, 'add', 'binary')
    const { repos } = await client.call('GET /git/changes', { repo: 'kinds' })
    const [found] = repos
    t.same(found!.staged.map(({ path, status, from }) => [status, path, from]).sort(), [
      ['added', 'binary', undefined],
      ['modified', 'both', undefined],
      ['renamed', 'renamed', 'moved'],
    ])
    t.match(
      found!.staged.find(({ path }) => path === 'both')!,
      { additions: 1, deletions: 1 },
    )
    t.notOk('additions' in found!.staged.find(({ path }) => path === 'binary')!, 'binary: no counts')
    t.same(names(found!.unstaged).sort(), ['both', 'gone', 'renamed', 'typed', ...strange].sort())
    t.equal(found!.unstaged.find(({ path }) => path === 'typed')!.status, 'type-changed')
    t.match(
      found!.unstaged.find(({ path }) => path === '-dash')!,
      { status: 'added', additions: 2 },
    )
    const status = await client.call('GET /git/{repo}/status', { repo: 'kinds' })
    const said = inGit(at, 'status', '--porcelain', '-z', '-uall').split('\0').filter(Boolean)
    t.same(status.files, [...new Set(said.map(line => (/^.. /.test(line) ? line.slice(3) : line)))].sort())
    t.match(status, { branch: 'main', dirty: true, head: inGit(at, 'rev-parse', 'HEAD').trim() })
    const sides = (path: string, side: 'staged' | 'unstaged') =>
      client.call('GET /git/{repo}/file-diff', { repo: 'kinds', path, side })
    t.same(await sides('both', 'staged'), { before: 'a\n', after: 'b\n' })
    t.same(await sides('both', 'unstaged'), { before: 'b\n', after: 'c\n' })
    t.same(await sides('renamed', 'staged'), { before: 'x\n'.repeat(20), after: 'x\n'.repeat(20) })
    t.same(await sides('typed', 'unstaged'), { before: 'link\n', after: 'kept' })
    t.same(await sides('gone', 'unstaged'), { before: 'g\n' })
    t.same(await sides('new\nline', 'unstaged'), { after: '1\n2\n' })
    t.same(await sides('binary', 'staged'), { binary: true })
    t.same(await sides('kept', 'unstaged'), { before: 'k\n', after: 'k\n' })
    t.match(await refusalOf(() => sides('none', 'unstaged')), { status: 404 })
    put(at, { large: 'l'.repeat(600 * 1024) })
    t.same(await sides('large', 'unstaged'), { truncated: true })
  },
)

t.test('the side of the disk has the line ends and filters that git would store', async t => {
  const at = join(workspace, 'filtered')
  repoAt(at, { '.gitattributes': '*.txt text eol=crlf\n*.up filter=up\n', 'a.txt': 'one\ntwo\n', 'b.up': 'low\n' })
  inGit(at, 'config', 'filter.up.clean', 'tr A-Z a-z')
  writeFileSync(join(at, 'a.txt'), 'one\r\nthree\r\nfour')
  writeFileSync(join(at, 'b.up'), 'HIGH\n')
  const side = (path: string) => client.call('GET /git/{repo}/file-diff', { repo: 'filtered', path, side: 'unstaged' })
  t.same(await side('a.txt'), { before: 'one\ntwo\n', after: 'one\nthree\nfour' })
  t.same(await side('b.up'), { before: 'low\n', after: 'high\n' })
})

t.test('a merge that conflicts shows the operation, three stages and the markers', async t => {
  const at = join(workspace, 'merging')
  repoAt(at, { f: 'base\n', other: 'o\n' })
  inGit(at, 'checkout', '-q', '-b', 'theirs')
  put(at, { f: 'theirs\n' })
  commitAll(at, 'their side')
  inGit(at, 'checkout', '-q', 'main')
  put(at, { f: 'ours\n' })
  commitAll(at, 'our side')
  t.notOk(tryGit(at, 'merge', 'theirs').ok)
  const { repos } = await client.call('GET /git/changes', { repo: 'merging' })
  t.match(repos[0], { operation: 'merge', branch: 'main' })
  t.match(repos[0]!.conflicted, exactly({ path: 'f', status: 'conflicted', stamp: /^[\w-]{22}$/ }))
  t.match(await client.call('GET /git/{repo}/operation', { repo: 'merging' }), {
    operation: 'merge',
    subject: 'their side',
    unmerged: 1,
    canContinue: false,
  })
  const sides = await client.call('GET /git/{repo}/file-diff', { repo: 'merging', path: 'f', side: 'conflicted' })
  t.match(sides, { before: 'ours\n', base: 'base\n', ours: 'ours\n', theirs: 'theirs\n', after: /^<<<<<<< / })
})

t.test('a rebase of three commits that stopped at the second says so', async t => {
  const at = join(workspace, 'rebasing')
  repoAt(at, { f: 'base\n' })
  inGit(at, 'checkout', '-q', '-b', 'work')
  for (const name of ['one', 'f', 'three']) {
    put(at, { [name]: `${name}\n` })
    commitAll(at, `add ${name}`)
  }
  inGit(at, 'checkout', '-q', 'main')
  put(at, { f: 'main\n' })
  const onto = commitAll(at, 'main moves')
  inGit(at, 'checkout', '-q', 'work')
  t.notOk(tryGit(at, 'rebase', 'main').ok)
  t.match(await client.call('GET /git/{repo}/operation', { repo: 'rebasing' }), {
    operation: 'rebase',
    step: 2,
    total: 3,
    onto,
    subject: 'add f',
    unmerged: 1,
  })
})

t.test('the log is what git log says, by branch, path, words and author, and pages without a gap', async t => {
  const at = join(workspace, 'history')
  repoAt(at, { 'old.txt': 'x\n'.repeat(30) })
  inGit(at, 'mv', 'old.txt', 'new.txt')
  commitAll(at, 'Rename it\n\nBecause (of) reasons.\nTwo lines.')
  inGit(at, 'checkout', '-q', '-b', 'side')
  put(at, { side: 's\n' })
  commitAll(at, 'On the side')
  inGit(at, 'checkout', '-q', 'main')
  put(at, { more: 'm\n' })
  inGit(at, '-c', 'user.name=Ünï Côde', 'add', '-A')
  inGit(at, '-c', 'user.name=Ünï Côde', 'commit', '-q', '-m', 'More')
  inGit(at, 'merge', '-q', '--no-edit', 'side')
  inGit(at, 'tag', '-a', 'v1', '-m', 'version one')
  const log = (input: object = {}) => client.call('GET /git/{repo}/log', { repo: 'history', ...input })
  const all = await log()
  t.same(
    all.commits.map(({ sha }) => sha),
    inGit(at, 'log', '--all', '--format=%H').trim().split('\n'),
  )
  t.match(all, { branch: 'main', hasMore: false })
  t.match(all.commits[0], { head: true, refs: exactly('main', 'tag: v1'), parents: { length: 2 } })
  t.match(
    all.commits.find(({ subject }) => subject === 'Rename it'),
    { body: 'Because (of) reasons.\nTwo lines.' },
  )
  t.match((await log({ author: 'ünï' })).commits, exactly({ subject: 'More', author: 'Ünï Côde' }))
  t.match((await log({ query: '(OF) reas' })).commits, exactly({ subject: 'Rename it' }))
  t.same(
    (await log({ path: 'new.txt' })).commits.map(({ subject }) => subject),
    ['Rename it', 'first'],
  )
  t.same(
    (await log({ ref: 'side' })).commits.map(({ subject }) => subject),
    ['On the side', 'Rename it', 'first'],
  )
  const pages = []
  for (let skip = 0; ; skip += 2) {
    const page = await log({ limit: 2, skip })
    pages.push(...page.commits.map(({ sha }) => sha))
    if (!page.hasMore) break
  }
  t.same(
    pages,
    all.commits.map(({ sha }) => sha),
  )
  const [merge] = all.commits
  const renamed = all.commits.find(({ subject }) => subject === 'Rename it')!
  t.same(await client.call('GET /git/{repo}/commit-diff', { repo: 'history', sha: renamed.short }), {
    files: [{ path: 'new.txt', status: 'renamed', from: 'old.txt', additions: 0, deletions: 0 }],
  })
  t.match(await client.call('GET /git/{repo}/commit-diff', { repo: 'history', sha: merge!.sha }), {
    files: exactly({ path: 'side', status: 'added', additions: 1 }),
  })
  const root = all.commits.at(-1)!
  t.match(await client.call('GET /git/{repo}/commit-diff', { repo: 'history', sha: root.sha }), {
    files: exactly({ path: 'old.txt', status: 'added', additions: 30 }),
  })
  const file = (input: { sha: string; path: string; from?: string; base?: string }) =>
    client.call('GET /git/{repo}/commit-file-diff', { repo: 'history', ...input })
  t.same(await file({ sha: renamed.sha, path: 'new.txt', from: 'old.txt' }), {
    before: 'x\n'.repeat(30),
    after: 'x\n'.repeat(30),
  })
  t.same(await file({ sha: root.sha, path: 'old.txt' }), { after: 'x\n'.repeat(30) })
  t.same(await file({ sha: merge!.sha, path: 'side', base: renamed.sha }), { after: 's\n' })
  t.match(await refusalOf(() => file({ sha: root.sha, path: 'nothing' })), { status: 404 })
  const { branches, tags } = await client.call('GET /git/{repo}/branches', { repo: 'history' })
  t.same(branches.map(({ name, current }) => [name, current]).sort(), [
    ['main', true],
    ['side', false],
  ])
  t.match(tags, exactly({ name: 'v1', annotated: true, message: 'version one', sha: merge!.sha }))
  const unmerged = await client.call('GET /git/{repo}/branches', { repo: 'history', merged: false })
  t.same(unmerged.branches, [])
})

t.test('blame says what git blame says, through a rename, with lines that are not committed', async t => {
  const at = join(workspace, 'blamed')
  const first = repoAt(at, { 'old name': 'a\nb\nc\nd\n' })
  inGit(at, 'mv', 'old name', 'ünï\tname')
  const second = commitAll(at, 'rename')
  put(at, { 'ünï\tname': 'a\nB\nc\nd\n' })
  const third = commitAll(at, 'edit')
  put(at, { 'ünï\tname': 'a\nB\nc\nnew\nd\n' })
  const blame = (input: object) => client.call('GET /git/{repo}/blame', { repo: 'blamed', path: 'ünï\tname', ...input })
  const { hunks, lines } = await blame({})
  t.equal(lines, 5)
  t.match(
    hunks.map(({ sha, start, count, fromLine, from }) => [sha, start, count, fromLine, from]),
    exactly(
      exactly(first, 1, 1, 1, 'old name'),
      exactly(third, 2, 1, 2, undefined),
      exactly(first, 3, 1, 3, 'old name'),
      exactly(undefined, 4, 1, 4, undefined),
      exactly(first, 5, 1, 4, 'old name'),
    ),
  )
  t.match(hunks[1], { author: 'Ada', email: 'ada@example.org', subject: 'edit' })
  t.match(await blame({ ref: second, start: 2, end: 3 }), {
    lines: 4,
    hunks: exactly({ sha: first, start: 2, count: 2 }),
  })
  for (const [status, input] of [
    [422, { start: 9 }],
    [404, { path: 'none' }],
    [404, { ref: 'none' }],
    [400, { start: 3, end: 2 }],
  ] as const)
    t.match(await refusalOf(() => blame(input)), { status }, JSON.stringify(input))
  writeFileSync(join(at, 'bin'), Buffer.from([0, 10]))
  writeFileSync(join(at, 'big'), 'x\n'.repeat(3 * 1024 * 1024))
  commitAll(at, 'more')
  t.match(await refusalOf(() => blame({ path: 'bin' })), { status: 422 })
  t.match(await refusalOf(() => blame({ path: 'big' })), { status: 413 })
})

t.test('stash entries and their files, untracked ones included', async t => {
  const at = join(workspace, 'stashed')
  repoAt(at, { f: '1\n' })
  put(at, { f: '2\n', extra: 'e\n' })
  inGit(at, 'stash', 'push', '-q', '-u', '-m', 'half: done')
  put(at, { f: '3\n' })
  inGit(at, 'stash')
  const { stashes } = await client.call('GET /git/{repo}/stashes', { repo: 'stashed' })
  t.match(
    stashes,
    exactly(
      { ref: 'stash@{0}', subject: /^[0-9a-f]{7} first$/, branch: 'main' },
      { ref: 'stash@{1}', subject: 'half: done', branch: 'main' },
    ),
  )
  const files = await client.call('GET /git/{repo}/stash-diff', { repo: 'stashed', ref: 'stash@{1}' })
  t.same(
    files.files.map(({ path, status }) => [path, status]),
    [
      ['f', 'modified'],
      ['extra', 'added'],
    ],
  )
  const other = { repo: 'stashed', ref: 'stash@{1}', sha: stashes[0]!.sha }
  t.match(await refusalOf(() => client.call('GET /git/{repo}/stash-diff', other)), { status: 409 })
})

t.test('files are listed in git order, page by page, and read from disk and from commits', async t => {
  const at = join(workspace, 'filed')
  repoAt(at, { b: 'b', 'a/z': 'z', '😀': 'smile', '￿': 'last', 'a.x': 'x' })
  writeFileSync(Buffer.concat([Buffer.from(`${at}/latin-`), Buffer.from([0xe9])]), 'l')
  const head = commitAll(at, 'more')
  const files: string[] = []
  for (let after: string | undefined; ;) {
    const page = await client.call('GET /git/{repo}/files', { repo: 'filed', limit: 1, ...(after && { after }) })
    files.push(...page.files)
    if (!page.hasMore) break
    after = page.files.at(-1)!
  }
  t.same(files, inGit(at, '-c', 'core.quotePath=false', 'ls-files', '-z').split('\0').filter(Boolean))
  t.ok(files.includes('latin-\ufffd'))
  t.same((await client.call('GET /git/{repo}/files', { repo: 'filed', prefix: 'a' })).files, ['a/z'])
  put(at, { b: 'changed' })
  const read = (input: { path: string; ref?: string }) =>
    client.call('GET /git/{repo}/file', { repo: 'filed', ...input })
  t.same(await read({ path: 'b' }), { path: 'b', content: 'changed' })
  const sha = inGit(at, 'rev-parse', `${head}:b`).trim()
  for (const ref of ['main', head, head.slice(0, 8)])
    t.same(await read({ path: 'b', ref }), { path: 'b', content: 'b', sha })
  symlinkSync('/etc', join(at, 'out'))
  symlinkSync('b', join(at, 'in'))
  put(at, { latin: Buffer.from([0xe9, 0x0a]), big: 'x'.repeat(1024 * 1024 + 1) })
  t.same(await read({ path: 'in' }), { path: 'in', content: 'changed' })
  t.match(await read({ path: 'latin' }), { lossy: true })
  for (const [status, path] of [
    [422, 'out'],
    [422, 'out/passwd'],
    [422, 'a'],
    [413, 'big'],
    [404, 'none'],
    [404, 'latin-\ufffd'],
  ] as const)
    t.match(await refusalOf(() => read({ path })), { status }, path)
  t.match(await refusalOf(() => read({ path: 'a', ref: 'main' })), { status: 422 })
})

t.test('unborn, detached, SHA-256, shallow and index version 4 repositories are read right', async t => {
  mkdirSync(join(workspace, 'unborn'))
  inGit(join(workspace, 'unborn'), 'init', '-q', '-b', 'main')
  put(join(workspace, 'unborn'), { new: 'n\n' })
  t.same((await client.call('GET /git/{repo}/log', { repo: 'unborn' })).commits, [])
  t.match(await client.call('GET /git/changes', { repo: 'unborn' }), {
    repos: exactly({ branch: 'main', unstaged: exactly({ path: 'new', status: 'added' }) }),
  })
  t.same((await client.call('GET /git/{repo}/branches', { repo: 'unborn' })).branches, [])
  const sha256 = join(workspace, 'sha256')
  const head = repoAt(sha256, { f: '1\n' }, '--object-format=sha256')
  inGit(sha256, 'checkout', '-q', '--detach')
  put(sha256, { f: '2\n' })
  t.equal(head.length, 64)
  t.match((await client.call('GET /git/{repo}/log', { repo: 'sha256' })).commits, exactly({ sha: head, head: true }))
  t.match(await client.call('GET /git/{repo}/commit-diff', { repo: 'sha256', sha: head }), {
    files: exactly({ path: 'f', status: 'added' }),
  })
  t.match(await client.call('GET /git/{repo}/status', { repo: 'sha256' }), { branch: '', files: exactly('f'), head })
  const shallow = join(workspace, 'shallow')
  inGit(workspace, 'clone', '-q', '--depth', '2', `file://${join(workspace, 'history')}`, shallow)
  inGit(shallow, 'update-index', '--index-version', '4')
  put(shallow, { more: 'changed\n' })
  t.same(
    (await client.call('GET /git/{repo}/log', { repo: 'shallow', ref: 'main' })).commits.map(({ sha }) => sha),
    inGit(shallow, 'log', '--format=%H', 'main').trim().split('\n'),
  )
  t.same((await client.call('GET /git/{repo}/status', { repo: 'shallow' })).files, ['more'])
  const last = (await client.call('GET /git/{repo}/log', { repo: 'shallow' })).commits.at(-1)!
  t.ok((await client.call('GET /git/{repo}/commit-diff', { repo: 'shallow', sha: last.sha })).files.length > 0)
})

t.test('a clone that borrows its objects, and one without contents, are read right', async t => {
  const origin = join(workspace, 'lent')
  const first = repoAt(origin, { f: '1\n', 'deep/g': 'g\n' })
  put(origin, { f: '2\n' })
  const second = commitAll(origin, 'second')
  inGit(origin, 'config', 'uploadpack.allowFilter', 'true')
  inGit(origin, 'gc', '-q')
  inGit(workspace, 'clone', '-q', '--shared', origin, join(workspace, 'borrows'))
  const url = `file://${origin}`
  inGit(workspace, 'clone', '-q', '--filter=blob:none', url, join(workspace, 'partial'))
  for (const repo of ['borrows', 'partial']) {
    put(join(workspace, repo), { 'deep/g': 'changed\n', new: 'n\n' })
    t.same(
      (await client.call('GET /git/{repo}/log', { repo, ref: 'main' })).commits.map(({ sha }) => sha),
      [second, first],
      repo,
    )
    t.same([...(await client.call('GET /git/{repo}/status', { repo })).files].sort(), ['deep/g', 'new'], repo)
    t.match(await client.call('GET /git/{repo}/file', { repo, path: 'f', ref: 'main' }), { content: '2\n' }, repo)
  }
  t.match(await client.call('GET /git/{repo}/file', { repo: 'borrows', path: 'f', ref: first }), { content: '1\n' })
  t.match(await client.call('GET /git/{repo}/commit-diff', { repo: 'borrows', sha: second }), {
    files: exactly({ path: 'f', status: 'modified' }),
  })
})

t.test('what a partial clone left out is refused with the command that fetches it', async t => {
  const repo = 'partial'
  const at = join(workspace, repo)
  const first = inGit(at, 'rev-parse', 'main~1').trim()
  const left = [
    () => client.call('GET /git/{repo}/file', { repo, path: 'f', ref: first }),
    () => client.call('GET /git/{repo}/commit-diff', { repo, sha: inGit(at, 'rev-parse', 'main').trim() }),
  ]
  for (const ask of left)
    t.match(await refusalOf(ask), { status: 422, message: /^partial lacks .* `git fetch --refetch --no-filter`/ })
  inGit(at, 'fetch', '-q', '--refetch', '--no-filter')
  t.match(await left[0]!(), { content: '1\n' })
  t.match(await left[1]!(), { files: exactly({ path: 'f', status: 'modified' }) })
})

t.test('worktrees and submodules are listed, remotes without their passwords', async t => {
  const at = join(workspace, 'modules')
  repoAt(at, { f: '1\n' })
  const lib = join(folderOf(t), 'lib')
  repoAt(lib, { l: 'l\n' })
  inGit(at, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', lib, 'lib')
  commitAll(at, 'with lib')
  inGit(at, 'worktree', 'add', '-q', '-b', 'second', join(workspace, 'second'))
  inGit(at, 'remote', 'add', 'origin', 'https://ann:geheim@github.com/acme/shop.git')
  inGit(at, 'remote', 'add', 'alt', 'git@example.org:acme/alt.git')
  inGit(at, 'remote', 'set-url', '--push', 'alt', 'ssh://bob:pass@example.org/acme/alt.git')
  inGit(at, 'update-ref', 'refs/remotes/origin/main', 'HEAD')
  const { worktrees, submodules } = await client.call('GET /git/{repo}/worktrees', { repo: 'modules' })
  t.match(worktrees, exactly({ path: 'modules', main: true, branch: 'main' }, { path: 'second', main: false }))
  t.match(submodules, exactly({ path: 'lib', state: 'current' }))
  put(join(at, 'lib'), { l: 'changed\n' })
  commitAll(join(at, 'lib'), 'moved')
  const moved = await client.call('GET /git/{repo}/worktrees', { repo: 'modules' })
  t.match(moved.submodules, exactly({ state: 'modified' }))
  t.match((await client.call('GET /git/changes', { repo: 'modules' })).repos[0]!.unstaged, exactly({ path: 'lib' }))
  const { remotes } = await client.call('GET /git/{repo}/remotes', { repo: 'modules' })
  t.same(remotes, [
    { name: 'origin', url: 'https://github.com/acme/shop.git', host: 'github.com', project: 'acme/shop', branches: 1 },
    {
      name: 'alt',
      url: 'git@example.org:acme/alt.git',
      pushUrl: 'ssh://example.org/acme/alt.git',
      host: 'example.org',
      project: 'acme/alt',
      branches: 0,
    },
  ])
  t.match(
    (await client.call('GET /git/remote-repos')).repos.filter(each => each.repo === 'modules'),
    exactly({ host: 'github.com', project: 'acme/shop' }),
  )
  t.match(await client.call('GET /git/{repo}/remote', { repo: 'modules' }), {
    remote: 'origin',
    branch: 'main',
    ahead: 0,
  })
  t.ok((await client.call('GET /git/repos')).repos.includes('second'))
})

t.test('what a repository says must run never runs, and where it leads elsewhere it cannot be read', async t => {
  const at = join(workspace, 'hostile')
  repoAt(at, { f: '1\n' })
  const spring = join(workspace, 'sprung')
  const script = join(at, 'run.sh')
  writeFileSync(script, `#!/bin/sh\ntouch ${spring}\n`)
  chmodSync(script, 0o755)
  for (const key of ['core.fsmonitor', 'diff.external', 'core.pager', 'core.sshCommand', 'core.alternateRefsCommand'])
    inGit(at, 'config', key, script)
  inGit(at, 'config', 'diff.x.textconv', script)
  inGit(at, 'config', 'core.worktree', '/etc')
  put(at, { f: '2\n', '.gitattributes': '* diff=x\n' })
  await client.call('GET /git/changes', { repo: 'hostile' })
  const { commits } = await client.call('GET /git/{repo}/log', { repo: 'hostile' })
  await client.call('GET /git/{repo}/commit-diff', { repo: 'hostile', sha: commits[0]!.sha })
  await client.call('GET /git/{repo}/blame', { repo: 'hostile', path: 'f' })
  t.same(await client.call('GET /git/{repo}/file-diff', { repo: 'hostile', path: 'f', side: 'unstaged' }), {
    before: '1\n',
    after: '2\n',
  })
  t.throws(() => inGit(workspace, 'hash-object', spring), 'the script never ran')
  const elsewhere = join(folderOf(t), 'elsewhere')
  repoAt(elsewhere, { secret: 's\n' })
  mkdirSync(join(workspace, 'pointed'))
  writeFileSync(join(workspace, 'pointed/.git'), `gitdir: ${elsewhere}/.git\n`)
  t.match((await daemon.fetch('/git/pointed/log')).status, 422)
  const { repos } = await client.call('GET /git/changes')
  t.match(
    repos.find(each => each.repo === 'pointed'),
    { error: /leads out of the workspace/ },
  )
  renameSync(join(workspace, 'pointed'), join(workspace, 'moved'))
  writeFileSync(join(workspace, 'moved/.git'), 'gitdir: ../../data\n')
  t.equal((await daemon.fetch('/git/moved/log')).status, 422)
})

t.test('people limited to areas see their folders and nothing else', async t => {
  const { call } = client
  put(workspace, { 'docs/a.md': 'one\ntwo\nfour\n', 'src/secret.ts': 's\n' })
  inGit(workspace, 'mv', 'src/main.ts', 'docs/main.ts')
  await call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  symlinkSync('../src/secret.ts', join(workspace, 'docs/way'))
  const ann = as('ann')
  const { repos } = await ann.call('GET /git/changes')
  t.match(repos, exactly({ repo: 'root', staged: exactly({ path: 'docs/main.ts', status: 'added' }) }))
  t.same(names(repos[0]!.unstaged), ['docs/a.md', 'docs/way'])
  t.same((await ann.call('GET /git/repos')).repos, [])
  t.same((await ann.call('GET /git/{repo}/files', { repo })).files, ['docs/a.md', 'docs/deep/b.md', 'docs/main.ts'])
  inGit(workspace, 'commit', '-q', '-m', 'Move main')
  put(workspace, { 'src/x.ts': 'x\n' })
  inGit(workspace, 'add', 'src/x.ts')
  const hidden = (inGit(workspace, 'commit', '-q', '-m', 'Only src'), inGit(workspace, 'rev-parse', 'HEAD').trim())
  const { commits } = await ann.call('GET /git/{repo}/log', { repo })
  t.same(
    commits.map(({ subject }) => subject),
    ['Move main', 'first'],
  )
  t.same((await ann.call('GET /git/{repo}/commit-diff', { repo, sha: commits[0]!.sha })).files, [
    { path: 'docs/main.ts', status: 'added', additions: 0, deletions: 0 },
  ])
  for (const ask of [
    () => ann.call('GET /git/{repo}/commit-diff', { repo, sha: hidden }),
    () => ann.call('GET /git/{repo}/file', { repo, path: 'README.md' }),
    () => ann.call('GET /git/{repo}/file', { repo, path: 'docs/way' }),
    () => ann.call('GET /git/{repo}/file-diff', { repo, path: 'docs/way', side: 'unstaged' }),
    () => ann.call('GET /git/{repo}/file', { repo, path: 'src/x.ts', ref: 'main' }),
    () => ann.call('GET /git/{repo}/blame', { repo, path: 'README.md' }),
    () => ann.call('GET /git/{repo}/commit-file-diff', { repo, sha: hidden, path: 'src/x.ts' }),
    () => ann.call('GET /git/{repo}/log', { repo: 'history' }),
    () => ann.call('GET /git/{repo}/status', { repo: 'kinds' }),
  ])
    t.match(await refusalOf(ask), { status: 404 })
})
