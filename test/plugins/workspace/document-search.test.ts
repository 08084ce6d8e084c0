import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ExtensionReading } from '../../../plugins/workspace/derived/read-by-extension.js'
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
