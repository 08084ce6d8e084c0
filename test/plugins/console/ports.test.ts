import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { shownServers } from '../../support/servers/shown-servers.js'

t.test('ports in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'ports'])
  const servers = shownServers(t, daemon.workspace)
  const port = await servers.ask({ listen: '127.0.0.1', page: '<h1>the page of the server</h1>' })
  const browser = await launchBrowser(t)

  await t.test('a server is forwarded, its page opens in a tab of its own, and the forward is ended', async t => {
    const tab = await ownerTab(browser, daemon, '#/ports')
    const { page } = tab
    const row = page.getByRole('listitem').filter({ hasText: `${port} ·` })
    await row.getByText('Not forwarded').waitFor()
    await row.getByRole('button', { name: `Forward port ${port}` }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('without signing in').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Forward' }).click()
    const link = row.getByRole('link', { name: /^http:\/\/port-/ })
    await link.waitFor()
    t.same(await barriersOf(page), [])
    const opening = page.context().waitForEvent('page')
    await link.click()
    const shown = await opening
    await shown.getByRole('heading', { name: 'the page of the server' }).waitFor()
    await shown.close()
    await row.getByRole('button', { name: `End the forward of port ${port}` }).click()
    await row.getByText('Not forwarded').waitFor()
    await endJourney(t, tab)
  })

  await t.test('a server that begins and ends appears and goes by itself', async t => {
    const tab = await ownerTab(browser, daemon, '#/ports')
    const later = await servers.ask({ listen: '127.0.0.1' })
    const row = tab.page.getByRole('listitem').filter({ hasText: `${later} ·` })
    await row.waitFor()
    await servers.ask({ close: later })
    await row.waitFor({ state: 'detached' })
    await endJourney(t, tab)
  })

  await t.test('a viewer reads the ports on a phone, and forwards none', async t => {
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/ports')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByText(`${port} ·`).waitFor()
    t.equal(await page.getByRole('button', { name: /Forward/ }).count(), 0)
    await endJourney(t, tab)
  })
})
