import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Request } from 'playwright-core'
import t from 'tap'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  closeTab,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'

/** A picture of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

t.test('conversations in the console', withChromium(), async t => {
  const groups = [
    ...CONSOLE_GROUPS,
    'sessions',
    'providers',
    'endpoints',
    'capabilities',
    'personas',
    'skills',
    'workspace',
  ]
  const daemon = await daemonWith(t, groups, { files: { 'README.md': '# work\n', 'b.txt': '1\n2\n3\n4\n5\n' } })
  const { client } = daemon
  const browser = await launchBrowser(t)
  const at = (path: string) => join(daemon.workspace, path)
  const cardOf = async (id: string) => client.call('GET /agents/{id}', { id })

  await t.test('a running turn is steered, its queue is put in order, and it is stopped', async t => {
    await client.call('POST /agent', {
      ...{ conversationId: 'busy', title: 'Busy', prompt: 'say begun\nwait words\nsay heard $words\nwait 600000' },
    })
    const tab = await ownerTab(browser, daemon, '#/c/busy')
    const { page } = tab
    const composer = page.getByLabel('Message to the agent')
    await page.getByText('begun', { exact: true }).waitFor()
    await composer.fill('go left')
    await page.getByRole('button', { name: 'Steer' }).click()
    await page.getByText('heard go left').waitFor()
    t.equal(await composer.inputValue(), '')
    // A message with other options than the running turn waits for its end.
    for (const prompt of ['say one', 'say two'])
      await client.call('POST /agent', { conversationId: 'busy', prompt, permissionMode: 'acceptEdits' })
    const queue = page.getByRole('region', { name: 'Queued messages' })
    await queue.getByText('say two').waitFor()
    t.same(await barriersOf(page), [])
    await queue.getByRole('button', { name: 'First' }).click()
    await queue.getByRole('listitem').first().getByText('say two').waitFor()
    await queue.getByRole('listitem').last().getByRole('button', { name: 'Take back' }).click()
    await queue.getByText('say one').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('The turn was stopped.').waitFor()
    const { messages } = await client.call('GET /agents/{id}/queue', { id: 'busy' })
    if (messages.length > 0) await queue.getByRole('button', { name: 'Start the first' }).click()
    await page.locator('.prose', { hasText: /^two$/ }).waitFor()
    await goTo(page, '#/fleet')
    await goTo(page, '#/c/busy')
    t.equal(await composer.inputValue(), 'say one', 'what was taken back is in the composer again')
    await composer.fill('')
    await endJourney(t, tab)
  })

  await t.test('an unknown conversation says so, takes no message and leads to those there are', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/none')
    const { page } = tab
    await page.getByText('there is no conversation "none"', { exact: false }).waitFor()
    t.equal(await page.getByRole('textbox').count(), 0)
    await page.getByRole('link', { name: 'Show the conversations there are' }).click()
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await endJourney(t, tab, /status of 404/)
  })

  await t.test('what runs in the background is shown with its output, and ended', async t => {
    const model = await modelServer(t, 'openai', (_, nth) =>
      nth === 1
        ? { calls: [{ name: 'Shell', input: { command: 'echo served; sleep 600', background: true } }] }
        : { text: ['it runs'] },
    )
    const { baseUrl } = model.target()
    await client.call('POST /endpoints', { id: 'lab', kind: 'server', protocol: 'openai', baseUrl })
    await runTurn(client, 'serving', 'serve it', { agent: 'endpoint/lab', title: 'Serving' })
    const tab = await ownerTab(browser, daemon, '#/c/serving')
    const { page } = tab
    await page.getByText('In the background: 1 command runs').click()
    await page.getByRole('button', { name: /^echo served/ }).click()
    await page.getByLabel('Output of sh-1').getByText('served').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: /^End/ }).click()
    await page.getByText('was ended by a person').waitFor()
    await page.getByText('In the background: 0 commands run').waitFor()
    await endJourney(t, tab)
  })

  await t.test('a message is gone back to, and a conversation forked at it', async t => {
    await runTurn(client, 'past', 'write a.txt\n| one\nsay first', { isolated: true, title: 'With a past' })
    await runTurn(client, 'past', 'write a.txt\n| two\nsay second')
    const tab = await ownerTab(browser, daemon, '#/c/past')
    const { page } = tab
    const second = page.locator('.said', { hasText: '| two' })
    await second.getByRole('button', { name: 'Fork' }).click()
    await page.getByRole('heading', { name: 'Fork the conversation' }).waitFor()
    await page.getByLabel('What should the agent do?').fill('run cat a.txt\nsay forked: $out')
    await page.getByLabel('Files', { exact: true }).selectOption('As they were at that message')
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('forked: one').waitFor()
    t.equal(await page.locator('.prose', { hasText: /^first$/ }).count(), 1, 'with what was said before')
    t.equal(await page.locator('.prose', { hasText: /^second$/ }).count(), 0)
    await goTo(page, '#/c/past')
    await second.getByRole('button', { name: 'Go back here' }).click()
    await second.waitFor({ state: 'detached' })
    await page.locator('.prose', { hasText: /^first$/ }).waitFor()
    await runTurn(client, 'past', 'run cat a.txt\nsay now: $out')
    await page.getByText('now: one').waitFor()
    await endJourney(t, tab)
  })

  await t.test('subagents, plans and every word of a long record are found', async t => {
    const helper = ['helper look around', '| say the needle of the subagent', '| wait 1', 'say it said: $out']
    await runTurn(client, 'long', 'todo [x] look | [ ] write\n' + helper.join('\n'), { title: 'A long one' })
    for (let turn = 0; turn < 3; turn++) await runTurn(client, 'long', `repeat 30 say row $n of turn ${turn}`)
    const tab = await ownerTab(browser, daemon, '#/c/long')
    const { page } = tab
    await page.getByText('row 30 of turn 2').waitFor()
    await page.keyboard.press('Control+f')
    await page.getByLabel('Find in this conversation').fill('row 3 of turn 0')
    await page.getByText('1 found', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('row 3 of turn 0', { exact: true }).waitFor()
    await page.getByLabel('Find in this conversation').fill('needle')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.locator('summary', { hasText: 'look around' }).click()
    await page.getByText('the needle of the subagent').first().waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Close' }).click()
    await endJourney(t, tab)
  })

  await t.test('a hidden tab reads no run, and goes on where it was', async t => {
    await client.call('POST /agent', {
      ...{ conversationId: 'seen', title: 'Seen', prompt: 'say before\nwait words\nsay meanwhile\nwait 600000' },
    })
    const tab = await ownerTab(browser, daemon, '#/c/seen')
    const { page } = tab
    await page.getByText('before', { exact: true }).waitFor()
    const show = (state: 'visible' | 'hidden') =>
      page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))`)
    const ended = page.waitForEvent('requestfailed', request => request.url().endsWith('/agent/attach'))
    await show('hidden')
    await ended
    await client.call('POST /agent/steer', { conversationId: 'seen', text: 'go on' })
    const attached = page.waitForRequest('**/agent/attach')
    await show('visible')
    t.ok((((await attached).postDataJSON() as { after?: number }).after ?? 0) > 0, 'after the frames it has')
    await page.getByText('meanwhile', { exact: true }).waitFor()
    t.equal(await page.getByText('before', { exact: true }).count(), 1)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('The turn was stopped.').waitFor()
    await endJourney(t, tab)
  })

  await t.test('a tab never reads more than two runs at once', async t => {
    const ids = ['first', 'second', 'third']
    for (const id of ids)
      await client.call('POST /agent', { conversationId: id, title: id, prompt: `say in ${id}\nwait 600000` })
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    const reading = new Set<Request>()
    let most = 0
    const isRun = (request: Request) => request.url().endsWith('/agent/attach')
    const begun = (request: Request) => {
      if (isRun(request)) reading.add(request)
      most = Math.max(most, reading.size)
    }
    const over = (request: Request) => void reading.delete(request)
    page.on('request', begun).on('requestfailed', over).on('requestfinished', over)
    for (const id of [...ids, ...ids]) {
      await goTo(page, `#/c/${id}`)
      await page.getByText(`in ${id}`, { exact: true }).waitFor()
    }
    t.ok(most === 1 || most === 2, `${most} at once`)
    await until(() => reading.size === 1)
    page.off('request', begun).off('requestfailed', over).off('requestfinished', over)
    for (const id of ids) await client.call('POST /agent/stop', { conversationId: id })
    await endJourney(t, tab)
  })

  await t.test('a conversation is renamed, and what happens after its turns is chosen', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/past')
    const { page } = tab
    await page.getByRole('button', { name: 'Options', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Title').fill('  ')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Title').fill('Renamed <b>')
    await dialog.getByLabel('When a turn is completed').selectOption('Land its work')
    await dialog.getByLabel('After an outage').selectOption('Resume the turn')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('heading', { name: 'Renamed <b>' }).waitFor()
    t.match(await cardOf('past'), { title: 'Renamed <b>', autoLand: true, resumeAfterOutage: true })
    // The page learns the new value a moment after it was saved.
    await until(async () => {
      await page.getByRole('button', { name: 'Options', exact: true }).click()
      if ((await dialog.getByLabel('When a turn is completed').inputValue()) === 'yes') return true
      await page.keyboard.press('Escape')
      return false
    })
    await dialog.getByLabel('When a turn is completed').selectOption('As the rules of the sandbox say')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'hidden' })
    t.equal((await cardOf('past')).autoLand, undefined)
    await endJourney(t, tab, /400/)
  })

  await t.test('a message takes files and options along', async t => {
    const tab = await ownerTab(browser, daemon, '#/c/past')
    const { page } = tab
    const list = page.getByRole('list', { name: 'Files of the message' })
    const paste = (name: string, type: string, base64: string) =>
      page.evaluate(`{
        const clipboardData = new DataTransfer()
        const bytes = Uint8Array.from(atob('${base64}'), one => one.charCodeAt(0))
        clipboardData.items.add(new File([bytes], '${name}', { type: '${type}' }))
        const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })
        document.querySelector('[data-key=composer]').dispatchEvent(event)
      }`)
    const text = (name: string, words: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(words) })
    await page
      .getByLabel('Files for the message')
      .setInputFiles([text('a note.txt', 'of a person'), text('b.txt', 'b')])
    await paste('dot.png', 'image/png', PIXEL)
    for (const name of ['a note.txt', 'b.txt', 'dot.png']) await list.getByText(name, { exact: true }).waitFor()
    await list.getByRole('button', { name: 'Remove b.txt' }).click()
    await until(async () => (await list.getByText('(uploading)').count()) === 0)
    await page.reload()
    await list.getByText('a note.txt', { exact: true }).waitFor()
    t.equal(await list.getByRole('listitem').count(), 2, 'what is uploaded survives a reload')
    await page.getByRole('button', { name: 'Message options' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Permissions').selectOption('Asks before commands')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Message options: 1 chosen' }).waitFor()
    t.same(await barriersOf(page), [])
    const sent = page.waitForRequest(request => request.url().endsWith('/agent') && request.method() === 'POST')
    await page.getByLabel('Message to the agent').fill('say thanks')
    await page.getByRole('button', { name: 'Send' }).click()
    t.match((await sent).postDataJSON(), { prompt: 'say thanks', permissionMode: 'acceptEdits' })
    await page.locator('.prose', { hasText: /^thanks$/ }).waitFor()
    await page.getByRole('img', { name: 'dot.png' }).waitFor()
    await page.getByText('a note.txt', { exact: true }).waitFor()
    await list.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Message options', exact: true }).waitFor()
    let attached: readonly string[] = []
    await until(async () => {
      const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'past', limit: 50 })
      attached = messages.findLast(({ role }) => role === 'user')?.attachments ?? []
      return attached.length > 0
    })
    const [note, picture] = attached
    t.equal(readFileSync(at(note!), 'utf8'), 'of a person')
    t.same(readFileSync(at(picture!)), Buffer.from(PIXEL, 'base64'))
    await endJourney(t, tab)
  })

  await t.test('a change is read side by side, commented on, brought up to date and discarded', async t => {
    await runTurn(client, 'work', 'run sed -i s/3/three/ b.txt\nwrite n.txt\n| new\nsay done', {
      ...{ isolated: true, title: 'Some work' },
    })
    writeFileSync(at('c.txt'), 'of a person\n')
    const tab = await ownerTab(browser, daemon, '#/c/work/changes/root/b.txt')
    const { page } = tab
    const pane = page.getByRole('region', { name: 'b.txt' })
    await pane.getByText('three').first().waitFor()
    const editors = () =>
      page.evaluate(`document.querySelector('.diff-host').shadowRoot.querySelectorAll('.cm-editor').length`)
    t.equal(await editors(), 1)
    await pane.getByRole('button', { name: 'Side by side' }).click()
    await until(async () => (await editors()) === 2)
    t.same(await barriersOf(page), [])
    await pane.getByRole('button', { name: 'Side by side' }).click()
    await until(async () => (await editors()) === 1)
    await pane.getByText('three').first().click()
    await pane.getByRole('button', { name: 'Comment' }).click()
    await pane.getByLabel(/^Comment on line 3/).fill('say why three?')
    t.same(await barriersOf(page), [])
    await pane.getByRole('button', { name: 'Send to the agent' }).click()
    await pane.getByLabel(/^Comment on/).waitFor({ state: 'detached' })
    await until(async () =>
      (await client.call('GET /agents/{id}/transcript', { id: 'work', limit: 50 })).messages.some(
        ({ role, text }) => role === 'user' && text === 'About b.txt, line 3:\n\n```\nthree\n```\n\nsay why three?',
      ),
    )
    await page.getByRole('button', { name: 'Bring up to date' }).click()
    await page.locator('button:enabled', { hasText: 'Bring up to date' }).waitFor()
    await page.getByRole('button', { name: 'Discard', exact: true }).click()
    await page.getByRole('button', { name: 'Keep it' }).click()
    await page.getByRole('button', { name: 'Discard', exact: true }).click()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Discard the work' }).click()
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await page.getByRole('link', { name: /^Some work/ }).waitFor({ state: 'detached' })
    t.notOk(existsSync(at('n.txt')))
    // The page asks once more for what leaves the board.
    await endJourney(t, tab, /404/)
  })

  await t.test('the record of a discarded conversation is found by its words, read and deleted', async t => {
    const tab = await ownerTab(browser, daemon, '#/sessions')
    const { page } = tab
    await page.getByRole('link', { name: 'Some work' }).waitFor()
    await page.getByLabel('Search what was said').fill('why three')
    await page.getByRole('link', { name: 'A long one' }).waitFor({ state: 'detached' })
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'Some work' }).click()
    await page.getByText('say why three?').first().waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Past sessions' }).waitFor()
    await page.getByLabel('State').selectOption('Record only')
    await page.getByText('No conversation fits.').waitFor()
    await endJourney(t, tab)
  })

  await t.test('conversations are searched, archived, brought back and deleted for good', async t => {
    await runTurn(client, 'old', 'say the heron stands there', { title: 'An old one' })
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    await page.getByLabel('Search conversations').fill('heron')
    await page.getByRole('link', { name: /^An old one/ }).waitFor()
    await page.getByRole('link', { name: /^A long one/ }).waitFor({ state: 'detached' })
    t.same(await barriersOf(page), [])
    await page.getByLabel('Search conversations').fill('')
    const toolbar = page.getByRole('toolbar')
    for (const title of ['An old one', 'A long one']) await page.getByLabel(`Select ${title}`).check()
    await toolbar.getByRole('button', { name: 'Archive' }).click()
    await page.getByRole('link', { name: /^An old one/ }).waitFor({ state: 'detached' })
    await toolbar.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Archive' }).click()
    await page.getByLabel('Select A long one').check()
    await toolbar.getByRole('button', { name: 'Bring back' }).click()
    await page.getByRole('link', { name: /^A long one/ }).waitFor({ state: 'detached' })
    await page.getByLabel('Select An old one').check()
    await toolbar.getByRole('button', { name: 'Delete' }).click()
    t.same(await barriersOf(page), [])
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Conversations that you archive appear here.').waitFor()
    await page.getByRole('button', { name: 'Archive' }).click()
    await page.getByRole('link', { name: /^A long one/ }).waitFor()
    t.equal(await page.getByRole('link', { name: /^An old one/ }).count(), 0)
    await endJourney(t, tab)
  })

  await t.test('what has work that did not land is archived after a question', async t => {
    await runTurn(client, 'owed', 'write owed.txt\n| x', { isolated: true, title: 'An owed one' })
    await runTurn(client, 'well', 'say fine', { title: 'A finished one' })
    const tab = await ownerTab(browser, daemon)
    const { page } = tab
    const row = (name: RegExp) => page.getByRole('link', { name })
    const dialog = page.getByRole('dialog')
    await row(/^A finished one/).focus()
    await page.keyboard.press('e')
    await row(/^A finished one/).waitFor({ state: 'detached' })
    await row(/^An owed one/).focus()
    await page.keyboard.press('e')
    await dialog.getByText('An owed one: its work has not landed.').waitFor()
    t.same(await barriersOf(page), [])
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    t.ok(await row(/^An owed one/).isVisible())
    await goTo(page, '#/c/owed')
    await page.getByRole('button', { name: 'Archive' }).click()
    await dialog.getByRole('button', { name: 'Archive' }).click()
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await row(/^An owed one/).waitFor({ state: 'detached' })
    await endJourney(t, tab)
  })

  await t.test(
    'a collaborator asks for a landing, the owner finds it in the inbox, and the collaborator leaves',
    async t => {
      await runTurn(client, 'mine', 'write l.txt\n| l', { isolated: true, title: 'To be landed' })
      const guest = await guestTab(browser, daemon, { role: 'collaborator' }, '#/c/mine/changes')
      await guest.page.getByRole('button', { name: 'Ask to land' }).click()
      await guest.page.getByRole('button', { name: 'Landing requested' }).waitFor()
      const tab = await ownerTab(browser, daemon, '#/inbox')
      const { page } = tab
      await page.getByText('A collaborator asks for this work to be landed.').waitFor()
      t.same(await barriersOf(page), [])
      await page.getByRole('link', { name: 'To be landed' }).click()
      await page.getByRole('button', { name: 'Land', exact: true }).click()
      await page.getByRole('dialog').getByText('Everything fits.').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Land', exact: true }).click()
      await page.getByText('The work is in the workspace').waitFor()
      t.equal(readFileSync(at('l.txt'), 'utf8'), 'l\n')
      await endJourney(t, tab)
      await goTo(guest.page, '#/me')
      await guest.page.getByRole('button', { name: 'Leave' }).click()
      await guest.page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click()
      await guest.page.getByText(/You are signed out|Your session has ended/).waitFor()
      t.notOk((await client.call('GET /members')).members.some(({ role }) => role === 'collaborator'))
      await endJourney(t, guest, /401|404|ERR_INCOMPLETE_CHUNKED_ENCODING/)
      await closeTab(browser, guest)
    },
  )

  await t.test('a conversation is started with a title, a mode, a folder, a model and a persona', async t => {
    await client.call('POST /personas', { id: 'tester', label: 'A tester', capabilities: [] })
    const tab = await ownerTab(browser, daemon, '#/new')
    const { page } = tab
    await page.getByLabel('What should the agent do?').fill('say with options')
    await page.getByLabel(/^Work in a private copy/).uncheck()
    await page.getByText('More', { exact: true }).last().click()
    await page.getByLabel('Title').fill('Chosen')
    await page.getByLabel('Permissions').selectOption('Asks before commands')
    await page.getByLabel('Persona').selectOption('A tester')
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('with options', { exact: true }).waitFor()
    const { agents } = await client.call('GET /agents')
    const chosen = agents.find(({ title }) => title === 'Chosen')
    t.match(chosen, { actsAs: 'tester' })
    t.equal(chosen?.branch, undefined)
    await endJourney(t, tab)
  })
})
