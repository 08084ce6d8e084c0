import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  findDaemonSocket,
  goTo,
  launchBrowser,
  loginLink,
  openTab,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith, folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { inTime } from '../../support/in-time.js'
import { framesOf, runTurn } from '../../support/turns.js'

const CARDS = [
  ...['plan Build it', 'permit Deploy: ship it', 'ask* Which ones?', '| A: first', '| B: second'],
  ...['offer service images 5', 'offer capability github', 'offer payment https://example.org/x 0.25', 'say all done'],
].join('\n')

const HIDDEN_SHOWN: { readonly [character: string]: string } = {
  '\u001b': '⟨U+001B⟩',
  '\u0000': '⟨U+0000⟩',
  '\u202e': '⟨U+202E⟩',
  '\u200b': '⟨U+200B⟩',
}
const HIDDEN = new RegExp(`[${Object.keys(HIDDEN_SHOWN).join('')}]`, 'g')

/**
 * How much of the text that an open card shows is cut off, down and sideways, and whether its first and its last
 * character can be scrolled into view.
 */
const SHOWN = `(() => {
  const shown = document.querySelector('.card.open pre')
  const { scrollHeight, clientHeight, scrollWidth, clientWidth, lastChild: text } = shown
  const isReached = (block, at) => {
    shown.scrollIntoView({ block })
    const range = document.createRange()
    range.setStart(text, at)
    range.setEnd(text, at + 1)
    const { x, y, width, height } = range.getBoundingClientRect()
    return document.elementFromPoint(x + width / 2, y + height / 2) === shown
  }
  const ends = [isReached('start', 0), isReached('end', text.length - 1)]
  return [scrollHeight - clientHeight, scrollWidth - clientWidth, ...ends]
})()`

t.test('journeys through the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS, { files: { 'README.md': '# work\n', 'b.txt': 'one\n' } })
  const browser = await launchBrowser(t)

  await t.test('every kind of card is answered', async t => {
    await daemon.client.call('POST /agent', { conversationId: 'cards', prompt: CARDS })
    const tab = await ownerTab(browser, daemon, '#/c/cards')
    const { page } = tab
    const answers = [
      ['Plan', 'Approve the plan', 'Approved'],
      ['Permission', 'Allow once', 'Allowed once'],
      ['Question', 'Answer', 'Answered'],
      ['Service', 'Run it once', 'Approved'],
      ['Connection', 'Connect', 'Agreed'],
      ['Payment', 'Pay once', 'Approved'],
    ] as const
    for (const [kind, button, said] of answers) {
      const card = page.locator('section.card.open').and(page.getByRole('region', { name: kind }))
      await card.waitFor()
      t.same(await barriersOf(page), [], kind)
      for (const label of kind === 'Question' ? ['A first', 'B second'] : []) await card.getByLabel(label).check()
      await card.getByRole('button', { name: button }).click()
      await page
        .locator('section.card:not(.open)')
        .and(page.getByRole('region', { name: kind }))
        .getByText(said)
        .first()
        .waitFor()
    }
    await page.getByText('all done').last().waitFor()
    await endJourney(t, tab)
  })

  await t.test('a permission card shows the whole request, however long and strange it is', async t => {
    // The end of a request matters most.
    const words = (count: number) => Array.from({ length: count }, (_, part) => `part-${part}`).join(' ')
    const command = `: ${words(9_500)}; echo the end`
    const path = `${'a-folder/'.repeat(400)}${'x'.repeat(200)}`
    const strange = `ship\t${words(20_000)} \u001b[8mhidden\u0000\u202e\u200b to production`
    const prompt = [`permit Deploy: ${strange}`, `run ${command}`, `write ${path}`, '| text', 'say all done'].join('\n')
    t.ok(strange.length > 200 * 1024 && command.length > 90_000)
    await daemon.client.call('POST /agent', { conversationId: 'whole', prompt, permissionMode: 'default' })
    const tab = await ownerTab(browser, daemon, '#/c/whole')
    const { page } = tab
    const asked = [
      [/to production/, strange.replace(HIDDEN, one => HIDDEN_SHOWN[one]!), 'Allow once'],
      [/the end/, command, 'Allow once'],
      [/x{200}/, path, 'Deny'],
    ] as const
    for (const [end, request, answer] of asked) {
      const card = page.locator('section.card.open')
      const shown = card.locator('pre', { hasText: end })
      await shown.waitFor()
      t.ok((await shown.textContent()) === request, 'all of it is in the page')
      t.same(await page.evaluate(SHOWN), [0, 0, true, true], 'nothing of it is cut off')
      await card.getByRole('button', { name: answer, exact: true }).click()
    }
    await page.getByText('all done').last().waitFor()
    await endJourney(t, tab)
  })

  await t.test('300 files are reviewed, and some of them landed', async t => {
    await runTurn(daemon.client, 'many', 'run for i in $(seq 101 400); do echo $i > f$i.txt; done', { isolated: true })
    const tab = await ownerTab(browser, daemon, '#/c/many/changes')
    const { page } = tab
    await page.getByRole('region', { name: 'f101.txt' }).waitFor()
    t.equal(await page.locator('.file-row').count(), 300)
    // A key acts on the file that the key before it opened, however quickly they follow.
    for (const name of ['v', 'n', 'v', 'n', 'v']) await page.keyboard.press(name)
    await page.locator('.file-row.viewed').nth(2).waitFor()
    for (const name of ['f101.txt', 'f250.txt']) await page.getByLabel(`Land ${name}`).check()
    await page.getByRole('button', { name: 'Land 2 files' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Everything fits.').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Land', exact: true }).click()
    await page.getByText('The work is in the workspace').waitFor()
    t.equal(readFileSync(join(daemon.workspace, 'f250.txt'), 'utf8'), '250\n')
    t.notOk(existsSync(join(daemon.workspace, 'f102.txt')))
    await page.locator('.file-row', { hasText: 'f250.txt' }).getByText('landed').waitFor()
    await endJourney(t, tab)
  })

  await t.test('of two conversations that conflict one lands, and the other says so', async t => {
    for (const id of ['left', 'right'])
      await runTurn(daemon.client, id, `write b.txt\n| ${id}\nsay done`, { isolated: true, title: `The ${id} one` })
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    for (const id of ['left', 'right']) await page.getByLabel(`Select The ${id} one`).check()
    await page.getByRole('toolbar').getByRole('button', { name: 'Land' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Land', exact: true }).click()
    await page.getByText('it has conflicts; open it to choose').waitFor()
    const landed = readFileSync(join(daemon.workspace, 'b.txt'), 'utf8').trim()
    t.match(landed, /^(?:left|right)$/)
    const other = landed === 'left' ? 'right' : 'left'
    t.same(await barriersOf(page), [])
    await page
      .getByRole('dialog')
      .getByRole('link', { name: `The ${other} one` })
      .click()
    await page.getByRole('button', { name: "Take the agent's version" }).click()
    await page.getByText('This file is decided.').waitFor()
    t.equal(readFileSync(join(daemon.workspace, 'b.txt'), 'utf8').trim(), other)
    // The conflict is asked for once more when the event of its end comes.
    await endJourney(t, tab, /404/)
  })

  await t.test('a role that somebody else takes away takes its parts of the page away', async t => {
    const { invitation } = await daemon.client.call('POST /members', { role: 'maintainer' })
    const tab = await openTab(browser, daemon)
    const { page } = tab
    await page.goto(invitation!.url)
    await page.getByLabel('Your name').fill('Eve')
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByRole('link', { name: 'New conversation' }).waitFor()
    await page.getByRole('link', { name: 'Logs' }).waitFor()
    const { members } = await daemon.client.call('GET /members')
    const { email } = members.find(({ role }) => role === 'maintainer')!
    const began = performance.now()
    await daemon.client.call('POST /members', { email, role: 'viewer' })
    await page.getByRole('link', { name: 'New conversation' }).waitFor({ state: 'hidden' })
    await page.getByRole('link', { name: 'Logs' }).waitFor({ state: 'hidden' })
    t.ok(inTime(began, 1_000), 'within a second')
    await page.evaluate('location.hash = "#/c/many"')
    await page.getByRole('heading', { name: /run for/ }).waitFor()
    t.equal(await page.getByLabel('Message to the agent').count(), 0)
    t.same(await barriersOf(page), [])
    // The daemon ends the streams of people whose role changes.
    await endJourney(t, tab, /ERR_INCOMPLETE_CHUNKED_ENCODING/)
  })

  await t.test('without a connection the page says so, and catches up once it is back', async t => {
    const tab = await ownerTab(browser, daemon, '#/inbox')
    const { page } = tab
    await page.getByRole('heading', { name: 'Inbox' }).waitFor()
    await page.locator('.bones').waitFor({ state: 'detached' })
    await goTo(page, '#/c/many/changes')
    await page.locator('.file-row').first().waitFor()
    await goTo(page, '#/c/cards')
    const composer = page.getByLabel('Message to the agent')
    await composer.fill('say after the tunnel')
    const online = await page.evaluate('navigator.onLine')
    await page.context().setOffline(true)
    t.teardown(() => page.context().setOffline(false))
    // On a machine without a network the browser was offline before, and no event says so.
    if (!online) await page.evaluate(`dispatchEvent(new Event('offline'))`)
    const lost = page.getByText('The connection to the sandbox was lost')
    await lost.waitFor()
    // An event on the stream of before says nothing of the connection.
    await daemon.client.call('POST /agents/{id}/rename', { id: 'cards', title: 'In the tunnel' })
    await page.waitForTimeout(500)
    t.ok(await lost.isVisible())
    const age = page.getByText(/^This is \d+ s old\.$/)
    await age.waitFor()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('The sandbox does not answer.').waitFor()
    t.equal(await composer.inputValue(), 'say after the tunnel')
    t.same(await barriersOf(page), [])
    for (const place of ['#/fleet', '#/inbox', '#/c/many/changes']) {
      await goTo(page, place)
      const first = await age.textContent()
      await until(async () => (await age.textContent()) !== first)
    }
    await page.context().setOffline(false)
    if (!online) await page.evaluate(`dispatchEvent(new Event('online'))`)
    await lost.waitFor({ state: 'hidden' })
    t.equal(await age.count(), 0)
    await goTo(page, '#/c/cards')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('after the tunnel', { exact: true }).waitFor()
    const { messages } = await daemon.client.call('GET /agents/{id}/transcript', { id: 'cards', limit: 50 })
    t.equal(messages.filter(({ role, text }) => role === 'user' && text === 'say after the tunnel').length, 1)
    await endJourney(t, tab, /ERR_INTERNET_DISCONNECTED/)
  })
})

t.test('the page goes on after the daemon was killed, without a frame lost or twice', withChromium(), async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  mkdirSync(data, { mode: 0o700 })
  const first = await spawnDaemon(t, { workspace, data })
  const browser = await launchBrowser(t)
  const tab = await openTab(browser, first)
  const { page } = tab
  await page.goto(await loginLink({ socket: findDaemonSocket(data) }))
  await page.locator('[data-ready=yes]').waitFor()
  const { run } = await first.client.call('POST /agent', {
    ...{ conversationId: 'killed', prompt: 'say one\nask Go on?\n| Yes: do\n| No: stop\nsay two' },
  })
  await framesOf(first.client, 'killed', { run }).until(({ kind }) => kind === 'question')
  await page.evaluate('location.hash = "#/c/killed"')
  await page.getByRole('button', { name: 'Answer' }).waitFor()
  await page.locator('.prose', { hasText: /^one$/ }).waitFor()
  await page.getByLabel('Message to the agent').fill('half a thought')
  await first.kill9()
  await page.getByText('The connection to the sandbox was lost').waitFor()
  const port = new URL(first.url).port
  const second = await spawnDaemon(t, { workspace, data, args: ['--port', port] })
  t.equal(second.url, first.url)
  await page.getByText('The connection to the sandbox was lost').waitFor({ state: 'hidden', timeout: 40_000 })
  t.equal(await page.getByLabel('Message to the agent').inputValue(), 'half a thought')
  await page.locator('.prose', { hasText: /^one$/ }).waitFor()
  t.equal(await page.locator('.prose', { hasText: /^one$/ }).count(), 1)
  await runTurn(second.client, 'later', 'say hello', { title: 'After the restart' })
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Back to the fleet' }).click()
  await page.getByRole('link', { name: /^After the restart/ }).waitFor()
  await endJourney(t, tab, /ERR_(?:CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)/)
})
