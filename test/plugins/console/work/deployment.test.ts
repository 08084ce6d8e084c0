import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { sshKey } from '../../../support/ssh-server.js'
import { host } from '../../inventory/support.js'

t.test('the deployment in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, ['cli', 'git', 'inventory', 'secrets', 'workspace', ...CONSOLE_GROUPS])
  const { client, workspace, data } = daemon
  for (const path of ['intent', 'desired-state']) await client.call('POST /workspace/repos/init', { path })
  mkdirSync(join(workspace, 'shop'))
  writeFileSync(join(workspace, 'shop/Containerfile'), 'FROM scratch\n')
  // Nobody that it knows listens there.
  await client.call('POST /inventory', host('home', '127.0.0.1'))
  const shop = { kind: 'app', name: 'shop', values: { source: 'shop' }, on: 'home', expose: '' } as const
  await client.call('POST /inventory', shop)
  const browser = await launchBrowser(t)

  await t.test('a plan and an apply say what is missing, then what the machine says', async t => {
    const tab = await ownerTab(browser, daemon, '#/deployment')
    const { page } = tab
    await page.getByText('never applied').waitFor()
    await page.getByRole('button', { name: 'Make a plan' }).click()
    await page.getByText('not stored: HOST_SSH_KEY_HOME').waitFor()
    t.same(await barriersOf(page), [])
    const { private: key } = sshKey(join(data, '..'), 'key')
    await client.call('POST /secrets', { key: 'HOST_SSH_KEY_HOME', value: key })
    await page.getByRole('button', { name: 'Make a plan' }).click()
    await page.getByRole('log', { name: 'Lines of the plan' }).getByText('host.home failed').waitFor()

    await page.getByRole('button', { name: 'Apply the deployment' }).click()
    const dialog = page.getByRole('dialog')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Apply' }).click()
    const lines = page.getByRole('log', { name: 'Lines of the apply' })
    await lines.getByText('app.shop done').waitFor()
    await lines.getByText('host.home failed').waitFor()
    await page.getByText('failed', { exact: true }).waitFor()
    await page.getByText(/at apply$/).waitFor()
    // The daemon is away, then there again.
    await page.route('**/cli/apply/events', route => route.abort())
    await page.reload()
    await page.getByText('The sandbox does not answer.').waitFor()
    await page.unroute('**/cli/apply/events')
    await lines.getByText('host.home failed').waitFor()
    await page.getByText('The sandbox does not answer.').waitFor({ state: 'detached' })
    // A plan is refused while the key is missing.
    await endJourney(t, tab, /status of 409|ERR_FAILED/)
  })
})
