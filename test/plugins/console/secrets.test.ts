import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith, folderOf, inGit } from '../../support/daemon.js'
import { llamaProgram } from '../../support/servers/llama-program.js'
import { runTurn } from '../../support/turns.js'
import { ciServer } from '../secrets/ci-server.js'
import { entryOf, startFileServer, weightsOf } from '../endpoints/weights.js'

t.test('secrets, usage and models in the console', withChromium(), async t => {
  const folder = folderOf(t)
  const bytes = weightsOf(undefined, 200_000)
  const files = await startFileServer(t, bytes)
  const local = join(folder, 'models.json')
  writeFileSync(local, JSON.stringify([entryOf(files.url, bytes)]))
  const daemon = await daemonWith(
    t,
    [...CONSOLE_GROUPS, 'git', 'secrets', 'usage', 'endpoints', 'providers', 'capabilities'],
    {
      deployment: { models: { local, server: llamaProgram(folder).program } },
    },
  )
  const browser = await launchBrowser(t)

  await t.test('a secret is stored, revealed to the owner, rotated and removed', async t => {
    const tab = await ownerTab(browser, daemon, '#/secrets')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByText('The first value makes an encrypted store').waitFor()
    await page.getByRole('button', { name: 'Choose another store' }).click()
    t.equal(await dialog.getByLabel('Unlocked by').inputValue(), 'file')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Add a secret' }).click()
    await dialog.getByLabel('Name').fill('API_TOKEN')
    await dialog.getByLabel('Value', { exact: true }).fill('first-value-9347')
    await dialog.getByRole('button', { name: 'Store' }).click()
    await page.getByText('{{secret:API_TOKEN}}').waitFor()
    await page.getByText('1 value, encrypted in the store').waitFor()
    t.same(await barriersOf(page), [])
    t.equal((await page.content()).includes('first-value-9347'), false, 'the value is on the page no more')
    await page.getByRole('button', { name: 'Reveal API_TOKEN' }).click()
    await dialog.getByRole('button', { name: 'Reveal' }).click()
    t.equal(await dialog.getByLabel('Value', { exact: true }).inputValue(), 'first-value-9347')
    await dialog.getByRole('button', { name: 'Hide' }).click()
    await page.getByRole('button', { name: 'Rotate API_TOKEN' }).click()
    await dialog.getByLabel('New value').fill('second-value-2288')
    await dialog.getByLabel('Hosts').fill('api.example.org')
    await dialog.getByRole('button', { name: 'Replace' }).click()
    await page.getByText('only to api.example.org').waitFor()
    const { value } = await daemon.client.call('POST /secrets/reveal', { key: 'API_TOKEN' })
    t.equal(value, 'second-value-2288')
    await page.getByRole('button', { name: 'Remove API_TOKEN' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Values that agents use without seeing them').waitFor()
    await endJourney(t, tab)
  })

  await t.test('values are imported from a text, and what was left out is named with the reason', async t => {
    const tab = await ownerTab(browser, daemon, '#/secrets')
    const { page } = tab
    await page.getByRole('button', { name: 'Import' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Text').fill('IMPORTED=one-value\nEMPTY=\n')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Import' }).click()
    await dialog.getByText('Stored: IMPORTED.').waitFor()
    await dialog.getByText('EMPTY was left out: it has no value.').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Rotate IMPORTED' }).waitFor()
    t.notOk((await page.content()).includes('one-value'))
    await daemon.client.call('DELETE /secrets/{key}', { key: 'IMPORTED' })
    await endJourney(t, tab)
  })

  await t.test('values are written into the CI service of a repository, and a failing one says why', async t => {
    const server = await ciServer(t)
    const { client, workspace } = daemon
    for (const key of ['NPM_TOKEN', 'DEPLOY_KEY']) await client.call('POST /secrets', { key, value: `${key}-value` })
    inGit(workspace, 'remote', 'add', 'origin', 'git@127.0.0.1:acme/shop.git')
    mkdirSync(join(workspace, '.github/workflows'), { recursive: true })
    writeFileSync(
      join(workspace, '.github/workflows/ci.yml'),
      "env:\n  A: ${{ secrets.NPM_TOKEN }}\n  B: ${{ secrets['DEPLOY_KEY'] }}\n",
    )
    const tab = await ownerTab(browser, daemon, '#/secrets')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Write into CI' }).click()
    await dialog.getByLabel('root').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Write' }).click()
    await dialog.getByRole('alert').filter({ hasText: '127.0.0.1' }).waitFor()
    const config = { provider: 'github', host: `127.0.0.1:${server.port}`, token: 'forge-token' }
    for await (const step of await client.call('POST /capabilities', { id: 'forge', kind: 'cli', config })) void step
    server.state.only = 'NPM_TOKEN'
    await dialog.getByRole('button', { name: 'Write' }).click()
    await dialog.getByText('Failed').waitFor()
    t.equal(await dialog.getByText('Written', { exact: true }).count(), 1)
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('CI services have this value').waitFor()
    t.equal(server.state.variables.get('NPM_TOKEN')?.value, 'NPM_TOKEN-value')
    await client.call('DELETE /capabilities/{id}', { id: 'forge' })
    await endJourney(t, tab, /status of 422/)
  })

  await t.test('a budget is added beside those of others, changed and removed', async t => {
    await runTurn(daemon.client, 'used', 'say hello')
    const tab = await ownerTab(browser, daemon, '#/usage')
    const { page } = tab
    await page.getByRole('row', { name: /^Total/ }).waitFor()
    await page.setViewportSize({ width: 320, height: 844 })
    t.equal(await page.evaluate("document.querySelector('main').scrollWidth"), 320, 'the table scrolls, not the page')
    await page.setViewportSize({ width: 1280, height: 720 })
    const dialog = page.getByRole('dialog')
    await page.getByText('nothing limits what turns cost').waitFor()
    await page.getByRole('button', { name: 'Add a budget' }).click()
    await dialog.getByLabel('Id', { exact: true }).fill('monthly')
    await dialog.getByLabel('Limit in US dollars').fill('20')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('button', { name: 'Change the budget monthly' }).click()
    await dialog.getByLabel('Limit in US dollars').fill('30.5')
    await dialog.getByRole('button', { name: 'Change' }).click()
    await page.getByText('of $30.50 a month').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Remove the budget monthly' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('nothing limits what turns cost').waitFor()
    t.same((await daemon.client.call('GET /usage/budget')).budgets, [])
    await endJourney(t, tab)
  })

  await t.test('a model server is added, tested and removed, and its failure is shown as a sentence', async t => {
    const tab = await ownerTab(browser, daemon, '#/models')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add a server' }).click()
    await dialog.getByLabel('Id', { exact: true }).fill('nowhere')
    await dialog.getByLabel('Address').fill('http://127.0.0.1:9')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByText('Does not answer').waitFor()
    await page.getByRole('button', { name: 'Test nowhere' }).click()
    await page.getByText('It does not work').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Remove nowhere' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Servers that speak a known protocol').waitFor()
    await endJourney(t, tab)
  })

  await t.test('a model of this machine is downloaded, served, stopped, started and removed', async t => {
    const tab = await ownerTab(browser, daemon, '#/models')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByText(/A model may take .* here, and .* at full speed/).waitFor()
    await page.getByRole('button', { name: 'Run a model' }).click()
    await dialog.getByLabel('Id', { exact: true }).fill('tiny')
    await dialog.getByLabel('Window in tokens').fill('1024')
    t.match(await dialog.getByLabel('Model').inputValue(), 'small')
    t.same(await barriersOf(page), [])
    files.script.holdsAfter = 100_000
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('progressbar', { name: 'Download of tiny' }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Stop tiny' }).click()
    await page.getByText('Stopped', { exact: true }).waitFor()
    delete files.script.holdsAfter
    await page.getByRole('button', { name: 'Start tiny' }).click()
    await page.getByText(/1,024 tokens .* uses/).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Remove tiny' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('endpoint/tiny').waitFor({ state: 'detached' })
    await endJourney(t, tab)
  })
})
