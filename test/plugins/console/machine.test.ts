import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'

t.test('the machine and the settings in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'endpoints', 'capabilities', 'providers'])
  const browser = await launchBrowser(t)

  await t.test('a backup is made, downloaded, checked and deleted', async t => {
    const tab = await ownerTab(browser, daemon, '#/machine')
    const { page } = tab
    await page.getByRole('meter', { name: 'Memory' }).waitFor()
    await page.getByText('Backups of this sandbox appear here').waitFor()
    await page.getByRole('button', { name: 'Make a backup' }).click()
    const dialog = page.getByRole('dialog')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Make' }).click()
    const button = page.getByRole('button', { name: /^Download/ })
    await button.waitFor()
    t.same(await barriersOf(page), [])
    const downloading = page.waitForEvent('download')
    await button.click()
    const download = await downloading
    const bytes = readFileSync(await download.path())
    t.equal(bytes.readUInt16BE(0), 0x1f8b, 'a gzip file')
    writeFileSync(join(daemon.workspace, 'backup.tar.gz'), bytes)
    await page.getByRole('button', { name: 'Restore a backup' }).click()
    await dialog.getByLabel('Path in the workspace').fill('backup.tar.gz')
    await dialog.getByRole('button', { name: 'Check' }).click()
    await dialog.getByText('It replaces the workspace').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: /^Delete/ }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Backups of this sandbox appear here').waitFor()
    await endJourney(t, tab)
  })

  await t.test('a configuration file that cannot be honoured is named', async t => {
    mkdirSync(join(daemon.workspace, '.sandbox', 'config'), { recursive: true })
    writeFileSync(join(daemon.workspace, '.sandbox', 'config', 'settings.json'), '{"agentRetentionDay": 3}')
    const tab = await ownerTab(browser, daemon, '#/machine')
    await tab.page.getByText('Did you mean agentRetentionDays?').waitFor()
    await endJourney(t, tab)
    writeFileSync(join(daemon.workspace, '.sandbox', 'config', 'settings.json'), '{}')
  })

  await t.test('settings are saved, refused with the reason, and a change by somebody else is seen', async t => {
    const tab = await ownerTab(browser, daemon, '#/settings')
    const { page } = tab
    const days = page.getByLabel('Archive finished conversations')
    await days.fill('9')
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved. Turns').waitFor()
    t.equal((await daemon.client.call('GET /settings')).agentRetentionDays, 9)
    await days.fill('12')
    await daemon.client.call('POST /settings/patch', { set: { agentRetentionDays: 30 } })
    await page.getByText('Somebody else set this to “30” meanwhile.').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Take theirs' }).click()
    t.equal(await days.inputValue(), '30')
    await endJourney(t, tab)
    await page.getByLabel('Also reachable').fill('not a host')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('alert').waitFor()
    t.equal(await page.getByLabel('Also reachable').inputValue(), 'not a host')
  })

  await t.test('before the model of search is saved, the page says what leaves and to whom', async t => {
    const server = { kind: 'server', protocol: 'openai', baseUrl: 'http://127.0.0.1:9' } as const
    await daemon.client.call('POST /endpoints', { id: 'home', label: 'Down in the cellar', ...server })
    const tab = await ownerTab(browser, daemon, '#/settings')
    const { page } = tab
    const model = page.getByLabel('Embedding model of search')
    await model.fill('endpoint/gone:e')
    await page.getByText('Nothing that is connected is called endpoint/gone').waitFor()
    await model.fill('endpoint/home:e')
    await page
      .getByText(/the text of this workspace’s files.* goes to Down in the cellar, http:\/\/127\.0\.0\.1:9/)
      .waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved. Turns').waitFor()
    t.equal((await daemon.client.call('GET /settings')).searchModel, 'endpoint/home:e')
    await endJourney(t, tab)
  })

  await t.test('by keyboard alone, on a phone, a setting is found and changed', async t => {
    const tab = await ownerTab(browser, daemon, '', { width: 390, height: 844 })
    const { page } = tab
    await page.getByRole('link', { name: 'More' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Settings' }).focus()
    t.same(await barriersOf(page), [])
    await page.keyboard.press('Enter')
    await page.getByLabel('Resume after a restart').focus()
    await page.keyboard.press('Space')
    await page.keyboard.press('Enter')
    await page.getByText('Saved. Turns').waitFor()
    t.equal((await daemon.client.call('GET /settings')).autoResumeOnRestart, true)
    await endJourney(t, tab)
  })
})
