import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith, folderOf } from '../../../support/daemon.js'
import { framesOf } from '../../../support/turns.js'
import { startAccountServer } from '../../../support/servers/account-server.js'

t.test('accounts in the console', withChromium(), async t => {
  const server = await startAccountServer(t)
  const definitions = join(folderOf(t), 'definitions')
  mkdirSync(definitions)
  const limits = {
    from: 'get',
    url: `${server.url}/limits`,
    windows: [{ kind: 'week', label: 'A week', percent: 'week.used', resetsAt: 'week.opens' }],
  }
  writeFileSync(join(definitions, 'acme.json'), JSON.stringify(server.definition('acme', { limits })))
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'accounts', 'providers'], {
    deployment: { models: { providers: definitions } },
  })
  const browser = await launchBrowser(t)
  const rows = async () => (await daemon.client.call('GET /accounts/{provider}', { provider: 'acme' })).accounts
  const key = [...server.keys][0]!
  server.script.limits.set(key, 42)

  await t.test('a wrong key says why, the right one connects; it is renamed and disconnected', async t => {
    const tab = await ownerTab(browser, daemon, '#/accounts')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    const acme = page.getByRole('region', { name: 'ACME' })
    await acme.getByText('No account is connected.').waitFor()
    await acme.getByRole('button', { name: 'Add an account' }).click()
    await dialog.getByLabel('How').selectOption('key')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Continue' }).click()
    t.equal(await dialog.getByRole('link', { name: 'Make a key' }).getAttribute('href'), `${server.url}/keys`)
    await dialog.getByLabel('Key', { exact: true }).fill('sk-a-key-that-is-unknown')
    await dialog.getByRole('button', { name: 'Finish' }).click()
    await dialog
      .getByRole('alert')
      .getByText(/refused the key/)
      .waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByLabel('Key', { exact: true }).fill(key)
    await dialog.getByRole('button', { name: 'Finish' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await acme.getByText('Connected', { exact: true }).waitFor()
    await acme.getByText(/A week: 42 % used/).waitFor()
    t.same(await barriersOf(page), [])
    await acme.getByRole('button', { name: 'Rename' }).click()
    await dialog.getByLabel('Name').fill('Team')
    await dialog.getByRole('button', { name: 'Rename' }).click()
    await acme.getByText('Team', { exact: true }).first().waitFor()
    await acme.getByRole('button', { name: 'Disconnect' }).click()
    await dialog.getByRole('button', { name: 'Disconnect' }).click()
    await acme.getByText('No account is connected.').waitFor()
    t.same(await rows(), [])
    await endJourney(t, tab, /status of 424/)
  })

  await t.test('a sign-in in the browser closes its dialog alone; a pasted address does too', async t => {
    const tab = await ownerTab(browser, daemon, '#/accounts')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    const acme = page.getByRole('region', { name: 'ACME' })
    const begin = async () => {
      await acme.getByRole('button', { name: 'Add an account' }).click()
      await dialog.getByRole('button', { name: 'Continue' }).click()
      return (await dialog.getByRole('link', { name: 'Open the sign-in page' }).getAttribute('href'))!
    }
    await fetch(await server.approve(await begin(), 'ada@example.org'))
    await dialog.waitFor({ state: 'hidden' })
    await acme.getByText('ada@example.org', { exact: true }).first().waitFor()
    const address = await server.approve(await begin(), 'bob@example.org')
    await dialog.getByLabel('Address').fill(address)
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Finish' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await acme.getByText('bob@example.org', { exact: true }).first().waitFor()
    t.equal((await rows()).length, 2)
    await endJourney(t, tab)
  })

  await t.test('a sign-in that a program began is finished here', async t => {
    const { handshake } = await daemon.client.call('POST /accounts/{provider}/login/start', {
      ...{ provider: 'acme', flow: 'key' },
    })
    const tab = await ownerTab(browser, daemon, `#/accounts/acme/${handshake}`)
    const { page } = tab
    const dialog = page.getByRole('dialog')
    t.equal(await dialog.getByRole('link', { name: 'Make a key' }).getAttribute('href'), `${server.url}/keys`)
    t.same(await barriersOf(page), [])
    await dialog.getByLabel('Key', { exact: true }).fill(key)
    await dialog.getByRole('button', { name: 'Finish' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.waitForURL(/#\/accounts$/)
    t.match(page.url(), /#\/accounts$/)
    const found = await rows()
    await daemon.client.call('POST /accounts/{provider}/disconnect', { provider: 'acme', id: found.at(-1)!.id })
    t.equal(found.length, 3)
    await endJourney(t, tab)
  })

  await t.test('a new conversation runs on the account that is chosen', async t => {
    const tab = await ownerTab(browser, daemon, '#/new')
    const { page } = tab
    await page.getByLabel('What should the agent do?').fill('hello')
    await page.getByLabel(/^Work in a private copy/).uncheck()
    await page.getByText('More', { exact: true }).last().click()
    const model = page.getByLabel('Model')
    const offered = model.locator('optgroup[label="ACME"] option').first()
    await offered.waitFor({ state: 'attached' })
    await model.selectOption((await offered.getAttribute('value'))!)
    await page.getByLabel('Account', { exact: true }).selectOption('bob@example.org')
    t.same(await barriersOf(page), [])
    const sent = page.waitForRequest(request => request.url().endsWith('/agent') && request.method() === 'POST')
    await page.getByRole('button', { name: 'Start' }).click()
    const bob = (await rows()).find(({ label }) => label === 'bob@example.org')!
    const asked = (await sent).postDataJSON() as { conversationId: string }
    t.match(asked, { agent: 'acme', account: bob.id })
    await page.getByRole('heading', { name: 'hello' }).waitFor()
    // The daemon does not stop in the middle of it.
    await daemon.client.call('POST /agent/stop', { conversationId: asked.conversationId })
    await framesOf(daemon.client, asked.conversationId).until(({ kind }) => kind === 'done')
    await endJourney(t, tab)
  })

  await t.test('a dialog that is closed abandons its sign-in; the code of a device is shown', async t => {
    const tab = await ownerTab(browser, daemon, '#/accounts')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('region', { name: 'ACME' }).getByRole('button', { name: 'Add an account' }).click()
    await dialog.getByLabel('How').selectOption('device')
    await dialog.getByRole('button', { name: 'Continue' }).click()
    t.match(await dialog.locator('code').textContent(), /^[A-Z]{4}-[A-Z]{4}$/)
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    const states = async () =>
      (await daemon.client.call('GET /accounts/{provider}', { provider: 'acme' })).signIns.map(({ state }) => state)
    while (!(await states()).includes('abandoned')) await page.waitForTimeout(50)
    await endJourney(t, tab)
  })
})
