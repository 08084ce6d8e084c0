import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator } from 'playwright-core'
import t from 'tap'
import { plainSha256 } from '../../../plugins/console/web/data/hash.js'
import { rowsOfTree } from '../../../plugins/console/web/data/files/tree-rows.js'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { inTime } from '../../support/in-time.js'
import { pdfOf } from '../../support/documents/pdf.js'

t.test('the hash of pages over plain HTTP is SHA-256', async t => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 70_001]) {
    const bytes = new Uint8Array(length).map((_, at) => (at * 7 + length) & 255)
    t.equal(plainSha256(bytes), createHash('sha256').update(bytes).digest('hex'), `${length} bytes`)
  }
})

t.test('the rows of a tree are the entries of opened folders, with placeholders for unread ones', async t => {
  const dir = { name: 'a', path: 'a', type: 'dir' } as const
  const file = { name: 'b', path: 'a/b', type: 'file' } as const
  const folders = new Map([
    ['.', { entries: [dir], hidden: 3 }],
    ['a', { entries: [file], hidden: 0 }],
  ])
  const shapes = (opened: string[]) => rowsOfTree(folders, new Set(opened)).map(row => `${row.kind} ${row.level}`)
  t.same(shapes(['.']), ['entry 0', 'more 0'])
  t.same(shapes(['.', 'a']), ['entry 0', 'entry 1', 'more 0'])
  t.same(
    rowsOfTree(new Map([['.', { entries: [dir], hidden: 0 }]]), new Set(['.', 'a'])).map(({ kind }) => kind),
    ['entry', 'reading'],
  )
})

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The editor's text is in a shadow root, which locators look into. */
const EDITOR = '.cm-content'

t.test('files in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace', 'git', 'history'], {
    files: {
      'README.md': '# work\n',
      'src/main.ts': 'export const answer = 42\n',
      'src/other.ts': "import { answer } from './main.js'\nconsole.log(answer)\n",
      'src/windows.txt': 'one\r\ntwo\r\n',
      'docs/table.csv': 'x,y\n1,2\n',
      'web/page.txt': 'a page\n',
    },
  })
  const { workspace } = daemon
  const at = (path: string) => join(workspace, path)
  const read = (path: string) => readFileSync(at(path), 'utf8')
  const browser = await launchBrowser(t)

  await t.test('folders open one by one, and changes of others show as they happen', async t => {
    const tab = await ownerTab(browser, daemon, '#/files')
    const { page } = tab
    await page.getByRole('button', { name: 'src', exact: true }).click()
    await page.getByRole('link', { name: 'main.ts' }).waitFor()
    t.same(await barriersOf(page), [])
    writeFileSync(at('src/fresh.ts'), 'new\n')
    await page.getByRole('link', { name: 'fresh.ts' }).waitFor()
    rmSync(at('src/fresh.ts'))
    await page.getByRole('link', { name: 'fresh.ts' }).waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('link', { name: 'main.ts' }).waitFor()
    await page.getByRole('button', { name: 'src', exact: true }).focus()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'src/main.ts' }).waitFor()
    await endJourney(t, tab)
  })

  await t.test('a file is written and saved, and unsaved text survives a reload', async t => {
    const tab = await ownerTab(browser, daemon, '#/files/open/src%2Fmain.ts')
    const { page } = tab
    await page.locator(EDITOR).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('// jk written')
    await page.getByText('Not saved; the text is kept').waitFor()
    t.same(await barriersOf(page), [])
    await page.reload()
    await page.locator(EDITOR).getByText('// jk written').waitFor()
    t.equal(read('src/main.ts'), 'export const answer = 42\n')
    await page.locator(EDITOR).click()
    await page.keyboard.press('Control+s')
    await page.getByText('Saved.').waitFor()
    t.equal(read('src/main.ts'), 'export const answer = 42\n// jk written')
    await page.evaluate(`location.hash = '#/files/open/src%2Fwindows.txt'`)
    await page.getByRole('heading', { name: 'src/windows.txt' }).waitFor()
    await page.locator(EDITOR).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('three\n')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    t.equal(read('src/windows.txt'), 'one\r\ntwo\r\nthree\r\n', 'line ends stay as they were')
    await endJourney(t, tab)
  })

  await t.test('a file that changed meanwhile is not overwritten unseen', async t => {
    const tab = await ownerTab(browser, daemon, '#/files/open/src%2Fother.ts')
    const { page } = tab
    await page.locator(EDITOR).click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.type('// mine\n')
    await page.getByText('Not saved; the text is kept').waitFor()
    writeFileSync(at('src/other.ts'), '// theirs\n')
    await page.getByText('This file changed since you began').waitFor()
    await page.getByRole('button', { name: 'Show both' }).click()
    await page.getByText('// theirs').waitFor()
    await page.locator('.cm-insertedLine, .cm-changedLine').getByText('// mine').first().waitFor()
    t.same(await barriersOf(page), [])
    t.equal(read('src/other.ts'), '// theirs\n')
    await page.getByRole('button', { name: 'Keep mine' }).click()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    t.match(read('src/other.ts'), /^\/\/ mine\n/)
    // A change that nobody reported yet is found by the hash.
    await page.locator(EDITOR).click()
    await page.route('**/events*', route => route.abort())
    await page.keyboard.type('// again\n')
    writeFileSync(at('src/other.ts'), '// theirs again\n')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('This file changed since you began').waitFor()
    await page.getByRole('button', { name: 'Take the one on disk' }).click()
    await page.locator(EDITOR).getByText('// theirs again').waitFor()
    t.equal(read('src/other.ts'), '// theirs again\n')
    // Expected: the refusal.
    await endJourney(t, tab, /409|ERR_/)
  })

  await t.test('files are found by words, names and symbols', async t => {
    const tab = await ownerTab(browser, daemon, '#/files')
    const { page } = tab
    await page.getByRole('button', { name: 'docs', exact: true }).waitFor()
    await page.keyboard.press('/')
    await page.locator('[data-key=search]:focus').waitFor()
    await page.keyboard.type('answer')
    await page.getByRole('link', { name: 'src/main.ts', exact: true }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByLabel('Look for').selectOption('files')
    await page.getByLabel('Search files').fill('table')
    await page.getByRole('link', { name: 'docs/table.csv' }).waitFor()
    await page.getByLabel('Look for').selectOption('find')
    await page.getByLabel('Search files').fill('answer = \\d+')
    await page.getByRole('link', { name: /answer = 42/ }).click()
    await page.getByRole('heading', { name: 'src/main.ts' }).waitFor()
    await page.getByLabel('Look for').selectOption('ast')
    await page.getByLabel('Search files').fill('][')
    await page.getByRole('alert').or(page.getByText('Nothing was found')).first().waitFor()
    await page.getByLabel('Search files').fill('')
    for (let n = 0; n < 150; n++) writeFileSync(at(`docs/many-${n}.txt`), 'needle\n')
    await page.getByLabel('Search files').fill('needle')
    await page.getByLabel('Look for').selectOption('find')
    await page.getByText('150 in 150 files').waitFor()
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' })
    t.equal(await page.locator('.found [role=listitem]').first().getAttribute('aria-setsize'), '300')
    for (let n = 0; n < 150; n++) rmSync(at(`docs/many-${n}.txt`))
    await endJourney(t, tab, /422/)
  })

  await t.test('pictures, sounds and documents are shown', async t => {
    writeFileSync(at('docs/dot.png'), Buffer.from(PICTURE, 'base64'))
    writeFileSync(at('docs/paper.pdf'), pdfOf('Words of the paper'))
    writeFileSync(at('docs/tone.wav'), toneOf())
    writeFileSync(at('docs/data.bin'), Buffer.from([0, 1, 2, 255]))
    const tab = await ownerTab(browser, daemon, '#/files/open/docs%2Fdot.png')
    const { page } = tab
    await page.getByRole('img', { name: 'docs/dot.png' }).waitFor()
    await until(() => page.evaluate('document.querySelector("main img").naturalWidth === 1'))
    await page.evaluate(`location.hash = '#/files/open/docs%2Fpaper.pdf'`)
    await page.getByText('Words of the paper').waitFor()
    t.same(await barriersOf(page), [])
    await page.evaluate(`location.hash = '#/files/open/docs%2Ftone.wav'`)
    await page.locator('audio').waitFor()
    await until(() => page.evaluate('document.querySelector("audio").duration > 0.4'))
    await page.evaluate(`location.hash = '#/files/open/docs%2Ftable.csv'`)
    await page.getByRole('button', { name: 'As a document' }).click()
    await page.getByRole('columnheader', { name: 'x' }).waitFor()
    await page.evaluate(`location.hash = '#/files/open/docs%2Fdata.bin'`)
    await page.getByText('A binary file of 4 B').waitFor()
    await page.evaluate(`location.hash = '#/files/open/a%2Fb%2Fsrc%2Fmain.ts'`)
    await page.getByText('There is no such file.').waitFor()
    await page.getByRole('link', { name: 'src/main.ts' }).first().waitFor()
    await endJourney(t, tab)
  })

  await t.test('files are made, uploaded, downloaded, moved, copied, deleted and put back', async t => {
    const tab = await ownerTab(browser, daemon, '#/files/open/docs')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'New file' }).click()
    await dialog.getByLabel('Name').fill('table.csv')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('alert').waitFor()
    t.equal(await dialog.getByLabel('Name').inputValue(), 'table.csv')
    await dialog.getByLabel('Name').fill('deep/note.md')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'docs/deep/note.md' }).waitFor()
    await page.locator(EDITOR).click()
    await page.keyboard.type('# Title')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByRole('heading', { name: 'Title' }).waitFor()
    await page.keyboard.press('Control+s')
    await page.getByText('Saved.').waitFor()
    await page.getByRole('button', { name: 'Move note.md' }).click()
    await dialog.getByLabel('New path').fill('docs/deep/moved.md')
    await dialog.getByRole('button', { name: 'Move' }).click()
    await page.getByRole('heading', { name: 'docs/deep/moved.md' }).waitFor()
    t.equal(read('docs/deep/moved.md'), '# Title')
    await page.getByRole('button', { name: 'Copy moved.md' }).click()
    await dialog.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('heading', { name: 'docs/deep/copy-of-moved.md', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Copy copy-of-moved.md' }).click()
    await dialog.getByLabel('New path').fill('docs/deep/moved.md')
    await dialog.getByLabel('Replace a file').check()
    await until(() => dialog.getByRole('button', { name: 'Copy' }).isEnabled())
    writeFileSync(at('docs/deep/moved.md'), 'words of somebody else')
    await dialog.getByRole('button', { name: 'Copy' }).click()
    await dialog.getByText('is not what was seen').waitFor()
    t.equal(read('docs/deep/moved.md'), 'words of somebody else', 'what was written meanwhile is not replaced')
    writeFileSync(at('docs/deep/moved.md'), '# Title')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Delete copy-of-moved.md' }).click()
    await dialog.getByText('1 file, 7 B.').waitFor()
    writeFileSync(at('docs/deep/copy-of-moved.md'), '# Title')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByText('is not what was seen').waitFor()
    t.ok(existsSync(at('docs/deep/copy-of-moved.md')), 'what was written meanwhile is not deleted')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'deep', exact: true }).waitFor()
    t.notOk(existsSync(at('docs/deep/copy-of-moved.md')))
    await page.getByRole('link', { name: 'Trash' }).click()
    await page.getByText('docs/deep/copy-of-moved.md').first().waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Put back docs/deep/copy-of-moved.md' }).click()
    await dialog.getByRole('button', { name: 'Put back' }).click()
    await page.getByRole('heading', { name: 'docs/deep/copy-of-moved.md', exact: true }).waitFor()
    t.equal(read('docs/deep/copy-of-moved.md'), '# Title')

    await page.evaluate(`location.hash = '#/files/open/docs'`)
    await page.getByRole('button', { name: 'Upload files' }).waitFor()
    const large = Buffer.alloc(9 * 1024 * 1024, 'sandbox ')
    const sent = { name: 'large.dat', mimeType: 'application/octet-stream', buffer: large }
    let parts = 0
    await page.route('**/workspace/upload', async route => {
      parts += 1
      // The answer of one part is lost: the upload asks how far it is, and goes on from there.
      if (parts === 3) await route.abort()
      else await route.continue()
    })
    await page.getByLabel('Files to upload').setInputFiles([sent])
    await until(() => existsSync(at('docs/large.dat')))
    t.ok(readFileSync(at('docs/large.dat')).equals(large))
    t.ok(parts > 4, `${parts} requests`)
    await page.getByLabel('Files to upload').setInputFiles([{ ...sent, buffer: Buffer.from('other') }])
    await page.getByRole('alert').waitFor()
    t.equal(readFileSync(at('docs/large.dat')).length, large.length, 'nothing is replaced unless asked')
    await page.getByRole('button', { name: 'Dismiss docs/large.dat' }).click()
    t.same(await barriersOf(page), [])

    const asZip = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download docs' }).click()
    await dialog.getByRole('button', { name: 'Download' }).click()
    const zip = readFileSync((await (await asZip).path())!)
    t.ok(zip.includes('table.csv'))
    writeFileSync(at('docs/all.zip'), zip)
    await page.evaluate(`location.hash = '#/files/open/docs%2Fall.zip'`)
    await page.getByRole('button', { name: 'Unpack all.zip' }).click()
    await dialog.getByLabel('Into the folder').fill('unpacked')
    await dialog.getByRole('button', { name: 'Unpack' }).click()
    await page.getByRole('heading', { name: 'unpacked' }).waitFor()
    t.ok(readdirSync(at('unpacked')).length > 0)
    await page.evaluate(`location.hash = '#/files/open/docs%2Fdeep%2Fmoved.md'`)
    const one = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download', exact: true }).click()
    t.equal(readFileSync((await (await one).path())!, 'utf8'), '# Title')
    // Expected: refusals, the part that was cut, and a file that was read while it moved.
    await endJourney(t, tab, /40[49]|ERR_FAILED/)
  })

  await t.test('files that are dropped are uploaded', async t => {
    const tab = await ownerTab(browser, daemon, '#/files/open/web')
    const { page } = tab
    await page.getByText('Drop files and folders here').waitFor()
    await page.evaluate(`{
      const transfer = new DataTransfer()
      transfer.items.add(new File(['dropped'], 'dropped.txt'))
      const box = document.querySelector('.drop-box')
      box.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true }))
    }`)
    await until(() => existsSync(at('web/dropped.txt')))
    t.equal(read('web/dropped.txt'), 'dropped')
    await endJourney(t, tab)
  })

  await t.test('a folder of 20,000 files opens with few elements, and its end is reached', async t => {
    mkdirSync(at('.made'))
    for (let n = 0; n < 20_000; n++) writeFileSync(at(`.made/f${String(n).padStart(6, '0')}.txt`), '')
    renameSync(at('.made'), at('many'))
    const tab = await ownerTab(browser, daemon, '#/files')
    const { page } = tab
    await page.getByRole('button', { name: 'many', exact: true }).click()
    await page.getByRole('link', { name: 'f000000.txt' }).waitFor()
    await until(async () => {
      await page.evaluate('document.querySelector(".tree").scrollTop = 1e9')
      return (await page.getByRole('link', { name: 'f019999.txt' }).count()) > 0
    })
    t.ok(Number(await page.evaluate('document.querySelectorAll("*").length')) < 1_500)
    await endJourney(t, tab)
    rmSync(at('many'), { recursive: true })
  })

  await t.test('an area that somebody takes away takes its files and conversations away within a second', async t => {
    for (const id of ['web', 'src']) await daemon.client.call('POST /areas', { id, label: id, folders: [id] })
    const tab = await guestTab(browser, daemon, { role: 'collaborator', areas: ['web', 'src'] }, '#/files')
    const { page } = tab
    const { members } = await daemon.client.call('GET /members')
    const { email } = members.find(({ role }) => role === 'collaborator')!
    /** Limits the person to these areas, and waits for what is gone then. */
    const limited = async (areas: string[], gone?: Locator): Promise<void> => {
      const began = performance.now()
      await daemon.client.call('POST /members', { email, role: 'collaborator', areas })
      if (gone) await gone.waitFor({ state: 'detached' })
      t.ok(inTime(began, 1_000), 'within a second')
    }
    const folder = page.getByRole('button', { name: 'src', exact: true })
    await folder.waitFor()
    await folder.click()
    await page.getByRole('link', { name: 'main.ts' }).click()
    await page.locator(EDITOR).getByText('answer').waitFor()
    await limited(['web'], folder)
    await page.locator(EDITOR).getByText('answer').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'web', exact: true }).waitFor()
    await limited(['web', 'src'])
    await folder.waitFor()
    await goTo(page, '#/new')
    await page.getByLabel('What should the agent do?').fill('say hello')
    await page.getByText('More', { exact: true }).last().click()
    await page.getByLabel('Start folder').fill('src')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('hello', { exact: true }).waitFor()
    await goTo(page, '#/fleet')
    const conversation = page.getByRole('link', { name: /^say hello/ })
    await conversation.waitFor()
    await limited(['web'], conversation)
    await limited(['web', 'src'])
    await conversation.click()
    await page.getByText('hello', { exact: true }).waitFor()
    await limited(['web'], page.getByText('hello', { exact: true }))
    await goTo(page, '#/fleet')
    await page.getByText('No conversations yet').waitFor()
    await endJourney(t, tab, /40[34]|ERR_INCOMPLETE_CHUNKED_ENCODING/)
    await page.context().close()
    await daemon.client.call('DELETE /members', { email })
    for (const id of ['web', 'src']) await daemon.client.call('DELETE /areas/{id}', { id })
  })

  await t.test('a viewer of an area sees its files alone and nothing to change them with', async t => {
    await daemon.client.call('POST /areas', { id: 'web', label: 'Web', folders: ['web'] })
    const tab = await guestTab(browser, daemon, { role: 'viewer', areas: ['web'] }, '#/files')
    const { page } = tab
    await page.getByRole('button', { name: 'web', exact: true }).click()
    await page.getByRole('link', { name: 'page.txt' }).click()
    await page.locator(EDITOR).getByText('a page').waitFor()
    t.equal(await page.getByRole('button', { name: 'src', exact: true }).count(), 0)
    for (const name of ['Save', 'New file', 'Upload files', 'Move page.txt', 'Delete page.txt'])
      t.equal(await page.getByRole('button', { name }).count(), 0, name)
    await page.locator(EDITOR).click()
    await page.keyboard.type('x')
    t.equal((await page.locator(EDITOR).innerText()).trim(), 'a page')
    await page.setViewportSize({ width: 390, height: 844 })
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'Back to the files' }).click()
    await page.getByRole('link', { name: 'page.txt' }).waitFor()
    await endJourney(t, tab)
  })
})

/** Half a second of a tone, as WAV. */
const toneOf = (): Buffer => {
  const samples = 4_000
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + samples, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(8_000, 24)
  head.writeUInt32LE(8_000, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(samples, 40)
  return Buffer.concat([head, Buffer.from(Array.from({ length: samples }, (_, at) => 128 + 100 * Math.sin(at / 3)))])
}
