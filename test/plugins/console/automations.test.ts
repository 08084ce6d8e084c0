import t from 'tap'
import { automation, settled } from '../../support/automations.js'
import { withChromium } from '../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

t.test('automations in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'automations', 'usage'])
  const { client } = daemon
  const browser = await launchBrowser(t)

  await t.test('one is added with a preview of its times, run, edited, switched off and removed', async t => {
    const tab = await ownerTab(browser, daemon, '#/automations')
    const { page } = tab
    await page.getByRole('button', { name: 'Add an automation' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Id').fill('nightly')
    await dialog.getByLabel('Cron expression').fill('61 * * * *')
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Cron expression').fill('0 3 * * *')
    await dialog.getByLabel('Time zone').fill('Europe/Berlin')
    await dialog.getByText('every day at 03:00 (Europe/Berlin)').waitFor()
    t.equal(await dialog.getByRole('list', { name: 'Next times' }).getByRole('listitem').count(), 5)
    await dialog.getByLabel('What the agent is asked').fill('say it is done')
    await dialog.getByLabel('Guard').fill('echo seen; exit 1')
    await dialog.getByRole('button', { name: 'Run the guard' }).click()
    await dialog.getByText('It stops the fire (1). seen').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('link', { name: 'nightly' }).waitFor()
    t.match((await client.call('GET /automations')).automations, exactly({ id: 'nightly', enabled: true }))

    await page.getByRole('button', { name: 'Run now nightly' }).click()
    await page.getByText('It did not run: the guard exited with 1: seen').waitFor()
    await page.getByRole('button', { name: 'Edit nightly' }).click()
    await dialog.getByLabel('Guard').fill('')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Run now nightly' }).click()
    await settled(daemon, 'nightly', 2)
    await page.getByRole('link', { name: 'nightly' }).click()
    await page.getByText('Completed').waitFor()
    await page.getByText('Skipped').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Switch off nightly' }).click()
    await page.getByRole('button', { name: 'Switch on nightly' }).waitFor()
    await page.getByRole('button', { name: 'Remove nightly' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Automations start agents on a schedule').waitFor()
    // A schedule that cannot be read, and the page of what was removed.
    await endJourney(t, tab, /status of (?:422|404)/)
  })

  await t.test('the token of a webhook is shown and replaced; held fires wait in the inbox', async t => {
    await client.call('POST /automations', automation('hook', { trigger: { kind: 'event' }, requireApproval: true }))
    const tab = await ownerTab(browser, daemon, '#/automations/hook')
    const { page } = tab
    await page.getByRole('button', { name: 'Show the token' }).click()
    const { url, token } = await client.call('GET /automations/{id}/token', { id: 'hook' })
    await page.getByText(token).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Make a new token' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Make a new token' }).click()
    await page.getByText(token).waitFor({ state: 'detached' })
    const next = await client.call('GET /automations/{id}/token', { id: 'hook' })
    t.not(next.token, token)
    for (const body of ['first', 'second']) await fetch(`${url}?token=${next.token}`, { method: 'POST', body })
    await page.evaluate(`location.hash = '#/inbox'`)
    const heading = page.getByRole('heading', { name: 'Automations that wait for a yes' })
    await heading.waitFor()
    await page.getByText('What it was started with').first().click()
    await page.getByText('first').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Approve hook' }).first().click()
    await settled(daemon, 'hook', 1)
    await page.getByRole('button', { name: 'Reject hook' }).click()
    await page.getByRole('dialog').getByLabel('Why').fill('not now')
    await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click()
    await heading.waitFor({ state: 'detached' })
    t.match(
      (await client.call('GET /automations/{id}', { id: 'hook' })).runs,
      exactly({ outcome: 'skipped', detail: 'rejected: not now' }, { outcome: 'completed', cause: 'approved' }),
    )
    await endJourney(t, tab)
  })
})
