import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { gitWorld, put, repoAt } from '../git/support.js'

/** Whether a turn runs in the shared tree. */
let turn = false
const { client, workspace, daemon, as } = await gitWorld(
  t,
  { 'README.md': '# work\n', 'docs/a.md': 'one\n', 'src/main.ts': 'm\n' },
  ['history'],
  {
    'agent.conversations': async () =>
      ({ conversations: turn ? [{ live: true, conversation: { id: 'busy' } }] : [] }) as never,
  },
)
const save = (label?: string) => client.call('POST /history/snapshots', label === undefined ? {} : { label })
const restore = (id: string, more: object = {}) => client.call('POST /history/restore', { id, ...more })

t.test('viewers read, collaborators save, maintainers restore', async t => {
  t.equal((await fetch(`${daemon.url}/history/snapshots`)).status, 401)
  t.match(await refusalOf(() => as('vic').call('POST /history/snapshots', {})), { status: 403 })
  t.match(await refusalOf(() => as('col').call('POST /history/restore', { id: 'x' })), { status: 403 })
  const { token } = await daemon.token('land')
  const init = {
    method: 'POST',
    headers: { 'x-sandbox-control': token, 'content-type': 'application/json' },
    body: '{"id":"x"}',
  }
  t.equal((await fetch(`${daemon.url}/history/restore`, init)).status, 403)
})

t.test('a point holds what git does not ignore, as it lies on disk, and no secret', async t => {
  put(workspace, {
    '.gitignore': 'ignored\nforced\n',
    '.gitattributes': '*.txt text eol=lf\n',
    'crlf.txt': 'a\r\nb\r\n',
    ignored: 'i\n',
    forced: 'f\n',
    '.env': 'KEY=1\n',
    '.env.local': 'KEY=1\n',
    '.env.example': 'KEY=\n',
    'certs/server.key': 'k\n',
    'node_modules/x/index.js': 'x\n',
    '.sandbox/config/areas.json': '{}\n',
    '.sandbox/other': 'o\n',
    run: '#!/bin/sh\n',
  })
  chmodSync(join(workspace, 'run'), 0o755)
  inGit(workspace, 'add', '-f', 'forced')
  symlinkSync('README.md', join(workspace, 'link'))
  repoAt(join(workspace, 'nested'), { n: 'n\n' })
  const { id, saved } = await save('first')
  t.ok(saved)
  t.match(await save(), { saved: false, id })
  const { changes } = await client.call('GET /history/diff', { id: id! })
  t.same(changes.map(({ scope, path }) => `${scope}:${path}`).sort(), [
    'nested:n',
    'root:.env.example',
    'root:.gitattributes',
    'root:.gitignore',
    'root:.sandbox/config/areas.json',
    'root:README.md',
    'root:crlf.txt',
    'root:docs/a.md',
    'root:forced',
    'root:link',
    'root:run',
    'root:src/main.ts',
  ])
  t.match((await client.call('GET /history/snapshots', {})).snapshots, exactly({ id, label: 'first', trigger: 'user' }))
})

t.test('a restore brings everything back byte by byte, keeps git as it is, and is itself undone', async t => {
  const before = await save()
  const head = inGit(join(workspace, 'nested'), 'rev-parse', 'HEAD')
  const index = inGit(workspace, 'ls-files', '-s')
  put(workspace, { 'crlf.txt': 'changed\n', 'made/new': 'n\n', 'src/main.ts': 'other\n', 'nested/n': 'changed\n' })
  rmSync(join(workspace, 'docs'), { recursive: true })
  rmSync(join(workspace, 'link'))
  mkdirSync(join(workspace, 'link'))
  put(workspace, { 'link/in': 'x\n' })
  chmodSync(join(workspace, 'run'), 0o644)
  const now = await client.call('GET /history/diff', { id: before.id!, against: 'now' })
  const done = await restore(before.id!)
  t.equal(done.restored + done.removed, now.changes.length)
  t.same(done.failed, [])
  t.equal(readFileSync(join(workspace, 'crlf.txt'), 'utf8'), 'a\r\nb\r\n')
  t.equal(readFileSync(join(workspace, 'docs/a.md'), 'utf8'), 'one\n')
  t.equal(readFileSync(join(workspace, 'nested/n'), 'utf8'), 'n\n')
  t.equal(readlinkSync(join(workspace, 'link')), 'README.md')
  t.ok(lstatSync(join(workspace, 'run')).mode & 0o100)
  t.notOk(existsSync(join(workspace, 'made')))
  t.equal(readFileSync(join(workspace, '.env'), 'utf8'), 'KEY=1\n')
  t.equal(inGit(join(workspace, 'nested'), 'rev-parse', 'HEAD'), head)
  t.equal(inGit(workspace, 'ls-files', '-s'), index)
  t.same((await client.call('GET /history/diff', { id: before.id!, against: 'now' })).changes, [])
  await restore(done.point)
  t.equal(readFileSync(join(workspace, 'made/new'), 'utf8'), 'n\n')
  t.equal(readFileSync(join(workspace, 'link/in'), 'utf8'), 'x\n')
  t.notOk(existsSync(join(workspace, 'docs')))
  const { snapshots } = await client.call('GET /history/snapshots', { limit: 4 })
  t.same(
    snapshots.map(({ trigger }) => trigger),
    ['restore', 'restore', 'pre-restore', 'user'],
  )
  await restore(before.id!)
})

t.test('a repository that was deleted comes back as files', async t => {
  repoAt(join(workspace, 'away'), { 'deep/f': 'f\n' })
  const { id } = await save('with away')
  rmSync(join(workspace, 'away'), { recursive: true })
  await restore(id!, { scope: 'away' })
  t.equal(readFileSync(join(workspace, 'away/deep/f'), 'utf8'), 'f\n')
})

t.test('a restore waits for no turn of the shared tree: it is refused, or forced', async t => {
  const { id } = await save()
  put(workspace, { 'src/main.ts': 'by the turn\n' })
  turn = true
  t.teardown(() => (turn = false))
  t.match(await refusalOf(() => restore(id!)), { status: 409, message: /a turn of busy runs/ })
  t.equal(readFileSync(join(workspace, 'src/main.ts'), 'utf8'), 'by the turn\n')
  t.match(await restore(id!, { force: true }), { restored: 1 })
  t.not(readFileSync(join(workspace, 'src/main.ts'), 'utf8'), 'by the turn\n')
})

t.test('saving moves neither index, HEAD nor reflog, and no gc of the repository harms a point', async t => {
  const git = () =>
    ['index', 'HEAD', 'logs/HEAD', 'refs/heads/main'].map(file => readFileSync(join(workspace, '.git', file), 'base64'))
  const before = git()
  const ids: string[] = []
  for (let n = 0; n < 5; n++) {
    put(workspace, { 'src/rewritten': `${n}\n` })
    inGit(workspace, 'hash-object', '-w', 'src/rewritten')
    ids.push((await save()).id!)
  }
  t.same(git(), before)
  inGit(workspace, 'gc', '-q', '--prune=now')
  for (const [n, id] of ids.entries()) {
    await restore(id, { scope: 'root', paths: ['src/rewritten'] })
    t.equal(readFileSync(join(workspace, 'src/rewritten'), 'utf8'), `${n}\n`)
  }
})

/** How long files are rewritten while points are saved: briefly, and ten minutes in `npm run crash`. */
const REWRITING_MS = Number(process.env['SANDBOX_REWRITING_SECONDS'] ?? 0) * 1000
/** Rewrites in place, by rename, and as folders that come and go or take the place of a file. */
const REWRITE = `n=0
while :; do n=$((n+1))
echo $n > in-place; echo $n > new; mv new renamed
mkdir -p folder/deep; echo $n > folder/deep/file; rm -r folder
echo $n > either; rm either; mkdir either; echo $n > either/file; rm -r either
done`

t.test('points saved while a process rewrites files are whole, and git of the repository never moves', async t => {
  const most = REWRITING_MS > 0 ? 40 : 8
  const git = () => ['index', 'HEAD', 'logs/HEAD'].map(file => readFileSync(join(workspace, '.git', file), 'base64'))
  const before = git()
  put(workspace, { 'busy/still': 'still\n' })
  const child = spawn('sh', ['-c', REWRITE], { cwd: join(workspace, 'busy'), stdio: 'ignore' })
  const ended = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  await until(() => existsSync(join(workspace, 'busy/renamed')))
  const ids: string[] = []
  const begun = performance.now()
  while (ids.length < most || performance.now() - begun < REWRITING_MS) {
    const { id, saved, partial = [] } = await save()
    if (saved) ids.push(id!)
    if (partial.length > 0) t.fail(`the point ${ids.length} leaves out ${partial.join(' and ')}`)
    if (String(git()) !== String(before)) t.fail(`the point ${ids.length} moved the index, HEAD or the reflog`)
  }
  child.kill('SIGKILL')
  await ended
  inGit(workspace, 'gc', '-q', '--prune=now')
  t.same(git(), before)
  const numbers: number[] = []
  for (const id of ids.filter((_, at) => at % Math.ceil(ids.length / most) === 0)) {
    await restore(id, { scope: 'root', paths: ['busy'] })
    const files = ['in-place', 'renamed'].map(file => readFileSync(join(workspace, 'busy', file), 'utf8'))
    for (const text of files) t.match(text, /^(?:\d+\n)?$/)
    numbers.push(Number(files[1]))
    t.equal(readFileSync(join(workspace, 'busy/still'), 'utf8'), 'still\n')
  }
  t.same(
    numbers,
    numbers.toSorted((one, other) => one - other),
    'a later point has later contents',
  )
  t.ok(new Set(numbers).size > 1, 'the points differ')
})

t.test('a restore removes nothing that no point holds', async t => {
  put(workspace, { '.gitignore': '*.keep\n', 'page.md': 'a file\n', 'logs/now.txt': 'log\n' })
  const { id } = await save('as files')
  for (const path of ['page.md', 'logs']) rmSync(join(workspace, path), { recursive: true })
  put(workspace, { 'page.md/new.txt': 'new\n', 'page.md/notes.keep': 'mine', 'page.md/.env': 'A=1', logs: 'a file\n' })
  const refused = await refusalOf(() => client.call('POST /history/restore', { id: id! }))
  t.match(refused, { status: 409, message: /^page\.md\/\.env, page\.md\/notes\.keep: in the way of files/ })
  t.equal(readFileSync(join(workspace, 'page.md/notes.keep'), 'utf8'), 'mine')
  for (const path of ['page.md/notes.keep', 'page.md/.env']) rmSync(join(workspace, path))
  await client.call('POST /history/restore', { id: id! })
  t.equal(readFileSync(join(workspace, 'page.md'), 'utf8'), 'a file\n')
  t.equal(readFileSync(join(workspace, 'logs/now.txt'), 'utf8'), 'log\n')
})

t.test('one folder is brought back and nothing else is touched', async t => {
  const { id } = await save()
  put(workspace, { 'docs/a.md': 'two\n', 'docs/new.md': 'n\n', 'src/main.ts': 'two\n' })
  const inode = lstatSync(join(workspace, 'src/main.ts')).ino
  t.match(await restore(id!, { scope: 'root', paths: ['docs'] }), { restored: 1, removed: 1 })
  t.equal(readFileSync(join(workspace, 'docs/a.md'), 'utf8'), 'one\n')
  t.notOk(existsSync(join(workspace, 'docs/new.md')))
  t.equal(readFileSync(join(workspace, 'src/main.ts'), 'utf8'), 'two\n')
  t.equal(lstatSync(join(workspace, 'src/main.ts')).ino, inode)
  t.same(await client.call('GET /history/file-diff', { id: id!, scope: 'root', path: 'src/main.ts', against: 'now' }), {
    before: readFileSync(join(workspace, 'src/main.ts'), 'utf8') === 'two\n' ? 'm\n' : '',
    after: 'two\n',
  })
})

t.test('bad input is refused and nothing changes', async t => {
  const { id } = await save()
  for (const [status, ask] of [
    [404, () => restore('nothing')],
    [400, () => restore(id!, { paths: ['docs'] })],
    [404, () => restore(id!, { scope: 'none' })],
    [404, () => restore(id!, { scope: 'root', paths: ['none'] })],
    [404, () => restore(id!, { scope: 'root', paths: ['.git'] })],
    [400, () => restore(id!, { scope: 'root', paths: ['../x'] })],
    [404, () => client.call('GET /history/diff', { id: 'nothing' })],
    [404, () => client.call('GET /history/diff', { id: id!, against: 'nothing' })],
    [404, () => client.call('GET /history/file-diff', { id: id!, scope: 'none', path: 'x' })],
    [404, () => client.call('GET /history/file-diff', { id: id!, scope: 'root', path: 'none' })],
  ] as const)
    t.match(await refusalOf(ask), { status })
  t.same((await client.call('GET /history/diff', { id: id!, against: 'now' })).changes, [])
})

t.test('a repository in the middle of a merge is not restored', async t => {
  const at = join(workspace, 'nested')
  const { id } = await save()
  execFileSync('git', ['update-ref', 'MERGE_HEAD', 'HEAD'], { cwd: at })
  t.match(await refusalOf(() => restore(id!)), { status: 409 })
  rmSync(join(at, '.git/MERGE_HEAD'))
})

t.test('people limited to areas see the points and paths of their folders', async t => {
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  put(workspace, { 'src/hidden.ts': 'h\n' })
  const hidden = await save('hidden')
  put(workspace, { 'docs/b.md': 'b\n', 'src/hidden.ts': 'h2\n' })
  const both = await save('both')
  const ann = as('ann')
  const { snapshots } = await ann.call('GET /history/snapshots', {})
  t.match(snapshots[0], { id: both.id, files: 1 })
  t.notOk(snapshots.some(({ id }) => id === hidden.id))
  t.same((await ann.call('GET /history/diff', { id: both.id! })).changes, [
    { scope: 'root', path: 'docs/b.md', status: 'added' },
  ])
  const file = { id: both.id!, scope: 'root', path: 'src/hidden.ts' }
  t.match(await refusalOf(() => ann.call('GET /history/file-diff', file)), { status: 404 })
  const some = await client.call('GET /history/snapshots', { path: 'docs' })
  t.notOk(some.snapshots.some(({ id }) => id === hidden.id))
  const pages = await client.call('GET /history/snapshots', { limit: 1 })
  const next = await client.call('GET /history/snapshots', { limit: 1, before: pages.before! })
  t.same(
    [...pages.snapshots, ...next.snapshots].map(({ id }) => id),
    [both.id, hidden.id],
  )
})
