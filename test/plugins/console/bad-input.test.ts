import t from 'tap'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  launchBrowser,
  loginLink,
  openTab,
  ownerBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { inTime } from '../../support/in-time.js'
import { STATUS, type Reason } from '../../../sdk/refusal.js'
import { runTurn } from '../../support/turns.js'

/** The kinds of refusals that an action can end in. */
const REASONS = (Object.keys(STATUS) as Reason[]).filter(reason => reason !== 'unauthenticated')

t.test('bad input in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS, { files: { 'README.md': '# work\n', 'script.sh': 'true\n' } })
  const browser = await launchBrowser(t)

  await t.test('huge and hostile texts are shown in bounded time, large blocks on request', async t => {
    const rows = Array.from({ length: 1_000 }, (_, at) => `| |${` ${at} |`.repeat(50)}`)
    const table = [`| |${' h |'.repeat(50)}`, `| |${' - |'.repeat(50)}`, ...rows]
    await runTurn(daemon.client, 'huge', ['say', ...table, '|', `| ${'x'.repeat(300_000)}`].join('\n'))
    const open = ['say', '| \u001b[31mred\u001b[0m nul \u0000 bidi \u202e end', '|', '| ~~~ts', '| const open = 1']
    await runTurn(daemon.client, 'hostile', open.join('\n'))
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    const began = performance.now()
    await goTo(page, '#/c/huge')
    const blocks = page.locator('.prose').getByRole('button', { name: /^Show a block of [\d,.]+ characters$/ })
    await blocks.nth(1).waitFor()
    await blocks.first().click()
    await page.getByText(/^[\d,.]+ more rows$/).waitFor()
    t.ok(inTime(began, 5_000), 'within five seconds')
    t.ok((await page.locator('td').count()) <= 2_000)
    await goTo(page, '#/c/hostile')
    await page.getByText('const open = 1').last().waitFor()
    t.match(await page.locator('.prose').last().textContent(), /⟨U\+202E⟩/)
    await endJourney(t, tab)
  })

  await t.test('long titles, strange names, empty and binary files are shown', async t => {
    const prompt = [
      `run printf x > "$(printf 'two\\nlines.txt')"; : > empty.txt; chmod +x script.sh`,
      'run head -c 99 /dev/zero > some.dat',
      'say done',
    ].join('\n')
    await runTurn(daemon.client, 'strange', prompt, { isolated: true, title: '😀'.repeat(40) })
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    await page.getByRole('link', { name: '😀'.repeat(40) }).waitFor()
    await goTo(page, '#/c/strange/changes')
    await page.getByRole('link', { name: /some\.dat/ }).click()
    await page.getByText('A binary file: its content is not shown.').waitFor()
    for (const name of [/empty\.txt/, /script\.sh/]) {
      await page.getByRole('link', { name }).click()
      await page.getByRole('region', { name }).getByText('Both sides have the same text.').waitFor()
    }
    await page.getByRole('link', { name: /two⏎lines\.txt/ }).click()
    await page.getByRole('region', { name: 'two⏎lines.txt' }).getByText('x', { exact: true }).waitFor()
    await endJourney(t, tab)
  })

  await t.test('each refusal is shown in the words of the daemon, and the message stays', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/strange')
    const { page } = tab
    const composer = page.getByLabel('Message to the agent')
    await composer.fill('a message')
    for (const reason of REASONS) {
      const status = STATUS[reason]
      const body = JSON.stringify({ message: `refused with ${status}`, reason })
      await page.route('**/agent', route => route.fulfill({ status, contentType: 'application/json', body }))
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText(`Refused with ${status}.`).waitFor()
      t.equal(await composer.inputValue(), 'a message')
      await page.unrouteAll()
    }
    await endJourney(t, tab, /status of [45]/)
  })

  await t.test('a message whose answer is lost is sent again without effect', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/strange')
    const { page } = tab
    const ids: unknown[] = []
    await page.route('**/agent', async route => {
      ids.push((route.request().postDataJSON() as { messageId?: string }).messageId)
      if (ids.length > 1) return route.continue()
      await route.fetch()
      await route.abort('connectionreset')
    })
    await page.getByLabel('Message to the agent').fill('say only once')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('only once', { exact: true }).waitFor()
    await page.getByText('The sandbox does not answer.').waitFor()
    await page.getByRole('button', { name: 'Send' }).click()
    await until(() => ids.length > 1)
    t.ok(ids[0] !== undefined && new Set(ids).size === 1, 'with the same id')
    const { messages } = await daemon.client.call('GET /agents/{id}/transcript', { id: 'strange', limit: 50 })
    t.equal(messages.filter(({ role, text }) => role === 'user' && text === 'say only once').length, 1)
    await endJourney(t, tab, /ERR_/)
  })

  await t.test('a browser that keeps nothing and has no locks says so, and works', async t => {
    const tab = await openTab(browser, daemon)
    const { page } = tab
    await page.addInitScript(() => {
      Object.defineProperty(globalThis, 'indexedDB', { value: undefined })
      for (const name of ['localStorage', 'sessionStorage'])
        Object.defineProperty(globalThis, name, {
          get: () => {
            throw new Error('denied')
          },
        })
      Object.defineProperty(Object.getPrototypeOf(navigator), 'locks', { value: undefined })
    })
    await page.goto(await loginLink(daemon))
    await page.getByText('you are signed in until you close the tab').waitFor()
    await runTurn(daemon.client, 'kept', 'say hello', { title: 'Seen without storage' })
    await page.getByRole('link', { name: /^Seen without storage/ }).waitFor()
    await goTo(page, '#/c/kept')
    await page.getByLabel('Message to the agent').fill('a draft')
    await goTo(page, '#/fleet')
    await goTo(page, '#/c/kept')
    t.equal(await page.getByLabel('Message to the agent').inputValue(), 'a draft', 'kept for this tab')
    await endJourney(t, tab)
    await page.context().close()
  })

  await t.test(
    'a sandbox that was replaced drops what was shown, and one that was updated offers a reload',
    async t => {
      const stream = await daemon.fetch('/events?clientId=probe&roster=delta')
      const reader = stream.body!.getReader()
      let text = ''
      while (!text.includes('"kind":"agents"')) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`the stream ended: ${text}`)
        text += new TextDecoder().decode(value)
      }
      await reader.cancel()
      const events = text.slice(0, text.lastIndexOf('\n\n') + 2)
      const hello = events.split(/(?<=\n\n)/).find(one => one.includes('"kind":"hello"'))!
      const other = hello
        .replace(/"workspaceId":"[^"]*"/, '"workspaceId":"other"')
        .replace(/"build":"[^"]*"/, '"build":"other"')
      t.not(other, hello)
      const tab = await openTab(browser, daemon)
      const { page } = tab
      let asked = 0
      await page.route('**/events*', route => {
        asked += 1
        const headers = { 'content-type': 'text/event-stream' }
        return asked > 2 ? undefined : route.fulfill({ headers, body: asked === 1 ? events : other })
      })
      await page.goto(await loginLink(daemon))
      await page.getByRole('link', { name: /^Seen without storage/ }).waitFor()
      await page.getByText('The sandbox was updated.').waitFor()
      await page.getByRole('link', { name: /^Seen without storage/ }).waitFor({ state: 'detached' })
      await endJourney(t, tab)
      await page.context().close()
    },
  )

  await t.test('who signs in again comes back to the same place and draft', async t => {
    const tab = await ownerBrowser(browser, daemon, '#/c/strange')
    const { page } = tab
    await page.getByLabel('Message to the agent').fill('half a thought')
    await daemon.client.call('POST /system/sessions/revoke', { email: 'owner@sandbox.local' })
    await page.getByText('Your session has ended.').waitFor()
    await page.goto(await loginLink(daemon))
    await page.getByLabel('Message to the agent').waitFor()
    t.match(page.url(), /#\/c\/strange$/)
    t.equal(await page.getByLabel('Message to the agent').inputValue(), 'half a thought')
    await endJourney(t, tab, /401|ERR_INCOMPLETE_CHUNKED_ENCODING/)
    await page.context().close()
  })
})
