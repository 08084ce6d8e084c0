import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { lanesOf } from '../../../plugins/console/web/run/commit-lanes.js'
import { withBothSides } from '../../../plugins/console/web/run/conflict-markers.js'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  guestTab,
  launchBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { bareCopy, committed, gitServer } from '../../support/servers/git-server.js'
import { runTurn } from '../../support/turns.js'

t.test('the graph of a history leads each commit to its parents', async t => {
  const lanes = lanesOf([
    { sha: 'm', parents: ['a', 'b'] },
    { sha: 'b', parents: ['o'] },
    { sha: 'a', parents: ['o'] },
    { sha: 'o', parents: [] },
  ])
  t.same(
    lanes.map(({ lane, leads, joins, through }) => [lane, leads, joins, through]),
    [
      [0, [0, 1], [], []],
      [1, [1], [], [0]],
      [0, [1], [], [1]],
      [1, [], [], []],
    ],
  )
  t.same(
    lanesOf([
      { sha: 'x', parents: ['o'] },
      { sha: 'y', parents: ['o'] },
      { sha: 'o', parents: [] },
    ]).map(({ lane, fromAbove }) => [lane, fromAbove]),
    [
      [0, false],
      [1, false],
      [0, true],
    ],
  )
})

t.test('both sides of a conflict are kept, and broken markers are not touched', async t => {
  const text = 'a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\nz\n'
  t.equal(withBothSides(text), 'a\nours\ntheirs\nz\n')
  t.equal(withBothSides(text.replace('=======', '||||||| base\nold\n=======')), 'a\nours\ntheirs\nz\n')
  t.equal(withBothSides('a\n<<<<<<< HEAD\nours\n'), undefined)
  t.equal(withBothSides('plain\n'), undefined)
})

/** Adds commits without changes to the branch main, with one process for all. */
const addEmptyCommits = (cwd: string, count: number): void => {
  const who = `Ada <ada@example.org> ${Math.floor(Date.now() / 1000)} +0000`
  const input = Array.from({ length: count }, (_, n) => {
    const message = `empty ${n}`
    const from = n === 0 ? 'from refs/heads/main^0\n' : ''
    return `commit refs/heads/main\ncommitter ${who}\ndata ${message.length}\n${message}\n${from}\n`
  }).join('')
  execFileSync('git', ['fast-import', '--quiet'], { cwd, input })
}

const LINES = Array.from({ length: 30 }, (_, at) => `line ${at + 1}`)

t.test('git in the console', withChromium(), async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'workspace', 'git', 'history'], {
    files: { 'README.md': '# work\n', 'list.txt': `${LINES.join('\n')}\n`, 'docs/page.txt': 'a page\n' },
  })
  const { workspace } = daemon
  const at = (path: string) => join(workspace, path)
  const git = (...args: string[]) => inGit(workspace, ...args).trim()
  const browser = await launchBrowser(t)

  await t.test('files and single parts of them are staged, and committed with a message that is kept', async t => {
    const tab = await ownerTab(browser, daemon, '#/git/root')
    const { page } = tab
    await page.getByText('Nothing is uncommitted').waitFor()
    t.same(await barriersOf(page), [])
    const changed = LINES.map((line, n) => (n === 1 || n === 25 ? `${line} changed` : line))
    writeFileSync(at('list.txt'), `${changed.join('\n')}\n`)
    writeFileSync(at('new.txt'), 'new\n')
    await page.getByRole('link', { name: 'list.txt' }).click()
    const parts = page.getByRole('button', { name: 'Stage this part' })
    await parts.nth(1).waitFor()
    await page.emulateMedia({ colorScheme: 'light' })
    const [ink, paper] = await parts.nth(1).evaluate(button => {
      const { color, backgroundColor } = button.ownerDocument.defaultView!.getComputedStyle(button)
      return [color, backgroundColor]
    })
    t.not(ink, paper, 'its words can be seen')
    t.same(await barriersOf(page), [])
    await parts.nth(1).click()
    const staged = page.getByRole('region', { name: 'Staged' })
    await staged.getByRole('link', { name: 'list.txt' }).waitFor()
    t.match(git('diff', '--cached', '-U0'), /\+line 26 changed$/)
    t.notMatch(git('diff', '--cached'), /line 2 changed/)
    t.equal(readFileSync(at('list.txt'), 'utf8'), `${changed.join('\n')}\n`, 'the disk stays')
    await page.getByRole('button', { name: 'Stage new.txt' }).click()
    await staged.getByRole('link', { name: 'new.txt' }).waitFor()
    await staged.getByRole('link', { name: 'list.txt' }).click()
    await page.getByRole('button', { name: 'Unstage this part' }).click()
    await staged.getByRole('link', { name: 'list.txt' }).waitFor({ state: 'detached' })
    t.equal(git('diff', '--cached', '--name-only'), 'new.txt')

    const message = page.getByLabel('Message of the commit')
    await message.fill('Add new')
    await page.reload()
    t.equal(await message.inputValue(), 'Add new', 'the message survives a reload')
    mkdirSync(at('.git/hooks'), { recursive: true })
    writeFileSync(at('.git/hooks/pre-commit'), '#!/bin/sh\necho "finding of the hook" >&2\nexit 1\n')
    chmodSync(at('.git/hooks/pre-commit'), 0o755)
    await page.getByRole('button', { name: 'Commit', exact: true }).click()
    await page.getByRole('alert').filter({ hasText: 'inding of the hook' }).waitFor()
    t.equal(await message.inputValue(), 'Add new', 'a refused message stays')
    writeFileSync(at('.git/hooks/pre-commit'), '#!/bin/sh\nexit 0\n')
    await message.press('Control+Enter')
    await page.getByText(/^Committed as/).waitFor()
    t.equal(git('log', '-1', '--format=%s'), 'Add new')
    t.equal(git('status', '--short'), 'M list.txt')

    await page.getByRole('button', { name: 'Undo …' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Add new').first().waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click()
    await page.getByRole('region', { name: 'Staged' }).getByRole('link', { name: 'new.txt' }).waitFor()
    t.equal(git('log', '-1', '--format=%s'), 'first')
    await message.fill('Add all')
    await page.getByRole('button', { name: 'Stage all', exact: true }).click()
    await page.getByRole('region', { name: 'Changed' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Commit', exact: true }).click()
    await page.getByText('Nothing is uncommitted').waitFor()
    writeFileSync(at('README.md'), '# other\n')
    await page.getByRole('button', { name: 'Discard README.md' }).click()
    await dialog.getByRole('button', { name: 'Discard' }).click()
    await page.getByText('Nothing is uncommitted').waitFor()
    t.equal(readFileSync(at('README.md'), 'utf8'), '# work\n')
    // Expected: the refusal of the hook.
    await endJourney(t, tab, /409/)
  })

  await t.test('a branch is made and merged, and its conflict is resolved with both sides', async t => {
    const tab = await ownerTab(browser, daemon, '#/git/root/branches')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'New branch' }).click()
    await dialog.getByLabel('Name').fill('side')
    await dialog.getByRole('button', { name: 'Make' }).click()
    await page.getByRole('button', { name: 'Check out main' }).waitFor()
    t.equal(git('branch', '--show-current'), 'side')
    t.same(await barriersOf(page), [])
    writeFileSync(at('docs/page.txt'), 'a page of the side\n')
    committed(workspace, 'on the side')
    await page.getByRole('button', { name: 'Check out main' }).click()
    await page.getByRole('button', { name: 'Merge side' }).waitFor()
    writeFileSync(at('docs/page.txt'), 'a page of main\n')
    committed(workspace, 'on main')
    await page.getByRole('button', { name: 'Merge side' }).click()
    await page.getByText('In the middle of a merge').waitFor()
    await page.getByRole('heading', { name: 'docs/page.txt' }).waitFor()
    await page.getByRole('button', { name: 'Theirs', exact: true }).click()
    await page.getByText('a page of the side').first().waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Take both' }).click()
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('In the middle of a merge').waitFor({ state: 'detached' })
    t.equal(readFileSync(at('docs/page.txt'), 'utf8'), 'a page of main\na page of the side\n')
    t.equal(git('log', '-1', '--format=%P').split(' ').length, 2)
    // Expected: a file that left the list while it was read.
    await endJourney(t, tab, /404/)
  })

  await t.test('the log shows merges and pages, and a commit with its files, its tag and who wrote what', async t => {
    const tab = await ownerTab(browser, daemon, '#/git/root/log')
    const { page } = tab
    for (let at = 0; at < 5; at++) git('branch', `a-branch-with-a-long-name-${at}`)
    const tip = page.locator('.commit-row').first()
    await tip.getByText('a-branch-with-a-long-name-0').waitFor()
    const { width } = (await tip.locator('[dir=auto]').boundingBox())!
    t.ok(width > 60, 'names of branches leave room for what a commit is about')
    await page.setViewportSize({ width: 360, height: 740 })
    const fields = await page.locator('.side-filters input').evaluateAll(all => all.map(one => one.clientHeight))
    t.equal(new Set(fields).size, 1, 'labels of two lines do not stretch the fields beside them')
    await page.setViewportSize({ width: 1280, height: 720 })
    for (let at = 0; at < 5; at++) git('branch', '-D', `a-branch-with-a-long-name-${at}`)
    await page.getByRole('link', { name: /on the side/ }).click()
    await page.getByRole('heading', { name: 'on the side' }).waitFor()
    await page.getByRole('list', { name: 'Changed files' }).getByRole('link', { name: 'docs/page.txt' }).click()
    await page.locator('.cm-insertedLine, .cm-changedLine').getByText('of the side').first().waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: /^Do …/ }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Action').selectOption('tag')
    await dialog.getByLabel('Name').fill('bad name')
    await dialog.getByRole('button', { name: 'Do it' }).click()
    await dialog.getByRole('alert').waitFor()
    t.equal(await dialog.getByLabel('Name').inputValue(), 'bad name')
    await dialog.getByLabel('Name').fill('v1')
    await dialog.getByRole('button', { name: 'Do it' }).click()
    await dialog.waitFor({ state: 'hidden' })
    t.equal(git('tag'), 'v1')
    await page.getByText('tag: v1').waitFor()
    await page.getByRole('region', { name: 'docs/page.txt' }).getByRole('link', { name: 'Blame' }).click()
    await page.getByRole('list', { name: 'Lines' }).getByText('a page of the side').waitFor()
    t.equal(await page.getByRole('list', { name: 'Lines' }).getByRole('listitem').count(), 1)
    t.same(await barriersOf(page), [])
    addEmptyCommits(workspace, 230)
    await page.evaluate(`location.hash = '#/git/root/log'`)
    await page.getByRole('link', { name: /empty 229/ }).waitFor()
    const older = page.getByRole('button', { name: 'Show older commits' })
    await older.click()
    await older.waitFor({ state: 'detached' })
    const newer = page.waitForResponse(answer => answer.url().includes('/log?'))
    addEmptyCommits(workspace, 1)
    await newer
    await page.waitForTimeout(200)
    t.equal(await older.count(), 0, 'what was shown stays when another commit is made')
    await page.getByLabel('Words of the message').fill('on main')
    await page.getByRole('link', { name: /on main/ }).waitFor()
    await until(async () => (await page.getByRole('list', { name: 'Commits' }).getByRole('listitem').count()) === 1)
    await page.setViewportSize({ width: 390, height: 844 })
    t.same(await barriersOf(page), [])
    await page.evaluate(`location.hash = '#/git/root/branches'`)
    await page.getByRole('button', { name: 'Delete the tag v1' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the tag v1' }).waitFor({ state: 'detached' })
    t.equal(git('tag'), '')
    await endJourney(t, tab, /400/)
  })

  await t.test('work is set aside, looked at, and put back', async t => {
    writeFileSync(at('README.md'), '# aside\n')
    const tab = await ownerTab(browser, daemon, '#/git/root/stash')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Set changes aside' }).click()
    await dialog.getByLabel('Message').fill('for later')
    await dialog.getByRole('button', { name: 'Stash' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('for later').waitFor()
    t.equal(readFileSync(at('README.md'), 'utf8'), '# work\n')
    await page.getByRole('button', { name: /^Files/ }).click()
    await page.getByText('README.md').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: /^Apply and drop/ }).click()
    await page.getByText('Uncommitted work that you set aside appears here').waitFor()
    t.equal(readFileSync(at('README.md'), 'utf8'), '# aside\n')
    git('checkout', '-q', '--', 'README.md')
    await endJourney(t, tab)
  })

  await t.test('commits are replayed and copied: a halted one goes on, is skipped or aborted', async t => {
    const commitOf = (branch: string, from: string, ...writes: readonly (readonly [string, string])[]): string => {
      git('checkout', '-q', '-B', branch, from)
      for (const [path, text] of writes) {
        writeFileSync(at(path), text)
        committed(workspace, `${branch} ${path}`)
      }
      return git('rev-parse', 'HEAD')
    }
    const picked = commitOf('pick', 'main', ['picked.txt', 'picked\n'])
    const onto = commitOf('onto', 'main', ['docs/page.txt', 'onto\n'], ['list.txt', 'onto\n'])
    const work = commitOf('work', 'main', ['docs/page.txt', 'work\n'], ['list.txt', 'work\n'])
    const tab = await ownerTab(browser, daemon, '#/git/root/branches')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    const halted = page.getByText('In the middle of a')
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const rebase = async () => {
      await page.evaluate(`location.hash = '#/git/root/branches'`)
      await button('Rebase onto onto').click()
      await page.getByText('In the middle of a rebase, step 1 of 2: work docs/page.txt').waitFor()
    }
    const takeBoth = async (path: string) => {
      await page.getByRole('heading', { name: path }).waitFor()
      await button('Take both').click()
      await page
        .getByText('0 files have conflicts')
        .or(page.getByRole('region', { name: 'Staged' }))
        .first()
        .waitFor()
    }

    await rebase()
    t.same(await barriersOf(page), [])
    await button('Abort the rebase').click()
    await dialog.getByRole('button', { name: 'Abort', exact: true }).click()
    await halted.waitFor({ state: 'detached' })
    t.same([git('rev-parse', 'work'), git('branch', '--show-current')], [work, 'work'])
    t.equal(git('status', '--short'), '')

    await rebase()
    await takeBoth('docs/page.txt')
    await button('Go on').click()
    await page.getByText('step 2 of 2: work list.txt').waitFor()
    await button('Skip this commit').click()
    await halted.waitFor({ state: 'detached' })
    t.equal(git('log', '--format=%s', `${onto}..work`), 'work docs/page.txt')
    t.equal(readFileSync(at('docs/page.txt'), 'utf8'), 'onto\nwork\n')
    t.equal(readFileSync(at('list.txt'), 'utf8'), 'onto\n')

    const copy = async (sha: string, keeps: boolean) => {
      await page.evaluate(`location.hash = '#/git/root/log/${sha}'`)
      await page.getByRole('button', { name: `Do … something with ${sha.slice(0, 8)}` }).click()
      await dialog.getByLabel('Action').selectOption('cherry-pick')
      await dialog.getByLabel(/^Where it conflicts/).setChecked(keeps)
      await dialog.getByRole('button', { name: 'Do it' }).click()
    }
    await copy(picked, true)
    await dialog.waitFor({ state: 'hidden' })
    t.equal(git('log', '-1', '--format=%s'), 'pick picked.txt')
    t.equal(readFileSync(at('picked.txt'), 'utf8'), 'picked\n')
    const before = git('rev-parse', 'HEAD')
    await copy(work, false)
    await dialog.getByRole('alert').waitFor()
    t.same([git('rev-parse', 'HEAD'), git('status', '--short')], [before, ''], 'a conflict that is not kept')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await copy(work, true)
    await page.getByText('In the middle of a cherry-pick').waitFor()
    await button('Abort the cherry-pick').click()
    await dialog.getByRole('button', { name: 'Abort', exact: true }).click()
    await halted.waitFor({ state: 'detached' })
    t.same([git('rev-parse', 'HEAD'), git('status', '--short')], [before, ''])
    await copy(work, true)
    await takeBoth('list.txt')
    await button('Go on').click()
    await halted.waitFor({ state: 'detached' })
    t.equal(git('log', '-1', '--format=%s'), 'work list.txt')
    t.equal(readFileSync(at('list.txt'), 'utf8'), 'onto\nwork\n')
    await copy(git('rev-parse', 'onto~1'), true)
    await page.getByText('In the middle of a cherry-pick').waitFor()
    const last = git('rev-parse', 'HEAD')
    await button('Skip this commit').click()
    await halted.waitFor({ state: 'detached' })
    t.same([git('rev-parse', 'HEAD'), git('status', '--short')], [last, ''])
    git('checkout', '-q', 'main')
    // Expected: a file that left the list while it was read.
    await endJourney(t, tab, /404/)
  })

  await t.test('a repository is cloned from a server, pushed to, and diverges', async t => {
    const folder = t.testdir({ source: { 'a.txt': 'a\n' } })
    inGit(join(folder, 'source'), 'init', '-q', '-b', 'main')
    committed(join(folder, 'source'), 'begin')
    bareCopy(join(folder, 'source'), join(folder, 'project.git'))
    const server = await gitServer(t, folder)
    const tab = await ownerTab(browser, daemon, '#/git')
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByRole('link', { name: 'The workspace' }).waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Clone a repository' }).click()
    await dialog.getByLabel('Address').fill('ext::nothing')
    await dialog.getByRole('button', { name: 'Clone' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Address').fill(`${server.url}/project.git`)
    await dialog.getByRole('button', { name: 'Clone' }).click()
    await page.getByRole('heading', { name: 'project' }).waitFor()
    t.ok(existsSync(at('project/a.txt')))
    writeFileSync(at('project/a.txt'), 'b\n')
    await page.getByLabel('Message of the commit').fill('Change a')
    await page.getByRole('button', { name: 'Commit all' }).click()
    await page.getByText('Nothing is uncommitted').waitFor()
    await page.getByRole('link', { name: 'Remotes' }).click()
    await page.getByText('1 ahead').first().waitFor()
    t.same(await barriersOf(page), [])
    await page.getByRole('button', { name: 'Push' }).click()
    await page.getByText('Pushed.').waitFor()
    t.equal(inGit(join(folder, 'project.git'), 'log', '-1', '--format=%s').trim(), 'Change a')
    // Somebody else pushes, and so does this side.
    inGit(join(folder, 'source'), 'pull', '-q', join(folder, 'project.git'), 'main')
    writeFileSync(join(folder, 'source/b.txt'), 'b\n')
    committed(join(folder, 'source'), 'elsewhere')
    inGit(join(folder, 'source'), 'push', '-q', join(folder, 'project.git'), 'main')
    inGit(at('project'), 'commit', '-q', '--allow-empty', '-m', 'here')
    await page.getByRole('button', { name: 'Pull' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByText('1 ahead, 1 behind').first().waitFor()
    // Expected: the refusal of the pull, and a file that left the list while it was read.
    await endJourney(t, tab, /40[04]/)
  })

  await t.test('a commit names the conversation whose landed work is in it, and leads there', async t => {
    await runTurn(daemon.client, 'greets', 'write greeting.txt\n| hello\nsay done', { isolated: true })
    await daemon.client.call('POST /agents/{id}/land', { id: 'greets' })
    git('add', 'greeting.txt')
    // Git counts whole seconds.
    await new Promise(resolve => setTimeout(resolve, 1_100))
    git('commit', '-qm', 'Greet', '--', 'greeting.txt')
    const tab = await ownerTab(browser, daemon, `#/git/root/log/${git('rev-parse', 'HEAD')}`)
    const { page } = tab
    const link = page.getByText('work of').getByRole('link')
    await link.waitFor()
    t.equal(await link.getAttribute('href'), '#/c/greets')
    await endJourney(t, tab)
  })

  await t.test('a viewer reads and has nothing to write with, and j and k move between files', async t => {
    writeFileSync(at('README.md'), '# seen\n')
    writeFileSync(at('docs/page.txt'), 'seen\n')
    const tab = await guestTab(browser, daemon, { role: 'viewer' }, '#/git/root')
    const { page } = tab
    await page.getByRole('heading', { name: 'README.md' }).waitFor()
    for (const name of ['Stage all', 'Commit', 'Commit all', 'Undo …', 'Discard README.md', 'Stage this part'])
      t.equal(await page.getByRole('button', { name }).count(), 0, name)
    await page.getByRole('link', { name: 'README.md' }).focus()
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    t.match(await page.evaluate('document.activeElement.dataset.row'), /unstaged/)
    await page.keyboard.press('n')
    await page.evaluate(`location.hash = '#/git/root/branches'`)
    await page.getByText('Checked out').waitFor()
    t.equal(await page.getByRole('button', { name: 'Check out side' }).count(), 0)
    await page.setViewportSize({ width: 390, height: 844 })
    await page.evaluate(`location.hash = '#/git/root/changes/unstaged/README.md'`)
    await page.getByRole('heading', { name: 'README.md' }).waitFor()
    await endJourney(t, tab)
  })
})
