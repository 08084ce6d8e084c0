import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { endJourney, goTo, launchBrowser, ownerBrowser } from '../../../support/browser/console.js'
import { project } from '../../../support/browser/page.js'
import { daemonWith } from '../../../support/daemon.js'
import { framesOf, runTurn } from '../../../support/turns.js'

const WEB = join(project, 'plugins/console/web')

t.test('every block of text in the console can be copied', t => {
  const textOf = (file: string) => readFileSync(join(WEB, file), 'utf8')
  const blocks = globSync('**/*.tsx', { cwd: WEB }).filter(file => /<pre\b/.test(textOf(file)))
  t.same(blocks, ['ui/text-block.tsx'], 'the others are made of it')
  for (const file of globSync('style/*.css', { cwd: WEB })) t.notMatch(textOf(file), /user-select/, file)
  t.end()
})

const CODE = 'const a = 1\n\n  const b = "<two>" // \u200b\u202e'
const MESSAGE = `Here is **code**:\n\n~~~ts\n${CODE}\n~~~\n\n- one\n- two`
const PROMPT = [
  'write a.txt',
  '| one',
  '| two  ',
  'say',
  ...MESSAGE.split('\n').map(line => (line ? `| ${line}` : '|')),
  `run printf 'first\\n\\tsecond  \\n'`,
].join('\n')

/** Presses a button as a person does, with the mouse or the keyboard, and returns what the clipboard holds then. */
const copied = async (page: Page, name: string, at = 0): Promise<string> => {
  await page.evaluate(`navigator.clipboard.writeText('before')`)
  const button = page.getByRole('button', { name: `Copy ${name}`, exact: true }).nth(at)
  const said = button.locator('..').getByRole('status').getByText('Copied')
  // A turn that goes on can draw the button anew between the focus and the key.
  for (let tries = 1; tries < 5; tries++) {
    await button.focus()
    await page.keyboard.press('Enter')
    const isSaid = await said.waitFor({ timeout: 4_000 }).then(
      () => true,
      () => false,
    )
    if (isSaid) break
  }
  return String(await page.evaluate('navigator.clipboard.readText()'))
}

t.test('the clipboard holds exactly the text', withChromium(), async t => {
  const daemon = await daemonWith(t, [])
  const { client } = daemon
  await runTurn(client, 'work', PROMPT, { isolated: true })
  const browser = await launchBrowser(t)
  const tab = await ownerBrowser(browser, daemon, '#/c/work', {
    permissions: ['clipboard-read', 'clipboard-write'],
    viewport: { width: 1280, height: 2_000 },
  })
  const { page } = tab
  await page.locator('.tool').first().waitFor()
  for (const summary of await page.locator('.tool > summary').all()) await summary.click()

  await t.test('of a conversation: messages, code, diffs, commands and outputs', async t => {
    t.notMatch(await page.locator('.transcript').textContent(), /[0-9a-f]{40}/, 'hashes are short')
    t.equal(await copied(page, 'the message'), PROMPT)
    t.equal(await copied(page, 'the message', 1), MESSAGE, 'as it was written, not as it is shown')
    t.equal(await copied(page, 'the code'), CODE)
    t.equal(await copied(page, 'the command'), `printf 'first\\n\\tsecond  \\n'`)
    t.equal(await copied(page, 'the output'), 'first\n\tsecond  \n')
    t.equal(await copied(page, 'the path'), 'a.txt')
    t.equal(await copied(page, 'the diff'), '+one\n+two  ')
  })

  await t.test('of a long output, which is shown in part', async t => {
    await runTurn(client, 'long', 'run seq 1 9000', { isolated: true })
    await goTo(page, '#/c/long')
    await page.locator('.tool > summary').click()
    t.match(await copied(page, 'the output'), /^1\n2\n[^]*\n9000\n?$/)
  })

  await t.test('of a review', async t => {
    await goTo(page, '#/c/work/changes')
    t.equal(await copied(page, 'the diff'), '+one\n+two  ')
    t.equal(await copied(page, 'the path'), 'a.txt')
  })

  await t.test('of a card', async t => {
    await client.call('POST /agent', { conversationId: 'asks', prompt: 'plan\n| 1. look\n|\n| ~~~sh\n| ls -la\n| ~~~' })
    await framesOf(client, 'asks').until(({ kind }) => kind === 'plan')
    await goTo(page, '#/c/asks')
    await page.locator('.card.open').waitFor()
    t.equal(await copied(page, 'the code'), 'ls -la')
  })

  await t.test('of the id of a commit', async t => {
    const { commits } = await client.call('GET /git/{repo}/log', { repo: 'root', limit: 1 })
    await goTo(page, `#/git/root/log/${commits[0]!.sha}`)
    t.equal(await copied(page, 'the commit'), commits[0]!.sha)
  })

  await t.test('where a browser has no clipboard, by the selection', async t => {
    await goTo(page, '#/c/work')
    await page.locator('.tool').first().waitFor()
    await page.evaluate(`(() => {
      window.clipboard = navigator.clipboard
      Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })
    })()`)
    const button = page.getByRole('button', { name: 'Copy the code' })
    await button.click()
    await button.locator('..').getByText('Copied').waitFor()
    t.equal(await page.evaluate('document.activeElement?.ariaLabel'), 'Copy the code', 'the focus stays')
    t.equal(await page.evaluate('window.clipboard.readText()'), CODE)
  })
  await endJourney(t, tab)
})

t.test('texts of a page are selected with the mouse', withChromium(), async t => {
  const daemon = await daemonWith(t, [])
  await runTurn(daemon.client, 'work', PROMPT, { isolated: true })
  const browser = await launchBrowser(t)
  const { page } = await ownerBrowser(browser, daemon, '#/c/work')
  await page.locator('.tool').first().waitFor()
  for (const text of ['.said-text', '.prose p', '.prose pre', '.tool-target', 'h1', '.prose li']) {
    await page
      .locator(text)
      .first()
      .click({ clickCount: 3, position: { x: 30, y: 16 } })
    t.not(await page.evaluate('getSelection().toString().trim()'), '', text)
  }
})
