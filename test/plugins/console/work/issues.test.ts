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
import { envelope, failure, send } from '../../issues/support.js'

t.test('issues in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'issues'], {
    files: { 'app.js': '1\n2\n3\n4\n5\n6\npay()\n' },
  })
  const { client } = daemon
  const browser = await launchBrowser(t)

  await t.test('a program gets a reporter, and its fault is looked at, ignored and given to an agent', async t => {
    const tab = await ownerTab(browser, daemon, '#/issues')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('link', { name: 'Reporters' }).click()
    await page.getByRole('button', { name: 'Add a reporter' }).click()
    await dialog.getByLabel('Name').fill('Shop')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('/ingest/1', { exact: false }).waitFor()
    t.same(await barriersOf(page), [])
    const [reporter] = (await client.call('GET /issues/reporters')).reporters
    const event = failure('TypeError', {}, { breadcrumbs: [{ category: 'http', message: 'GET /basket' }] })
    await send(daemon, reporter!, envelope([['event', event]]))
    await page.getByRole('link', { name: 'Open' }).click()
    await page.getByText('New', { exact: true }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Mark all as seen' }).click()
    await page.getByText('error', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'TypeError: TypeError happened' }).click()
    await page.getByRole('link', { name: 'app.js:7' }).waitFor()
    await page.getByText('> 7 pay()').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Ignore TypeError' }).click()
    await dialog.getByLabel('Until so many more events came').fill('3')
    await dialog.getByRole('button', { name: 'Ignore' }).click()
    await page.getByRole('button', { name: 'Open again' }).click()
    await page.getByRole('button', { name: /^Fix TypeError/ }).click()
    await dialog.getByLabel('What else it should know').fill('Look at pay.')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.getByText('Look at pay.').first().waitFor()
    const { issues } = await client.call('GET /issues', {})
    t.match(page.url(), issues[0]?.fix?.conversationId)
    await endJourney(t, tab)
  })

  await t.test('a viewer reads issues on a phone, and changes none', async t => {
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/issues')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('link', { name: 'TypeError: TypeError happened' }).click()
    await page.getByText('GET /basket', { exact: false }).waitFor({ state: 'attached' })
    t.equal(await page.getByRole('button', { name: /Fix|Resolve|Ignore|seen/ }).count(), 0)
    t.equal(await page.getByRole('link', { name: 'Reporters' }).count(), 0)
    await endJourney(t, tab)
  })
})
