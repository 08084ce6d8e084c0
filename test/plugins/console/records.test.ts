import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { daySpan, typeWords, withNewest, withOlder } from '../../../plugins/console/web/data/record-pages.js'
import { shownLogLine, shownLogLines } from '../../../plugins/console/web/data/log-lines.js'
import type { ActivityEvent } from '../../../plugins/activity/contract.js'

const entries = (...seqs: number[]) => seqs.map(seq => ({ seq }) as ActivityEvent)
const seqsOf = (list: readonly ActivityEvent[]) => list.map(({ seq }) => seq)

t.test('pages of the record join without gaps and without repetition', async t => {
  t.same(seqsOf(withNewest(entries(5, 3), entries(9, 5, 3))), [9, 5, 3])
  t.same(seqsOf(withNewest(entries(5, 3), entries(9, 8))), [9, 8], 'a gap drops what lies beyond it')
  t.same(seqsOf(withOlder(entries(9, 5), entries(5, 3))), [9, 5, 3])
  t.equal(typeWords('session.opened'), 'Session opened')
  t.equal(typeWords('agent.autoLand'), 'Agent auto land')
  t.equal(daySpan('2026-03-31')!.to - daySpan('2026-03-31')!.from > 80_000_000, true)
  t.equal(daySpan('nonsense'), undefined)
})

t.test('a structured line of a log is taken apart, any other is shown as it is', async t => {
  t.same(shownLogLine('1', '{"level":"warn","at":7,"pid":3,"message":"late","ms":9}'), {
    ...{ key: '1', text: 'late', level: 'warn', at: 7, more: 'ms=9' },
  })
  t.same(shownLogLine('2', '{"level":'), { key: '2', text: '{"level":' })
  t.match(shownLogLines('a\nb\n', 10), exactly({ key: '10.0', text: 'a' }, { key: '10.1', text: 'b' }))
})

t.test('the records of the sandbox in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const browser = await launchBrowser(t)

  await t.test('activity is filtered, held and followed, and says whether it is intact', async t => {
    const tab = await ownerTab(browser, daemon, '#/activity')
    const { page } = tab
    await page.getByText('every one bound to the one before').waitFor()
    await page.getByText('Session opened').first().click()
    await page.locator('details[open]').getByText('hash', { exact: true }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByLabel('Kind').selectOption('Control tokens')
    await page.getByText('No entry fits these filters.').waitFor()
    await daemon.client.call('POST /system/control/tokens', { label: 'first', scope: 'read' })
    await page.getByText('Token minted').waitFor()
    await page.getByLabel('Follow').uncheck()
    await daemon.client.call('POST /system/control/tokens', { label: 'second', scope: 'read' })
    await page.getByRole('button', { name: 'Show 1 new' }).click()
    await page.getByText('second').first().waitFor()
    t.equal(await page.getByText('Token minted').count(), 2)
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    t.equal((await download).suggestedFilename(), 'activity.ndjson')
    await endJourney(t, tab)
  })

  await t.test('a log is followed line by line, and searched', async t => {
    const folder = join(daemon.data, 'logs', 'plugins')
    mkdirSync(folder, { recursive: true })
    const file = join(folder, 'sample.log')
    const line = (level: string, message: string) => JSON.stringify({ level, at: Date.now(), message }) + '\n'
    writeFileSync(file, line('info', 'began') + line('error', 'broke \u202e') + 'plain text\n')
    const tab = await ownerTab(browser, daemon, '#/logs')
    const { page } = tab
    await page.getByRole('link', { name: 'plugins/sample.log' }).click()
    await page.getByText('plain text').waitFor()
    await page.getByText('broke ⟨U+202E⟩').waitFor()
    appendFileSync(file, line('info', 'went on'))
    await page.getByText('went on').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByLabel('Level').selectOption('Errors')
    await page.getByText('plain text').waitFor({ state: 'hidden' })
    await page.getByText('broke').waitFor()
    await page.getByLabel('Level').selectOption('Every level')
    await page.getByLabel('Find').fill('went')
    await page.getByText('broke').waitFor({ state: 'hidden' })
    await page.getByText('went on').waitFor()
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('link', { name: 'Back to the logs' }).click()
    await page.getByRole('link', { name: 'plugins/sample.log' }).waitFor()
    await endJourney(t, tab)
  })
})
