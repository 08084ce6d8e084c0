import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith, folderOf } from '../../../support/daemon.js'
import { startAccountServer } from '../../../support/servers/account-server.js'

t.test('the console shows the translator, and connects and disconnects its accounts', withChromium(), async t => {
  const server = await startAccountServer(t)
  const definitions = join(folderOf(t), 'definitions')
  mkdirSync(definitions)
  writeFileSync(join(definitions, 'acme.json'), JSON.stringify(server.definition('acme', { serving: 'routed' })))
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'accounts', 'providers', 'routed'], {
    deployment: { models: { providers: definitions } },
  })
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon, '#/accounts')
  const { page } = tab
  const dialog = page.getByRole('dialog')
  const translator = page.getByRole('region', { name: 'Routed providers' })
  const acme = page.getByRole('region', { name: 'ACME' })
  await translator.getByText('There is nothing to serve.').waitFor()
  await acme.getByText('No account is connected.').waitFor()
  t.same(await barriersOf(page), [])
  const begin = async () => {
    await acme.getByRole('button', { name: 'Connect an account' }).click()
    await dialog.getByRole('button', { name: 'Continue' }).click()
    return (await dialog.getByRole('link', { name: 'Open the sign-in page' }).getAttribute('href'))!
  }
  const address = await server.approve(await begin(), 'ada@example.org')
  t.same(await barriersOf(page), [])
  await dialog.getByLabel('Address').fill(address)
  await dialog.getByRole('button', { name: 'Finish' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await acme.getByText('Connected', { exact: true }).waitFor()
  await translator.getByText('Running', { exact: true }).waitFor()
  await translator.getByText('acme: openai, 1 account, 1 model').waitFor()
  t.same(await barriersOf(page), [])
  await fetch(await server.approve(await begin(), 'bob@example.org'))
  await dialog.waitFor({ state: 'hidden' })
  await translator.getByText('acme: openai, 2 accounts, 1 model').waitFor()
  await acme.getByRole('button', { name: 'Disconnect' }).first().click()
  await dialog.getByRole('button', { name: 'Disconnect' }).click()
  await translator.getByText('acme: openai, 1 account, 1 model').waitFor()
  await endJourney(t, tab)
})
