import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith, makeWorkspace } from '../../support/daemon.js'

const json = (value: object): string => JSON.stringify(value)

t.test('projects in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace'], {
    files: {
      'package.json': json({
        ...{ name: 'top', private: true, workspaces: ['packages/*'], scripts: { test: 'echo all of top passed' } },
        dependencies: { near: 'file:./near' },
      }),
      'near/package.json': json({ name: 'near', version: '1.0.0' }),
      'packages/one/package.json': json({ name: 'one', version: '1.0.0', dependencies: { two: '1.0.0' } }),
      'packages/two/package.json': json({ name: 'two', version: '1.0.0' }),
    },
  })
  makeWorkspace(join(daemon.workspace, 'shop'), {
    'apps/web/package.json': json({ name: 'web', scripts: { dev: 'node server.cjs' } }),
    'apps/web/server.cjs':
      "console.log('the app begins')\n"
      + "require('node:http').createServer((_, r) => r.end('hello')).listen(process.env.PORT, '127.0.0.1')\n",
  })
  const browser = await launchBrowser(t)

  await t.test('dependencies are installed, and their terminal shows how', async t => {
    const tab = await ownerTab(browser, daemon, '#/projects')
    const { page } = tab
    const row = page.getByRole('region', { name: 'Dependencies' }).getByRole('listitem').filter({ hasText: 'The work' })
    await row.getByText('Not installed').waitFor()
    t.same(await barriersOf(page), [])
    await row.getByRole('button', { name: 'Install' }).click()
    await row.getByRole('link', { name: 'Progress' }).waitFor()
    await row.getByText('Installed', { exact: true }).waitFor({ timeout: 60_000 })
    await page.getByRole('region', { name: 'Packages' }).getByText('uses two').waitFor()
    t.same(await barriersOf(page), [])
    await row.getByRole('link', { name: 'Progress' }).click()
    await page.getByRole('group', { name: /^Terminal panel-.*install$/ }).waitFor()
    await endJourney(t, tab)
  })

  await t.test('an app is started, answers on its port and is stopped, and a test is run', async t => {
    const tab = await ownerTab(browser, daemon, '#/projects')
    const { page } = tab
    await page.getByRole('link', { name: 'shop' }).click()
    const apps = page.getByRole('region', { name: 'Apps' })
    await apps.getByText('Stopped').waitFor()
    await apps.getByRole('button', { name: 'Start web' }).click()
    await apps.getByText('Answers').waitFor({ timeout: 60_000 })
    const address = await apps.getByRole('link', { name: /^port \d+$/ }).getAttribute('href')
    t.equal(await (await fetch(address!.replace('localhost', '127.0.0.1'))).text(), 'hello')
    t.same(await barriersOf(page), [])
    await apps.getByRole('button', { name: 'Stop web' }).click()
    await apps.getByText('Stopped').waitFor()
    await page.getByRole('button', { name: 'Add an app' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Not A Name')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByRole('alert').waitFor()
    t.equal(await dialog.getByLabel('Name').inputValue(), 'Not A Name')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'The workspace' }).click()
    await page.getByRole('button', { name: 'Run tests' }).click()
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByRole('group', { name: /^Terminal panel-.*tests$/ }).waitFor()
    await page.getByText('all of top passed').first().waitFor()
    await endJourney(t, tab, /400/)
  })

  await t.test('a viewer reads it on a phone, and starts nothing', async t => {
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/projects/shop')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('region', { name: 'Apps' }).getByText('Stopped').waitFor()
    for (const name of ['Start web', 'Add an app', 'Run tests', 'Install'])
      t.equal(await page.getByRole('button', { name }).count(), 0, name)
    await endJourney(t, tab)
  })
})
