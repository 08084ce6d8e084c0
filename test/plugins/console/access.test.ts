import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  closeTab,
  CONSOLE_GROUPS,
  endJourney,
  launchBrowser,
  openTab,
  ownerBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'

t.test('deciding on access in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS, { files: { 'web/a.txt': 'a\n', 'api/b.txt': 'b\n' } })
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon, '#/access/areas')
  const { page } = tab

  await t.test('an area is made, and a refused one says why and keeps the input', async t => {
    await page.getByText('everybody reaches the whole workspace').waitFor()
    await page.getByRole('button', { name: 'Make an area' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Id').fill('web')
    await dialog.getByLabel('Name').fill('Web')
    await dialog.getByLabel('Folders').fill('nowhere')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Make' }).click()
    await dialog.getByRole('alert').waitFor()
    t.equal(await dialog.getByLabel('Name').inputValue(), 'Web')
    await dialog.getByLabel('Folders').fill('web')
    await dialog.getByRole('button', { name: 'Make' }).click()
    await page.getByText('held by nobody').waitFor()
    await page.locator('button:focus', { hasText: 'Make an area' }).waitFor()
    t.same(await barriersOf(page), [])
  })

  await t.test('an invitation limits a person to an area, and the person comes in with it', async t => {
    await page.getByRole('link', { name: 'People' }).click()
    await page.getByRole('button', { name: 'Invite' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Only these areas').check()
    await dialog.getByLabel('Web').check()
    await dialog.getByLabel('Note').fill('for Ada')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Make a link' }).click()
    const url = await dialog.getByLabel('Link', { exact: true }).inputValue()
    t.ok(url.startsWith(`${daemon.url}/#invite=`))
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('for Ada', { exact: true }).waitFor()
    const guest = await openTab(browser, daemon)
    await guest.page.goto(url)
    await guest.page.getByLabel('Your name').fill('Ada')
    await guest.page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByText('collaborator, reaches only web').waitFor()
    t.equal(await guest.page.getByRole('link', { name: 'Access' }).count(), 0, 'a collaborator has no such page')
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Change the role of Ada' }).click()
    await dialog.getByLabel('Role').selectOption('Maintainer')
    await dialog.getByRole('button', { name: 'Change' }).click()
    await guest.page.getByRole('link', { name: 'Access' }).waitFor()
    await page.getByRole('button', { name: 'Remove Ada' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await guest.page.getByText('Your session has ended.').waitFor()
    await closeTab(browser, guest)
  })

  await t.test('the value of a control token is shown once, and a revoked one is gone', async t => {
    await page.getByRole('link', { name: 'Control tokens' }).click()
    await page.getByRole('button', { name: 'Make a token' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('ci')
    await dialog.getByRole('button', { name: 'Make' }).click()
    const token = await dialog.getByLabel('Token', { exact: true }).inputValue()
    const asked = () => fetch(`${daemon.url}/agents`, { headers: { 'x-sandbox-control': token } })
    t.equal((await asked()).status, 200)
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('never used').or(page.getByText('last used')).waitFor()
    t.equal((await page.content()).includes(token), false)
    await page.getByRole('button', { name: 'Revoke the token ci' }).click()
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    t.equal((await asked()).status, 200, 'Escape revokes nothing')
    await page.getByRole('button', { name: 'Revoke the token ci' }).click()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('Tokens with which programs use this sandbox appear here').waitFor()
    t.equal((await asked()).status, 401)
  })

  await t.test('the owner ends a sign-in of another browser', async t => {
    const other = await ownerBrowser(browser, daemon)
    await page.getByRole('link', { name: 'Sign-ins' }).click()
    await page.getByText('This one').waitFor()
    t.same(await barriersOf(page), [])
    const before = (await daemon.client.call('GET /system/sessions')).sessions.length
    await page
      .getByRole('button', { name: /^End the sign-in/ })
      .first()
      .click()
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    t.equal((await daemon.client.call('GET /system/sessions')).sessions.length, before - 1)
    await closeTab(browser, other)
  })
  // Expected: the one refusal of the journey.
  await endJourney(t, tab, /404/)
})
