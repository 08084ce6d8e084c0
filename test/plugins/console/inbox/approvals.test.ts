import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { runTurn } from '../../../support/turns.js'
import { hookServer, itemIn } from '../../approvals/support.js'

t.test('approvals in the console', withChromium(), async t => {
  const hook = await hookServer(t)
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'approvals'])
  const { client } = daemon
  const browser = await launchBrowser(t)
  await client.call('POST /settings/patch', { set: { networkAllow: [`localhost:${hook.port}`] } })

  await t.test('what an agent proposes is read, edited, approved, recalled, sent, declined and removed', async t => {
    const tab = await ownerTab(browser, daemon, '#/approvals')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByText('No agent proposes anything.').waitFor()
    await runTurn(client, 'posts', `propose webhook ${hook.url}\n| Version 2 is\u202e out.\nsay done`, {
      title: 'Release',
    })
    await page.getByText('Version 2 is').waitFor()
    t.notOk((await page.content()).includes('\u202e'), 'direction characters are shown as such')
    await page.getByRole('link', { name: /^Inbox.*1/ }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: /^Edit/ }).click()
    t.same(await barriersOf(page), [])
    await dialog.getByLabel('Content').fill('Version 2 is out.')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Version 2 is out.').waitFor()
    await page.getByRole('button', { name: /^Approve/ }).click()
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await page.getByText(/It goes out in/).waitFor()
    t.same(await barriersOf(page), [])
    const guest = await guestTab(browser, daemon, { role: 'collaborator' }, '#/approvals')
    await guest.page.getByText('Version 2 is out.').waitFor()
    t.equal(await guest.page.getByRole('button', { name: /^Recall/ }).count(), 0)
    await endJourney(t, guest)
    await page.getByRole('button', { name: /^Recall/ }).click()
    await page.getByRole('button', { name: /^Approve/ }).click()
    await dialog.getByRole('button', { name: 'Approve' }).click()
    t.equal(hook.received.length, 0)
    await page.getByRole('button', { name: /^Send now/ }).click()
    await page.getByText('No agent proposes anything.').waitFor()
    t.equal(hook.received.splice(0)[0]?.body, 'Version 2 is out.')
    await page.getByRole('link', { name: 'Settled' }).click()
    await page.getByText('taken').waitFor()
    await page.getByRole('button', { name: /^Remove/ }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('in the last 90 days appears here').waitFor()

    const { id } = await client.call('POST /approvals', {
      kind: 'action',
      action: { key: 'chat.message.send', summary: 'Say hello', args: { text: 'hello' } },
    })
    await goTo(page, '#/inbox')
    await page.getByRole('heading', { name: 'What agents propose' }).waitFor()
    await page.getByText(/It cannot go out: no running extension/).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Decline Say hello' }).click()
    await dialog.getByLabel('Why').fill('Not today.')
    await dialog.getByRole('button', { name: 'Decline' }).click()
    await page.getByText('Nothing waits for you').waitFor()
    t.match(await itemIn(client, id, 'declined'), { reason: 'Not today.' })
    await endJourney(t, tab)
  })
})
