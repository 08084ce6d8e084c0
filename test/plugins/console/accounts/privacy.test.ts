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
import { exactly } from '../../../support/lists.js'
import { inner } from '../../agent/support.js'
import { runTurn } from '../../../support/turns.js'

t.test('the privacy shield in the console: a policy, a list, a text, and the tokens', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'shield', 'secrets'])
  const { client } = daemon
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await runTurn(client, 'talk', 'say hello', { agent: 'script' })
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon, '#/privacy')
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await page.getByText('Nothing was masked.').waitFor()
  await page.getByRole('link', { name: 'Policy' }).click()
  await page.getByLabel('Mask personal data in what leaves for models').check()
  await page.getByLabel('Bank accounts (IBAN)').selectOption('Refuse the request')
  await page.getByRole('button', { name: 'What would differ' }).click()
  await page
    .getByRole('status')
    .filter({ hasText: /In 1 past conversations it would mask 0 places more/ })
    .waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  while (!(await client.call('GET /shield')).policy.enabled) await page.waitForTimeout(20)
  await page.getByRole('button', { name: 'Add a list' }).click()
  await dialog.getByLabel('Id', { exact: true }).fill('clients')
  await dialog.getByLabel('Label').fill('Clients')
  await dialog.getByLabel('Word in tokens').fill('client')
  await dialog.getByLabel('Values, one a line').fill('Ottoline Morrell\nVita Nicolson')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.getByRole('alert').filter({ hasText: 'kind' }).waitFor()
  t.same(await barriersOf(page), [])
  await dialog.getByLabel('Word in tokens').fill('CLIENT')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.getByText('CLIENT, 2 values').waitFor()
  t.match((await client.call('GET /shield')).policy, {
    ...{ enabled: true, detectors: { iban: 'block' } },
    lists: exactly({ id: 'clients', values: exactly('Ottoline Morrell', 'Vita Nicolson') }),
  })
  t.same(await barriersOf(page), [])

  await page.getByRole('link', { name: 'Try a text' }).click()
  await page.getByLabel('Text', { exact: true }).fill('Ask vita nicolson, a@example.net')
  await page.getByRole('button', { name: 'Show what leaves' }).click()
  await page.getByText('Ask [[CLIENT_1]], [[EMAIL_1]]').waitFor()
  const about = { conversationId: 'talk', provider: 'endpoint/e', local: false, covered: true, binary: false }
  await inner(daemon, 'shield.outbound', { ...about, texts: ['to a@example.net'] })
  await page.getByRole('textbox', { name: 'Conversation' }).fill('talk')
  await page.getByLabel('Text with tokens').fill('to [[EMAIL_1]]')
  await page.getByRole('button', { name: 'Restore' }).click()
  await page.getByText('to a@example.net').waitFor()
  await page.getByRole('button', { name: 'List tokens' }).click()
  await page.getByText('email, like a@*******.***').waitFor()
  t.same(await barriersOf(page), [])
  await page.getByRole('button', { name: 'Forget tokens of talk' }).click()
  await dialog.getByRole('button', { name: 'Forget' }).click()
  await page.getByText('It has no tokens.').waitFor()
  await goTo(page, '#/privacy')
  await page.getByText('1 places, 1 values').waitFor()
  // A word that is not in capitals.
  await endJourney(t, tab, /status of 400/)
  const guest = await guestTab(browser, daemon, { role: 'viewer' }, '#/privacy')
  await guest.page.getByText('1 places, 1 values').waitFor()
  t.equal(await guest.page.getByRole('link', { name: /^Policy$|Try a text/ }).count(), 0)
  await endJourney(t, guest)
})
