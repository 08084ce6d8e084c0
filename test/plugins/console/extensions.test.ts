import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  launchBrowser,
  openTab,
  ownerTab,
} from '../../support/browser/console.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { committed, gitServer } from '../../support/servers/git-server.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { walled } from '../../attack/support.js'
import { daemonWithBackends, listedUntil, recordNamed, writeExtension } from '../extensions/support.js'

/** The one button that everybody has: it unfolds a list. */
const groupsButton = async (page: Page): Promise<string> =>
  (await page.getByRole('button', { name: /^Show \d+ groups$/ }).textContent())!

/** What a page shows of something is asked for once more when the event of its removal comes. */
const MISS = /404/

t.test('extensions, skills and personas in the console', withChromium(), async t => {
  const repositories = folderOf(t)
  const origin = join(repositories, 'notes')
  mkdirSync(origin)
  inGit(origin, 'init', '-q', '-b', 'main')
  const commit = (manifest: object): string => {
    const base = { publisher: 'ada', name: 'notes', version: '1.0.0', server: 'server.js' }
    writeFileSync(join(origin, 'intentic-extension.json'), JSON.stringify({ ...base, ...manifest }))
    writeFileSync(join(origin, 'server.js'), 'export const activate = () => {}\n')
    return committed(origin)
  }
  const first = commit({})
  const { url } = await gitServer(t, repositories)
  const groups = [...CONSOLE_GROUPS, 'skills', 'personas', 'secrets', 'capabilities', 'endpoints', 'providers', 'usage']
  const daemon = await daemonWithBackends(t, groups)
  const { client, workspace } = daemon
  const browser = await launchBrowser(t)

  await t.test('a new extension is created, asks for more, is reviewed, approved and narrowed', async t => {
    const tab = await ownerTab(browser, daemon, '#/extensions')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByText('Extensions add views, tools').waitFor()
    await page.getByRole('button', { name: 'Create an extension' }).click()
    await dialog.getByLabel('Publisher').fill('ada')
    await dialog.getByLabel('Name').fill('first')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'first', level: 1 }).waitFor()
    await page.getByText('It declares nothing').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'First', exact: true }).click()
    await page.frameLocator('iframe').getByText('Hello from ada.first').waitFor()

    const manifest = { publisher: 'ada', name: 'first', server: 'server.ts' }
    const settings = [
      { key: 'greeting', type: 'string', title: 'Greeting', default: 'Hi' },
      { key: 'loud', type: 'boolean', title: 'Loud' },
      { key: 'token', type: 'string', title: 'Token', secret: true, env: 'GREETER_TOKEN' },
    ]
    const permissions = { daemon: ['GET /agents', 'GET /activity'] }
    writeExtension(daemon, 'first', { ...manifest, permissions, contributes: { settings } })
    await page.evaluate('location.hash = "#/extensions"')
    await page.getByRole('heading', { name: 'Waiting for approval' }).waitFor()
    await page.getByText('calls GET /activity of the sandbox').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Approve ada.first' }).click()
    const { pending } = await client.call('GET /extensions')
    await dialog.getByText(pending[0]!.digest).waitFor()
    await dialog.getByText('puts its setting token into').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('link', { name: 'first', exact: true }).click()
    await page.getByText('never', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Narrow' }).click()
    const narrowed = JSON.parse(await dialog.getByLabel('Manifest', { exact: true }).inputValue()) as object
    t.same(Object.keys(narrowed), ['publisher', 'name', 'server', 'contributes'])
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Check', exact: true }).click()
    await page.getByText('What it declares is used').waitFor()
    await endJourney(t, tab)
  })

  await t.test('settings are saved, and a secret one is stored and never shown', async t => {
    const tab = await ownerTab(browser, daemon, '#/extensions/ada.first')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByLabel('Greeting').fill('Good day')
    await page.getByLabel('Loud').check()
    await page.getByLabel('Token').fill('secret-greeting-8723')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('A value is stored').waitFor()
    t.same(await client.call('GET /extensions/{id}/settings', { id: 'ada.first' }), {
      settings: { greeting: 'Good day', loud: true },
      secretsSet: ['token'],
    })
    t.notMatch(await page.content(), 'secret-greeting-8723')
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Clear the secret values' }).click()
    await page.getByText('No value is stored').waitFor()
    await page.getByRole('button', { name: 'Switch off' }).click()
    await page.getByRole('button', { name: 'Switch on' }).waitFor()
    t.equal((await recordNamed(daemon, 'ada.first')).enabled, false)
    await page.getByRole('button', { name: 'Remove ada.first' }).click()
    await dialog
      .getByText(/^Deletes /)
      .first()
      .waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Extensions add views, tools').waitFor()
    t.notOk(existsSync(join(workspace, '.sandbox/config/workspace-extensions/first')))
    await endJourney(t, tab, MISS)
  })

  await t.test(
    'one is installed at a commit, updated with what is new in it, reverted and kept by a policy',
    async t => {
      const tab = await ownerTab(browser, daemon, '#/extensions')
      const { page } = tab
      const dialog = page.getByRole('dialog')
      await page.getByRole('button', { name: 'Install an extension' }).click()
      await dialog.getByLabel('Repository', { exact: true }).fill(`${url}/notes/.git`)
      await dialog.getByLabel('Commit').fill(first)
      t.same(await barriersOf(page), [])
      await dialog.getByRole('button', { name: 'Look at it' }).click()
      await dialog.getByText('runs a backend process').waitFor()
      t.same(await barriersOf(page), [])
      await dialog.getByRole('button', { name: 'Install' }).click()
      await page.getByRole('heading', { name: 'notes', level: 1 }).waitFor()
      const second = commit({ version: '1.1.0', permissions: { daemon: ['GET /agents'] } })
      await page.getByRole('button', { name: 'Update ada.notes' }).click()
      await dialog.getByLabel('Commit').fill(second)
      await dialog.getByRole('button', { name: 'Look at it' }).click()
      await dialog.getByText('calls GET /agents of the sandbox').waitFor()
      t.same(await barriersOf(page), [])
      await dialog.getByRole('button', { name: 'Update' }).click()
      await page.getByText('The update is watched').waitFor()
      t.equal((await recordNamed(daemon, 'ada.notes')).commit, second)
      await page.getByRole('button', { name: 'Revert ada.notes' }).click()
      await dialog.getByRole('button', { name: 'Revert' }).click()
      await page.getByText(first.slice(0, 12)).waitFor()
      await page.getByRole('button', { name: 'Policy ada.notes' }).click()
      await dialog.getByLabel('Updates').selectOption('auto')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
      t.match((await recordNamed(daemon, 'ada.notes')).updatePolicy, { updates: 'auto', advisories: 'auto-disable' })
      await endJourney(t, tab)
    },
  )

  await t.test('a program is started and ended, and an extension runs from a folder', walled(), async t => {
    const processes = [{ name: 'web', command: 'node web.cjs', port: 'auto' }]
    const manifest = { publisher: 'ada', name: 'runs', contributes: { processes } }
    writeExtension(daemon, 'runs', manifest, { 'web.cjs': 'setInterval(() => {}, 1e6)\n' })
    const { digest } = await listedUntil(daemon, ({ pending }) => pending.find(({ id }) => id === 'ada.runs'))
    await client.call('POST /extensions/{id}/approve', { id: 'ada.runs', digest })
    const tab = await ownerTab(browser, daemon, '#/extensions/ada.runs')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    const programs = page.getByRole('region', { name: 'Programs' })
    await programs.getByRole('button', { name: 'Start web' }).click()
    await programs.getByText('Runs', { exact: true }).waitFor()
    await programs.getByText(/port \d+/).waitFor()
    t.same(await barriersOf(page), [])
    await programs.getByRole('button', { name: 'Stop web' }).click()
    await programs.getByText('Stopped').waitFor()
    const { running } = await client.call('GET /extensions/{id}/processes/{name}', { id: 'ada.runs', name: 'web' })
    t.equal(running, false)

    // The folder is at the second commit, which may do more than the installed first one.
    inGit(workspace, 'clone', '-q', origin, 'notes')
    await page.evaluate('location.hash = "#/extensions/ada.notes"')
    const folders = page.getByRole('region', { name: 'Folders it can run from' })
    await folders.getByRole('button', { name: 'Run from here' }).click()
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    await dialog.getByRole('alert').filter({ hasText: 'GET /agents' }).waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Approve and run' }).click()
    await folders.getByText('Runs', { exact: true }).waitFor()
    t.equal((await recordNamed(daemon, 'ada.notes')).dev?.path, 'notes')
    t.same(await barriersOf(page), [])
    await folders.getByRole('button', { name: 'Back to its commit' }).click()
    await folders.getByRole('button', { name: 'Run from here' }).waitFor()
    t.equal((await recordNamed(daemon, 'ada.notes')).dev, undefined)

    await runTurn(client, 'copied', 'say hi', { agent: 'script', isolated: true })
    await page.reload()
    const copied = folders.getByRole('listitem').filter({ hasText: 'private copy of copied' })
    await copied.getByRole('button', { name: 'Run from here' }).click()
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    await dialog.getByRole('button', { name: 'Approve and run' }).click()
    await copied.getByText('Runs', { exact: true }).waitFor()
    t.match((await recordNamed(daemon, 'ada.notes')).dev, { path: 'notes', conversation: 'copied' })
    t.same(await barriersOf(page), [])
    await client.call('POST /agents/{id}/discard', { id: 'copied' })
    await copied.waitFor({ state: 'detached' })
    await endJourney(t, tab, /409/)
  })

  await t.test('a viewer sees what may run here, and has no button that changes it', async t => {
    writeExtension(daemon, 'waits', { publisher: 'eve', name: 'waits', server: 'server.js' }, { 'server.js': '' })
    const { invitation } = await client.call('POST /members', { role: 'viewer' })
    const tab = await openTab(browser, daemon)
    const { page } = tab
    await page.goto(invitation!.url)
    await page.getByLabel('Your name').fill('Vic')
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor()
    await page.locator('[data-ready=yes]').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('x')
    await page.getByText('runs a backend process').waitFor()
    await page.getByRole('link', { name: 'notes', exact: true }).waitFor()
    // Those that copy have no words.
    const buttons = (await page.locator('main').getByRole('button').allTextContents()).filter(Boolean)
    t.same(buttons, [await groupsButton(page)])
    t.same(await barriersOf(page), [])
    await page.keyboard.press('j')
    t.match(await page.evaluate('document.activeElement.dataset.row'), 'item')
    await page.getByRole('link', { name: 'notes', exact: true }).click()
    await page.getByRole('heading', { name: 'Declared and used' }).waitFor()
    t.same(await page.locator('main').getByRole('button').allTextContents(), [])
    for (const place of ['skills', 'personas']) {
      await page.evaluate(`location.hash = '#/${place}'`)
      await page.getByRole('heading', { level: 2 }).first().waitFor()
      t.same(await page.locator('main').getByRole('button').allTextContents(), [], place)
      t.same(await barriersOf(page), [])
    }
    await endJourney(t, tab)
  })

  await t.test('on a phone the page "More" leads to the extensions and their views', async t => {
    const tab = await ownerTab(browser, daemon, '#/more', { width: 390, height: 800 })
    const { page } = tab
    await page.locator('main').getByRole('link', { name: 'Extensions' }).click()
    await page.getByRole('button', { name: 'Approve eve.waits' }).waitFor()
    const box = (await page.getByRole('button', { name: 'Approve eve.waits' }).boundingBox())!
    t.ok(box.height >= 44, `the target is ${box.height} px high`)
    await endJourney(t, tab)
  })

  await t.test('a skill is written, switched, read, edited and removed, and others are imported', async t => {
    const tab = await ownerTab(browser, daemon, '#/skills')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Write a skill' }).click()
    await dialog.getByLabel('Name').fill('release')
    await dialog.getByLabel('When to use it').fill('When a release is made')
    await dialog.getByLabel('Instructions').fill('# Release\n\nTag it.')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Switch off release' }).click()
    await page.getByRole('button', { name: 'Switch on release' }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'release', exact: true }).click()
    await page.getByText('Tag it.').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('link', { name: 'All skills' }).click()
    await page.getByRole('button', { name: 'Edit release' }).click()
    await page.waitForFunction('document.querySelector("dialog textarea:last-of-type, dialog textarea")?.value !== ""')
    await dialog.getByLabel('When to use it').fill('When a version is published')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('When a version is published').waitFor()
    t.match(await client.call('GET /skills/read', { id: 'release' }), { body: /Tag it/ })
    const pack = join(workspace, 'packs/review')
    mkdirSync(pack, { recursive: true })
    writeFileSync(join(pack, 'SKILL.md'), '---\nname: review\ndescription: When code is reviewed\n---\nRead it.\n')
    await page.getByRole('button', { name: 'Import skills' }).click()
    await dialog.getByLabel('Folder').fill('packs')
    await dialog.getByRole('button', { name: 'Import' }).click()
    await dialog.getByText('review').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('When code is reviewed').waitFor()
    await page.getByRole('button', { name: 'Remove release' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('When a version is published').waitFor({ state: 'detached' })
    await endJourney(t, tab)
  })

  await t.test('a card is written with its limits, its kit filled, and what a turn gets of it is shown', async t => {
    const tab = await ownerTab(browser, daemon, '#/personas')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByText('Write the first card').waitFor()
    await page.getByRole('button', { name: 'Write a card' }).click()
    await dialog.getByLabel('Id', { exact: true }).fill('reviewer')
    await dialog.getByLabel('What it is for').fill('Reads what others wrote')
    await dialog.getByLabel('Files of the workspace').selectOption('read')
    await dialog.getByLabel('Run commands').uncheck()
    await dialog.getByLabel('Tool servers').fill('')
    await dialog.getByLabel('Folders it reaches').fill('src')
    await dialog.getByLabel('Models').fill('script default')
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('only reads files, no shell, only in src, on script default').waitFor()
    t.same(await barriersOf(page), [])
    const { personas } = await client.call('GET /personas')
    t.match(personas[0], {
      powers: { files: 'read', shell: false, mcp: exactly() },
      workspace: { folders: exactly('src') },
    })
    t.notOk(personas[0]!.powers && 'connectors' in personas[0]!.powers, 'all of the others are left as they are')
    await page.getByRole('link', { name: 'reviewer', exact: true }).click()
    await page.getByText(/\(powers\.shell\)/).waitFor()
    await page.getByRole('button', { name: 'Prompt of reviewer' }).click()
    await dialog.getByLabel('Prompt').fill('You review code.')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('You review code.').waitFor()
    await page.getByRole('button', { name: 'Add a skill to reviewer' }).click()
    await dialog.getByLabel('Name').fill('nits')
    await dialog.getByLabel('When to use it').fill('For small things')
    await dialog.getByLabel('Instructions').fill('Leave them.')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('For small things').waitFor()
    t.same(await barriersOf(page), [])
    t.match(await client.call('GET /personas/{id}/skills/read', { id: 'reviewer', name: 'nits' }), {
      body: /Leave them/,
    })
    await page.getByRole('button', { name: 'Remove nits' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('For small things').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Edit reviewer' }).click()
    await dialog.getByLabel('Name').fill('The reviewer')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'The reviewer', level: 1 }).waitFor()
    t.match((await client.call('GET /personas')).personas[0], {
      brief: 'Reads what others wrote',
      powers: { files: 'read', shell: false, mcp: exactly() },
    })
    await page.getByRole('button', { name: 'Remove reviewer' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Write the first card').waitFor()
    await endJourney(t, tab, MISS)
  })
})
