import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until, withChromium } from '../../support/browser/browser.js'
import { connectionsTo } from '../../support/browser/budgets.js'
import {
  barriersOf,
  closeTab,
  CONSOLE_GROUPS,
  type ConsoleTab,
  endJourney,
  launchBrowser,
  ownerBrowser,
  ownerTab,
  tabBeside,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'

const SCRIPT = [
  'write greeting.txt',
  '| hello',
  'ask Which language?',
  '| English: as it is',
  '| French: bonjour',
  'say took **$answer**',
].join('\n')

t.test('working in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS, { files: { 'README.md': '# work\n', 'b.txt': 'one\n' } })
  const browser = await launchBrowser(t)

  await t.test('from the first visit to landed work', async t => {
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'Start a conversation' }).click()
    await page.getByLabel('What should the agent do?').fill(SCRIPT)
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Start' }).click()
    const question = page.getByRole('region', { name: 'Question' }).last()
    await question.getByLabel('French').check()
    t.same(await barriersOf(page), [])
    await question.getByRole('button', { name: 'Answer' }).click()
    await page.locator('strong', { hasText: 'French' }).waitFor()
    await page.getByText('Ready to land').waitFor()
    await page.getByRole('link', { name: /^Changes/ }).click()
    await page.getByRole('link', { name: /greeting\.txt/ }).click()
    await page.getByText('hello').waitFor()
    await page.getByLabel('Viewed').check()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Land', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Everything fits.').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Land', exact: true }).click()
    await page.getByText('The work is in the workspace').waitFor()
    t.equal(readFileSync(join(daemon.workspace, 'greeting.txt'), 'utf8'), 'hello\n')
    await endJourney(t, tab)
  })

  await t.test('a card that is answered elsewhere closes here', async t => {
    const first = await ownerTab(browser, daemon)
    await daemon.client.call('POST /agent', {
      conversationId: 'both',
      prompt: 'ask Go on?\n| Yes: do\n| No: stop\nsay $answer!',
    })
    await first.page.evaluate('location.hash = "#/c/both"')
    await first.page.getByRole('button', { name: 'Answer' }).waitFor()
    const second = await ownerBrowser(browser, daemon, '#/c/both')
    await second.page.getByLabel('Yes').check()
    await second.page.getByRole('button', { name: 'Answer' }).click()
    await first.page.getByText('Yes!').waitFor()
    await first.page.getByRole('button', { name: 'Answer' }).waitFor({ state: 'hidden' })
    for (const tab of [first, second]) await endJourney(t, tab)
    await closeTab(browser, second)
  })

  await t.test('hostile output is shown as text', async t => {
    const links = '[bad](javascript:alert(1)) [page](data:text/html,hello) [fine](https://example.org/)'
    const hostile = `<img src=x onerror=alert(1)> ${links} ![pic](https://example.org/x.png) a\u202eb`
    await runTurn(daemon.client, 'hostile', `say ${hostile}`)
    const tab = await ownerTab(browser, daemon, '#/c/hostile')
    const { page } = tab
    await page.getByText('⟨U+202E⟩').last().waitFor()
    t.equal(await page.locator('img').count(), 0)
    const shown = page.locator('.prose').last()
    for (const words of ['bad', 'page']) t.ok(await shown.getByText(words, { exact: true }).isVisible())
    const targets = await shown.locator('a').evaluateAll(found => found.map(one => one.getAttribute('href')))
    t.same(targets, ['https://example.org/'])
    await endJourney(t, tab)
  })

  await t.test('a draft survives a reload and a refused message', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/hostile')
    const { page } = tab
    const composer = page.getByLabel('Message to the agent')
    await composer.fill('half a thought')
    await page.reload()
    await composer.waitFor()
    t.equal(await composer.inputValue(), 'half a thought')
    await page.route('**/agent', route =>
      route.fulfill({
        status: 429,
        headers: { 'retry-after': '7', 'content-type': 'application/json' },
        body: JSON.stringify({ message: '50 messages wait already', reason: 'too-many' }),
      }),
    )
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('50 messages wait already. Possible again in 7 s.').waitFor()
    await page.getByText('Possible again in 6 s.').waitFor()
    t.equal(await composer.inputValue(), 'half a thought')
    await endJourney(t, tab, /429/)
  })

  await t.test('a conflict shows both sides, and a choice lands the file', async t => {
    await runTurn(daemon.client, 'clash', 'write b.txt\n| agent\nsay done', { isolated: true })
    writeFileSync(join(daemon.workspace, 'b.txt'), 'person\n')
    const tab = await ownerTab(browser, daemon, '#/c/clash/changes')
    const { page } = tab
    await page.getByRole('button', { name: 'Land', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('These files do not land as they are').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('link', { name: 'b.txt' }).click()
    const pane = page.getByRole('region', { name: 'b.txt' })
    await pane.getByText('agent', { exact: true }).waitFor()
    await pane.getByRole('button', { name: 'Workspace', exact: true }).click()
    await pane.getByText('person').waitFor()
    t.same(await barriersOf(page), [])
    t.equal(readFileSync(join(daemon.workspace, 'b.txt'), 'utf8'), 'person\n')
    await pane.getByRole('button', { name: "Take the agent's version" }).click()
    await page.getByText('This file is decided.').waitFor()
    t.equal(readFileSync(join(daemon.workspace, 'b.txt'), 'utf8'), 'agent\n')
    await endJourney(t, tab)
  })

  await t.test('on a phone a conversation is answered and its files are read', async t => {
    await daemon.client.call('POST /agent', {
      ...{ conversationId: 'phone', isolated: true, prompt: 'write p.txt\n| p\nask Go on?\n| Yes: do\n| No: stop' },
    })
    const tab = await ownerBrowser(browser, daemon, '#/c/phone', {
      ...{ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
    })
    const { page } = tab
    await page.getByLabel('Yes').check()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Answer' }).tap()
    await page.getByText('Ready to land').waitFor()
    await page.getByRole('link', { name: /^Changes/ }).tap()
    await page.getByRole('link', { name: /p\.txt/ }).tap()
    await page.getByRole('link', { name: 'Back to the files' }).tap()
    await page.getByRole('link', { name: 'Back to the conversation' }).tap()
    await page.getByRole('link', { name: 'Back to the fleet' }).tap()
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await endJourney(t, tab)
  })

  await t.test('six tabs hold one event stream and at most three connections, and all of them follow', async t => {
    const first = await ownerBrowser(browser, daemon)
    const { page } = first
    const others: ConsoleTab[] = []
    for (let more = 0; more < 5; more++) others.push(await tabBeside(first, daemon))
    await runTurn(daemon.client, 'seen-by-all', 'say hello to six')
    for (const tab of [first, ...others]) await tab.page.getByText('say hello to six').first().waitFor()
    const contexts = browser.contexts().filter(context => context !== page.context())
    for (const other of contexts.flatMap(context => context.pages())) await other.goto('about:blank')
    // Connections of finished requests are kept for some seconds, those of streams stay.
    await until(() => connectionsTo(Number(new URL(daemon.url).port)) <= 3)
    await endJourney(t, first)
    await page.close()
    await runTurn(daemon.client, 'after-the-leader', 'say still there')
    for (const tab of others) {
      await tab.page.getByText('say still there').first().waitFor()
      await endJourney(t, tab)
    }
  })
})
