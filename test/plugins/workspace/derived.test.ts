import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { convert } from 'officeparser'
import t from 'tap'
import { createClient } from '../../../sdk/client.js'
import { daemonWith } from '../../support/daemon.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inTime } from '../../support/in-time.js'
import { exactly } from '../../support/lists.js'
import { workbook } from '../../support/documents/office.js'
import { zipBomb } from '../../support/documents/zip-bomb.js'
import { workspaceWorld } from './support.js'
import { pdfOf } from '../../support/documents/pdf.js'

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

void t.test('derived text', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, { files: { 'docs/a.csv': 'x,y\n1,"a|b"\n', 'main.ts': 'x' } })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const derive = (path: string) => client.call('POST /workspace/derive', { path })
  const derived = (path: string) => client.call('GET /workspace/derived', { path })
  const put = (path: string, bytes: Buffer | string) => writeFileSync(join(workspace, path), bytes)

  await t.test('readers read, collaborators derive, each in their areas', async t => {
    t.equal((await fetch(`${daemon.url}/workspace/derived?path=docs/a.csv`)).status, 401)
    t.equal((await ask('vic', '/workspace/derive', 'POST', { path: 'docs/a.csv' })).status, 403)
    const read = await daemon.token('read')
    t.match(await refusalOf(() => read.client.call('POST /workspace/derive', { path: 'docs/a.csv' })), { status: 403 })
    t.match(await read.client.call('GET /workspace/derived', { path: 'docs/a.csv' }), {
      state: 'idle',
      derivable: true,
    })
    for (const [status, path] of [
      [400, '../x'],
      [404, 'gone.pdf'],
      [404, '.git/config'],
      [422, 'docs'],
    ] as const) {
      t.equal((await ask('mai', '/workspace/derive', 'POST', { path })).status, status, path)
      t.equal((await ask('mai', `/workspace/derived?path=${encodeURIComponent(path)}`)).status, status, path)
    }
    t.equal((await ask('ann', '/workspace/derive', 'POST', { path: 'main.ts' })).status, 404)
    t.match(await as('ann').call('POST /workspace/derive', { path: 'docs/a.csv' }), {
      state: 'idle',
      content: '| x | y |\n| --- | --- |\n| 1 | a\\|b |',
      deriver: 'csv',
      stale: false,
    })
    t.match(await derive('main.ts'), { state: 'idle', derivable: false, reason: /format/ })
  })

  await t.test('documents become markdown', async t => {
    const picture = `![pic](data:image/png;base64,${PICTURE})`
    const markdown = `# Title\n\nHello *world*.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n${picture}\n`
    for (const format of ['docx', 'odt', 'rtf'] as const) {
      const { value } = await convert(Buffer.from(markdown), format, {
        parseConfig: { fileType: 'md', extractAttachments: true },
      })
      put(`text.${format}`, Buffer.from(value as unknown as Uint8Array))
      const text = await derive(`text.${format}`)
      t.match(text, { state: 'idle', deriver: `officeparser ${format}`, notes: exactly('1 image') }, format)
      t.match(
        'content' in text && text.content,
        /^# Title\n\nHello \*world\*\.\n\n\| a \| b \|\n[\s\S]*\(image [0-9a-f]{12}\)$/,
      )
    }
    put('report.pdf', pdfOf('Quarterly sales grew'))
    t.match(await derive('report.pdf'), { state: 'idle', content: /Quarterly sales grew/ })
    put('report.txt.bin', readFileSync(join(workspace, 'report.pdf')))
    t.match(await derive('report.txt.bin'), { deriver: 'officeparser pdf' }, 'content decides before the name')
  })

  await t.test('a workbook shows addresses, values and formulas, and where it was cut', async t => {
    const rows = Array.from({ length: 2_500 }, (_, at) => `<row r="${at + 2}"><c r="A${at + 2}"><v>${at}</v></c></row>`)
    put(
      'book.xlsx',
      await workbook(
        `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1"><f>SUM(A2:A3)</f><v>1</v></c></row>${rows.join('')}`,
      ),
    )
    const book = await derive('book.xlsx')
    t.match(book, { deriver: 'xlsx', notes: exactly('sheet Data cut at row 2000') })
    t.match('content' in book && book.content, /^## Data\n\n- A1: Fish & chips \| B1: 1 =SUM\(A2:A3\)\n- A2: 0\n/)
  })

  await t.test('a notebook shows its cells and outputs without counts', async t => {
    const cells = (count: number) => ({
      metadata: { language_info: { name: 'python' } },
      cells: [
        { cell_type: 'markdown', source: ['# Study\n'] },
        {
          cell_type: 'code',
          execution_count: count,
          source: 'print(1)',
          outputs: [{ text: ['1\n'], execution_count: count }],
        },
      ],
    })
    put('n.ipynb', JSON.stringify(cells(1)))
    const first = await derive('n.ipynb')
    t.match(first, { content: '# Study\n\n\n```python\nprint(1)\n```\n\n```output\n1\n```' })
    put('n.ipynb', JSON.stringify(cells(9)))
    t.match(await derived('n.ipynb'), { stale: true, content: 'content' in first && first.content })
    t.match(await derive('n.ipynb'), { stale: false, content: 'content' in first && first.content })
  })

  await t.test('an unreadable document says why, and other calls answer meanwhile', async t => {
    put('cut.xlsx', (await workbook('<row/>')).subarray(0, 300))
    put('secret.docx', Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]))
    put('bad.ipynb', '{')
    for (const [path, reason] of [
      ['cut.xlsx', /./],
      ['secret.docx', /encrypted/],
      ['bad.ipynb', /JSON/],
    ] as const) {
      t.match(await derive(path), { state: 'broken', path, derivable: true, reason })
      t.match(await derived(path), { state: 'broken', reason })
    }
  })

  await t.test('a part of 4 GB is refused in bounded time and memory, whatever size it claims', async t => {
    const book = {
      'xl/workbook.xml': '<workbook><sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets></workbook>',
      'xl/_rels/workbook.xml.rels':
        '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>',
    }
    const bombs = {
      'bomb.xlsx': zipBomb(book, { name: 'xl/worksheets/sheet1.xml' }),
      'lying.xlsx': zipBomb(book, { name: 'xl/worksheets/sheet1.xml', claimed: 1000 }),
      'lying.docx': zipBomb({ '[Content_Types].xml': '<Types/>' }, { name: 'word/document.xml', claimed: 1000 }),
      'bomb.pptx': zipBomb({ 'ppt/presentation.xml': '<p/>' }, { name: 'ppt/slides/slide1.xml' }),
      'bomb.odt': zipBomb({ mimetype: 'application/vnd.oasis.opendocument.text' }, { name: 'content.xml' }),
    }
    for (const [path, bytes] of Object.entries(bombs)) put(path, bytes)
    const before = process.memoryUsage().rss
    const begun = performance.now()
    const answers = Promise.all(Object.keys(bombs).map(derive))
    const meanwhile = performance.now()
    t.ok((await client.call('GET /workspace/tree', {})).tree.length > 0)
    t.ok(inTime(meanwhile, 5_000), 'another call is answered meanwhile')
    t.match(
      await answers,
      exactly(
        { state: 'broken', reason: 'xl/worksheets/sheet1.xml unpacks to more than 128 MiB' },
        { state: 'broken', reason: /expected 1000/ },
        { state: 'broken', reason: /size limit exceeded/ },
        { state: 'broken', reason: /size limit exceeded/ },
        { state: 'broken', reason: /size limit exceeded/ },
      ),
    )
    t.ok(inTime(begun, 60_000), 'all end within 60 s')
    t.ok(process.memoryUsage().rss - before < 300 * 1024 * 1024)
    for (const path of Object.keys(bombs)) rmSync(join(workspace, path))
  })

  await t.test('a text is kept over a restart', async t => {
    const again = await daemonWith(t, ['workspace'], { workspace, data: daemon.data + '-2' })
    const owner = createClient({ url: again.url, session: again.session })
    const first = await owner.call('POST /workspace/derive', { path: 'docs/a.csv' })
    await again.stop()
    const third = await daemonWith(t, ['workspace'], { workspace, data: daemon.data + '-2' })
    t.same(await third.client.call('GET /workspace/derived', { path: 'docs/a.csv' }), first)
  })
})
