import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SearchMode } from '../../../plugins/workspace/contract.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { pdfOf } from '../../support/documents/pdf.js'

// Libraries load differently in the bundled program than in the compiled files that other tests run.
t.test('the program serves files, makes archives and unpacks them', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'docs/a.html': '<p>a</p>\n', 'docs/b.csv': 'x,y\n1,2\n' })
  execFileSync('tar', ['-czf', 'docs.tgz', 'docs'], { cwd: where.workspace })
  const { client, url, session } = await spawnDaemon(t, where)
  const headers = { authorization: `Bearer ${session}` }

  const raw = await fetch(`${url}/workspace/raw?path=docs/b.csv`, { headers })
  t.match(raw.headers.get('content-type'), /^text\/csv/)
  t.equal(await raw.text(), 'x,y\n1,2\n')

  const { ticket } = await client.call('POST /workspace/download-ticket', { paths: ['docs'] })
  const zip = await fetch(`${url}/workspace/download?ticket=${ticket}`)
  writeFileSync(join(where.workspace, 'docs.zip'), Buffer.from(await zip.arrayBuffer()))
  for (const archive of ['docs.zip', 'docs.tgz']) {
    await client.call('POST /workspace/unpack', { path: archive, to: `of-${archive}` })
    const [file] = execFileSync('find', [`of-${archive}`, '-name', 'a.html'], {
      cwd: where.workspace,
      encoding: 'utf8',
    })
      .split('\n')
      .filter(Boolean)
    t.equal(readFileSync(join(where.workspace, file ?? ''), 'utf8'), '<p>a</p>\n', archive)
  }
})

t.test('the program searches in every way, and reads documents', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, {
    'src/count.ts': 'export const countWords = (text: string): number => text.split(" ").length\n',
    'src/use.ts': "import { countWords } from './count.js'\nconsole.log(countWords('a b'))\n",
    'table.csv': 'x,y\n1,2\n',
    'page.pdf': pdfOf('Hello page'),
  })
  const { client } = await spawnDaemon(t, where)
  const first = async (mode: SearchMode, query: string): Promise<string | undefined> => {
    for (const end = Date.now() + 15_000; Date.now() < end;) {
      const { groups, freshness } = await client.call('GET /workspace/search', { mode, query })
      if (groups.length || freshness.state !== 'building') return groups[0]?.path
    }
    return undefined
  }
  t.equal(await first('find', 'text.split'), 'src/count.ts')
  t.equal(await first('files', 'use'), 'src/use.ts')
  t.equal(await first('def', 'countWords'), 'src/count.ts')
  t.equal(await first('sym', 'countW'), 'src/count.ts')
  t.equal(await first('refs', 'countWords'), 'src/use.ts')
  t.equal(await first('ast', 'console.log($A)'), 'src/use.ts')
  t.ok(await first('q', 'count the words of a text'))
  t.match(await client.call('POST /workspace/derive', { path: 'table.csv' }), { content: /\| 1 \| 2 \|/ })
  t.match(await client.call('POST /workspace/derive', { path: 'page.pdf' }), { content: /Hello page/ })
})
