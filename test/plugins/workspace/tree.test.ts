import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { WorkspaceEntry } from '../../../plugins/workspace/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { layTraps, workspaceWorld } from './support.js'

const find = (entries: readonly WorkspaceEntry[], path: string): WorkspaceEntry | undefined =>
  entries.flatMap(entry => [entry, ...(entry.children ?? [])]).find(entry => entry.path === path)

void t.test('the tree of files', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, {
    files: {
      'README.md': '# work\n',
      '.gitignore': 'dist/\n*.log\n!keep.log\n',
      'src/main.ts': 'main\n',
      'src/.gitignore': 'made.ts\n',
    },
  })
  const { client, workspace } = daemon
  layTraps(workspace, join(daemon.data, '..', 'outside'))
  for (const path of ['dist', 'empty/inner', 'big']) mkdirSync(join(workspace, path), { recursive: true })
  for (let at = 0; at < 20_000; at++) writeFileSync(join(workspace, 'dist', `f${String(at).padStart(5, '0')}`), '')
  for (const path of ['a.log', 'keep.log', 'src/made.ts']) writeFileSync(join(workspace, path), 'x')
  makeWorkspace(join(workspace, 'lib'), { 'a.md': 'a' })
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })

  await t.test('without a credential nothing is listed, and a token for editing does not list either', async t => {
    const { token } = await daemon.token('editor')
    for (const path of ['tree', 'children?path=.', 'changed?since=0', 'resolve?path=a', 'file?path=a', 'raw?path=a']) {
      t.equal((await fetch(`${daemon.url}/workspace/${path}`)).status, 401, path)
      const headers = { 'x-sandbox-control': token }
      t.equal((await fetch(`${daemon.url}/workspace/${path}`, { headers })).status, 403, path)
    }
  })

  await t.test('ignored folders are listed without their contents, as git decides', async t => {
    const { tree, hidden, barren, root, watch } = await client.call('GET /workspace/tree', {})
    t.match(
      { hidden, barren, root, watch },
      { hidden: 0, barren: exactly('big', 'docs/deep', 'empty', 'same/deep'), root: 'workspace', watch: 'live' },
    )
    const dist = find(tree, 'dist')!
    t.match(dist, { type: 'dir', ignored: true })
    t.notOk('children' in dist)
    const all = (entries: readonly WorkspaceEntry[]): WorkspaceEntry[] =>
      entries.flatMap(entry => [entry, ...all(entry.children ?? [])])
    const files = all(tree).filter(({ lossy, link, closed, path }) => !lossy && !link && !closed && path !== 'pipe')
    const asked = files.map(({ path }) => path).filter(path => !path.startsWith('lib'))
    const ignored = inGit(workspace, 'ls-files', '-o', '-i', '--exclude-standard', '--directory').split('\n')
    t.same(
      files
        .filter(each => each.ignored && asked.includes(each.path))
        .map(({ path }) => path)
        .sort(),
      ignored
        .filter(Boolean)
        .map(path => path.replace(/\/$/, ''))
        .sort(),
    )
  })

  await t.test('folders come before files, and links say where they lead', async t => {
    const { tree } = await client.call('GET /workspace/tree', {})
    const folders = tree.filter(({ type, link }) => type === 'dir' && !link)
    t.same(tree.slice(0, folders.length), folders)
    t.match(find(tree, 'out'), { type: 'dir', link: { state: 'outside' } })
    t.match(find(tree, 'broken'), { type: 'file', link: { to: 'nowhere', state: 'broken' } })
    t.match(find(tree, 'circle'), { link: { to: 'circle', state: 'broken' } })
    t.match(find(tree, 'docs/up'), { type: 'dir', link: { to: '..' } })
    t.match(find(tree, 'way'), { closed: true })
    t.match(find(tree, '.git'), { type: 'dir', closed: true })
    for (const path of ['out', 'docs/up', 'way', '.git']) t.notOk(find(tree, path)!.children, `${path} is not opened`)
    t.match(
      find(tree, 'same')!.children!.map(({ path }) => path),
      exactly('same/deep', 'same/a.md', 'same/out', 'same/up'),
    )
    t.match(
      tree.find(({ lossy }) => lossy),
      { name: /^bad-\ufffd/, lossy: true },
    )
    t.match(find(tree, 'pipe'), { type: 'file' })
  })

  await t.test('a folder of 20,000 files is paged completely', async t => {
    const seen: string[] = []
    for (let after: string | undefined; ; after = seen.at(-1)) {
      const page = await client.call('GET /workspace/children', { path: 'dist', ...(after && { after }) })
      seen.push(...page.entries.map(({ name }) => name))
      if (page.hidden === 0) break
    }
    t.equal(seen.length, 20_000)
    t.equal(new Set(seen).size, 20_000)
  })

  await t.test('children are opened to the depth asked for', async t => {
    const { entries } = await client.call('GET /workspace/children', { path: '', depth: 2 })
    t.match(find(entries, 'empty')!.children, exactly({ path: 'empty/inner' }))
    t.notOk(find(entries, 'empty')!.children![0]!.children)
  })

  await t.test('a path that is not a folder is refused with the expected form', async t => {
    const refused: [number, { path: string; depth?: number; after?: string }][] = [
      [400, { path: '../x' }],
      [400, { path: '/etc' }],
      [400, { path: 'a//b' }],
      [400, { path: 'C:\\x' }],
      [400, { path: 'out' }],
      [400, { path: 'out/secret' }],
      [400, { path: 'docs', depth: 6 }],
      [400, { path: 'docs', depth: 0 }],
      [400, { path: 'docs', depth: 2, after: 'a' }],
      [404, { path: 'nowhere' }],
      [404, { path: '.git' }],
      [404, { path: '.GIT' }],
      [404, { path: '.g\u200cit' }],
      [404, { path: 'way' }],
      [404, { path: 'circle' }],
      [404, { path: '.sandbox' }],
      [404, { path: '.Sandbox/x' }],
      [422, { path: 'README.md' }],
    ]
    for (const [status, input] of refused)
      t.match(await refusalOf(() => client.call('GET /workspace/children', input)), { status }, JSON.stringify(input))
    t.match(await refusalOf(() => client.call('GET /workspace/tree', { agent: 'nobody' })), { status: 404 })
  })

  await t.test('the git folder of a repository below the root is for maintainers alone', async t => {
    t.ok((await as('mai').call('GET /workspace/children', { path: 'lib/.git' })).entries.length > 0)
    t.equal((await ask('vic', '/workspace/children?path=lib/.git')).status, 404)
    const { token } = await daemon.token('read')
    const headers = { 'x-sandbox-control': token }
    t.equal((await fetch(`${daemon.url}/workspace/children?path=lib/.git`, { headers })).status, 404)
  })

  await t.test('somebody limited to areas sees these and the way down to them', async t => {
    const { tree } = await as('ann').call('GET /workspace/tree', {})
    t.match(tree, exactly({ path: 'docs', children: exactly({ name: 'deep' }, { name: 'a.md' }, {}, {}) }))
    t.match(find(tree, 'docs/out'), { link: { to: '', state: 'outside' } })
    t.match(find(tree, 'docs/up'), { type: 'file', link: { to: '', state: 'outside' } })
    t.equal((await ask('ann', '/workspace/children?path=src')).status, 404)
    t.equal((await ask('ann', '/workspace/file?path=README.md')).status, 404)
    t.equal((await ask('ann', '/workspace/file?path=nothing.md')).status, 404)
    t.match(await as('ann').call('GET /workspace/file', { path: 'docs/b.md' }), { path: 'docs/b.md' })
  })

  await t.test('a path in a text is found however it is written', async t => {
    const asked: [string, string | undefined][] = [
      ['src/main.ts:12', 'src/main.ts'],
      ['`src/main.ts`', 'src/main.ts'],
      ['a/src/main.ts', 'src/main.ts'],
      [`${workspace}/src/main.ts:3:4`, 'src/main.ts'],
      ['packages/web/src/main.ts', 'src/main.ts'],
      ['main.ts', 'src/main.ts'],
      ['other.ts', undefined],
      ['../../etc/passwd', undefined],
      ['.git/HEAD', undefined],
    ]
    for (const [path, found] of asked)
      t.same(await client.call('GET /workspace/resolve', { path }), found === undefined ? {} : { path: found }, path)
    t.same(await as('ann').call('GET /workspace/resolve', { path: 'src/main.ts' }), {})
  })
})
