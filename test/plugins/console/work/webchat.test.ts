import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  launchBrowser,
  ownerTab,
} from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { answersIn, SITE, TestVisitor } from '../../../support/webchat.js'

t.test('the chat of web pages in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'automations', 'usage'])
  const { client } = daemon
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon, '#/webchat')
  const { page } = tab

  await t.test('one is added, and its line for the site is shown with a preview', async t => {
    await page.getByRole('button', { name: 'Add a chat' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Id', { exact: true }).fill('shop')
    await dialog.getByLabel('Sites').fill('shop.example')
    await dialog.getByLabel('What the agent is asked').fill('say We ship everywhere.')
    await dialog.getByLabel('Title').fill('Ask us')
    await dialog.getByLabel('Greeting').fill('What can we help with?')
    await dialog.getByLabel('A puzzle for the browser').uncheck()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('trigger.allowedOrigins[0]: expected the origin of a page').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByLabel('Sites').fill(SITE)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('link', { name: 'shop' }).click()
    const tag = `<script src="${daemon.url}/webchat/widget.js" data-automation="shop" async></script>`
    await page.getByText(tag).waitFor()
    const preview = page.getByRole('group', { name: 'Preview of the chat' })
    t.equal(await preview.evaluate(box => (box as unknown as { children: { length: number } }).children.length), 1)
    await page.getByText('No page has loaded it yet.').waitFor()
    await page.getByText('No visitor has written yet.').waitFor()
    t.match((await client.call('GET /automations')).automations, exactly({ id: 'shop', enabled: true }))
  })

  await t.test('sites that load it are counted and admitted, and its conversations are listed', async t => {
    const other = new TestVisitor(daemon, 'shop', 'https://blog.example')
    t.equal((await other.ask('/config')).status, 403)
    await page.getByText('loaded 0 times, refused once').waitFor()
    await page.getByRole('button', { name: 'Admit https://blog.example' }).click()
    await page.getByText('Not on the list').waitFor({ state: 'detached' })
    t.equal((await other.ask('/config')).status, 200)
    const eve = new TestVisitor(daemon, 'shop')
    t.same(answersIn(await eve.say('Hello')), ['We ship everywhere.'])
    await page.getByText('1 message, the last').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Edit shop' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Messages a day').fill('5')
    await dialog.getByLabel('Every answer waits for a person').check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    t.match(await client.call('GET /automations/{id}', { id: 'shop' }), {
      trigger: { allowedOrigins: exactly(SITE, 'https://blog.example') },
      webchat: { title: 'Ask us', antiBot: 'off', dailyMessageMax: 5 },
      requireApproval: true,
    })
    await page.getByRole('link', { name: 'History' }).click()
    await page.getByText('visitors of web pages').waitFor()
    await page.getByRole('button', { name: 'Edit shop' }).click()
    t.equal(await dialog.getByLabel('Messages a day').inputValue(), '5')
    await page.keyboard.press('Escape')
  })

  await t.test('what an edit of its file brought is shown before it is saved', async t => {
    const file = join(daemon.workspace, '.sandbox/config/automations.json')
    const { shop } = JSON.parse(readFileSync(file, 'utf8')) as { shop: object }
    writeFileSync(file, JSON.stringify({ shop: { ...shop, guard: 'touch planted' } }))
    await new TestVisitor(daemon, 'shop', 'https://evil.example').ask('/config')
    await goTo(page, '#/webchat/shop')
    await page.getByText('it came with the code').waitFor()
    await page.getByText('https://evil.example').waitFor()
    t.equal(await page.getByRole('button', { name: 'Admit' }).count(), 0)
    await page.getByRole('button', { name: 'Edit shop' }).click()
    t.equal(await page.getByRole('dialog').getByLabel('Guard').inputValue(), 'touch planted')
    await page.getByRole('dialog').getByLabel('Guard').fill('')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Admit https://evil.example' }).waitFor()
    t.notOk((await client.call('GET /automations/{id}', { id: 'shop' })).guard)
    await endJourney(t, tab, /status of 422/)
  })
})
