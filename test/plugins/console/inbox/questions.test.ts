import t from 'tap'
import { until, withChromium } from '../../../support/browser/browser.js'
import { CONSOLE_GROUPS, endJourney, goTo, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'

t.test('a question leaves the inbox that was answered before the board showed it', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const { client } = daemon
  const tab = await ownerTab(await launchBrowser(t), daemon)
  const { page } = tab
  await client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Go on?\n| Yes: do\nsay done' })
  const openCards = async () => (await client.call('GET /agent/cards')).cards.map(({ card }) => card)
  await until(async () => (await openCards()).length > 0)
  const [card] = await openCards()
  await goTo(page, '#/inbox')
  await page.getByRole('heading', { name: 'Questions' }).waitFor()
  await client.call('POST /agent/reply', {
    kind: 'question',
    requestId: card!.requestId,
    answers: { 'Go on?': 'Yes' },
  })
  await page.getByText('Nothing waits for you').waitFor()
  await endJourney(t, tab)
})

t.test('words of an answer stay in the inbox while another question comes', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const { client } = daemon
  const tab = await ownerTab(await launchBrowser(t), daemon)
  const { page } = tab
  const ask = (conversationId: string, title: string) =>
    client.call('POST /agent', { conversationId, title, prompt: 'ask Go on?\n| Yes: do\nsay done' })
  await ask('first', 'The first')
  await goTo(page, '#/inbox')
  const words = page.getByRole('article', { name: 'The first' }).getByLabel('In your own words')
  await words.fill('Only after noon')
  await ask('second', 'The second')
  await page.getByRole('article', { name: 'The second' }).waitFor()
  t.equal(await page.evaluate('document.activeElement.value'), 'Only after noon')
  await endJourney(t, tab)
})
