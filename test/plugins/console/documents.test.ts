import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { textDocument } from '../../support/documents/office.js'
import { runTurn } from '../../support/turns.js'

/** A picture of one pixel, and another one. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const OTHER = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

const notebook = (text: string): string =>
  JSON.stringify({
    ...{ nbformat: 4, nbformat_minor: 5, metadata: {} },
    cells: [{ cell_type: 'markdown', metadata: {}, source: [text] }],
  })

t.test('changed documents are compared as text', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace', 'git', 'history', 'diffs'])
  const at = (path: string) => join(daemon.workspace, path)
  const commit = (message: string) => {
    inGit(daemon.workspace, 'add', '-A')
    inGit(daemon.workspace, 'commit', '-q', '-m', message)
  }
  writeFileSync(at('offer.docx'), await textDocument(['ten days', 'same']))
  writeFileSync(at('next.docx'), await textDocument(['nine days', 'same']))
  writeFileSync(at('book.ipynb'), notebook('# One'))
  writeFileSync(at('dot.png'), Buffer.from(PIXEL, 'base64'))
  commit('documents')
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon)
  const { page } = tab
  const goTo = (place: string) => page.evaluate(`location.hash = ${JSON.stringify(place)}`)
  const shows = async (...words: string[]) => {
    for (const word of words) await page.locator('.cm-editor').getByText(word).first().waitFor()
  }

  await t.test('in the review of a conversation', async t => {
    await runTurn(daemon.client, 'c-1', 'run cp next.docx offer.docx', { isolated: true })
    await goTo('#/c/c-1/changes/root/offer.docx')
    await shows('ten days', 'nine days')
    t.same(await barriersOf(page), [])
  })

  await t.test('in the uncommitted work, with a broken one and pictures', async t => {
    writeFileSync(at('offer.docx'), await textDocument(['eight days', 'same']))
    writeFileSync(at('next.docx'), 'PK\u0003\u0004 cut\0off')
    writeFileSync(at('book.ipynb'), notebook('# Two'))
    writeFileSync(at('dot.png'), Buffer.from(OTHER, 'base64'))
    await goTo('#/git/root/changes/unstaged/offer.docx')
    await shows('ten days', 'eight days')
    await page.getByRole('link', { name: 'next.docx' }).click()
    await page.getByRole('list', { name: 'Notes about the document' }).getByText('cannot be read').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'book.ipynb' }).click()
    await shows('cell_type')
    await page.getByRole('button', { name: 'As a document' }).click()
    await page.locator('.cm-editor').getByText('cell_type').waitFor({ state: 'detached' })
    await shows('One', 'Two')
    await page.getByRole('link', { name: 'dot.png' }).click()
    for (const name of ['Before: dot.png', 'After: dot.png']) await page.getByRole('img', { name }).waitFor()
    t.same(await barriersOf(page), [])
  })

  await t.test('in a commit and a saved point, and of an added picture only what there is', async t => {
    writeFileSync(at('new.png'), Buffer.from(OTHER, 'base64'))
    commit('changed')
    const sha = inGit(daemon.workspace, 'rev-parse', 'HEAD').trim()
    await goTo(`#/git/root/log/${sha}/offer.docx`)
    await shows('ten days', 'eight days')
    await goTo(`#/git/root/log/${sha}/new.png`)
    await page.getByRole('img', { name: 'After: new.png' }).waitFor()
    t.equal(await page.getByRole('img').count(), 1)
    const { id } = await daemon.client.call('POST /history/snapshots', {})
    writeFileSync(at('offer.docx'), await textDocument(['seven days']))
    await goTo(`#/history/${id}/root/offer.docx`)
    await shows('eight days', 'seven days')
    t.same(await barriersOf(page), [])
  })

  await t.test('code in a transcript is coloured, and a picture that a tool gave is shown', async t => {
    const code = ['~~~ts', "const word = 'blue' // why", '~~~', '~~~nothing', 'plain <b>', '~~~']
    await runTurn(daemon.client, 'c-2', `image dot.png\nsay\n${code.map(line => `| ${line}`).join('\n')}`, {
      isolated: true,
    })
    await goTo('#/c/c-2')
    await page.locator('.tok-keyword').getByText('const').waitFor()
    await page.locator('.tok-comment').getByText('// why').waitFor()
    t.equal(await page.locator('pre.code').first().textContent(), code[1])
    t.equal(await page.locator('.tool-name').count(), 1, 'each call is shown once')
    await page.locator('.tool-name').click()
    await page.getByRole('img', { name: 'dot.png' }).waitFor()
    t.same(await barriersOf(page), [])
  })

  await endJourney(t, tab)
})
