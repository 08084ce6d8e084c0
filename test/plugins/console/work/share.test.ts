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
import { runTurn } from '../../../support/turns.js'
import { askPage, pathOfUrl } from '../../outbox/support.js'

t.test('sharing in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'share'])
  const { client, url } = daemon
  await runTurn(client, 'dates', 'run echo the output\nsay The dates are parsed.')
  const browser = await launchBrowser(t)

  await t.test('a conversation is looked at as it would leave, shared, taken again and taken down', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/dates')
    const { page } = tab
    await page.getByRole('link', { name: 'Share', exact: true }).click()
    await page.getByText('It has no page yet.', { exact: false }).waitFor()
    await page.getByLabel('Title').fill('Our dates')
    await page.getByRole('button', { name: 'Preview' }).click()
    const frame = page.frameLocator('iframe[title="Preview of the page"]')
    await frame.getByRole('heading', { name: 'Our dates' }).waitFor()
    await frame.getByText('The dates are parsed.', { exact: true }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Share the page' }).click()
    const link = page.getByRole('link', { name: /\/s\/our-dates-/ })
    await link.waitFor()
    const address = pathOfUrl((await link.getAttribute('href'))!)
    t.match((await askPage(url, address)).body.toString(), 'The dates are parsed.')
    t.same(await barriersOf(page), [])
    await runTurn(client, 'dates', 'say More dates.')
    await page.reload()
    await page.getByText('Older than the conversation').waitFor()
    await page.getByRole('button', { name: 'Update Our dates' }).click()
    await page
      .frameLocator('iframe[title="The page as it will be"]')
      .getByText('More dates.', { exact: true })
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Update' }).click()
    await page.getByText('Public', { exact: true }).waitFor()
    t.match((await askPage(url, address)).body.toString(), 'More dates.')
    await page.getByRole('link', { name: 'All shared pages' }).click()
    await page.getByRole('button', { name: 'Take down Our dates' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Take down' }).click()
    await page.getByText('A conversation is shared from its page.', { exact: false }).waitFor()
    t.equal((await askPage(url, address)).status, 404)
    await endJourney(t, tab)
  })

  await t.test('a viewer sees the pages on a phone, and shares none', async t => {
    await client.call('POST /share', { conversationId: 'dates', title: 'For all', detail: 'everything' })
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/share')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByText('For all', { exact: false }).first().waitFor()
    t.equal(await page.getByRole('button', { name: /Update|Take down|Preview/ }).count(), 0)
    t.match((await client.call('GET /share', {})).shares, exactly({ title: 'For all' }))
    await endJourney(t, tab)
  })
})
