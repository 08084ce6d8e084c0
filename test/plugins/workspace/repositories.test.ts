import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { workspaceWorld } from './support.js'

const PACKAGE = (name: string, more: object = {}): string => JSON.stringify({ name, ...more })

void t.test('the repositories of the workspace, their packages, and what lies beside them', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, {
    files: { '.gitignore': 'ignored/\n', 'package.json': PACKAGE('top'), 'docs/a.md': 'a' },
  })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const at = (path: string) => join(workspace, path)
  makeWorkspace(at('docs/lib'), { 'go.mod': 'module example.org/lib // x\n\ngo 1.22\n' })
  makeWorkspace(at('clients/shop'), {
    'package.json': PACKAGE('shop', { workspaces: ['packages/*', 'apps/*', '!apps/old'] }),
    'packages/ui/package.json': PACKAGE('@shop/ui', { peerDependencies: { '@shop/core': '*' } }),
    'packages/core/package.json': PACKAGE('@shop/core'),
    'apps/web/package.json': PACKAGE('web', {
      dependencies: { '@shop/ui': 'workspace:*', react: '19' },
      devDependencies: { '@shop/core': 'file:../../packages/core' },
    }),
    'apps/old/package.json': PACKAGE('old', { dependencies: { '@shop/ui': '1' } }),
  })
  makeWorkspace(at('clients/shop/inner'), {})
  makeWorkspace(at('ignored/x'), {})
  makeWorkspace(at('.hidden/x'), {})
  makeWorkspace(at('public/x'), {})
  makeWorkspace(at('a/b/c/d/e/f/g'), {})
  mkdirSync(at('linked'))
  symlinkSync('../.git', at('linked/.git'))

  await t.test('callers need a credential and a scope that reads', async t => {
    const { token } = await daemon.token('editor')
    for (const path of ['repos', 'modules', 'repos/root/graph', 'classify']) {
      t.equal((await fetch(`${daemon.url}/workspace/${path}`)).status, 401, path)
      const headers = { 'x-sandbox-control': token }
      t.equal((await fetch(`${daemon.url}/workspace/${path}`, { headers })).status, 403, path)
    }
  })

  await t.test('a repository ends the way down, and hidden, ignored and deep ones are not looked for', async t => {
    t.same(await client.call('GET /workspace/repos'), {
      repos: ['clients/shop', 'docs/lib'],
      skipped: [{ path: 'linked', reason: 'its .git is a link' }],
    })
    t.same(await as('ann').call('GET /workspace/repos'), { repos: ['docs/lib'], skipped: [] })
  })

  await t.test('folders with a manifest are listed by their repository', async t => {
    const { repos } = await client.call('GET /workspace/modules')
    t.match(
      repos,
      exactly(
        { repo: 'root', modules: exactly({ dir: '', name: 'top' }) },
        {
          repo: 'clients/shop',
          modules: exactly(
            { dir: '', name: 'shop' },
            { dir: 'apps/old', name: 'old' },
            { dir: 'apps/web', name: 'web' },
            { dir: 'packages/core', name: '@shop/core' },
            { dir: 'packages/ui', name: '@shop/ui' },
          ),
        },
        { repo: 'docs/lib', modules: exactly({ dir: '', name: 'example.org/lib' }) },
      ),
    )
    t.match((await as('ann').call('GET /workspace/modules')).repos, exactly({ repo: 'docs/lib' }))
  })

  await t.test('the graph has the packages of the workspace of packages and what they use of each other', async t => {
    const graph = await client.call('GET /workspace/repos/{repo}/graph', { repo: 'clients/shop' })
    t.same(graph.packages, [
      { name: 'web', dir: 'apps/web', group: 'apps' },
      { name: '@shop/core', dir: 'packages/core', group: 'packages' },
      { name: '@shop/ui', dir: 'packages/ui', group: 'packages' },
    ])
    t.same(graph.edges, [
      { from: 'web', to: '@shop/ui', type: 'prod' },
      { from: 'web', to: '@shop/core', type: 'dev' },
      { from: '@shop/ui', to: '@shop/core', type: 'peer' },
    ])
    t.same(await client.call('GET /workspace/repos/{repo}/graph', { repo: 'root' }), { packages: [], edges: [] })
    for (const [repo, status] of [
      ['none', 404],
      ['docs', 404],
      ['..', 404],
      ['.git', 404],
    ] as const)
      t.equal((await daemon.fetch(`/workspace/repos/${encodeURIComponent(repo)}/graph`)).status, status, repo)
    t.equal((await ask('ann', `/workspace/repos/${encodeURIComponent('clients/shop')}/graph`)).status, 404)
  })

  await t.test('pnpm, cargo, go and uv say which packages they have, each in its own way', async t => {
    makeWorkspace(at('many'), {
      'pnpm-workspace.yaml': 'packages:\n  - "js/*"\n',
      'js/a/package.json': PACKAGE('a', { dependencies: { b: '1' } }),
      'js/b/package.json': PACKAGE('b'),
      'Cargo.toml': '[workspace]\nmembers = ["rust/*"]\n',
      'rust/c/Cargo.toml': '[package]\nname = "c"\n[dependencies]\nd = { path = "../d" }\n',
      'rust/d/Cargo.toml': '[package]\nname = "d"\n',
      'go.work': 'go 1.22\nuse (\n\t./go/e\n\t./go/f\n)\n',
      'go/e/go.mod': 'module x.org/e\nrequire x.org/f v1.0.0\n',
      'go/f/go.mod': 'module x.org/f\n',
      'pyproject.toml': '[tool.uv.workspace]\nmembers = ["py/*"]\n',
      'py/g/pyproject.toml': '[project]\nname = "g"\ndependencies = ["h-lib[x]>=2"]\n',
      'py/h/pyproject.toml': '[project]\nname = "h-lib"\n',
    })
    const { packages, edges } = await client.call('GET /workspace/repos/{repo}/graph', { repo: 'many' })
    t.same(packages.map(({ name }) => name).sort(), ['a', 'b', 'c', 'd', 'g', 'h-lib', 'x.org/e', 'x.org/f'])
    t.same(edges.map(({ from, to }) => `${from} ${to}`).sort(), ['a b', 'c d', 'g h-lib', 'x.org/e x.org/f'])
    writeFileSync(at('many/rust/c/Cargo.toml'), '[package\n')
    const broken = await daemon.fetch('/workspace/repos/many/graph')
    t.match(
      [broken.status, await broken.json()],
      exactly(422, { message: /^"many\/rust\/c\/Cargo.toml" cannot be read/ }),
    )
  })

  await t.test('loose files are described by size, extension and whether they are text', async t => {
    mkdirSync(at('docs/loose'))
    writeFileSync(
      at('docs/loose/film.txt'),
      Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0', 'latin1'),
    )
    writeFileSync(at('docs/loose/deck.pptx'), '')
    writeFileSync(at('docs/loose/notes'), 'words é\n')
    writeFileSync(at('docs/loose/blob'), Buffer.from([0, 1, 2, 3]))
    const { classifications } = await as('ann').call('GET /workspace/classify')
    t.same(classifications, [
      { path: 'docs/a.md', bucket: 'documents', reason: 'ext:.md' },
      { path: 'docs/lib', bucket: 'repositories', reason: 'repository:.git' },
      { path: 'docs/loose/blob', bucket: 'other', reason: 'unknown' },
      { path: 'docs/loose/deck.pptx', bucket: 'documents', reason: 'ext:.pptx' },
      { path: 'docs/loose/film.txt', bucket: 'media', reason: 'magic:image/png' },
      { path: 'docs/loose/notes', bucket: 'documents', reason: 'text-content' },
    ])
  })
})
