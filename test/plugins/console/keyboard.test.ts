import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { commandFor, commandsNow, offerCommands, strokeOf } from '../../../plugins/console/web/data/keys.js'
import { waitsForPerson } from '../../../plugins/console/web/data/roster.js'
import type { AgentCard } from '../../../plugins/agents/contract.js'

const pressed = (key: string, more: object = {}) =>
  strokeOf({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more })

t.test('keys are named as commands name them, and sequences wait for their end', async t => {
  t.equal(pressed('k', { metaKey: true }), 'mod+k')
  t.equal(pressed('L', { shiftKey: true }), 'shift+l')
  t.equal(pressed('?', { shiftKey: true }), '?', 'shift is part of the character')
  t.equal(pressed('ArrowUp', { altKey: true }), 'alt+arrowup')
  const run = () => {}
  const fleet = { id: 'a', label: 'Fleet', group: 'g', keys: 'g f', run }
  t.equal(commandFor([fleet], '', 'g'), 'waits')
  t.equal(commandFor([fleet], 'g', 'f'), fleet)
  t.equal(commandFor([fleet], 'g', 'x'), undefined)
  t.equal(commandFor([fleet], '', 'f'), undefined)
})

t.test('the last offered command wins until it is withdrawn', async t => {
  const run = () => {}
  const end = offerCommands(() => [{ id: 'archive', label: 'outer', group: 'g', keys: 'e', run }])
  const endInner = offerCommands(() => [{ id: 'archive', label: 'inner', group: 'g', keys: 'e', run }])
  t.same(
    commandsNow().map(({ label }) => label),
    ['inner'],
  )
  endInner()
  t.same(
    commandsNow().map(({ label }) => label),
    ['outer'],
  )
  end()
  t.same(commandsNow(), [])
})

t.test('a person waits for requests to land if they may land, and for what got stuck of their own', async t => {
  const cards = [
    { id: 'asked', lastBy: 'bob', status: 'ready', updatedAt: 1, landRequested: { email: 'bob', at: 1 } },
    { id: 'failed', lastBy: 'ada', status: 'error', updatedAt: 2 },
    { id: 'others', lastBy: 'bob', status: 'conflict', updatedAt: 3 },
    { id: 'well', lastBy: 'ada', status: 'ready', updatedAt: 4 },
  ] as unknown as AgentCard[]
  const idsFor = (lands: boolean) => {
    const { landings, stuck } = waitsForPerson(cards, { email: 'ada', lands })
    return [...landings, ...stuck].map(({ id }) => id)
  }
  t.same(idsFor(true), ['asked', 'failed'])
  t.same(idsFor(false), ['failed'])
})

/** Presses a key, and again until what it opens is there. */
const pressUntil = async (page: Page, key: string, opened: Locator): Promise<void> => {
  for (let tries = 1; tries < 5; tries++) {
    await page.keyboard.press(key)
    const isThere = await opened.waitFor({ timeout: 3_000 }).then(
      () => true,
      () => false,
    )
    if (isThere) return
  }
  await opened.waitFor()
}

t.test('the console by keyboard alone', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS, { files: { 'README.md': '# work\n' } })
  const browser = await launchBrowser(t)

  await t.test('a conversation is started, answered in the inbox, reviewed and landed', async t => {
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    const { keyboard } = page
    await keyboard.press('c')
    await page.getByRole('heading', { name: 'New conversation' }).waitFor()
    for (let times = 0; times < 30; times++) {
      if (await page.evaluate('document.activeElement?.matches("textarea")')) break
      await keyboard.press('Tab')
    }
    await keyboard.type('write one.txt\n| one\nwrite two.txt\n| two\nask Go on?\n| Yes: do\n| No: stop\nsay done')
    await keyboard.press('Control+Enter')
    await page.getByRole('region', { name: 'Question' }).last().waitFor()
    await keyboard.press('g')
    await keyboard.press('i')
    await page.getByRole('heading', { name: 'Inbox' }).waitFor()
    await page.getByRole('heading', { name: 'Questions' }).waitFor()
    t.same(await barriersOf(page), [])
    await keyboard.press('j')
    t.ok(await page.evaluate('document.activeElement.matches("[data-row]")'))
    await keyboard.press('Tab')
    await keyboard.press('Space')
    await page.getByRole('button', { name: 'Answer' }).focus()
    await keyboard.press('Enter')
    await page.getByText('Nothing waits for you').waitFor()
    t.same(await barriersOf(page), [])
    await keyboard.press('g')
    await keyboard.press('f')
    await page.getByText('Ready to land').first().waitFor()
    await keyboard.press('j')
    await keyboard.press('Enter')
    await page.getByRole('link', { name: /^Changes/ }).waitFor()
    // A page that has just come takes keys a moment later.
    await pressUntil(page, 'd', page.getByRole('region', { name: 'one.txt' }))
    await keyboard.press('v')
    await page.locator('.file-row.viewed').waitFor()
    await keyboard.press('n')
    await page.getByRole('region', { name: 'two.txt' }).waitFor()
    await keyboard.press('p')
    await page.getByRole('region', { name: 'one.txt' }).waitFor()
    await keyboard.press('x')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('heading', { name: 'Land 1 file' }).waitFor()
    // The event of the key before may come late on a busy machine.
    await page.evaluate('dispatchEvent(new HashChangeEvent("hashchange"))')
    await dialog.getByText('Everything fits.').waitFor()
    await keyboard.press('Tab')
    await dialog.getByRole('button', { name: 'Land', exact: true }).focus()
    await keyboard.press('Enter')
    await page.getByText('The work is in the workspace').waitFor()
    t.equal(readFileSync(join(daemon.workspace, 'one.txt'), 'utf8'), 'one\n')
    t.throws(() => readFileSync(join(daemon.workspace, 'two.txt')), { code: 'ENOENT' })
    await keyboard.press('Shift+L')
    await dialog.getByRole('heading', { name: 'Land 1 file' }).waitFor()
    await keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    // The focus goes back to where it was.
    await page.locator('[data-key="land"]:focus').waitFor()
    await keyboard.press('Escape')
    await page.getByRole('link', { name: /^Changes/ }).waitFor()
    await keyboard.press('Escape')
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await endJourney(t, tab)
  })

  await t.test('the palette finds pages, actions and conversations, and the keys are listed', async t => {
    await runTurn(daemon.client, 'heron', 'say hello', { title: 'Where herons stand' })
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    const { keyboard } = page
    await page.getByRole('link', { name: /^Where herons stand/ }).waitFor()
    await keyboard.press('Control+k')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('combobox').waitFor()
    t.same(await barriersOf(page), [])
    await keyboard.type('heron')
    await dialog.getByRole('option', { name: /herons/ }).waitFor()
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Where herons stand' }).waitFor()
    await keyboard.press('Control+k')
    await keyboard.type('nothing like it')
    await dialog.getByText('Nothing fits.').waitFor()
    await keyboard.press('Escape')
    await keyboard.press('r')
    await keyboard.type('g f ?')
    t.equal(await page.getByLabel('Message to the agent').inputValue(), 'g f ?', 'letters are typed into a field')
    await keyboard.press('Escape')
    await keyboard.press('?')
    await dialog.getByRole('heading', { name: 'Keys' }).waitFor()
    await dialog.getByText('Previous message of a person').waitFor()
    t.same(await barriersOf(page), [])
    await keyboard.press('Escape')
    await keyboard.press('Alt+ArrowUp')
    await page.getByRole('heading', { name: /write one/ }).waitFor()
    await page.evaluate('location.hash = "#/me"')
    await page.getByLabel(/^Keys without/).uncheck()
    await page.getByRole('heading', { name: 'You' }).click()
    await keyboard.press('g')
    await keyboard.press('f')
    await keyboard.press('Control+k')
    await dialog.getByRole('combobox').waitFor()
    t.match(page.url(), /#\/me$/, 'letters alone do nothing any more')
    await endJourney(t, tab)
  })
})
