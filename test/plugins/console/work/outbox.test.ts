import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { askPage, pathOfUrl } from '../../outbox/support.js'

t.test('the outbox in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'outbox', 'workspace'], {
    files: { 'report/index.html': '<h1>The report</h1>', 'report/.env': 'A=1', 'notes.txt': 'notes' },
  })
  const { client, workspace, url } = daemon
  const browser = await launchBrowser(t)
  const listed = async () => (await client.call('GET /public', {})).files

  await t.test('a folder is published, and withdrawn', async t => {
    const tab = await ownerTab(browser, daemon, '#/outbox')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByText('Files that are published from the workspace appear here.').waitFor()
    await page.getByRole('button', { name: 'Publish a file or folder' }).click()
    await dialog.getByLabel('Path in the workspace').fill('nothing')
    await dialog.getByRole('button', { name: 'Check' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Path in the workspace').fill('report')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Check' }).click()
    await dialog.getByText('.env: hidden file').waitFor()
    t.same(await barriersOf(page), [])
    writeFileSync(join(workspace, 'report/later.txt'), 'nobody saw it')
    await dialog.getByRole('button', { name: 'Publish' }).click()
    await dialog.getByText(/is not what was seen/).waitFor()
    rmSync(join(workspace, 'report/later.txt'))
    await dialog.getByRole('button', { name: 'Check' }).click()
    await dialog.getByText('.env: hidden file').waitFor()
    await dialog.getByRole('button', { name: 'Publish' }).click()
    const address = await dialog.getByRole('link').getAttribute('href')
    t.match((await askPage(url, pathOfUrl(address!))).body.toString(), /The report/)
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('from report/index.html').waitFor()
    mkdirSync(join(workspace, 'public/more'))
    writeFileSync(join(workspace, 'public/more/by-hand.txt'), '')
    await page.getByRole('button', { name: 'New address' }).click()
    await dialog.getByRole('button', { name: 'New address' }).click()
    await page.getByText('was not published, or was changed since').waitFor()
    t.equal((await askPage(url, pathOfUrl(address!))).status, 404)
    await page.getByRole('button', { name: 'Withdraw report/index.html' }).click()
    await dialog.getByText('Its address answers nobody from then on.').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Withdraw' }).click()
    await page.getByText('from report/index.html').waitFor({ state: 'detached' })
    t.match(await listed(), exactly({ path: 'more/by-hand.txt' }))
    await page.getByRole('button', { name: 'Delete more/by-hand.txt' }).click()
    await dialog.getByText('It goes into the trash').waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('was not published, or was changed since').waitFor({ state: 'detached' })
    t.match((await client.call('GET /workspace/trash', {})).items, exactly({ path: 'public/more/by-hand.txt' }))
    // The path of nothing, and files that changed.
    await endJourney(t, tab, /status of 40[49]/)
  })

  await t.test('a file is published from its place in the workspace', async t => {
    const tab = await ownerTab(browser, daemon, '#/files/open/notes.txt')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Publish notes.txt' }).click()
    await dialog.getByLabel('Name in the address').fill('our notes.txt')
    await dialog.getByRole('button', { name: 'Check' }).click()
    await dialog.getByText('as our notes.txt').waitFor()
    await dialog.getByRole('button', { name: 'Publish' }).click()
    await dialog.getByText('our notes.txt is published').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    t.match(await listed(), exactly({ path: 'our notes.txt', source: 'notes.txt' }))
    await endJourney(t, tab)
  })

  await t.test('a viewer sees what is public on a phone, and changes nothing', async t => {
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/outbox')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByText('our notes.txt', { exact: false }).first().waitFor()
    t.equal(await page.getByRole('button', { name: /Withdraw|Publish|New address/ }).count(), 0)
    await endJourney(t, tab)
  })
})
