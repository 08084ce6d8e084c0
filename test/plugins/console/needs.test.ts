import t from 'tap'
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
import { runTurn } from '../../support/turns.js'

t.test('needs in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'needs', 'secrets'])
  const { client } = daemon
  const browser = await launchBrowser(t)
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })

  await t.test('what an agent asks is given or declined, and it goes on', async t => {
    const tab = await ownerTab(browser, daemon, '#/needs')
    const { page } = tab
    await page.getByText('No agent waits for anything.').waitFor()
    await runTurn(client, 'asks', 'need information Which region?\n| Nothing names one.\nsay waiting', {
      title: 'Deploy',
    })
    await page.getByText('Nothing names one.').waitFor()
    await page.getByRole('link', { name: /^Inbox.*1/ }).waitFor()
    t.same(await barriersOf(page), [])
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Give Which region?' }).click()
    t.same(await barriersOf(page), [])
    await dialog.getByLabel('Answer').fill('eu-west-1')
    await dialog.getByRole('button', { name: 'Give' }).click()
    await page.getByText('No agent waits for anything.').waitFor()
    await page.getByRole('link', { name: 'Settled' }).click()
    await page.getByText('eu-west-1').waitFor()
    await page.getByRole('link', { name: 'Deploy' }).click()
    await page.getByText('What you needed was settled.').first().waitFor()

    const fields = [
      { key: 'token', label: 'The token', type: 'secret', required: true, secretKey: 'DEPLOY_TOKEN' },
      { key: 'sure', label: 'Deploy on a Friday', type: 'yes-no', required: true },
    ] as const
    const asked = { conversationId: 'asks', kind: 'secret', title: 'A token', why: 'The server asks for one.' } as const
    const { id } = await client.call('POST /needs', { ...asked, fields: [...fields] })
    const later = await client.call('POST /needs', { ...asked, kind: 'hands', title: 'Press it', blocking: false })
    await goTo(page, '#/inbox')
    await page.getByRole('heading', { name: 'What agents need' }).waitFor()
    const guest = await guestTab(browser, daemon, { role: 'collaborator' }, '#/needs')
    await guest.page.getByText('You cannot give it: only a maintainer may store secrets.').waitFor()
    await endJourney(t, guest)
    await page.getByRole('button', { name: 'Decline Press it' }).click()
    await dialog.getByLabel('Why').fill('Nobody is there.')
    await dialog.getByRole('button', { name: 'Decline' }).click()
    await page.getByRole('button', { name: 'Give A token' }).click()
    await dialog.getByLabel('The token').fill('tr0ub4dor&3-and-more')
    await dialog.getByRole('button', { name: 'Give' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'answers.sure' }).waitFor()
    await dialog.getByLabel('Deploy on a Friday').selectOption('No')
    await dialog.getByRole('button', { name: 'Give' }).click()
    await page.getByText('Nothing waits for you').waitFor()
    const given = await client.call('GET /needs/{id}', { id })
    t.match(given, { status: 'given', answers: { token: '{{secret:DEPLOY_TOKEN}}', sure: false } })
    t.match(await client.call('GET /needs/{id}', { id: later.id }), { status: 'declined', note: 'Nobody is there.' })
    await until(async () => (await client.call('GET /needs/{id}', { id })).continued !== undefined)
    t.notMatch(await page.content(), /tr0ub4dor/)
    // An answer that was missing.
    await endJourney(t, tab, /status of 422/)
  })
})
