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

/** What is hidden from sight and not placed inside of what scrolls it: it would make the document higher. */
const OUTSIDE_SCROLLER = `[...document.querySelectorAll('.visually-hidden')].filter(one => {
  if (!one.offsetParent) return false
  let scroller = one.parentElement
  while (scroller && !/auto|scroll/.test(getComputedStyle(scroller).overflowY)) scroller = scroller.parentElement
  return scroller && !scroller.contains(one.offsetParent)
}).map(one => one.outerHTML.slice(0, 200))`

/** Scrolls everything with the wheel and with a key to its end, and returns by how much the document is too high. */
const tooHigh = async (page: Page): Promise<unknown> => {
  const centres = (await page.evaluate(`[...document.querySelectorAll('body *')].filter(one =>
    /auto|scroll/.test(getComputedStyle(one).overflowY) && one.scrollHeight > one.clientHeight
  ).map(one => one.getBoundingClientRect()).map(({ x, y, width, height }) => [x + width / 2, y + height / 2])`)) as [
    number,
    number,
  ][]
  for (const [x, y] of [...centres, [300, 300] as const]) {
    await page.mouse.move(x, y)
    // The second one goes on where the first reached the end of a part.
    for (let times = 0; times < 2; times++) await page.mouse.wheel(0, 20_000)
  }
  await page.evaluate('document.activeElement?.blur()')
  await page.keyboard.press('End')
  await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  return page.evaluate(`[document.scrollingElement.scrollHeight - innerHeight, scrollY]`)
}

/** Labels beside a box that have no room: they take more than three lines. */
const SQUEEZED = `[...document.querySelectorAll('.check')]
  .filter(one => one.getBoundingClientRect().height > 76).map(one => one.outerHTML.slice(0, 200))`

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
  // With these the inbox is higher than every window.
  for (const id of ['asks-2', 'asks-3', 'asks-4']) {
    await client.call('POST /agent', { conversationId: id, prompt: 'ask Which one?\n| first\n| second' })
    await framesOf(client, id).until(({ kind }) => kind === 'question')
  }
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
      t.same(await tooHigh(page), [0, 0], 'scrolled to its end, the document is as high as the window')
      t.same(await page.evaluate(OUTSIDE_SCROLLER), [], 'what is only read aloud scrolls with what is around it')
      t.same(await clickedAlone(page), [], 'what is clicked can have the focus')
      t.same(await unreached(page), [], 'the Tab key reaches every control')
      t.same(await barriersOf(page), [], 'no barriers on a phone')
      await page.setViewportSize({ width: 1280, height: 720 })
      t.same(await tooHigh(page), [0, 0], 'also on a wide screen')
      t.same(await page.evaluate(SQUEEZED), [], 'labels have room')
      t.same(await barriersOf(page), [], 'no barriers on a wide screen')
    })
  }
  await endJourney(t, tab)
})
