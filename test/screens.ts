// Makes the pictures of the README: `npm run screens`.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { findDaemonSocket, ownBrowser, loginLink, openTab } from './support/browser/console.js'
import { makeWorkspace, root, spawnDaemon } from './support/daemon.js'
import { framesOf, runTurn } from './support/turns.js'

const FOLDER = join(dirname(root.replace(/\/$/, '')), 'plugins', 'console', 'screens')

const GREETING = `const HELLO = { en: 'Hello', de: 'Hallo', fr: 'Bonjour', es: 'Hola' }

/** A greeting in one of the languages we speak; English for any other. */
export const greeting = (name, language = 'en') => {
  return HELLO[language] + ', ' + name + '!'
}
`
const FILES = {
  'package.json': '{ "name": "greetings", "type": "module" }\n',
  'src/greeting.js': GREETING,
  'src/main.js': "import { greeting } from './greeting.js'\n\nconsole.log(greeting(...process.argv.slice(2)))\n",
  'test/greeting.test.js': "import { greeting } from '../src/greeting.js'\n",
}

const FIX = [
  'think The table has no entry for an unknown language.',
  'read src/greeting.js',
  'edit src/greeting.js',
  "| -   return HELLO[language] + ', ' + name + '!'",
  '| +   return `${HELLO[language] ?? HELLO.en}, ${name}!`',
  'write test/unknown.test.js',
  "| import assert from 'node:assert/strict'",
  "| import { test } from 'node:test'",
  "| import { greeting } from '../src/greeting.js'",
  '|',
  "| test('an unknown language gets English', () => {",
  "|   assert.equal(greeting('Ada', 'xx'), 'Hello, Ada!')",
  '| })',
  'run node --test test/unknown.test.js > /dev/null && echo 1 test passed',
  'say **Done.** An unknown language gets English now, with a test in `test/unknown.test.js`.',
]
const ASK = [
  'todo [x] read the table of languages | [~] add Portuguese | [ ] update the tests',
  'read src/greeting.js',
  'say Portuguese has two common greetings:',
  '|',
  '| 1. **Olá** is neutral and common everywhere.',
  '| 2. **Oi** is informal, mostly Brazilian.',
  'ask Which greeting should Portuguese use?',
  '| Olá: neutral, like the other languages',
  '| Oi: informal',
]

const todo: (() => unknown)[] = []
const t = { teardown: (end: () => unknown) => void todo.unshift(end) }
const folder = mkdtempSync(join(tmpdir(), 'screens-'))
todo.push(() => rmSync(folder, { recursive: true, force: true }))
const [workspace, data] = [join(folder, 'greetings'), join(folder, 'data')]
mkdirSync(FOLDER, { recursive: true })
mkdirSync(data, { mode: 0o700 })
makeWorkspace(workspace, FILES)

const shoot = async (page: Page, name: string): Promise<void> => {
  await page.screenshot({ path: join(FOLDER, `${name}.png`), animations: 'disabled', caret: 'hide' })
}

try {
  const daemon = await spawnDaemon(t, { workspace, data })
  const { client } = daemon
  const isolated = true
  await runTurn(client, 'unknown', FIX.join('\n'), { isolated, title: 'Greet in English when a language is unknown' })
  await runTurn(client, 'readme', 'write README.md\n| # Greetings\nsay Written.', { isolated, title: 'Write a README' })
  await client.call('POST /agents/{id}/land', { id: 'readme' })
  await runTurn(client, 'deps', 'fail the registry does not answer', { isolated, title: 'Update the dependencies' })
  const asked = await client.call('POST /agent', {
    ...{ conversationId: 'portuguese', prompt: ASK.join('\n'), isolated, title: 'Add Portuguese' },
  })
  await framesOf(client, 'portuguese', { run: asked.run }).until(({ kind }) => kind === 'question')
  await client.call('POST /agent', {
    ...{ conversationId: 'time', isolated, title: 'Greet by the time of day' },
    prompt:
      'todo [x] find where the greeting is made | [~] read the clock | [ ] test it\nread src/main.js\nwait 600000',
  })
  await framesOf(client, 'time').until(({ kind }) => kind === 'tool_call_update')

  const browser = await ownBrowser(t)
  const at = async (place: string, options: BrowserContextOptions): Promise<Page> => {
    const { page } = await openTab(browser, daemon, options)
    await page.goto(await loginLink({ socket: findDaemonSocket(data) }))
    await page.locator('[data-ready=yes]').waitFor()
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
    return page
  }
  const desk = { viewport: { width: 1200, height: 720 } }
  const fleet = await at('#/fleet', desk)
  await fleet.getByRole('link', { name: /^Greet by the time of day/ }).waitFor()
  await shoot(fleet, 'fleet')
  const conversation = await at('#/c/portuguese', { ...desk, colorScheme: 'dark' })
  await conversation.getByRole('button', { name: 'Answer' }).waitFor()
  await conversation.getByRole('region', { name: 'Question' }).last().getByLabel('Olá').check()
  await shoot(conversation, 'conversation-dark')
  const review = await at('#/c/unknown/changes', desk)
  await review.getByRole('region', { name: 'src/greeting.js' }).getByText('HELLO.en').first().waitFor()
  await shoot(review, 'review')
  const phone = await at('#/inbox', {
    ...{ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true },
  })
  await phone.getByRole('button', { name: 'Answer' }).waitFor()
  await shoot(phone, 'inbox-phone')
} finally {
  for (const end of todo) await end()
}
