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

t.test('a press on a card that has just moved below the pointer does nothing', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const { client } = daemon
  const tab = await ownerTab(await launchBrowser(t), daemon)
  const { page } = tab
  const openCards = async () => (await client.call('GET /agent/cards')).cards.map(({ card }) => card)
  for (const name of ['first', 'second']) {
    const before = (await openCards()).length
    await client.call('POST /agent', { conversationId: name, title: `The ${name}`, prompt: 'ask Go on?\n| Yes: do' })
    await until(async () => (await openCards()).length > before)
  }
  const [card] = await openCards()
  await goTo(page, '#/inbox')
  const skip = (name: string) => page.getByRole('article', { name }).getByRole('button', { name: 'Skip' })
  await skip('The second').waitFor()
  const { x, y, width, height } = (await skip('The first').boundingBox())!
  await page.mouse.move(x + width / 2, y + height / 2)
  // The press comes as soon as the other card is where this one was.
  const [left, top] = [x + width / 2, y + height / 2]
  await page.evaluate(`new MutationObserver((_, watch) => {
    const at = document.elementFromPoint(${left}, ${top})
    if (!at?.closest('article[aria-label="The second"]')) return
    watch.disconnect()
    const press = { bubbles: true, cancelable: true, detail: 1, clientX: ${left}, clientY: ${top} }
    at.dispatchEvent(new MouseEvent('click', press))
    document.body.dataset.pressed = 'yes'
  }).observe(document.querySelector('main'), { childList: true, subtree: true })`)
  await client.call('POST /agent/reply', { kind: 'question', requestId: card!.requestId, answers: { 'Go on?': 'Yes' } })
  await page.locator('body[data-pressed=yes]').waitFor({ state: 'attached' })
  await page.getByRole('status').getByText('nothing was done: press again').waitFor()
  await skip('The first').waitFor({ state: 'detached' })
  t.equal((await openCards()).length, 1, 'the other question still waits')
  await new Promise(resolve => setTimeout(resolve, 700))
  await page.mouse.click(x + width / 2, y + height / 2)
  await page.getByText('Nothing waits for you').waitFor()
  await page.evaluate('delete document.body.dataset.pressed')
  await endJourney(t, tab)
})

t.test('stopping the turn of a question asks first', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const { client } = daemon
  const tab = await ownerTab(await launchBrowser(t), daemon)
  const { page } = tab
  await client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Go on?\n| Yes: do\nsay done' })
  await goTo(page, '#/inbox')
  const dialog = page.getByRole('dialog')
  const cancel = page.getByRole('button', { name: /^Stop the turn/ })
  await cancel.click()
  await dialog.getByRole('button', { name: 'Cancel', exact: true }).click()
  await dialog.waitFor({ state: 'hidden' })
  t.equal((await client.call('GET /agent/cards')).cards.length, 1)
  await cancel.click()
  await dialog.getByRole('button', { name: 'Stop the turn' }).click()
  await page.getByText('Nothing waits for you').waitFor()
  await endJourney(t, tab)
})

t.test('a begun answer is kept when the page is left, and gone once it is sent', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const { client } = daemon
  const tab = await ownerTab(await launchBrowser(t), daemon)
  const { page } = tab
  const prompt = 'ask Which colour?\n| Red\n| Blue\nplan do it\nsay done'
  await client.call('POST /agent', { conversationId: 'asks', prompt })
  await goTo(page, '#/inbox')
  const words = page.getByLabel('In your own words')
  await words.fill('the colour of the sea')
  await goTo(page, '#/fleet')
  await goTo(page, '#/c/asks')
  await words.waitFor()
  t.equal(await words.inputValue(), 'the colour of the sea', 'another page shows the same card')
  await page.reload()
  await words.waitFor()
  t.equal(await words.inputValue(), 'the colour of the sea')
  await page.getByRole('button', { name: 'Answer' }).click()
  await words.waitFor({ state: 'detached' })
  const kept = await page.evaluate('Object.keys(localStorage).filter(key => key.includes("draft.answer"))')
  t.same(kept, [])
  await endJourney(t, tab)
})
