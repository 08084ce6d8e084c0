import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { until, withChromium } from '../../../support/browser/browser.js'
import { CONSOLE_GROUPS, goTo, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { daemonWith, inGit } from '../../../support/daemon.js'
import { runTurn } from '../../../support/turns.js'

/** The name of a key for the browser, by what is printed on it. */
const PRINTED: { readonly [printed: string]: string } = {
  ...{ Ctrl: 'Control', Esc: 'Escape', '↑': 'ArrowUp', '↓': 'ArrowDown' },
}

/** A key of the list: what its words say, and its strokes. */
interface Listed {
  readonly label: string
  readonly strokes: readonly string[]
}

/** The keys that the page lists where it is now. */
const listedKeys = async (page: Page): Promise<Listed[]> => {
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('heading', { name: 'Keys' }).waitFor()
  const rows = await dialog.locator('.key-list > div').evaluateAll(found =>
    found.map(row => ({
      label: row.querySelector('dt')!.textContent!,
      strokes: [...row.querySelectorAll('.keys > span')].map(stroke =>
        [...stroke.querySelectorAll('kbd')].map(key => key.textContent!),
      ),
    })),
  )
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  return rows.map(({ label, strokes }) => ({
    label,
    strokes: strokes.map(keys => keys.map(key => PRINTED[key] ?? key).join('+')),
  }))
}

const focusIs = (selector: string) => (page: Page) =>
  until(async () => page.evaluate(`document.activeElement?.matches(${JSON.stringify(selector)})`))
const addressIs = (fits: RegExp) => (page: Page) => until(async () => fits.test(new URL(page.url()).hash))
const shows = (text: string | RegExp) => (page: Page) => page.getByText(text).first().waitFor()
const asks = (heading: string | RegExp) => (page: Page) =>
  page.getByRole('dialog').getByRole('heading', { name: heading }).waitFor()
/** What is typed next goes into this field. */
const typesInto = (label: string) => async (page: Page) => {
  await page.getByLabel(label, { exact: true }).and(page.locator(':focus')).waitFor()
  await page.keyboard.type('heron')
  t.equal(await page.getByLabel(label, { exact: true }).inputValue(), 'heron', label)
}
const focusRow = (text: RegExp) => (page: Page) => page.locator('[data-row]', { hasText: text }).first().focus()

interface Case {
  /** The places where it is tried; default: all. */
  readonly at?: RegExp
  readonly before?: (page: Page) => Promise<unknown>
  readonly does: (page: Page) => Promise<unknown>
}

const selected = (page: Page) => page.getByText('1 selected').waitFor()

/** What each key does, by its words in the list; `Go to` is generated. */
const CASES: { readonly [label: string]: Case } = {
  'Go to or do …': { does: page => page.getByRole('dialog').getByRole('combobox').waitFor() },
  'Show all keys': { does: asks('Keys') },
  'New conversation': { does: typesInto('What should the agent do?') },
  'Search conversations': { does: typesInto('Search conversations') },
  'Next row': { does: focusIs('[data-row]') },
  'Previous row': { does: focusIs('[data-row]') },
  Back: { does: addressIs(/^#\/(?:fleet|files|git|history|c\/work(?:\/changes)?)?$/) },
  'Next conversation': { does: addressIs(/^#\/c\//) },
  'Previous conversation': { does: addressIs(/^#\/c\//) },
  'Archive the row that has the focus': { before: focusRow(/The spare one/), does: asks('Archive this conversation?') },
  'Select the row that has the focus': { before: focusRow(/The spare one/), does: selected },
  'Find in this conversation': { does: focusIs('input[type=search]') },
  'Write to the agent': { does: typesInto('Message to the agent') },
  'Previous message of a person': { at: /talk$/, does: shows('say the newest request') },
  'Next message of a person': {
    at: /talk$/,
    before: async page => {
      for (const key of ['[', '[', '[']) await page.keyboard.press(key)
      await shows('say the oldest request')(page)
    },
    does: shows('say the newest request'),
  },
  Changes: { does: addressIs(/^#\/c\/work\/changes/) },
  'Archive this conversation': { at: /work$/, does: asks('Archive this conversation?') },
  'Next file': { does: addressIs(/(?:two\.txt|b\.txt)$/) },
  'Previous file': {
    before: async page => {
      await page.keyboard.press('n')
      await addressIs(/(?:two\.txt|b\.txt)$/)(page)
    },
    does: addressIs(/(?:one\.txt|a\.txt)$/),
  },
  'Mark this file as viewed': { does: page => page.locator('.file-row.viewed').waitFor() },
  'Land this file …': { does: asks('Land 1 file') },
  'Land …': { does: asks('Land 2 files') },
  'Search files': { does: focusIs('[data-key=search]') },
  'Find a file by its name': { does: focusIs('[data-key=search]') },
  'Save this file': {
    before: async page => {
      await page.locator('.cm-content').click()
      await page.keyboard.type('typed ')
      await shows('Unsaved')(page).catch(() => undefined)
    },
    does: async page => until(async () => !(await page.getByText('Unsaved').isVisible())),
  },
  'Find in this file': { does: page => page.locator('.cm-search').waitFor() },
  'Stage this file': { does: addressIs(/\/staged\//) },
  'Unstage this file': { does: addressIs(/\/unstaged\//) },
  Commit: { before: async page => page.getByLabel('Message').fill('By key'), does: shows(/[Cc]ommitted|By key/) },
  'Next commit': { does: addressIs(/^#\/git\/root\/log\/[0-9a-f]{40}$/) },
  'Previous commit': {
    before: async page => {
      await page.keyboard.press('n')
      await addressIs(/log\/[0-9a-f]{40}$/)(page)
    },
    does: addressIs(/^#\/git\/root\/log\/[0-9a-f]{40}$/),
  },
  'Restore this point …': { does: page => page.getByRole('dialog').waitFor() },
}

const GOES: Case = { does: page => page.getByRole('heading', { level: 1 }).waitFor() }

t.test('each key of the list does what its words say', withChromium(), async t => {
  const files = { 'a.txt': 'a\n', 'b.txt': 'b\n' }
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace', 'git', 'history'], { files })
  const { client, workspace } = daemon
  const long = (name: string) => [`say the ${name} request`, ...Array.from({ length: 90 }, (_, at) => `| line ${at}`)]
  for (const name of ['oldest', 'newest']) await runTurn(client, 'talk', long(name).join('\n'), { title: 'A talk' })
  await runTurn(client, 'spare', 'write spare.txt\n| x', { isolated: true, title: 'The spare one' })
  const twoFiles = 'write one.txt\n| one\nwrite two.txt\n| two'
  await runTurn(client, 'work', twoFiles, { isolated: true, title: 'The work' })
  inGit(workspace, 'commit', '-q', '--allow-empty', '-m', 'second')
  for (const name of Object.keys(files)) writeFileSync(join(workspace, name), 'changed\n')
  const { id: point } = await client.call('POST /history/snapshots', {})
  const tab = await ownerTab(await launchBrowser(t), daemon)
  const { page } = tab
  let times = 0
  const uncommitted = (staged: boolean) => async (page: Page) => {
    inGit(workspace, 'reset', '-q')
    for (const name of Object.keys(files)) writeFileSync(join(workspace, name), `changed ${++times}\n`)
    if (staged) inGit(workspace, 'add', '-A')
    await page.reload()
    await page.getByRole('region', { name: 'a.txt' }).waitFor()
  }
  const places: readonly (readonly [place: string, ready: (page: Page) => Promise<unknown>])[] = [
    ['#/fleet', shows('The spare one')],
    ['#/c/talk', shows('line 89')],
    ['#/c/work', page => page.getByRole('link', { name: /^Changes/ }).waitFor()],
    ['#/c/work/changes/root/one.txt', page => page.getByRole('region', { name: 'one.txt' }).waitFor()],
    ['#/files/open/a.txt', page => page.locator('.cm-content').waitFor()],
    ['#/git/root/changes/unstaged/a.txt', uncommitted(false)],
    ['#/git/root/changes/staged/a.txt', uncommitted(true)],
    ['#/git/root/log', shows('second')],
    [`#/history/${point}`, page => page.getByRole('region', { name: /./ }).first().waitFor()],
  ]
  const done = new Set<string>()
  for (const [place, ready] of places) {
    const open = async () => {
      await goTo(page, '#/me')
      await goTo(page, place)
      await ready(page)
    }
    await open()
    for (const { label, strokes } of await listedKeys(page)) {
      // Keys of one name on several pages are tried on each; those of every page once.
      const goes = strokes.length > 1 && strokes[0] === 'g'
      const found: Case | undefined = goes ? GOES : CASES[label]
      const once = goes || /^(?:Go to|Show|New|Next row|Previous row)/.test(label)
      if ((once && done.has(label)) || (found?.at && !found.at.test(place))) continue
      done.add(label)
      if (!found) {
        t.fail(`${label} (${strokes.join(' then ')}) of ${place} has no case`)
        continue
      }
      await (goes ? goTo(page, '#/me') : open())
      await found.before?.(page)
      const from = page.url()
      for (const stroke of strokes) await page.keyboard.press(stroke)
      const fault = await found.does(page).then(
        () => (goes && page.url() === from ? 'the address is the same' : ''),
        (error: Error) => error.message.split('\n')[0]!,
      )
      t.equal(fault, '', `${label} (${strokes.join(' then ')}) at ${place}`)
      if (await page.getByRole('dialog').isVisible()) await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
    }
  }
  t.same(
    Object.keys(CASES).filter(label => !done.has(label)),
    [],
    'each case is of a key that a page lists',
  )
})
