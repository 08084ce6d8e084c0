import type { CDPSession, Page } from 'playwright-core'
import t from 'tap'
import { until, withChromium } from '../../../support/browser/browser.js'
import { browserWithBars, CONSOLE_GROUPS, goTo, loginLink, openTab } from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { runTurn } from '../../../support/turns.js'

const LIST = `document.querySelector('.transcript')`
/** The middle of the transcript on both sizes. */
const [X, Y] = [300, 300]

interface Place {
  /** The first row in view. */
  readonly row: string
  /** Where it is in the window. */
  readonly top: number
  /** How far the end of the list is below its window. */
  readonly below: number
}

const placeIn = (page: Page): Promise<Place> =>
  page.evaluate(`(() => {
    const list = ${LIST}
    const { top } = list.getBoundingClientRect()
    const first = [...list.querySelectorAll('.list-item')].find(one => one.getBoundingClientRect().bottom > top + 4)
    return {
      row: first.textContent,
      top: Math.round(first.getBoundingClientRect().top),
      below: Math.round(list.scrollHeight - list.scrollTop - list.clientHeight),
    }
  })()`)

/** Waits until the list has not moved for some frames. */
const rest = (page: Page): Promise<unknown> =>
  page.evaluate(`new Promise(resolve => {
    let [still, before] = [0, -1]
    const look = () => {
      const { scrollTop } = ${LIST}
      still = scrollTop === before ? still + 1 : 0
      before = scrollTop
      if (still > 15) resolve()
      else requestAnimationFrame(look)
    }
    look()
  })`)

/** Waits until an expression of the page is true. */
const holds = (page: Page, expression: string): Promise<void> =>
  until(async () => Boolean(await page.evaluate(expression)))

const touch = async (session: CDPSession, from: number, to: number): Promise<void> => {
  const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: { x: number; y: number }[]) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints })
  await send('touchStart', [{ x: X, y: from }])
  for (let step = 1; step <= 10; step++) await send('touchMove', [{ x: X, y: from + ((to - from) * step) / 10 }])
  await send('touchEnd', [])
}

/** Drags the handle of the scroll bar by this distance. */
const dragBar = async (page: Page, by: number): Promise<void> => {
  const { x, y } = await page.evaluate<{ x: number; y: number }>(`(() => {
    const list = ${LIST}
    const { right, top, height } = list.getBoundingClientRect()
    const middle = (list.scrollTop + list.clientHeight / 2) / list.scrollHeight
    return { x: right - 5, y: top + 15 + middle * (height - 30) }
  })()`)
  await page.mouse.move(x, y)
  await page.mouse.down()
  await page.mouse.move(x, y + by, { steps: 10 })
  await page.mouse.up()
}

type Move = (page: Page, session: CDPSession) => Promise<unknown>

const press =
  (key: string, times = 1): Move =>
  async page => {
    for (let time = 0; time < times; time++) await page.keyboard.press(key)
  }

const inList =
  (move: Move): Move =>
  async (page, session) => {
    await page.locator('.transcript').focus()
    await move(page, session)
  }

/** Ways to scroll up, each with its way back. */
const WAYS: { readonly [name: string]: readonly [up: Move, down: Move] } = {
  'the wheel': [page => page.mouse.wheel(0, -300), page => page.mouse.wheel(0, 9_000)],
  'Page Up and Page Down': [inList(press('PageUp')), inList(press('PageDown', 3))],
  'Home and End': [inList(press('Home')), inList(press('End'))],
  'the arrows': [inList(press('ArrowUp', 9)), inList(press('ArrowDown', 60))],
  'the space bar': [inList(press('Shift+Space')), inList(press('Space', 4))],
  'a finger': [(_, session) => touch(session, 200, 450), (_, session) => touch(session, 560, 60)],
  'keys without a focus': [press('PageUp'), press('End')],
  'Page Up in the composer': [
    async page => {
      await page.getByLabel('Message to the agent').focus()
      await page.keyboard.press('PageUp')
    },
    press('PageDown', 3),
  ],
}

const SIZES = { wide: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } }

t.setTimeout(180_000)

t.test('a conversation is read', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const { client } = daemon
  for (let turn = 0; turn < 4; turn++) await runTurn(client, 'past', `repeat 45 say row $n of turn ${turn}`)
  const browser = await browserWithBars(t)
  // Animated as people have it: also then a scroll is judged at its end.
  const options = { hasTouch: true, reducedMotion: 'no-preference' } as const
  const { page, faults } = await openTab(browser, daemon, options)
  page.setDefaultTimeout(20_000)
  const session = await page.context().newCDPSession(page)
  await page.goto(await loginLink(daemon))
  await page.locator('[data-ready=yes]').waitFor()

  const openPast = async (size: keyof typeof SIZES) => {
    await page.setViewportSize(SIZES[size])
    await goTo(page, '#/me')
    await goTo(page, '#/c/past')
    await page.getByText('row 45 of turn 3').waitFor()
    await page.evaluate('document.activeElement?.blur()')
    await page.mouse.move(X, Y)
    await rest(page)
  }

  for (const size of ['wide', 'phone'] as const)
    for (const [name, [up, down]] of Object.entries(WAYS))
      await t.test(`with ${name} (${size})`, async t => {
        await openPast(size)
        t.ok((await placeIn(page)).below < 2, 'it begins at its end')
        await up(page, session)
        await rest(page)
        const { below } = await placeIn(page)
        t.ok(below > 100, `it stays where the person scrolled to, ${below} pixels above its end`)
        // Earlier messages were loaded on the way.
        for (let times = 0; times < 40 && (await placeIn(page)).below >= 2; times++) {
          await down(page, session)
          await rest(page)
        }
        t.ok((await placeIn(page)).below < 2, 'it comes back to its end')
      })

  await t.test('with the scroll bar', async t => {
    await openPast('wide')
    await dragBar(page, -120)
    await rest(page)
    t.ok((await placeIn(page)).below > 100)
    await dragBar(page, 700)
    await rest(page)
    t.ok((await placeIn(page)).below < 2)
  })

  for (const size of ['wide', 'phone'] as const)
    await t.test(`earlier messages are loaded above what is read, which stays in its place (${size})`, async t => {
      await openPast(size)
      let release = () => {}
      let asked = 0
      await page.route(/\/transcript\?.*before=/, async route => {
        asked += 1
        await new Promise<void>(resolve => {
          release = resolve
        })
        await route.continue()
      })
      // The last part as well, with which the link to load more is gone.
      for (let part = 1; (await page.locator('.earlier').count()) > 0; part++) {
        while (asked < part) {
          await page.mouse.wheel(0, -150)
          await rest(page)
        }
        const before = await placeIn(page)
        const rows = page.locator('.list-item').first()
        const count = await rows.getAttribute('aria-setsize')
        release()
        await holds(page, `document.querySelector('.list-item').ariaSetSize !== '${count}'`)
        await rest(page)
        const top = Number(
          await page.evaluate(`[...document.querySelectorAll('.list-item')]
            .find(one => one.textContent === ${JSON.stringify(before.row)})?.getBoundingClientRect().top`),
        )
        t.ok(Math.abs(top - before.top) <= 1, `at ${top}, before at ${before.top}`)
        t.equal(await page.locator('.list-new').count(), 0, 'nothing of it counts as new')
      }
      t.ok(asked > 2)
      await page.unrouteAll()
      await page.keyboard.press('Home')
      await rest(page)
      t.match((await placeIn(page)).row, /repeat 45 say row \$n of turn 0/)
    })

  await t.test('while its turn goes on', async t => {
    await page.setViewportSize(SIZES.wide)
    const script = Array.from({ length: 4_000 }, (_, at) => `say streamed row ${at}\nwait 100`).join('\n')
    await client.call('POST /agent', { conversationId: 'live', prompt: script })
    await goTo(page, '#/c/live')
    const newest = page.locator('.list-new')
    for (const [name, [up, down]] of Object.entries(WAYS))
      await t.test(`with ${name}`, async t => {
        await page.mouse.move(X, Y)
        await holds(page, `${LIST}.scrollTop > 800`)
        await up(page, session)
        await rest(page)
        const before = await placeIn(page)
        await holds(page, `parseInt(document.querySelector('.list-new')?.textContent) > 8`)
        const { row, top, below } = await placeIn(page)
        t.same([row, top], [before.row, before.top], 'what is read stays in its place')
        t.ok(below > 100)
        for (let times = 0; times < 40 && (await newest.count()) > 0; times++) {
          await down(page, session)
          await page.waitForTimeout(50)
        }
        const last = await page.locator('.prose').last().textContent()
        await holds(page, `[...document.querySelectorAll('.prose')].at(-1).textContent !== ${JSON.stringify(last)}`)
        t.ok((await placeIn(page)).below < 50, 'it follows the end again')
        t.equal(await newest.count(), 0)
      })
    await client.call('POST /agent/stop', { conversationId: 'live' })
  })
  t.same(faults, [])
})
