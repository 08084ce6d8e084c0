import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'

t.test('chores in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace', 'chores', 'automations'], {
    files: {
      'package.json': '{"name":"shop"}',
      'dist/app.js': 'console.log(1)\n',
      'src/cart.ts': 'export const sum = (a: number) => {\n  if (a > 1) return 1\n  return a > 0 ? 2 : 3\n}\n',
    },
  })
  const { client, workspace } = daemon
  const bin = join(workspace, 'node_modules/.bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'knip'), '#!/bin/sh\nsleep 86312\n')
  chmodSync(join(bin, 'knip'), 0o755)
  const tidying = {
    id: 'tidy',
    trigger: { kind: 'schedule' as const, cron: '0 9 * * 1' },
    prompt: 'Tidy up.',
    enabled: true,
  }
  await client.call('POST /automations', { ...tidying, chore: true })
  await client.call('POST /automations', { ...tidying, id: 'report' })
  const browser = await launchBrowser(t)

  await t.test('a measurement is taken, stopped and concluded of, and viewers only read', async t => {
    const tab = await ownerTab(browser, daemon, '#/chores')
    const { page } = tab
    const row = (label: string) => page.getByRole('listitem').filter({ hasText: label })
    const filed = page.getByRole('region', { name: 'Automations' })
    await filed.getByRole('link', { name: 'tidy' }).waitFor()
    t.equal(await filed.getByRole('link').count(), 1)
    await row('Size of the build').getByText('Not measured').waitFor()
    await page.getByRole('button', { name: 'Measure Size of the build' }).click()
    await row('Size of the build')
      .getByText(/compressed, 15 B in all/)
      .waitFor()
    await row('Size of the build').getByText('What was found').click()
    await page.getByText(/^dist\/app\.js: /).waitFor()
    t.same(await barriersOf(page), [])

    await page.getByRole('button', { name: 'Measure Unused code' }).click()
    await page.getByRole('button', { name: 'Stop Unused code' }).click()
    await row('Unused code').getByText('Not measured').waitFor()

    await page.getByRole('button', { name: 'Conclude Size of the build' }).click()
    const dialog = page.getByRole('dialog')
    t.same(await barriersOf(page), [])
    await dialog.getByLabel('What follows').selectOption('There is nothing to do')
    await dialog.getByLabel('Put it off').selectOption('For a week')
    await dialog.getByRole('button', { name: 'Conclude' }).click()
    await row('Size of the build')
      .getByText(/There is nothing to do: .*, put off until /)
      .waitFor()
    await until(async () => (await client.call('GET /chores', {})).ledger.length === 1)
    const guest = await guestTab(browser, daemon, { role: 'viewer' }, '#/chores')
    await guest.page.getByText(/There is nothing to do: /).waitFor()
    t.equal(await guest.page.getByRole('button', { name: /^(?:Measure|Conclude)/ }).count(), 0)
    await endJourney(t, guest)
    await page.getByRole('button', { name: 'Have it done Size of the build' }).click()
    await page.getByText(/^Make the build smaller without taking anything/).waitFor()
    const { agents } = await client.call('GET /agents')
    t.match(agents, exactly({ title: 'Size of the build', branch: /^agent\/run-/ }))
    await page.goBack()
    await page.getByRole('link', { name: 'src/cart.ts' }).click()
    await page.getByText('export const sum').waitFor()
    await endJourney(t, tab)
  })
})
