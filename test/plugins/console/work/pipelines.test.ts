import t from 'tap'
import { until, withChromium } from '../../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../../support/browser/console.js'
import { CapabilityStore } from '../../../support/capability-store.js'
import { daemonWith } from '../../../support/daemon.js'
import { TestForge } from '../../pipelines/forge-server.js'
import { connectForge, repoOf } from '../../pipelines/support.js'

t.test('pipelines in the console', withChromium(), async t => {
  const store = new CapabilityStore()
  const groups = new Set([...CONSOLE_GROUPS, 'pipelines', 'git', 'settings', 'workspace', 'agent', 'agents', 'system'])
  const daemon = await daemonWith(t, [...groups], { fakes: store.fakes })
  const { client } = daemon
  const forge = await new TestForge('gitea', '127.0.0.1').listen(t)
  const sha = repoOf(daemon.workspace, forge)
  connectForge(store, forge)
  forge.add('failed', { sha })
  forge.job(12, 'Tests', 'failed', 'one\nnot ok 3 - totals\n')
  await client.call('POST /settings/patch', {
    set: {
      rules: [
        {
          ...{ id: 'check', label: 'Check', moment: 'push.starting' },
          action: { kind: 'command', command: 'echo checked; exit 1' },
        },
      ],
    },
  })
  const browser = await launchBrowser(t)

  await t.test(
    'a failed run is read, run again and given to an agent; a check is started; a webhook shown',
    async t => {
      const tab = await ownerTab(browser, daemon, '#/pipelines')
      const { page } = tab
      const dialog = page.getByRole('dialog')
      await page.getByRole('button', { name: 'Ask the forges now' }).click()
      await page.getByRole('link', { name: 'Round totals' }).waitFor()
      await page.getByRole('button', { name: 'Check now' }).click()
      await page.getByText('The last check before a push failed.', { exact: false }).waitFor()
      await page
        .getByLabel('What the check wrote')
        .filter({ hasText: /^checked$/m })
        .waitFor()
      await page.getByRole('button', { name: 'Mark all as seen' }).click()
      await page.getByRole('link', { name: 'Round totals' }).click()
      await page.getByRole('button', { name: /^Show the log/ }).click()
      await page.getByText('not ok 3 - totals', { exact: false }).waitFor()
      t.same(await barriersOf(page), [])
      await page.getByRole('button', { name: /^Fix Round totals/ }).click()
      await dialog.getByLabel('What else it should know').fill('Look at totals.')
      await dialog.getByRole('button', { name: 'Start' }).click()
      await page.getByText('Look at totals.').first().waitFor()
      const { runs } = await client.call('GET /ci/runs', { host: 'gitea' })
      t.match(page.url(), runs[0]?.fix?.conversationId)
      await page.goBack()
      await page.getByRole('button', { name: 'Run what failed again' }).click()
      await until(() => forge.runs[0]!.status === 'running')
      await page.getByRole('link', { name: 'All runs' }).click()
      await page.getByRole('link', { name: 'Repositories' }).click()
      await page.getByRole('button', { name: /^Show the webhook of Gitea/ }).click()
      await page.getByText('/ci/webhook/gitea', { exact: false }).last().waitFor()
      await endJourney(t, tab)
    },
  )

  await t.test('a viewer reads runs on a phone, and changes none', async t => {
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/pipelines')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('link', { name: 'Round totals' }).click()
    await page.getByRole('button', { name: 'Show the log Tests' }).waitFor()
    t.equal(await page.getByRole('button', { name: /Fix|Run|Stop|seen|Check now|secret/ }).count(), 0)
    await endJourney(t, tab)
  })
})
