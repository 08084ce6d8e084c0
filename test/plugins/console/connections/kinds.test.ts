import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { siteOf, withChromium, withoutWindows } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith, inGit } from '../../../support/daemon.js'
import { committed } from '../../../support/servers/git-server.js'
import { vaultFake } from '../../capabilities/support.js'
import { approvePending, listedUntil, writeExtension } from '../../extensions/support.js'

const CARD = {
  id: 'wiki',
  catalog: { name: 'Wiki', description: 'Pages of a wiki.', category: 'knowledge', guide: { steps: ['Ask Grace.'] } },
  kind: 'cli',
  skill: 'wiki.md',
  env: { WIKI: '${site}/${mode}/${plan}/${invoice}' },
  fields: [
    { key: 'site', label: 'Site', default: 'wiki.example.org' },
    { key: 'mode', label: 'Mode', value: 'robot' },
    { key: 'plan', label: 'Plan', boolean: true, default: 'off' },
    { key: 'invoice', label: 'Invoice', when: "plan == 'on'" },
  ],
}

t.test('plugins, cards of extensions and accounts are connected in the console', withChromium(), async t => {
  withoutWindows(t)
  const site = await siteOf(t, { '/': (_, response) => void response.end('<title>Sign in</title>') })
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'capabilities', 'extensions'], { fakes: vaultFake().fakes })
  const origin = join(daemon.workspace, 'team')
  mkdirSync(join(origin, 'skills/review'), { recursive: true })
  writeFileSync(join(origin, 'skills/review/SKILL.md'), '---\nname: review\n---\nRead.\n')
  inGit(origin, 'init', '-q')
  const ref = committed(origin)
  writeExtension(
    daemon,
    'cards',
    { publisher: 'ada', name: 'cards', contributes: { capabilities: [CARD] } },
    { 'wiki.md': 'Ask.\n' },
  )
  await listedUntil(daemon, ({ pending }) => pending.some(({ id }) => id === 'ada.cards'))
  await approvePending(daemon, 'ada.cards')
  const tab = await ownerTab(await launchBrowser(t), daemon, '#/connections')
  const { page } = tab
  const dialog = page.getByRole('dialog')
  const connected = page.getByRole('region', { name: 'Connected' })

  await page.getByRole('button', { name: 'Connect Agent plugin' }).click()
  await dialog.getByLabel('Repository').fill('team')
  await dialog.getByLabel('Commit').fill('main')
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('Commit').fill(ref)
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await connected.getByText('a plugin of agents').waitFor()

  await page.getByRole('button', { name: 'Connect Wiki' }).click()
  await dialog.getByText('Ask Grace.').waitFor()
  t.equal(await dialog.getByLabel('Site').inputValue(), 'wiki.example.org')
  t.equal(await dialog.getByLabel('Mode').count(), 0, 'what is always the same is not asked for')
  t.equal(await dialog.getByLabel('Invoice').count(), 0)
  await dialog.getByLabel('Plan').selectOption('on')
  await dialog.getByLabel('Invoice').fill('i-1')
  t.same(await barriersOf(page), [])
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await dialog.waitFor({ state: 'hidden' })
  const { capabilities } = await daemon.client.call('GET /capabilities')
  t.match(
    capabilities.find(({ id }) => id === 'wiki'),
    { config: { provider: 'wiki', plan: 'on', invoice: 'i-1' }, status: { state: 'active' } },
  )

  await page.getByRole('button', { name: 'Connect Account at a site' }).click()
  await dialog.getByLabel('Address to sign in at').fill(`${site.url}/`)
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await connected.getByText('nobody has signed in').waitFor()
  await connected.getByRole('button', { name: 'Sign in to' }).click()
  await page.waitForURL(/#\/browsers\/login-/)
  t.same(await barriersOf(page), [])
  await endJourney(t, tab, /status of 400/)
})
