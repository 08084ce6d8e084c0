import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith, inGit } from '../../../support/daemon.js'

t.test('the inventory in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, ['git', 'inventory', 'secrets', ...CONSOLE_GROUPS])
  await daemon.client.call('POST /workspace/repos/init', { path: 'intent' })
  const intent = join(daemon.workspace, 'intent')
  const browser = await launchBrowser(t)

  await t.test('a machine and an app on it are added, changed and removed', async t => {
    const tab = await ownerTab(browser, daemon, '#/inventory')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add an entry' }).click()
    await dialog.getByLabel('Name').fill('home')
    await dialog.getByLabel('Address').fill('home.example.org')
    await dialog.getByLabel('User').fill('deploy')
    await dialog.getByLabel('Host key').fill('ssh-ed25519 AAAA')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Save' }).click()
    const home = page.getByRole('listitem').filter({ hasText: 'home.example.org' })
    await home.getByText('Not stored: HOST_SSH_KEY_HOME').waitFor()

    await page.getByRole('button', { name: 'Add an entry' }).click()
    await dialog.getByLabel('What it is').selectOption('App')
    await dialog.getByLabel('Name').fill('shop')
    await dialog.getByLabel('Folder', { exact: true }).fill('../escape')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('values.source: expected').waitFor()
    await dialog.getByLabel('Folder', { exact: true }).fill('shop')
    await dialog.getByRole('button', { name: 'Save' }).click()
    const shop = page.getByRole('listitem').filter({ hasText: 'source: shop' })
    await shop.getByText('On home').waitFor()
    await home.getByText('Used by shop').waitFor()

    await home.getByRole('button', { name: 'Remove home' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await dialog.getByText('home is named by shop').waitFor()
    await page.keyboard.press('Escape')

    await shop.getByRole('button', { name: 'Change shop' }).click()
    await dialog.getByLabel('Reachable from other machines').selectOption('Yes')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await shop.getByText('exposed by home').waitFor()
    t.match(readFileSync(join(intent, 'deploy.config.json'), 'utf8'), '"expose": "home"')
    await shop.getByRole('button', { name: 'Remove shop' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await shop.waitFor({ state: 'detached' })
    t.equal(inGit(intent, 'log', '-1', '--format=%s').trim(), 'Remove app shop')
    await endJourney(t, tab, /422|409/)
  })
})
