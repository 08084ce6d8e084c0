import t from 'tap'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  closeTab,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  launchBrowser,
  loginLink,
  openTab,
  ownBrowser,
  ownerBrowser,
  ownerTab,
  PRIVATE_HOST,
} from '../../support/browser/console.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { inTime } from '../../support/in-time.js'
import { STATUS, type Reason } from '../../../sdk/refusal.js'
import { runTurn } from '../../support/turns.js'

/** The kinds of refusals that an action can end in. */
const REASONS = (Object.keys(STATUS) as Reason[]).filter(reason => reason !== 'unauthenticated')

/** The events with which a stream begins, as they are sent. */
const eventsOf = async (daemon: Support): Promise<string> => {
  const stream = await daemon.fetch('/events?clientId=probe&roster=delta')
  const reader = stream.body!.getReader()
  let text = ''
  while (!text.includes('"kind":"agents"')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`the stream ended: ${text}`)
    text += new TextDecoder().decode(value)
  }
  await reader.cancel()
  return text.slice(0, text.lastIndexOf('\n\n') + 2)
}

t.test('bad input in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS, {
    files: { 'README.md': '# work\n', 'script.sh': 'true\n' },
    deployment: { http: { hosts: [PRIVATE_HOST] } },
  })
  const browser = await launchBrowser(t)

  await t.test('huge and hostile texts are shown in bounded time, large blocks on request', async t => {
    const rows = Array.from({ length: 1_000 }, (_, at) => `| |${` ${at} |`.repeat(50)}`)
    const table = [`| |${' h |'.repeat(50)}`, `| |${' - |'.repeat(50)}`, ...rows]
    await runTurn(daemon.client, 'huge', ['say', ...table, '|', `| ${'x'.repeat(300_000)}`].join('\n'))
    // The longest message there is: one line, in one frame.
    await runTurn(daemon.client, 'line', `say ${'y'.repeat(1024 * 1024 - 4)}`)
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
    const opened = performance.now()
    await goTo(page, '#/c/line')
    const prose = page.locator('.prose')
    await prose.getByRole('button', { name: /^Show a block of [\d,.]+ characters$/ }).click()
    await prose.locator('p', { hasText: /^y+$/ }).waitFor()
    t.equal((await prose.locator('p').textContent())?.length, 1024 * 1024 - 4)
    t.ok(inTime(opened, 10_000), 'within ten seconds')
    await goTo(page, '#/c/hostile')
    await page.getByText('const open = 1').last().waitFor()
    const shown = 'red⟨U+001B⟩[0m nul ⟨U+0000⟩ bidi ⟨U+202E⟩ end'
    t.ok((await page.locator('.prose').last().textContent())?.startsWith(`⟨U+001B⟩[31m${shown}`))
    await endJourney(t, tab)
  })

  await t.test('long titles, strange names, empty and binary files are shown', async t => {
    const prompt = [
      `run printf x > "$(printf 'two\\nlines.txt')"; : > empty.txt; chmod +x script.sh`,
      'run head -c 99 /dev/zero > some.dat',
      "run head -c 2000000 /dev/zero | tr '\\0' 'z' > long.txt",
      'say done',
    ].join('\n')
    await runTurn(daemon.client, 'strange', prompt, { isolated: true, title: '😀'.repeat(80) })
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    await page.getByRole('link', { name: '😀'.repeat(80) }).waitFor()
    await goTo(page, '#/c/strange/changes')
    await page.getByRole('link', { name: /some\.dat/ }).click()
    await page.getByText('A binary file: its content is not shown.').waitFor()
    for (const name of [/empty\.txt/, /script\.sh/]) {
      await page.getByRole('link', { name }).click()
      await page.getByRole('region', { name }).getByText('Both sides have the same text.').waitFor()
    }
    await page.getByRole('link', { name: /long\.txt/ }).click()
    await page
      .getByRole('region', { name: 'long.txt' })
      .getByText('Only the first MiB of this file is shown.')
      .waitFor()
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

  await t.test('what has no answer is asked again with its id, and done once', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/strange')
    const { page } = tab
    /** Loses the first answer to a call, and keeps what is sent. */
    const loseAnswer = async (path: string): Promise<{ messageId?: string; requestId?: string }[]> => {
      const sent: { messageId?: string; requestId?: string }[] = []
      await page.route(path, async route => {
        sent.push(route.request().postDataJSON() as object)
        if (sent.length > 1) return route.continue()
        await route.fetch()
        await route.abort('connectionreset')
      })
      return sent
    }
    const messages = await loseAnswer('**/agent')
    await page.getByLabel('Message to the agent').fill('ask Which one?\n| A: first\n| B: second\nsay took $answer')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Sending').waitFor({ state: 'hidden' })
    t.equal(messages.length, 2)
    t.ok(messages[0]?.messageId && messages[0].messageId === messages[1]?.messageId, 'the same message')
    const replies = await loseAnswer('**/agent/reply')
    await page.getByLabel('B second').check()
    await page.getByRole('button', { name: 'Answer' }).click()
    await page.getByText('took B').last().waitFor()
    await until(() => replies.length === 2)
    t.ok(replies[0]?.requestId && replies[0].requestId === replies[1]?.requestId, 'the same answer')
    await page.getByRole('button', { name: 'Answer' }).waitFor({ state: 'hidden' })
    await page.getByText('Ready to land').waitFor()
    const record = await daemon.client.call('GET /agents/{id}/transcript', { id: 'strange', limit: 50 })
    t.equal(record.messages.filter(({ role, text }) => role === 'user' && text.startsWith('ask Which')).length, 1)
    await endJourney(t, tab, /ERR_/)
  })

  await t.test('what this page does not know yet is a grey line or a plain word, and the rest goes on', async t => {
    const [event = '', ...others] = (await eventsOf(daemon)).split(/(?<=\n\n)/)
    const said = (data: object) => `data: ${JSON.stringify(data)}\n\n`
    const { agents } = await daemon.client.call('GET /agents')
    const strange = agents.find(({ id }) => id === 'strange')!
    const cards = [{ requestId: 'h', kind: 'hologram', title: 'A hologram', raisedAt: 1 }]
    const news = [
      said({ kind: 'hologram', more: [1] }),
      said({ kind: 'runtimeChanged', domains: ['holograms'], versions: { holograms: 3 } }),
      said({
        kind: 'agents',
        rev: 1e9,
        agents: [
          ...agents,
          { ...strange, id: 'dream', title: 'A dream', status: 'asleep', cards },
          { ...strange, id: 'lively', title: 'A lively one', status: 'running', run: 'r' },
        ],
      }),
    ]
    const tab = await openTab(browser, daemon)
    const { page } = tab
    let asked = false
    await page.route('**/events*', route => {
      const headers = { 'content-type': 'text/event-stream' }
      if (!asked) void route.fulfill({ headers, body: [event, ...others, ...news].join('') })
      asked = true
    })
    await page.route('**/agent/cards*', route =>
      route.fulfill({
        json: {
          cards: [{ conversationId: 'dream', run: 'r', raisedAt: 1, card: { kind: 'hologram', requestId: 'h' } }],
        },
      }),
    )
    await page.route('**/agents/dream*', route => route.fulfill({ json: { ...strange, id: 'dream' } }))
    await page.route('**/agents/lively/transcript*', route => route.fulfill({ json: { total: 0, messages: [] } }))
    await page.route('**/agents/dream/transcript*', route =>
      route.fulfill({
        json: {
          total: 3,
          messages: [
            { index: 0, role: 'user', text: 'dream' },
            {
              ...{ index: 1, role: 'oracle', text: 'words of an unknown role' },
              tools: [
                {
                  ...{ id: 'x', name: 'Gaze', category: 'future', status: 'pondering' },
                  content: [{ type: 'hologram', rays: 3 }],
                },
              ],
              cards: [{ card: { kind: 'hologram', requestId: 'h' } }],
            },
            { index: 2, role: 'assistant', text: 'and the end' },
          ],
        },
      }),
    )
    const attached = [
      { kind: 'attached', run: 'r', seq: 0, prompt: 'dream on', startedAt: 1 },
      ...[
        { kind: 'hologram', requestId: 'h' },
        { kind: 'delta', text: 'z'.repeat(256 * 1024) },
        { kind: 'text_end' },
        { kind: 'delta', text: 'after the large frame' },
        { kind: 'done', reason: 'vanished' },
      ].map((event, at) => ({ kind: 'frame', seq: at + 1, event })),
      { kind: 'end' },
    ]
    await page.route('**/agent/attach', route => {
      const body = attached.map((data, at) => `id: ${at}\n${said(data)}`).join('')
      return route.fulfill({ headers: { 'content-type': 'text/event-stream' }, body })
    })
    await page.goto(await loginLink(daemon))
    await page.getByRole('link', { name: /^A dream/ }).waitFor()
    await page.getByText('asleep', { exact: true }).waitFor()
    await page.getByRole('link', { name: /^A dream/ }).click()
    await page.getByText('and the end').waitFor()
    await page.getByText('words of an unknown role').waitFor()
    await page.locator('.line.quiet', { hasText: 'a kind that this page does not know: hologram' }).first().waitFor()
    await page.getByText('pondering').click()
    await page.locator('.line.quiet', { hasText: 'does not know this kind of output' }).waitFor()
    await goTo(page, '#/c/lively')
    await page.getByText('This page does not know "hologram".').waitFor()
    await page.getByText('after the large frame').waitFor()
    await page.getByRole('button', { name: /^Show a block of 262[.,\s]?144 characters$/ }).click()
    await page.locator('.prose p', { hasText: /^z+$/ }).waitFor()
    await page.getByText('The turn ended: vanished.').waitFor()
    await goTo(page, '#/inbox')
    await page.locator('.line.quiet', { hasText: 'does not know: hologram' }).waitFor()
    // The daemon does not know the dream either.
    await endJourney(t, tab, /404/)
    await closeTab(browser, tab)
  })

  await t.test('a browser that keeps nothing and has no locks says so, and works', async t => {
    const tab = await openTab(browser, daemon, {})
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
    await page.getByText('This browser does not let tabs share a connection').waitFor()
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

  await t.test('over plain HTTP on a private network the page works, and says what it does without', async t => {
    const url = `http://${PRIVATE_HOST}`
    const tab = await openTab(await ownBrowser(t, daemon.url), { url })
    const { page } = tab
    const { invitation } = await daemon.client.call('POST /members', { role: 'maintainer' })
    await page.goto(invitation!.url.replace(daemon.url, url))
    await page.getByLabel('Your name').fill('Ada')
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    const said = page.getByText(/^This page came over plain HTTP: each of its tabs holds a connection of its own/)
    await said.waitFor()
    t.equal(
      await page.evaluate('[isSecureContext, "locks" in navigator, "subtle" in crypto].join()'),
      'false,false,false',
    )
    await runTurn(daemon.client, 'plain', 'say hello over plain HTTP', { title: 'Over plain HTTP' })
    await page.getByRole('link', { name: /^Over plain HTTP/ }).click()
    await page.getByLabel('Message to the agent').fill('say and back')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('and back', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Hide' }).click()
    await said.waitFor({ state: 'detached' })
    await goTo(page, '#/me')
    await said.waitFor()
    await page.getByText('This browser shows no notifications for this page').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'This browser' }).waitFor()
    t.equal(await said.count(), 1, 'hidden elsewhere, also after a reload')
    await endJourney(t, tab)
  })

  await t.test('who wants to is notified of what waits, and a browser that blocks it says so', async t => {
    for (const answer of ['granted', 'denied']) {
      const tab = await openTab(browser, daemon, {})
      const { page } = tab
      await page.addInitScript(`{
        let permission = 'default'
        self.notified = []
        self.Notification = class {
          static get permission() { return permission }
          static async requestPermission() { return (permission = '${answer}') }
          constructor(title, { body }) { notified.push(title + ': ' + body) }
          close() {}
        }
      }`)
      await page.goto(await loginLink(daemon))
      await page.locator('[data-ready=yes]').waitFor()
      await goTo(page, '#/me')
      // The page shows what the person answered, which may not be what was asked for.
      await page.getByLabel(/^Notify me/).click()
      if (answer === 'denied') {
        await page.getByText('This browser blocks notifications of this page').waitFor()
      } else {
        await page
          .getByLabel(/^Notify me/)
          .and(page.locator(':checked'))
          .waitFor()
        await page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: 'hidden' })`)
        await daemon.client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Go on?\n| Yes: do\n| No: stop' })
        await until(async () => Number(await page.evaluate('notified.length')) > 0)
        t.same(await page.evaluate('notified'), ['Sandbox: One thing waits for you.'])
        await until(async () => (await page.title()).startsWith('(1) '))
        await daemon.client.call('POST /agent/stop', { conversationId: 'asks' })
      }
      await endJourney(t, tab)
      await page.context().close()
    }
  })

  await t.test('after sleep or silence the page reads the events anew, and shows what changed', async t => {
    const tab = await ownerBrowser(browser, daemon)
    const { page } = tab
    const clocks = {
      'While it slept': 'const now = Date.now; Date.now = () => now() + 3_600_000',
      // The heartbeats, which come every 5 s, are 100 s apart.
      'While it heard nothing': 'const now = Date.now, at = now(); Date.now = () => at + 20 * (now() - at)',
    }
    for (const [title, clock] of Object.entries(clocks)) {
      const again = page.waitForRequest('**/events*')
      await page.evaluate(`{ ${clock} }`)
      t.match((await again).url(), /after=/, 'from the last event on')
      await runTurn(daemon.client, 'missed', 'say hello', { title })
      await daemon.client.call('POST /agents/{id}/rename', { id: 'missed', title })
      await page.getByRole('link', { name: new RegExp(`^${title}`) }).waitFor()
      await page.reload()
      await page.locator('[data-ready=yes]').waitFor()
    }
    await endJourney(t, tab)
    await closeTab(browser, tab)
  })

  await t.test(
    'a sandbox that was replaced drops what was shown, and one that was updated offers a reload',
    async t => {
      const events = await eventsOf(daemon)
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
      await closeTab(browser, tab)
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
    await closeTab(browser, tab)
  })
})
