import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { loopEnd } from '../../loops/support.js'

t.test('loops in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'loops'])
  const { client } = daemon
  const browser = await launchBrowser(t)

  await t.test('a design is saved, a loop started from it gives up, goes on and is done', async t => {
    const tab = await ownerTab(browser, daemon, '#/loops')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add a design' }).click()
    await dialog.getByLabel('Id').fill('lines')
    await dialog.getByLabel('Name').fill('Three lines')
    await dialog.getByLabel('What the agent is asked').fill('append n.txt\n| a line\nsay a line')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Commands that must succeed').fill('test -e README.md\ntest $(wc -l < n.txt) -ge 2')
    await dialog.getByLabel('At most so many rounds').fill('1')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Start Three lines' }).click()
    await dialog.getByLabel('Goal').fill('There are two lines')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.getByText('Out of rounds').waitFor()
    await page.getByText('Command does not hold').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Go on There are two lines' }).click()
    await dialog.getByLabel('At most so many rounds').fill('3')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Go on' }).click()
    await page.getByRole('link', { name: 'Round 2' }).waitFor()
    const { loops } = await client.call('GET /loops', {})
    t.match(loops, exactly({ goal: 'There are two lines', isolated: true, state: 'done' }))
    await page.getByRole('link', { name: 'All loops' }).click()
    await page.getByRole('button', { name: 'Edit Three lines' }).click()
    await dialog.getByLabel('Description').fill('Counts lines.')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Counts lines.').waitFor()
    t.match((await client.call('GET /loops/designs')).designs, exactly({ id: 'lines', checks: exactly({}, {}) }))
    await page.getByRole('button', { name: 'Remove Three lines' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('A design keeps checks and ceilings').waitFor()
    // A design without a check.
    await endJourney(t, tab, /status of 422/)
  })

  await t.test('a running loop is stopped', async t => {
    const tab = await ownerTab(browser, daemon, '#/loops')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Start a loop' }).click()
    await dialog.getByLabel('Goal').fill('It never ends')
    await dialog.getByLabel('What the agent is asked').fill('wait 60000')
    await dialog.getByLabel('Commands that must succeed').fill('false')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.getByText('The first round has not ended yet.').waitFor()
    await page.getByRole('button', { name: 'Stop It never ends' }).click()
    await page.getByText('Stopped', { exact: true }).waitFor()
    const { loops } = await client.call('GET /loops', { limit: 1 })
    t.match(await loopEnd(daemon, loops[0]!.conversationId), { state: 'stopped', goal: 'It never ends' })
    await endJourney(t, tab)
  })
})
