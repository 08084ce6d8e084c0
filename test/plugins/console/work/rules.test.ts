import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { runTurn } from '../../../support/turns.js'

t.test('standing rules in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const { client } = daemon
  const tab = await ownerTab(await launchBrowser(t), daemon, '#/settings/rules')
  const { page } = tab
  const dialog = page.getByRole('dialog')
  const rules = async () => (await client.call('GET /settings')).rules

  await t.test('a rule is added, tried, acts, and is switched off and removed', async t => {
    await page.getByText('There is no rule.').waitFor()
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await dialog.getByLabel('Id').fill('readme')
    await dialog.getByLabel('What it is for').fill('Readme is there')
    await dialog.getByLabel('Command').fill('test -e README.md')
    await dialog.getByLabel('Seconds it may take').fill('20')
    await dialog.getByLabel('A changed path fits').fill('src/[a')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('A changed path fits').fill('src/**')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByText('1. Readme is there').waitFor()
    t.match(
      await rules(),
      exactly({
        ...{ id: 'readme', moment: 'turn.ending', when: { paths: exactly('src/**') } },
        action: { kind: 'command', command: 'test -e README.md', timeoutMs: 20_000 },
      }),
    )
    await page.getByLabel('Changed paths').fill('docs/a.md')
    await page.getByRole('button', { name: 'Try' }).click()
    await page.getByText('No rule would act.').waitFor()
    await page.getByText('no path fits').waitFor()
    await page.getByLabel('Changed paths').fill('src/a.ts')
    await page.getByRole('button', { name: 'Try' }).click()
    await page.getByText('These would act:').waitFor()
    t.same(await barriersOf(page), [])
    await runTurn(client, 'acts', 'write src/a.ts\n| 1')
    await page.getByText('1 in all').waitFor()
    await page.getByRole('button', { name: 'Switch off Readme is there' }).click()
    await page.getByRole('button', { name: 'Switch on Readme is there' }).waitFor()
    t.match(await rules(), exactly({ enabled: false }))
    await endJourney(t, tab, /status of 400/)
  })

  await t.test('a change by somebody else is not written over', async t => {
    await page.getByRole('button', { name: 'Change Readme is there' }).click()
    await dialog.getByLabel('What it is for').fill('Mine')
    const [rule] = await rules()
    await client.call('POST /settings/patch', { set: { rules: [{ ...rule!, label: 'Theirs' }] } })
    await dialog.getByRole('button', { name: 'Change' }).click()
    await dialog.getByRole('alert').waitFor()
    t.match(await rules(), exactly({ label: 'Theirs' }))
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Remove Theirs' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('There is no rule.').waitFor()
    await page.getByRole('link', { name: 'Models now' }).click()
    await page.getByText('quickModel').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'Savings' }).click()
    await page.getByText('No output was shortened yet.').waitFor()
    await client.call('POST /settings/patch', { set: { terseOutput: true, terseHoldout: 0.5, outputCleaners: '' } })
    await runTurn(client, 'saves', 'run seq -f "npm http fetch GET 200 https://packages.example/%g" 200')
    await page.reload()
    await page.getByText(/^Models read .+ tokens in 1 command: /).waitFor()
    await page.getByRole('row', { name: /^node-packages 1 / }).waitFor()
    await page.getByText('Too few to compare').waitFor()
    t.same(await barriersOf(page), [])
    await endJourney(t, tab, /status of 40[09]/)
  })
})
