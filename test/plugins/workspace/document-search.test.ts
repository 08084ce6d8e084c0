import { existsSync, mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DerivedStore } from '../../../plugins/workspace/derived/derived-store.js'
import { DocumentTexts } from '../../../plugins/workspace/derived/document-texts.js'
import { ExtensionReading } from '../../../plugins/workspace/derived/read-by-extension.js'
import { renderCalls } from '../../../plugins/workspace/derived/rendering.js'
import { documentSearch } from '../../../plugins/workspace/search/document-search.js'
import { until } from '../../support/browser/browser.js'
import { workbook } from '../../support/documents/office.js'
import { pdfOf } from '../../support/documents/pdf.js'
import { exactly } from '../../support/lists.js'
import { workspaceWorld } from './support.js'

t.test('search finds what documents say, each in their areas', async t => {
  const { daemon, as } = await workspaceWorld(t, { files: { 'docs/a.md': 'plain words\n', 'b.md': 'other words\n' } })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const put = (path: string, bytes: Buffer | string) => writeFileSync(join(workspace, path), bytes)
  const found = async (query: string, by = client, mode: 'q' | 'find' = 'find') =>
    by.call('GET /workspace/search', { query, mode })
  const paths = async (query: string, by = client) => (await found(query, by)).groups.map(({ path }) => path).sort()
  put('docs/inner.pdf', pdfOf('Quarterly sales grew'))
  put('outer.pdf', pdfOf('Quarterly sales fell'))
  const sheet = (value: number) => workbook(`<row r="1"><c r="A1"><v>${value}</v></c></row>`)
  put('docs/inner.xlsx', await sheet(471101))
  put('outer.xlsx', await sheet(471102))
  put('damaged.pdf', Buffer.from('%PDF-1.7\nquarterly'))

  await t.test('documents that are new are read in the background, and a damaged one is not waited for', async t => {
    await until(async () => (await found('quarterly sales')).note === undefined)
    t.same(await paths('quarterly sales'), ['docs/inner.pdf', 'outer.pdf'])
    t.same(await paths('47110'), ['docs/inner.xlsx', 'outer.xlsx'])
    await until(async () => !(await found('sales fell', client, 'q')).partial)
    const { groups } = await found('sales fell', client, 'q')
    t.match(groups[0], {
      path: 'outer.pdf',
      hits: exactly({ line: 3, context: 'text of the document', text: /^Quarterly sales fell/ }),
    })
  })

  await t.test('a question without a word finds nothing', async t => {
    t.same((await found('???', client, 'q')).groups, [])
  })

  await t.test('nobody finds documents outside of their areas', async t => {
    t.same(await paths('quarterly sales', as('ann')), ['docs/inner.pdf'])
    t.same(await paths('47110', as('ann')), ['docs/inner.xlsx'])
    t.same(await paths('471102', as('ann')), [])
    t.same((await found('quarterly sales', as('ann'))).note, undefined)
  })

  await t.test('a document that is gone or changed is found as it is now', async t => {
    put('outer.pdf', pdfOf('Nothing of it'))
    await until(async () => (await paths('Nothing of it')).length === 1)
    t.same(await paths('quarterly sales'), ['docs/inner.pdf'])
  })
})

t.test('bytes that a killed daemon left for an extension are gone at the next start', t => {
  const folder = t.testdir({})
  const given = join(folder, 'given')
  mkdirSync(given)
  writeFileSync(join(given, 'left'), 'of a file')
  t.type(new ExtensionReading({ place: { folder } } as never), ExtensionReading)
  t.notOk(existsSync(join(given, 'left')))
  t.end()
})

t.test('the texts of documents are searched like others: late ones are left out, and any capitals find', async t => {
  const folder = t.testdir({ workspace: {}, data: { texts: { 'a.md': 'a strange word\n' } } })
  const place = { workspace: join(folder, 'workspace'), data: join(folder, 'data'), hidden: [], grants: [] } as never
  const texts = {
    folder: join(folder, 'data/texts'),
    endings: async () => new Set(['pdf']),
    of: async () => ({ texts: [{ path: 'a.pdf', file: 'a.md' }], waiting: 0 }),
  }
  const tree = { root: join(folder, 'workspace'), reach: undefined, readsGit: false }
  const found = (signal: AbortSignal, query = 'strange') =>
    documentSearch({ place, tree, signal }, texts, ['a.pdf'], {
      ...{ query, literal: false, word: false, caseSensitive: false, all: [query] },
    })
  const never = new AbortController().signal
  const [file] = (await found(never)).files
  t.match(file, { path: 'a.pdf', count: 1 })
  t.match((await found(never, 'ſtrange')).files, exactly({ score: file!.score }), 'a long s')
  const late = AbortSignal.abort(new DOMException('it took too long', 'TimeoutError'))
  t.match(await found(late), { files: exactly(), partial: true })
  await t.rejects(found(AbortSignal.abort(new Error('nobody waits'))), { message: /nobody waits/ })
})

t.test('a search goes on where the disk is too full for the text of a document', async t => {
  const root = t.testdir({ 'a.pdf': '%PDF-1.7' })
  const texts = new DocumentTexts(
    { place: { workspace: root }, signal: new AbortController().signal } as never,
    {
      store: { folder: root, textFile: async () => Promise.reject(new Error('ENOSPC')) },
      readers: { types: async () => [] },
    } as never,
  )
  await texts.of(root, ['a.pdf'], 5_000)
  t.same(await texts.of(root, ['a.pdf'], 5_000), { texts: [], waiting: 1 })
})

t.test('a document counts as waiting until it is read', async t => {
  const root = t.testdir({ 'a.pdf': '%PDF-1.7' })
  const { promise, resolve } = Promise.withResolvers<object>()
  let [asked, kept] = [0, undefined as string | undefined]
  const texts = new DocumentTexts(
    { place: { workspace: root }, signal: new AbortController().signal } as never,
    {
      store: { folder: root, textFile: async () => kept },
      deriver: { derive: () => (asked++, promise) },
      readers: { types: async () => [] },
    } as never,
  )
  const waiting = async () => (await texts.of(root, ['a.pdf'], 0)).waiting
  t.equal(await waiting(), 1)
  await until(async () => asked === 1)
  t.equal(await waiting(), 1, 'while it is read')
  kept = 'failed'
  resolve({ derivation: { failed: 'it is damaged' } })
  t.equal(await waiting(), 0)
})

t.test('a text that searches use is used', async t => {
  const store = new DerivedStore(t.testdir({}))
  const derivation = { markdown: 'text', notes: [], truncated: false }
  await store.put('key', { deriver: 'none', derivedAt: 0, derivation })
  const file = join(store.folder, (await store.textFile('key'))!)
  utimesSync(file, 1, 1)
  await store.textFile('key')
  t.ok(statSync(file).mtimeMs > 1_000_000)
})

t.test('pictures stay pictures, whatever extensions derive of them', async t => {
  const types = ['svg', 'png', 'plan'].map(ending => ({
    ...{ ending, extension: 'a.b', document: 'd', label: 'D', revision: '1' },
  }))
  const calls = renderCalls({} as never, { readers: { types: async () => types } } as never)
  const named = ['a.svg', 'a.png', 'a.plan', 'a.docx'].map(name => ({ name, blobs: [] }))
  const { files } = await calls['workspace.documents']({ files: named }, {} as never)
  t.same(
    files.map(({ kind, binary }) => [kind, binary]),
    [
      ['image', undefined],
      ['image', undefined],
      ['document', true],
      ['document', undefined],
    ],
  )
})
