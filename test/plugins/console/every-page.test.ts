import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { barriersOf, endJourney, goTo, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { project } from '../../support/browser/page.js'
import { daemonWith } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'

const registry = readFileSync(join(project, 'plugins/console/web/pages/registry.ts'), 'utf8')
/** The pages, but for the view of an extension, which `extension-pages.test.ts` opens. */
const NAMES = [...registry.matchAll(/^ {4}name: '([^']+)'/gm)].map(([, name]) => name!).filter(name => name !== 'x')
const PLACES = NAMES.flatMap(name => (name === 'c' ? ['#/c/done', '#/c/done/changes', '#/c/asks'] : [`#/${name}`]))

/** Controls that are drawn outside the window and cannot be scrolled to. */
const OUTSIDE = `[...document.querySelectorAll('a[href], button, input, select, textarea')].filter(one => {
  const { left, right, width } = one.getBoundingClientRect()
  if (width === 0 || (left >= -1 && right <= innerWidth + 1)) return false
  for (let at = one.parentElement; at; at = at.parentElement)
    if (/auto|scroll/.test(getComputedStyle(at).overflowX) && at.scrollWidth > at.clientWidth) return false
  return true
}).map(one => one.outerHTML.slice(0, 200))`

/** What reacts to a click and has no place among what the keyboard reaches. */
const CLICKED = `[...document.querySelectorAll('body *')].filter(one => {
  if (!getEventListeners(one).click || one.getClientRects().length === 0) return false
  const own = 'a[href], button, input, select, textarea, summary, label, [tabindex], [role=option], [role=tab]'
  return !one.matches(own) && !one.querySelector(own)
}).map(one => one.outerHTML.slice(0, 200))`

const clickedAlone = async (page: Page): Promise<unknown> => {
  const session = await page.context().newCDPSession(page)
  const asked = { expression: CLICKED, includeCommandLineAPI: true, returnByValue: true }
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', asked)
  await session.detach()
  return exceptionDetails?.text ?? result.value
}

/** Goes through a page with the Tab key, and returns the controls that it did not reach. */
const unreached = async (page: Page): Promise<unknown> => {
  await page.evaluate(`(() => {
    document.activeElement?.blur()
    if (!window.reached) document.addEventListener('focusin', ({ target }) => window.reached.add(target))
    window.reached = new Set()
  })()`)
  const focusable = 'a[href], button, input, select, textarea, summary, [tabindex]'
  const count = await page.locator(focusable).count()
  // Of a group the arrow keys reach the others: of radio buttons, tabs and lists one takes the focus.
  const left = `[...document.querySelectorAll('a[href], button, input, select, textarea')].filter(one =>
    one.checkVisibility({ visibilityProperty: true }) && !one.disabled
    && one.type !== 'radio' && one.tabIndex >= 0 && !window.reached.has(one)).map(one => one.outerHTML.slice(0, 200))`
  for (let key = 0; key < count + 20; key++) {
    if (key % 10 === 0 && (await page.evaluate(`${left}.length`)) === 0) break
    await page.keyboard.press('Tab')
  }
  return page.evaluate(left)
}

t.test('every page works on a phone and by keyboard, in both themes', withChromium(), async t => {
  const daemon = await daemonWith(t, [], { files: { 'README.md': '# work\n', 'src/main.ts': 'export {}\n' } })
  const { client } = daemon
  await runTurn(client, 'done', 'write src/new.ts\n| export const one = 1\nsay **done**', {
    ...{ isolated: true, title: 'A conversation with a title that is longer than a phone is wide, by far' },
  })
  await client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Which one?\n| first\n| second' })
  await framesOf(client, 'asks').until(({ kind }) => kind === 'question')
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon, '#/fleet', { width: 390, height: 844 })
  const { page } = tab
  for (const place of PLACES) {
    await t.test(place, async t => {
      await page.setViewportSize({ width: 390, height: 844 })
      await goTo(page, place)
      await page.locator('main').waitFor()
      await page.locator('.bones').first().waitFor({ state: 'detached' })
      t.same(await page.evaluate(OUTSIDE), [], 'every control is within reach at 390 px')
      t.same(await clickedAlone(page), [], 'what is clicked can have the focus')
      t.same(await unreached(page), [], 'the Tab key reaches every control')
      t.same(await barriersOf(page), [], 'no barriers on a phone')
      await page.setViewportSize({ width: 1280, height: 720 })
      t.same(await barriersOf(page), [], 'no barriers on a wide screen')
    })
  }
  await endJourney(t, tab)
})
