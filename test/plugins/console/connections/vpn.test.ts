import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { vaultFake } from '../../capabilities/support.js'
import { FORTICLIENT, KEYS, wireguardText } from '../../vpn/configurations.js'

t.test('tunnels in the console', withChromium(), async t => {
  const { fakes } = vaultFake()
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'capabilities', 'vpn'], { fakes })
  const browser = await launchBrowser(t)

  await t.test('a tunnel is set up with its form, shown with its details, and an exported file is read', async t => {
    const tab = await ownerTab(browser, daemon, '#/vpn')
    const { page } = tab
    await page.getByText('Tunnels to private networks appear here.').waitFor()
    await page.getByRole('link', { name: 'Set up a tunnel' }).click()
    const form = page.getByRole('dialog')
    await form.getByLabel('Id', { exact: true }).fill('office')
    const asksFor = (label: string) => form.getByLabel(label, { exact: false }).count()
    t.equal(await asksFor('Pre-shared key'), 0, 'only fields of this way to dial')
    await form.getByLabel('Dialled with').selectOption('IPsec')
    await form.getByLabel('Pre-shared key').waitFor()
    t.equal(await asksFor('Configuration'), 0)
    await form.getByLabel('Dialled with').selectOption('WireGuard')
    await form.getByLabel('Configuration').fill(`${wireguardText()}PostUp = true`)
    await form.getByLabel('Dial when the sandbox starts').selectOption('off')
    await form.getByRole('button', { name: 'Connect' }).click()
    await form.getByText('line 9: PostUp runs a program').waitFor()
    t.same(await barriersOf(page), [])
    await form.getByLabel('Configuration').fill(wireguardText())
    await form.getByRole('button', { name: 'Connect' }).click()
    await form.waitFor({ state: 'detached' })
    await page.goto(page.url().replace(/#.*/, '#/vpn'))
    const row = page.getByRole('listitem').filter({ hasText: 'office' })
    await row.getByText('192.0.2.2:51820').waitFor()
    t.notOk((await page.content()).includes(KEYS.own))
    await row.getByRole('button', { name: 'Details of office' }).click()
    await page.getByRole('dialog').getByText('It has not been dialled yet.').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Read a FortiClient file' }).click()
    await page.getByLabel('The exported file').fill(FORTICLIENT)
    await page.getByRole('button', { name: 'Read', exact: true }).click()
    await page.getByText('vpn.example.org:10443').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Cancel' }).click()
    await endJourney(t, tab, /status of 422/)
  })

  await t.test('a viewer reads the tunnels on a phone, and dials none', async t => {
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/vpn')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByText('192.0.2.2:51820').waitFor()
    t.equal(await page.getByRole('main').getByRole('button').count(), 0)
    await endJourney(t, tab)
  })
})
