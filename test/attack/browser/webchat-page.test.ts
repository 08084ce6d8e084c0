import type { BrowserContext, Frame, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { automationsDaemon, until } from '../../support/automations.js'
import { siteOf, withChromium, type Site } from '../../support/browser/browser.js'
import { launchBrowser } from '../../support/browser/console.js'
import type { Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { chat } from '../../support/webchat.js'

/** Nothing may run or be drawn on these pages but what the site and the sandbox serve. */
const policyOf = (sandbox: string) =>
  [
    ...["default-src 'none'", `script-src ${sandbox}`, `connect-src ${sandbox}`, "style-src 'none'", "base-uri 'none'"],
    ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
  ].join('; ')

/** A site whose page loads the chat, behind a strict policy. */
const siteWith = (t: Test, daemon: Support, id: string, host = '127.0.0.1'): Promise<Site> =>
  siteOf(
    t,
    {
      '/': (_, response) =>
        void response
          .writeHead(200, {
            'content-type': 'text/html; charset=utf-8',
            'content-security-policy': policyOf(daemon.url),
          })
          .end(
            `<!doctype html><html lang="en"><title>Shop</title><h1>Shop</h1>`
              + `<script src="${daemon.url}/webchat/widget.js" data-automation="${id}" async></script>`,
          ),
    },
    host,
  )

/** The colours of the panel, of which the page's own scripts see nothing. */
const COLOURS = `(panel => [getComputedStyle(panel).backgroundColor, getComputedStyle(panel).color])(
  [...document.body.children].find(one => one.shadowRoot).shadowRoot.querySelector('.panel'))`

/** Opens closed shadow roots, which a page cannot. */
const opened = async (context: BrowserContext): Promise<void> => {
  await context.addInitScript(`{
    const attach = Element.prototype.attachShadow
    Element.prototype.attachShadow = function (init) {
      globalThis.closedMode = init.mode
      return attach.call(this, { ...init, mode: 'open' })
    }
  }`)
}

const saidIn = (page: Page | Frame): Promise<string[]> => page.locator('.log p').allInnerTexts()

t.test(
  'a visitor chats on an admitted site, loads the page again in the middle of an answer and sees it once',
  withChromium(),
  async t => {
    const daemon = await automationsDaemon(t)
    const site = await siteWith(t, daemon, 'shop')
    const other = await siteWith(t, daemon, 'shop', '127.0.0.2')
    const prompt = 'say <img src=x onerror=alert(1)> We\nwait 2500\nsay ship.'
    await daemon.client.call(
      'POST /automations',
      chat('shop', { prompt, webchat: { title: 'Ask us', greeting: 'Hi.' } }, [site.url]),
    )
    const browser = await launchBrowser(t)
    const context = await browser.newContext({ reducedMotion: 'reduce' })
    await opened(context)
    const page = await context.newPage()
    const faults: string[] = []
    page.on('console', message => message.type() === 'error' && faults.push(message.text()))
    page.on('pageerror', error => faults.push(error.message))
    page.on('dialog', dialog => void faults.push(`a script ran: ${dialog.message()}`))

    await t.test('it opens, is used and closed with the keyboard', async t => {
      await page.goto(site.url)
      await page.getByRole('button', { name: 'Ask us' }).waitFor()
      t.equal(await page.evaluate('closedMode'), 'closed')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog', { name: 'Ask us' }).waitFor()
      await page.keyboard.type('Do you ship?')
      await page.keyboard.press('Enter')
      await page.locator('.log').getByText('alert(1)', { exact: false }).waitFor()
    })

    await t.test('after a reload in the middle of the answer it is there once, as text', async t => {
      await page.reload()
      await page.getByRole('button', { name: 'Ask us (new answer)' }).click()
      const said = await saidIn(page)
      t.match(
        said.map(text => text.replace(/\s+/g, ' ')),
        exactly('Answer: Hi.', 'You: Do you ship?', 'Answer: <img src=x onerror=alert(1)> We ship.'),
      )
      t.equal(await page.locator('.log img').count(), 0)
      t.equal((await until(daemon, 'shop', ({ running }) => !running)).runs.length, 1)
      await page.keyboard.press('Escape')
      t.equal(await page.getByRole('dialog').count(), 0)
      t.match(await page.evaluate('document.activeElement?.shadowRoot?.activeElement?.textContent'), 'Ask us')
      t.same(faults, [], 'under the policy of the page')
    })

    await t.test('on a phone it fills the screen, in both themes it can be read', async t => {
      await page.setViewportSize({ width: 360, height: 640 })
      await page.getByRole('button', { name: 'Ask us' }).click()
      const box = (await page.getByRole('dialog').boundingBox())!
      t.same([box.width, box.height], [360, 640])
      for (const button of await page.getByRole('button').all())
        t.ok(((await button.boundingBox())?.height ?? 44) >= 44, 'a target for fingers')
      const colours = async (colorScheme: 'light' | 'dark') => {
        await page.emulateMedia({ colorScheme })
        return page.evaluate(COLOURS)
      }
      t.same(
        [await colours('light'), await colours('dark')],
        [
          ['rgb(255, 255, 255)', 'rgb(27, 28, 31)'],
          ['rgb(23, 24, 28)', 'rgb(236, 236, 241)'],
        ],
      )
      await page.setViewportSize({ width: 1280, height: 720 })
    })

    await t.test('a page of another site gets nothing, in the preflight already', async t => {
      const stranger = await context.newPage()
      await stranger.goto(other.url)
      const tried = (init: object, path = 'config') =>
        stranger.evaluate(
          `fetch(${JSON.stringify(`${daemon.url}/webchat/shop/${path}`)}, ${JSON.stringify(init)})`
            + '.then(({ status }) => status, error => error.name)',
        )
      t.equal(await tried({}), 'TypeError')
      const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
      t.equal(await tried(post, 'message'), 'TypeError')
      t.equal(await tried({ method: 'POST', body: '{}', mode: 'no-cors' }, 'message'), 'TypeError', 'sent, and refused')
      t.equal(await stranger.getByRole('button').count(), 0)
      const { runs, ...row } = await daemon.client.call('GET /automations/{id}', { id: 'shop' })
      t.equal(runs.length, 1)
      t.match(
        row.installs?.map(({ origin, allowed }) => `${origin} ${allowed}`).sort(),
        exactly(`${site.url} true`, `${other.url} false`),
      )
      await stranger.close()
    })
    await context.close()
  },
)

/** Loses the answers to as many messages as the page says in `lost`, after they have arrived. */
const LOSSY = `{
  const ask = globalThis.fetch
  globalThis.fetch = async (...given) => {
    const response = await ask(...given)
    if (!String(given[0]).endsWith('/message') || !(globalThis.lost-- > 0)) return response
    await response.text()
    throw new TypeError('lost')
  }
}`

t.test('a lost answer, a reload, a closed thread or a hasty key costs a visitor no answer', withChromium(), async t => {
  const daemon = await automationsDaemon(t)
  const site = await siteWith(t, daemon, 'shop')
  const save = (prompt: string) =>
    daemon.client.call('POST /automations', chat('shop', { prompt, webchat: { title: 'Ask us' } }, [site.url]))
  const runs = async () => (await until(daemon, 'shop', ({ running }) => !running)).runs.length
  await save('say We ship.')
  const browser = await launchBrowser(t)
  const context = await browser.newContext({ reducedMotion: 'reduce' })
  await opened(context)
  await context.addInitScript(LOSSY)
  const page = await context.newPage()
  await page.goto(site.url)
  await page.getByRole('button', { name: 'Ask us' }).click()
  const words = page.getByLabel('Your message')

  await t.test('what is sent again after its answer was lost is the same message', async t => {
    for (const [at, text] of ['Do you ship?', 'And to Chile?'].entries()) {
      await page.evaluate('globalThis.lost = 1')
      await words.fill(text)
      await words.press('Enter')
      await page.getByText('This did not work.').waitFor()
      await page.getByRole('button', { name: 'Send' }).click()
      await page
        .locator(`.log p:nth-child(${at * 2 + 2})`)
        .getByText('We ship.')
        .waitFor()
    }
    t.match(await saidIn(page), exactly(/Do you ship/, /We ship/, /And to Chile/, /We ship/))
    t.equal(await runs(), 2)
  })

  await t.test('a page that is loaded again waits for the answer that is missing, not for an older one', async t => {
    await save('say Yes\nwait 1500\nsay indeed.')
    await words.fill('Really?')
    await words.press('Enter')
    await page.getByRole('button', { name: 'Send', disabled: false }).waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Ask us (new answer)' }).waitFor()
    t.equal((await page.locator('.log p.agent').allTextContents()).length, 3)
    await save('say We ship.')
  })

  await t.test('after its thread was closed an open page begins another one, and shows its answers', async t => {
    await page.getByRole('button', { name: 'Ask us (new answer)' }).click()
    const closed = page.waitForResponse(response => response.url().includes('/stream') && response.status() >= 400)
    await daemon.client.call('DELETE /automations/{id}', { id: 'shop' })
    await save('say We ship.')
    await closed
    await words.fill('Hello again')
    await words.press('Enter')
    await page.locator('.log p.visitor').getByText('Hello again').waitFor()
    await page.locator('.log p:last-child').getByText('We ship.').waitFor()
    t.equal(await runs(), 1)
  })

  await t.test(
    'a first message is sent once and answered, however often Enter is pressed and the chat closed',
    async t => {
      await daemon.client.call('DELETE /automations/{id}', { id: 'shop' })
      await save('say We ship.')
      await page.evaluate('localStorage.clear()')
      await page.reload()
      await page.getByRole('button', { name: 'Ask us' }).click()
      await words.fill('Hello')
      for (const key of ['Enter', 'Enter', 'Escape']) await words.press(key)
      await page.getByRole('button', { name: 'Ask us (new answer)' }).waitFor()
      t.equal(await runs(), 1)
    },
  )
  await context.close()
})
