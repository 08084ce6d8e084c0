import t from 'tap'
import { siteOf, until, withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  launchBrowser,
  loginLink,
  openTab,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { keyFrame } from '../../../plugins/console/web/data/extensions/view-keys.js'

const pressed = (key: string, more: object = {}) =>
  keyFrame({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more })

t.test('keys are passed on by their names, characters of a third level as text', async t => {
  t.same(pressed('a'), { type: 'key', key: 'a' })
  t.same(pressed('A', { shiftKey: true }), { type: 'key', key: 'A' })
  t.same(pressed('Tab', { shiftKey: true }), { type: 'key', key: 'Tab', shift: true })
  t.same(pressed('a', { metaKey: true }), { type: 'key', key: 'a', ctrl: true })
  t.same(pressed('@', { ctrlKey: true, altKey: true }), { type: 'text', text: '@' })
  for (const key of ['Shift', 'Control', 'Dead', 'Process']) t.equal(pressed(key), undefined)
})

const FORM = `<title>Form</title><body style="margin:0"><input autofocus oninput="document.title='typed '+this.value"
  style="position:fixed;left:100px;top:100px;width:200px;height:40px">`

t.test('terminals and browsers in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS, { files: { 'sub/a.txt': 'a\n' } })
  const browser = await launchBrowser(t)

  await t.test('a terminal is opened, typed into, left with the keyboard, and ended', async t => {
    const tab = await ownerTab(browser, daemon, '#/terminals')
    const { page } = tab
    await page.getByText('Terminals that people and agents open').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Open a terminal' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Work <b>')
    await dialog.getByLabel('Folder').fill('sub')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Open' }).click()
    await page.getByRole('heading', { name: 'Work <b>' }).waitFor()
    const screen = page.locator('.xterm-rows')
    await screen.getByText(/[$#]/).first().waitFor()
    // A shell that draws a prompt of several lines again, after a change of the size, writes over output.
    await page.keyboard.type("PS1='$ '; printf '\\033[38;2;200;10;10m%s-%s\\033[0m\\n' one two; ls\r")
    await screen.getByText('one-two').waitFor()
    await screen.getByText('a.txt').waitFor()
    const colourOf = (text: string) =>
      page.evaluate(`getComputedStyle([...document.querySelectorAll('.xterm-rows span')]
        .find(one => one.textContent.startsWith(${JSON.stringify(text)}))).color`)
    const [plain, red] = [await colourOf('a.txt'), await colourOf('one-two')]
    t.not(red, plain, 'the colours of programs are shown')
    t.same(await barriersOf(page), [])
    await page.locator('.xterm-helper-textarea').focus()
    await page.keyboard.press('Control+Shift+E')
    t.equal(await page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Back to the terminals')
    const { sessions } = await daemon.client.call('GET /system/terminals')
    t.equal(sessions[0]?.label, 'Work <b>')
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByLabel('Line to type').fill('echo from-$((1+1))-phone')
    await page.getByLabel('Line to type').press('Enter')
    await screen.getByText('from-2-phone').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByLabel('Line to type').fill('exit 3')
    await page.getByLabel('Line to type').press('Enter')
    await page.getByText('Its program has ended with code 3.').waitFor()
    await page.getByRole('link', { name: 'Back to the terminals' }).click()
    await page.getByText('Ended with 3').waitFor()
    await page.getByRole('button', { name: 'End Work <b>' }).click()
    await dialog.getByRole('button', { name: 'End' }).click()
    await page.getByText('Terminals that people and agents open').waitFor()
    await endJourney(t, tab)
  })

  await t.test('a terminal whose connection is cut shows everything once it is back', async t => {
    const { name } = await daemon.client.call('POST /system/terminals', { name: 'web-cut' })
    const tab = await openTab(browser, daemon, {})
    const { page } = tab
    let cut = (): Promise<void> => Promise.reject(new Error('there is no socket'))
    await page.routeWebSocket(/system\/terminal/, line => {
      line.connectToServer()
      cut = () => line.close()
    })
    await page.goto(await loginLink(daemon))
    await page.locator('[data-ready=yes]').waitFor()
    await page.evaluate(`location.hash = '#/terminals/${name}'`)
    const screen = page.locator('.xterm-rows')
    await screen.getByText(/[$#]/).first().waitFor()
    await page.keyboard.type('echo before-$((1+1))\r')
    await screen.getByText(/^before-2/).waitFor()
    await cut()
    await page.getByText('The connection to the terminal was lost').waitFor()
    await page.getByText('The connection to the terminal was lost').waitFor({ state: 'hidden' })
    await page.keyboard.type('echo after-$((1+1))\r')
    await screen.getByText(/^after-2/).waitFor()
    t.equal(await screen.getByText(/^before-2/).count(), 1)
    await endJourney(t, tab)
    await daemon.client.call('DELETE /system/terminals/{name}', { name })
  })

  await t.test('a browser is opened, looked at, clicked and typed into', async t => {
    const site = await siteOf(t, { '/': FORM, '/two': '<title>Two</title>the second page' })
    const tab = await ownerTab(browser, daemon, '#/browsers')
    const { page } = tab
    await page.getByText('Browsers that people and agents open').waitFor()
    await page.getByRole('button', { name: 'Open a browser' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Address').fill(site.url)
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Open' }).click()
    const picture = page.locator('canvas[data-pictures]')
    await picture.waitFor()
    t.same(await barriersOf(page), [])
    const { width, height } = (await picture.boundingBox())!
    await picture.click({ position: { x: (150 / 1280) * width, y: (120 / 800) * height } })
    await page.keyboard.type('hello')
    await until(async () => {
      const { sessions } = await daemon.client.call('GET /system/browsers')
      return sessions[0]?.pages[0]?.title === 'typed hello'
    })
    await page.keyboard.press('Control+Shift+E')
    t.equal(await page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Back to the browsers')
    await page.getByLabel('Address').fill(`${site.url}/two`)
    await page.getByRole('button', { name: 'Go', exact: true }).click()
    await page.getByLabel('Page Two').waitFor()
    await page.getByRole('button', { name: 'Read as text' }).click()
    await dialog.getByText('the second page').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: /^Close/ }).click()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByText('This browser is closed.').waitFor()
    await endJourney(t, tab)
  })
})
