import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'

t.test('saved points in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace', 'git', 'history'], {
    files: { 'a.txt': 'one\n', 'b.txt': 'one\n', 'web/c.txt': 'one\n' },
  })
  const at = (path: string) => join(daemon.workspace, path)
  const read = (path: string) => readFileSync(at(path), 'utf8')
  const browser = await launchBrowser(t)

  await t.test('a point is saved, a restore previewed, done and undone', async t => {
    const tab = await ownerTab(browser, daemon, '#/history')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Save a point' }).click()
    await dialog.getByLabel('Name').fill('Before the change <b>')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('link', { name: /^Before the change <b>/ }).click()
    await page.getByText('The workspace is as it was at this point.').waitFor()
    writeFileSync(at('a.txt'), 'two\n')
    writeFileSync(at('new.txt'), 'new\n')
    rmSync(at('b.txt'))
    await page.getByRole('link', { name: /a\.txt changed/ }).click()
    await page.locator('.cm-content').getByText('two').waitFor()
    await page.getByRole('link', { name: /new\.txt came since/ }).waitFor()
    await page.getByRole('link', { name: /b\.txt is gone/ }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByLabel('Restore a.txt').check()
    await page.getByRole('button', { name: 'Restore 1 file' }).click()
    await dialog.getByRole('button', { name: 'Restore' }).click()
    await page.getByText('Restored 1 file and removed 0').waitFor()
    t.equal(read('a.txt'), 'one\n')
    t.ok(existsSync(at('new.txt')), 'only the chosen file went back')
    await page.getByRole('link', { name: /^Before the change <b>/ }).click()
    await page.getByRole('button', { name: 'Restore', exact: true }).click()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Restore' }).click()
    await page.getByText('Restored 1 file and removed 1').waitFor()
    t.notOk(existsSync(at('new.txt')))
    t.equal(read('b.txt'), 'one\n')
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Undo the restore' }).click()
    await until(() => existsSync(at('new.txt')))
    await page.getByRole('button', { name: 'Undo the restore' }).waitFor()
    t.equal(read('new.txt'), 'new\n')
    t.notOk(existsSync(at('b.txt')))
    await endJourney(t, tab)
  })

  await t.test(
    'points are filtered by file, and a restore of a point that is gone is refused where it was asked',
    async t => {
      const tab = await ownerTab(browser, daemon, '#/history')
      const { page } = tab
      await page.getByLabel('File or folder').fill('web')
      await page
        .getByText('It changed in no saved point.')
        .or(page.getByRole('link', { name: /^Before the change/ }))
        .waitFor()
      await page.evaluate(`location.hash = '#/history/no-such-point'`)
      await page.getByRole('alert').first().waitFor()
      await page.getByRole('button', { name: 'Restore', exact: true }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('alert').filter({ hasText: 'no-such-point' }).waitFor()
      const restore = dialog.getByRole('button', { name: 'Restore' })
      t.ok(await restore.isDisabled())
      const [enabled, disabled] = await Promise.all(
        [page.locator('.pane-tools .danger'), restore].map(async button =>
          button.evaluate(element => element.ownerDocument.defaultView!.getComputedStyle(element).color),
        ),
      )
      t.not(disabled, enabled, 'it looks so')
      await endJourney(t, tab, /404/)
    },
  )

  await t.test('a viewer sees points on a phone and restores nothing', async t => {
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/history')
    const { page } = tab
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('link', { name: /^Before the change/ }).click()
    await page.getByRole('button', { name: 'What changed in it' }).click()
    for (const name of ['Save a point', 'Restore'])
      t.equal(await page.getByRole('button', { name, exact: true }).count(), 0)
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'Back to the points' }).click()
    await page.getByRole('link', { name: /^Before the change/ }).waitFor()
    await endJourney(t, tab)
  })
})
