import t from 'tap'
import { until, withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'

const SERVER = "require('node:http').createServer((_, r) => r.end('hello')).listen(process.env.PORT, '127.0.0.1')\n"

t.test('panels in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace', 'ports', 'panels'], {
    files: { 'package.json': JSON.stringify({ scripts: { dev: 'node server.cjs' } }), 'server.cjs': SERVER },
  })
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon, '#/projects')
  const { page } = tab
  const section = page.getByRole('region', { name: 'Development server' })
  await section.getByText('Stopped').waitFor()
  t.same(await barriersOf(page), [])
  await section.getByRole('button', { name: 'Start the server of' }).click()
  await section.getByText('Answers', { exact: true }).waitFor({ timeout: 60_000 })
  await section.getByRole('link', { name: 'Preview' }).waitFor()
  const address = await section.getByRole('link', { name: /^port \d+$/ }).getAttribute('href')
  t.equal(await (await fetch(address!.replace('localhost', '127.0.0.1'))).text(), 'hello')
  t.same(await barriersOf(page), [])
  const panel = () => daemon.client.call('GET /panels/{repo}', { repo: 'root' })
  const { startedAt } = await panel()
  await section.getByRole('button', { name: 'Restart the server of' }).click()
  await until(async () => ((await panel()).startedAt ?? 0) > startedAt!)
  // While an action runs, other clicks are not taken.
  await section.getByRole('button', { name: 'Restart the server of' }).and(page.locator(':enabled')).waitFor()
  await section.getByText('Answers', { exact: true }).waitFor({ timeout: 60_000 })
  await section.getByRole('button', { name: 'Stop the server of' }).click()
  await section.getByText('Stopped').waitFor()
  t.match(await panel(), { running: false, healthy: false })
  await endJourney(t, tab)
})
