import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'

t.test('the safety policy in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'safety'])
  const { client } = daemon
  const browser = await launchBrowser(t)

  await t.test('a policy is written, a rule added and tried, and a verdict reviewed', async t => {
    const tab = await ownerTab(browser, daemon, '#/safety')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByLabel('In your own words').fill('Nothing is pushed on a Friday.')
    await page.getByLabel('When no model answers').selectOption('Deny')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('There is no rule.').waitFor()
    while ((await client.call('GET /safety')).policy.prose === '') await page.waitForTimeout(20)
    t.match((await client.call('GET /safety')).policy, {
      prose: 'Nothing is pushed on a Friday.',
      judge: { onFailure: 'deny' },
    })
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await dialog.getByLabel('Id', { exact: true }).fill('No deploys')
    await dialog.getByLabel('What it is for').fill('No deploys')
    await dialog.getByLabel('Text that fits (RE2)').fill('^deploy')
    await dialog.getByLabel('Verdict').selectOption('Deny')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'id' }).waitFor()
    await dialog.getByLabel('Id', { exact: true }).fill('no-deploys')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByText('command: regex ^deploy').waitFor()
    await page.getByLabel('Command', { exact: true }).fill('deploy now')
    await page.getByRole('button', { name: 'Decide' }).click()
    await page.getByRole('status').filter({ hasText: 'Denied' }).waitFor()

    await runTurn(client, 'tries', 'run deploy now\nrun echo fine\nsay done', { permissionMode: 'bypassPermissions' })
    await page.getByRole('link', { name: 'Verdicts' }).click()
    await page.getByText('deploy now').first().waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Right deploy now' }).click()
    await page.getByText(/said it was right/).waitFor()
    t.match(
      (await client.call('GET /safety/verdicts', {})).verdicts,
      exactly({ verdict: 'deny', review: { correct: true } }),
    )

    await goTo(page, '#/safety')
    await page.getByRole('button', { name: 'Remove No deploys' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('There is no rule.').waitFor()
    await page.getByRole('button', { name: 'What would differ' }).click()
    await page.getByText(/1 would differ, the newest: deploy now \(allow\)/).waitFor()
    // A rule without a good id.
    await endJourney(t, tab, /status of 400/)
    const guest = await guestTab(browser, daemon, { role: 'viewer' }, '#/safety')
    await guest.page.getByText('Nothing is pushed on a Friday.').waitFor()
    t.equal(await guest.page.getByRole('button', { name: /Save|Add a rule|Decide/ }).count(), 0)
    await endJourney(t, guest)
  })

  await t.test('rules are put in order with the keyboard, and hold in the turns they are for', async t => {
    const { policy } = await client.call('GET /safety')
    const match = { regex: '^deploy' }
    const ruleOf = (id: string) => ({ id, match, label: `The ${id}`, target: 'command', verdict: 'deny' }) as const
    await client.call('POST /safety', { policy: { ...policy, rules: ['first', 'second'].map(ruleOf) } })
    const saved = async () => (await client.call('GET /safety')).policy.rules
    const tab = await ownerTab(browser, daemon, '#/safety')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    const press = async (name: string) => {
      await page.getByRole('button', { name, exact: true }).focus()
      await page.keyboard.press('Enter')
    }
    const words = page.getByLabel('In your own words')
    await words.fill('Unsaved')
    t.ok(await page.getByRole('button', { name: 'Move up The first' }).isDisabled())

    await press('Move up The second')
    await page.getByText('1. The second').waitFor()
    await page.locator(':focus', { hasText: 'Move down The second' }).waitFor()
    await page.getByRole('status').filter({ hasText: 'The second is number 1 of 2.' }).waitFor({ state: 'attached' })
    t.match(await saved(), exactly({ id: 'second' }, { id: 'first' }))
    await page.keyboard.press('Enter')
    await page.getByText('2. The second').waitFor()
    await page.locator(':focus', { hasText: 'Move up The second' }).waitFor()
    t.match(await saved(), exactly({ id: 'first' }, { id: 'second' }))

    await press('Change The second')
    t.equal(await dialog.getByLabel('Text that fits (RE2)').inputValue(), '^deploy')
    await dialog.getByLabel('Watched').selectOption('While nobody watches')
    await dialog.getByLabel('Content from outside').selectOption('Without content from outside')
    await dialog.getByLabel('Of the persona').fill('releaser')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Change' }).click()
    await page
      .getByText('command: regex ^deploy · while nobody watches · without content from outside · persona releaser')
      .waitFor()
    t.match(
      await saved(),
      exactly({ id: 'first' }, { id: 'second', when: { unattended: true, outside: false, persona: 'releaser' } }),
    )

    await press('Switch off The first')
    await page.getByRole('button', { name: 'Switch on The first' }).waitFor()
    t.match(await saved(), exactly({ id: 'first', enabled: false }, { id: 'second' }))
    await page.getByLabel('Command', { exact: true }).fill('deploy now')
    await page.getByRole('button', { name: 'Decide' }).click()
    await page.getByRole('status').filter({ hasText: 'Allowed' }).waitFor()

    await press('Change The second')
    await client.call('POST /safety', { policy: { ...policy, rules: [ruleOf('second')] } })
    await dialog.getByLabel('What it is for').fill('Changed too late')
    await dialog.getByRole('button', { name: 'Change' }).click()
    await dialog.getByRole('alert').waitFor()
    t.match(await saved(), exactly({ label: 'The second' }), 'a change of another person is not written over')
    await page.keyboard.press('Escape')
    t.equal(await words.inputValue(), 'Unsaved', 'what is being written stays while rules change')
    // The change that came too late.
    await endJourney(t, tab, /status of 409/)
  })
})
