import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createClient } from '../../../sdk/client.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, inGit } from '../../support/daemon.js'
import { inTime } from '../../support/in-time.js'
import { exactly } from '../../support/lists.js'
import { presentation, textDocument, workbook } from '../../support/documents/office.js'
import { pdfOf } from '../../support/documents/pdf.js'
import { zipBomb } from '../../support/documents/zip-bomb.js'
import { commitAll, gitWorld, put, repoAt, tryGit } from '../git/support.js'

const GROUPS = ['workspace', 'history', 'diffs']
const { client, workspace, daemon, as } = await gitWorld(
  t,
  { 'README.md': '# work\n', 'docs/a.md': 'one\n', 'src/main.ts': 'm\n' },
  GROUPS,
)
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const OTHER_PNG = Buffer.concat([PNG, Buffer.from('more')])

const rendered = (input: Parameters<typeof client.call<'GET /diff/rendered'>>[1]) =>
  client.call('GET /diff/rendered', input)
const unstaged = (path: string) => rendered({ source: 'working', repo: 'root', side: 'unstaged', path })
const changedLines = (unified = ''): string[] => unified.split('\n').filter((line, at) => at > 1 && /^[-+]/.test(line))

/** Commits a file, then writes another content in its place; answers how the document differs. */
const edited = async (path: string, before: Buffer | string, after: Buffer | string) => {
  put(workspace, { [path]: before })
  commitAll(workspace, `add ${path}`)
  put(workspace, { [path]: after })
  return unstaged(path)
}

t.test('readers of every scope but editor compare, nobody without a credential', async t => {
  const query = 'source=working&repo=root&side=unstaged'
  for (const path of [
    `/diff/documents?${query}`,
    `/diff/rendered?${query}&path=a.docx`,
    `/diff/raw?${query}&path=a.docx&which=after`,
  ]) {
    t.equal((await fetch(daemon.url + path)).status, 401, path)
    const { token } = await daemon.token('editor', `editor ${path}`.slice(0, 40))
    t.equal((await fetch(daemon.url + path, { headers: { 'x-sandbox-control': token } })).status, 403, path)
  }
  const read = await daemon.token('read')
  t.match(await read.client.call('GET /diff/documents', { source: 'working', repo: 'root', side: 'unstaged' }), {
    documents: exactly(),
  })
})

t.test('bad input is refused naming the field, and reads nothing', async t => {
  const asked: [number, string, RegExp][] = [
    [400, 'rendered?source=elsewhere&path=a', /source/],
    [400, 'rendered?source=working&side=staged&path=a', /repo/],
    [400, 'rendered?source=working&repo=root&path=a', /side/],
    [400, 'rendered?source=working&repo=root&side=staged', /path/],
    [400, 'rendered?source=commit&repo=root&sha=--help&path=a.docx', /sha/],
    [400, 'rendered?source=commit&repo=root&path=a.docx', /sha/],
    [400, 'rendered?source=working&repo=root&side=unstaged&path=../x', /path/],
    [400, 'rendered?source=files&before=../x&after=docs/a.md', /path/],
    [400, 'rendered?source=files&before=docs/a.md', /after/],
    [400, 'rendered?source=checkpoint&scope=root&path=a', /snapshot/],
    [400, 'raw?source=working&repo=root&side=unstaged&path=a', /which/],
    [400, 'documents?source=files&before=a', /source/],
    [400, 'documents?source=working&repo=root', /side/],
    [404, 'rendered?source=checkpoint&snapshot=nothing&scope=root&path=a', /point/],
    [404, 'documents?source=checkpoint&snapshot=nothing&scope=root', /point/],
    [404, 'rendered?source=commit&repo=root&sha=dead&path=a.docx', /commit/],
    [404, 'documents?source=commit&repo=nowhere&sha=dead', /repository/],
    [404, 'rendered?source=working&repo=root&side=unstaged&path=.git/config', /named/],
    [404, 'rendered?source=working&repo=root&side=unstaged&path=none.docx', /side/],
    [404, 'rendered?source=working&repo=root&side=conflicted&path=README.md', /side/],
    [404, 'raw?source=files&before=docs/a.md&after=none.pdf&which=after', /none/],
    [422, 'rendered?source=files&before=docs&after=docs/a.md', /folder/],
    [422, 'rendered?source=files&before=README.md&after=docs/a.md', /no document/],
  ]
  for (const [status, path, said] of asked) {
    const response = await daemon.fetch(`/diff/${path}`)
    t.equal(response.status, status, path)
    t.match(((await response.json()) as { message: string }).message, said, path)
  }
  t.same(readdirSync(join(daemon.data, 'diffs/sides')), [], 'no file of a request stays')
})

t.test('one changed word of a text document is one changed line, and saving it again is none', async t => {
  const saved = new Date('2026-01-01T00:00:00Z')
  const texts = ['Offer for the roof', 'We finish within ten days.', 'Kind regards']
  const before = await textDocument(texts)
  const diff = await edited('offer.docx', before, await textDocument(texts.with(1, 'We finish within nine days.')))
  t.match(diff, { path: 'offer.docx', kind: 'document', same: false, before: { deriver: 'officeparser docx' } })
  t.same(changedLines(diff.unified), ['-We finish within ten days.', '+We finish within nine days.'])
  t.notOk('imagesChanged' in diff)
  const again = await edited('again.docx', before, await textDocument(texts, [], saved))
  t.match(again, { same: true })
  t.not(again.before!.hash, again.after!.hash)
  t.notOk('unified' in again)
  const added = await edited('gone.docx', before, before)
  t.match(added, { same: true })
  rmSync(join(workspace, 'gone.docx'))
  const gone = await unstaged('gone.docx')
  t.notOk('after' in gone)
  t.match(gone, { same: false, unified: /^-Kind regards$/m })
})

t.test('a changed formula shows, and where a sheet was cut is said', async t => {
  const row = (formula: string) => `<row r="1"><c r="B1"><f>${formula}</f><v>1</v></c></row>`
  const far = '<row r="2500"><c r="A2500"><v>9</v></c></row>'
  const diff = await edited('book.xlsx', await workbook(row('A1+1') + far), await workbook(row('A1*1+1') + far))
  t.match(diff, { kind: 'spreadsheet', before: { parts: 1, notes: exactly('sheet Data cut at row 2000') } })
  t.same(changedLines(diff.unified), ['-- B1: 1 =A1+1', '+- B1: 1 =A1*1+1'])
})

t.test('two slides that changed places are two moved sections', async t => {
  const slides = [
    { texts: ['First', 'alpha'], notes: 'say alpha' },
    { texts: ['Second', 'beta'], notes: 'say beta' },
  ]
  const diff = await edited('talk.pptx', await presentation(slides), await presentation(slides, [1, 0]))
  t.match(diff, { kind: 'presentation', same: false, before: { parts: 2 }, after: { parts: 2 } })
  const sections = (text = '') => text.split(/^---$/m).map(each => each.trim())
  t.same(sections(diff.before!.markdown).filter(Boolean), sections(diff.after!.markdown).filter(Boolean).reverse())
  t.match(diff.before!.markdown, /First\n\nalpha\n\n> \*\*Note:\*\* say alpha/)
})

t.test('a notebook that ran again without edits is the same', async t => {
  const notebook = (count: number, source = 'print(1)') =>
    JSON.stringify({
      metadata: { language_info: { name: 'python' } },
      cells: [
        { cell_type: 'code', execution_count: count, source, outputs: [{ text: '1\n', execution_count: count }] },
      ],
    })
  t.match(await edited('run.ipynb', notebook(1), notebook(7)), { kind: 'notebook', same: true, after: { parts: 1 } })
  const diff = await edited('edit.ipynb', notebook(1), notebook(1, 'print(2)'))
  t.same(changedLines(diff.unified), ['-print(1)', '+print(2)'])
})

t.test('a replaced picture in a document shows, and a PDF is compared by its text', async t => {
  const diff = await edited('pictures.docx', await textDocument(['A'], [PNG]), await textDocument(['A'], [OTHER_PNG]))
  t.match(diff, { imagesChanged: 1, same: false })
  t.match(changedLines(diff.unified), exactly(/^-.*\(image [0-9a-f]{12}\)$/, /^\+.*\(image [0-9a-f]{12}\)$/))
  const pdf = await edited('report.pdf', pdfOf('Sales grew'), pdfOf('Sales fell'))
  t.match(pdf, { kind: 'pdf', before: { parts: 1 } })
  t.same(changedLines(pdf.unified), ['-Sales grew', '+Sales fell'])
})

t.test('what a file is, its content says before its name', async t => {
  const word = await textDocument(['plain'])
  put(workspace, { 'word.bin': word, 'picture.docx': PNG, 'report.doc': pdfOf('not a .doc') })
  const pair = (before: string, after: string) => rendered({ source: 'files', before, after })
  t.match(await pair('word.bin', 'word.bin'), { kind: 'document', same: true })
  t.match(await pair('report.doc', 'report.doc'), { kind: 'pdf' })
  t.match(await refusalOf(() => pair('picture.docx', 'picture.docx')), { status: 422, message: /image/ })
  t.match(await pair('picture.docx', 'word.bin'), {
    kind: 'document',
    before: { failed: /no document/ },
    after: { markdown: 'plain' },
  })
})

t.test('staged, unstaged and conflicted sides are those that git and the disk hold', async t => {
  const at = join(workspace, 'sides')
  const [one, two, three] = await Promise.all(['one', 'two', 'three'].map(text => textDocument([text])))
  repoAt(at, { 'other.md': 'o\n' })
  put(at, { 'f.docx': one! })
  commitAll(at, 'one')
  put(at, { 'f.docx': two! })
  inGit(at, 'add', 'f.docx')
  put(at, { 'f.docx': three! })
  const bytes = async (side: 'staged' | 'unstaged' | 'conflicted', which: 'before' | 'after') => {
    const query = new URLSearchParams({ source: 'working', repo: 'sides', side, path: 'f.docx', which })
    const response = await daemon.fetch(`/diff/raw?${query}`)
    t.equal(response.status, 200, `${side} ${which}`)
    return Buffer.from(await response.arrayBuffer())
  }
  const shown = (name: string) => execFileSync('git', ['show', name], { cwd: at })
  t.ok((await bytes('staged', 'before')).equals(shown('HEAD:f.docx')))
  t.ok((await bytes('staged', 'after')).equals(shown(':0:f.docx')))
  t.ok((await bytes('unstaged', 'before')).equals(two!))
  t.ok((await bytes('unstaged', 'after')).equals(readFileSync(join(at, 'f.docx'))))
  const texts = async (side: 'staged' | 'unstaged' | 'conflicted') => {
    const { before, after } = await rendered({ source: 'working', repo: 'sides', side, path: 'f.docx' })
    return [before?.markdown, after?.markdown]
  }
  t.same(await texts('staged'), ['one', 'two'])
  t.same(await texts('unstaged'), ['two', 'three'])
  commitAll(at, 'three')
  inGit(at, 'checkout', '-q', '-b', 'theirs', 'HEAD~1')
  put(at, { 'f.docx': two! })
  commitAll(at, 'two')
  inGit(at, 'checkout', '-q', 'main')
  t.notOk(tryGit(at, 'merge', 'theirs').ok)
  t.ok((await bytes('conflicted', 'before')).equals(shown(':2:f.docx')))
  t.ok((await bytes('conflicted', 'after')).equals(shown(':3:f.docx')))
  t.same(await texts('conflicted'), ['three', 'two'])
  const { documents } = await client.call('GET /diff/documents', {
    source: 'working',
    repo: 'sides',
    side: 'conflicted',
  })
  t.match(documents, exactly({ path: 'f.docx', kind: 'document', before: true, after: true, cached: true }))
})

t.test('a commit, a rename and a saved point are compared by both sides', async t => {
  const at = join(workspace, 'commits')
  const before = await textDocument(['one', 'two', 'three', 'four', 'five'])
  repoAt(at, { 'README.md': 'r\n' })
  put(at, { 'old.docx': before, 'logo.png': PNG, 'code.ts': 'a\n', blob: Buffer.from([0, 1, 2]) })
  const first = commitAll(at, 'documents')
  inGit(at, 'mv', 'old.docx', 'new.docx')
  put(at, { 'logo.png': OTHER_PNG, 'code.ts': 'b\n', 'sheet.xlsx': await workbook('<row/>'), 'list.csv': 'a,b\n' })
  const sha = commitAll(at, 'renamed')
  const asked = { source: 'commit', repo: 'commits', sha } as const
  t.match(await client.call('GET /diff/documents', asked), {
    documents: exactly(
      { path: 'logo.png', kind: 'image', renderable: false, reason: /picture/, before: true, after: true },
      { path: 'new.docx', from: 'old.docx', kind: 'document', renderable: true, cached: false },
      { path: 'sheet.xlsx', kind: 'spreadsheet', before: false, after: true },
    ),
    hasMore: false,
  })
  const page = await client.call('GET /diff/documents', { ...asked, limit: 1, after: 'logo.png' })
  t.match(page, { documents: exactly({ path: 'new.docx' }), hasMore: true })
  const renamed = await rendered({ ...asked, path: 'new.docx', from: 'old.docx' })
  t.match(renamed, { path: 'new.docx', from: 'old.docx', same: true })
  t.match((await client.call('GET /diff/documents', asked)).documents[1], { path: 'new.docx', cached: true })
  t.match(await client.call('GET /diff/documents', { ...asked, sha: first }), {
    documents: exactly({ path: 'blob', kind: 'other' }, { path: 'logo.png' }, { path: 'old.docx', before: false }),
  })

  const { id } = await client.call('POST /history/snapshots', {})
  put(at, { 'new.docx': await textDocument(['one', 'two', '3', 'four', 'five']) })
  const point = { source: 'checkpoint', snapshot: id!, scope: 'commits', against: 'now' } as const
  const since = await rendered({ ...point, path: 'new.docx' })
  t.same(changedLines(since.unified), ['-three', '+3'])
  t.match((await client.call('GET /diff/documents', point)).documents, exactly({ path: 'new.docx', cached: true }))
  const logo = await daemon.fetch(
    `/diff/raw?${new URLSearchParams({ ...asked, path: 'logo.png', which: 'before' }).toString()}`,
  )
  t.ok(Buffer.from(await logo.arrayBuffer()).equals(PNG))
  t.equal(logo.headers.get('content-type'), 'image/png')
  t.equal(logo.headers.get('x-content-type-options'), 'nosniff')
  t.match(logo.headers.get('etag'), /^"[0-9a-f]{64}"$/)
})

t.test('active types are sandboxed, a side that is not there and one too large are refused', async t => {
  put(workspace, { 'page.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>', 'big.pdf': Buffer.alloc(26 * 1024 * 1024) })
  const raw = (path: string, which: string) =>
    daemon.fetch(`/diff/raw?source=working&repo=root&side=unstaged&path=${path}&which=${which}`)
  const page = await raw('page.svg', 'after')
  t.equal(page.headers.get('content-security-policy'), 'sandbox')
  await page.text()
  t.equal((await raw('page.svg', 'before')).status, 404)
  t.equal((await raw('big.pdf', 'after')).status, 413)
  t.equal(
    (await fetch(page.url, { method: 'HEAD', headers: { authorization: `Bearer ${daemon.session}` } })).status,
    200,
  )
  put(workspace, { 'huge.pdf': Buffer.alloc(51 * 1024 * 1024) })
  t.match(await unstaged('huge.pdf'), { after: { failed: /50 MiB/ }, same: false })
  rmSync(join(workspace, 'huge.pdf'))
  rmSync(join(workspace, 'big.pdf'))
})

t.test('people limited to areas compare files in their folders, and find nothing else', async t => {
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  put(workspace, { 'docs/in.docx': await textDocument(['in']), 'src/out.docx': await textDocument(['out']) })
  const ann = as('ann')
  const working = { source: 'working', repo: 'root', side: 'unstaged' } as const
  t.match((await ann.call('GET /diff/documents', working)).documents, exactly({ path: 'docs/in.docx' }))
  t.match(await ann.call('GET /diff/rendered', { ...working, path: 'docs/in.docx' }), { after: { markdown: 'in' } })
  for (const path of ['src/out.docx', 'docs/../src/out.docx', 'offer.docx'])
    t.match(await refusalOf(() => ann.call('GET /diff/rendered', { ...working, path })), {
      status: /\.\./.test(path) ? 400 : 404,
    })
  const files = { source: 'files', before: 'docs/in.docx', after: 'src/out.docx' } as const
  t.match(await refusalOf(() => ann.call('GET /diff/rendered', files)), { status: 404 })
})

t.test('damaged, encrypted and endless documents say why, and others are answered meanwhile', async t => {
  const bomb = zipBomb(
    {
      'xl/workbook.xml': '<workbook><sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets></workbook>',
      'xl/_rels/workbook.xml.rels':
        '<Relationships><Relationship Id="rId1" Target="worksheets/s0.xml"/></Relationships>',
    },
    ...[0, 1, 2, 3, 4].map(at => ({ name: `xl/worksheets/s${at}.xml`, bytes: 64 * 1024 * 1024 })),
  )
  const sheet = await workbook('<row r="1"><c r="A1"><v>1</v></c></row>')
  put(workspace, {
    'secret.docx': Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]),
    'cut.xlsx': sheet.subarray(0, 300),
    'bomb.xlsx': bomb,
    'endless.xlsx': zipBomb({ 'xl/workbook.xml': '<workbook/>' }, { name: 'xl/worksheets/s0.xml' }),
    'pointer.docx': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n',
  })
  const before = process.memoryUsage().rss
  const begun = performance.now()
  const answers = Promise.all(['secret.docx', 'cut.xlsx', 'bomb.xlsx', 'endless.xlsx', 'pointer.docx'].map(unstaged))
  const meanwhile = performance.now()
  t.match(await client.call('GET /git/{repo}/status', { repo: 'root' }), { branch: 'main' })
  t.ok(inTime(meanwhile, 5_000), 'another call is answered meanwhile')
  t.match(
    await answers,
    exactly(
      { after: { failed: /encrypted/ } },
      { after: { failed: /./ } },
      { after: { failed: /more than 256 MiB/ } },
      { after: { failed: 'xl/worksheets/s0.xml unpacks to more than 128 MiB' } },
      { after: { failed: /LFS/ } },
    ),
  )
  t.ok(inTime(begun, 60_000), 'all end within 60 s')
  t.ok(process.memoryUsage().rss - before < 300 * 1024 * 1024)
})

t.test('the older binary formats need LibreOffice, which is named where it is missing', async t => {
  const { renderers } = await client.call('GET /diff/documents', { source: 'working', repo: 'root', side: 'unstaged' })
  const word = renderers.find(({ format }) => format === 'doc')!
  put(workspace, { 'old.doc': Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]) })
  if (word.available) {
    t.notOk('needs' in word)
    return t.match(await unstaged('old.doc'), { after: { failed: /LibreOffice/ } })
  }
  t.equal(word.needs, 'LibreOffice')
  return t.match(await refusalOf(() => unstaged('old.doc')), { status: 501, message: /LibreOffice.*apt-get/ })
})

t.test('after a restart, sides that were rendered answer without a renderer', async t => {
  const folder = folderOf(t)
  const place = { workspace: join(folder, 'w'), data: join(folder, 'd') }
  repoAt(place.workspace, { 'README.md': 'r\n' })
  put(place.workspace, { 'a.docx': await textDocument(['one']) })
  commitAll(place.workspace, 'a')
  put(place.workspace, { 'a.docx': await textDocument(['two']) })
  const asked = { source: 'working', repo: 'root', side: 'unstaged', path: 'a.docx' } as const
  const open = () => daemonWith(t, ['git', ...GROUPS], place)
  const first = await open()
  const answer = await createClient({ url: first.url, session: first.session }).call('GET /diff/rendered', asked)
  await first.stop()
  // What is answered from the store shows what the store says.
  const kept = join(place.data, 'workspace/derived')
  for (const name of readdirSync(kept)) {
    const text = readFileSync(join(kept, name), 'utf8')
    writeFileSync(join(kept, name), text.replace('"markdown":"two"', '"markdown":"kept"'))
  }
  const second = await open()
  const again = createClient({ url: second.url, session: second.session })
  t.match(answer, { before: { markdown: 'one' }, after: { markdown: 'two' } })
  t.match(await again.call('GET /diff/rendered', asked), { before: { markdown: 'one' }, after: { markdown: 'kept' } })
})
