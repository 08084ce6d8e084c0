import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import type { LandResult } from '../../../plugins/agents/contract.js'
import type { Choose } from '../../../plugins/agents/landing/choices.js'
import { landRepo, type RepoLanding } from '../../../plugins/agents/landing/landing.js'
import { daemonWith, inGit, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { Bed, treeOf } from './support.js'

const GROUPS = ['system', 'agent', 'agents']

const lines = (count: number, change: { [line: number]: string } = {}): string =>
  Array.from({ length: count }, (_, at) => change[at + 1] ?? `line ${at + 1}`).join('\n') + '\n'

const FILES = { 'a.txt': lines(5), 'b.txt': lines(5), 'c.txt': lines(5), 'fits.txt': lines(20) }
const AGENT = lines(5, { 3: 'agent' })
const MINE = lines(5, { 3: 'mine', 5: 'mine too' })
const EDITS = ['a.txt', 'b.txt', 'c.txt'].map(path => `edit ${path}\n| - line 3\n| + agent`).join('\n')
const WORK = `${EDITS}\nedit fits.txt\n| - line 3\n| + agent\nwrite new.txt\n| new\nsay done`

/** A conversation whose work conflicts with an uncommitted edit, a committed one, and both. */
const disputed = async (t: Test): Promise<Support> => {
  const support = await daemonWith(t, GROUPS, { files: FILES })
  await runTurn(support.client, 'c-1', WORK, { isolated: true })
  const { workspace } = support
  writeFileSync(join(workspace, 'b.txt'), MINE)
  inGit(workspace, 'commit', '-q', '-a', '-m', 'moved on')
  for (const path of ['a.txt', 'c.txt']) writeFileSync(join(workspace, path), MINE)
  writeFileSync(join(workspace, 'fits.txt'), lines(20, { 18: 'mine' }))
  return support
}

const read = (folder: string, path: string): string => readFileSync(join(folder, path), 'utf8')
const work = (workspace: string) =>
  Object.fromEntries(Object.entries(treeOf(workspace)).filter(([path]) => !path.startsWith('.sandbox')))
const books = (workspace: string): string =>
  readFileSync(join(workspace, '.git/index')).toString('hex') + inGit(workspace, 'rev-parse', 'HEAD', 'main')
const chosen = (
  client: Client,
  takes: { [path: string]: 'agent' | 'workspace' | 'skip' },
  more: object = {},
): Promise<LandResult> =>
  client.call('POST /agents/{id}/land', {
    id: 'c-1',
    choices: Object.entries(takes).map(([path, take]) => ({ repo: 'root', path, take })),
    ...more,
  })
const owed = async (client: Client): Promise<string[]> =>
  (await client.call('GET /agents/{id}/diff', { id: 'c-1' })).repos.flatMap(({ changes }) =>
    changes.flatMap(({ path, landed }) => (landed ? [] : [path])),
  )

t.test('choices have exactly three outcomes, and skipped paths stay outstanding', async t => {
  const { client, workspace } = await disputed(t)
  const before = books(workspace)
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), {
    landed: false,
    conflicts: exactly({
      paths: exactly(
        { path: 'a.txt', reason: 'workspace' },
        { path: 'b.txt', reason: 'diverged' },
        { path: 'c.txt', reason: 'workspace' },
      ),
      clean: 2,
    }),
  })
  t.same(await chosen(client, { 'a.txt': 'agent', 'b.txt': 'workspace', 'c.txt': 'skip' }), {
    landed: true,
    uncommitted: [{ repo: 'root', paths: ['a.txt', 'fits.txt', 'new.txt'] }],
    left: [{ repo: 'root', paths: ['c.txt'] }],
  })
  t.same(work(workspace), {
    'a.txt': `file ${AGENT}`,
    'b.txt': `file ${MINE}`,
    'c.txt': `file ${MINE}`,
    'fits.txt': `file ${lines(20, { 3: 'agent', 18: 'mine' })}`,
    'new.txt': 'file new\n',
  })
  t.equal(books(workspace), before, 'index and HEAD are byte-equal')
  t.same(await owed(client), ['c.txt'])
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'ready')
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), {
    landed: false,
    conflicts: exactly({ paths: exactly({ path: 'c.txt', reason: 'workspace' }), clean: 0 }),
  })
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'conflict')
  t.match(await chosen(client, { 'c.txt': 'agent' }), { landed: true })
  t.equal(read(workspace, 'c.txt'), AGENT)
  t.equal(read(workspace, 'b.txt'), MINE, 'landed paths need no further choice')
  t.same(await owed(client), [])
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'landed')
})

t.test('choices that leave out a blocked path land nothing', async t => {
  const { client, workspace } = await disputed(t)
  const before = work(workspace)
  t.match(await chosen(client, { 'a.txt': 'agent', 'b.txt': 'skip' }), {
    landed: false,
    conflicts: exactly({ paths: exactly({ path: 'c.txt' }) }),
  })
  t.same(work(workspace), before)
  t.same((await owed(client)).sort(), ['a.txt', 'b.txt', 'c.txt', 'fits.txt', 'new.txt'])
})

t.test('a choice for a path without a conflict is accepted', async t => {
  const { client, workspace } = await disputed(t)
  await chosen(client, {
    'a.txt': 'workspace',
    'b.txt': 'workspace',
    'c.txt': 'workspace',
    'fits.txt': 'agent',
    'new.txt': 'skip',
  })
  t.equal(read(workspace, 'fits.txt'), lines(20, { 3: 'agent' }))
  t.same(await owed(client), ['new.txt'])
  t.notOk('new.txt' in work(workspace))
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(read(workspace, 'new.txt'), 'new\n')
})

t.test('`only` lands the named paths, also after a restart, and the rest stays outstanding', async t => {
  const { client, workspace } = await disputed(t)
  const only = [{ repo: 'root', path: 'new.txt' }]
  const result = await client.call('POST /agents/{id}/land', { id: 'c-1', only })
  t.match(result, {
    landed: true,
    left: exactly({ repo: 'root', paths: exactly('a.txt', 'b.txt', 'c.txt', 'fits.txt') }),
  })
  t.equal(read(workspace, 'new.txt'), 'new\n')
  t.equal(read(workspace, 'fits.txt'), lines(20, { 18: 'mine' }))
  await runTurn(client, 'c-1', 'write later.txt\n| later\nedit fits.txt\n| - line 5\n| + again\nsay done')
  t.same((await owed(client)).sort(), ['a.txt', 'b.txt', 'c.txt', 'fits.txt', 'later.txt'])
  t.same(
    await client.call('POST /agents/{id}/land', {
      id: 'c-1',
      only: [
        { repo: 'root', path: 'fits.txt' },
        { repo: 'root', path: 'later.txt' },
      ],
    }),
    {
      landed: true,
      uncommitted: [{ repo: 'root', paths: ['fits.txt', 'later.txt'] }],
      left: [{ repo: 'root', paths: ['a.txt', 'b.txt', 'c.txt'] }],
    },
  )
  t.equal(read(workspace, 'fits.txt'), lines(20, { 3: 'agent', 5: 'again', 18: 'mine' }))
  t.equal(read(workspace, 'later.txt'), 'later\n')
})

t.test('paths that are not outstanding, escape or come twice are refused before anything is written', async t => {
  const { client, fetch, workspace, token } = await disputed(t)
  const before = work(workspace)
  const land = async (body: object): Promise<number> =>
    (await fetch('/agents/c-1/land', { method: 'POST', body: JSON.stringify(body) })).status
  const choice = (path: string, repo = 'root') => ({ repo, path, take: 'agent' })
  t.equal(await land({ choices: [choice('nothing.txt')] }), 422)
  t.equal(await land({ choices: [choice('a.txt', 'elsewhere')] }), 422)
  t.equal(await land({ only: [{ repo: 'root', path: 'nothing.txt' }] }), 422)
  t.equal(await land({ only: [{ repo: 'root', path: 'new.txt' }], choices: [choice('a.txt')] }), 422)
  t.equal(await land({ choices: [choice('a.txt'), choice('a.txt')] }), 400)
  t.equal(await land({ choices: [choice('a.txt'), { ...choice('a.txt/'), take: 'skip' }] }), 400)
  for (const path of ['../a.txt', '/a.txt', 'x/../a.txt', '', 'a\0'])
    t.equal(await land({ choices: [choice(path)] }), 400, path)
  t.equal(await land({ only: [{ repo: 'root', path: '../x' }] }), 400)
  t.equal(await land({ choices: [{ ...choice('a.txt'), take: 'both' }] }), 400)
  t.equal(await land({ choices: Array.from({ length: 1001 }, (_, at) => choice(`f${at}`)) }), 400)
  t.same(work(workspace), before)
  const { client: drive } = await token('drive')
  await t.rejects(chosen(drive, { 'a.txt': 'agent' }), { message: /land/ })
  t.match(await chosen((await token('land')).client, { 'a.txt': 'agent', 'b.txt': 'agent', 'c.txt': 'agent' }), {
    landed: true,
  })
  t.equal(read(workspace, 'b.txt'), AGENT)
  t.equal(
    (await fetch('/agents/c-1/land', { method: 'POST', body: JSON.stringify({ choices: [choice('a.txt')] }) })).status,
    422,
    'it has landed',
  )
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
})

t.test('a link that leads outside cannot land, but can be skipped or kept as in the workspace', async t => {
  const { client, workspace, fetch } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'write a.txt\n| a\nrun ln -s /etc out\nsay done', { isolated: true })
  const body = JSON.stringify({ choices: [{ repo: 'root', path: 'out', take: 'agent' }] })
  t.equal((await fetch('/agents/c-1/land', { method: 'POST', body })).status, 422)
  t.notOk('a.txt' in work(workspace))
  t.match(await chosen(client, { out: 'skip' }), {
    landed: true,
    left: exactly({ repo: 'root', paths: exactly('out') }),
  })
  t.same(work(workspace), { 'README.md': 'file # work\n', 'a.txt': 'file a\n' })
  t.match(await chosen(client, { out: 'workspace' }), { landed: true })
  t.same(await owed(client), [])
})

t.test('measuring writes nothing, and detects work that landed in another way', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS)
  await runTurn(client, 'c-1', 'write a.txt\n| a\nedit README.md\n| - # work\n| + # agent\nsay done', {
    isolated: true,
  })
  writeFileSync(join(workspace, 'README.md'), '# mine\n')
  const before = work(workspace)
  t.same(await client.call('POST /agents/{id}/land', { id: 'c-1', mode: 'measure' }), { landed: false, held: true })
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'ready', 'nothing failed')
  t.same(work(workspace), before)
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: false })
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'conflict')
  writeFileSync(join(workspace, 'README.md'), '# work\n')
  t.same(await client.call('POST /agents/{id}/land', { id: 'c-1', mode: 'measure' }), { landed: false, held: true })
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'ready', 'the conflict is checked again')
  writeFileSync(join(workspace, 'README.md'), '# agent\n')
  writeFileSync(join(workspace, 'a.txt'), 'a\n')
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1', mode: 'measure' }), { landed: true })
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'landed')
})

t.test('removed landed work is counted on the card, and a cumulative landing restores exactly that', async t => {
  const { client, workspace } = await daemonWith(t, GROUPS, { files: { 'a.txt': lines(20), 'gone.txt': 'gone\n' } })
  await runTurn(client, 'c-1', 'edit a.txt\n| - line 3\n| + agent\nwrite new.txt\n| new\nrun rm gone.txt\nsay done', {
    isolated: true,
  })
  await client.call('POST /agents/{id}/land', { id: 'c-1' })
  const presence = async () => (await client.call('GET /agents/{id}', { id: 'c-1' })).landedPresence
  t.equal(await presence(), undefined)
  writeFileSync(join(workspace, 'a.txt'), lines(20, { 3: 'agent', 15: 'mine' }))
  t.equal(await presence(), undefined, "an edit of one's own throws nothing away")
  rmSync(join(workspace, 'new.txt'))
  inGit(workspace, 'checkout', '-q', '--', 'gone.txt')
  t.same(await presence(), { landed: 3, present: 1 })
  t.equal((await client.call('GET /agents')).agents[0]?.landedPresence?.present, 1)
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1', span: 'cumulative' }), { landed: true })
  t.same(work(workspace), { 'a.txt': `file ${lines(20, { 3: 'agent', 15: 'mine' })}`, 'new.txt': 'file new\n' })
  t.equal(await presence(), undefined)
})

/** Lands with choices, like the daemon. */
const landAs = async (
  bed: Bed,
  choose: Choose | undefined,
  mode: 'check' | 'merge' = 'check',
): Promise<RepoLanding | undefined> => {
  if (inGit(bed.copy, 'status', '--porcelain') !== '') bed.commit(bed.copy, 'work')
  const order = {
    conversation: 'c-1',
    branch: bed.branch,
    span: 'outstanding' as const,
    mode,
    ...(choose && { choose: () => choose }),
  }
  const landed = await landRepo(bed.deps, order, bed.checkout, bed.tip)
  if (landed?.outcome) bed.repo = landed.outcome
  if (landed?.record) await bed.deps.records.remove(landed.record)
  return landed
}

t.test('renames, deletions, binaries, modes and folders land completely or not at all', async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, 'moved.txt'), lines(40))
    writeFileSync(join(main, 'edited-and-gone.txt'), lines(10))
    writeFileSync(join(main, 'picture'), Buffer.from([0, 1, 2]))
    writeFileSync(join(main, 'tool'), 'a\n')
    writeFileSync(join(main, 'becomes'), 'file\n')
  })
  const { copy, main } = bed
  rmSync(join(copy, 'moved.txt'))
  mkdirSync(join(copy, 'deep'))
  writeFileSync(join(copy, 'deep/moved.txt'), lines(40, { 3: 'agent' }))
  rmSync(join(copy, 'edited-and-gone.txt'))
  writeFileSync(join(copy, 'picture'), Buffer.from([0, 9, 9]))
  writeFileSync(join(copy, 'tool'), 'agent\n')
  chmodSync(join(copy, 'tool'), 0o755)
  rmSync(join(copy, 'becomes'))
  mkdirSync(join(copy, 'becomes'))
  writeFileSync(join(copy, 'becomes/in'), 'in\n')
  writeFileSync(join(main, 'moved.txt'), lines(40, { 3: 'mine' }))
  writeFileSync(join(main, 'edited-and-gone.txt'), lines(10, { 2: 'mine' }))
  writeFileSync(join(main, 'picture'), Buffer.from([0, 7]))
  writeFileSync(join(main, 'tool'), 'mine\n')
  writeFileSync(join(main, 'becomes'), 'mine\n')
  const mine = treeOf(main)
  const index = bed.git()
  t.equal((await landAs(bed, undefined))?.conflict?.paths.length, 6)
  const skipped = await landAs(bed, () => 'skip')
  t.same(treeOf(main), mine)
  t.equal(skipped?.left?.length, 6)
  t.equal(bed.repo.left?.length, 7, 'both names of the rename')
  t.equal(bed.repo.landedTip, bed.tip)
  t.equal((await landAs(bed, undefined))?.conflict?.paths.length, 6, 'all of it is still outstanding')
  await landAs(bed, ({ path }) => (path === 'deep/moved.txt' ? 'agent' : 'skip'))
  t.same(
    Object.keys(treeOf(main)).filter(path => path.includes('moved')),
    ['deep/moved.txt'],
  )
  t.equal(bed.repo.left?.length, 5)
  await landAs(bed, () => 'agent')
  t.same(treeOf(main), treeOf(copy))
  t.equal(bed.repo.left, undefined)
  t.equal(await landAs(bed, undefined), undefined)
  t.equal(bed.git(), index)
})

t.test("a choice never removes a person's folder, and a skipped path does not make space for another", async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'file'), 'file\n'))
  const { copy, main } = bed
  writeFileSync(join(copy, 'folder'), 'agent\n')
  rmSync(join(copy, 'file'))
  mkdirSync(join(copy, 'file'))
  writeFileSync(join(copy, 'file/in'), 'in\n')
  mkdirSync(join(main, 'folder'))
  writeFileSync(join(main, 'folder/mine'), 'mine\n')
  const before = treeOf(main)
  t.match((await landAs(bed, () => 'agent'))?.conflict?.paths, exactly({ path: 'folder', reason: 'workspace' }))
  const result = await landAs(bed, ({ path }) => (path === 'file/in' ? undefined : 'skip'))
  t.match(
    result?.conflict?.paths.map(({ path }) => path),
    exactly('file/in'),
  )
  t.same(treeOf(main), before)
})

t.test('a rewritten branch is compared completely again, including skipped paths', async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, 'a.txt'), lines(10))
    writeFileSync(join(main, 'b.txt'), lines(10))
  })
  const { copy, main } = bed
  writeFileSync(join(copy, 'a.txt'), lines(10, { 3: 'agent' }))
  writeFileSync(join(copy, 'b.txt'), lines(10, { 3: 'agent' }))
  await landAs(bed, ({ path }) => (path === 'b.txt' ? 'skip' : undefined))
  t.equal(bed.repo.left?.length, 1)
  inGit(copy, 'commit', '-q', '--amend', '-m', 'rewritten')
  const result = await landAs(bed, undefined)
  t.equal(result?.conflict, undefined)
  t.same(treeOf(main), treeOf(copy))
  t.equal(bed.repo.left, undefined)
})

t.test(
  'merging writes byte-exact markers where the main line changed, and none if the reason is workspace',
  async t => {
    const { client, workspace } = await disputed(t)
    const before = [work(workspace), books(workspace)]
    const refused = await client.call('POST /agents/{id}/land', { id: 'c-1', mode: 'merge' })
    t.match(refused, {
      landed: false,
      conflicts: exactly({
        paths: exactly({ path: 'a.txt' }, { path: 'b.txt', reason: 'diverged' }, { path: 'c.txt' }),
        clean: 2,
      }),
    })
    t.same([work(workspace), books(workspace)], before)
    t.same(await chosen(client, { 'a.txt': 'workspace', 'c.txt': 'skip' }, { mode: 'merge' }), {
      landed: true,
      uncommitted: [{ repo: 'root', paths: ['b.txt', 'fits.txt', 'new.txt'] }],
      resolving: [{ repo: 'root', paths: ['b.txt'] }],
      left: [{ repo: 'root', paths: ['c.txt'] }],
    })
    t.equal(
      read(workspace, 'b.txt'),
      'line 1\nline 2\n<<<<<<< workspace\nmine\n=======\nagent\n>>>>>>> agent/c-1\nline 4\nmine too\n',
    )
    t.equal(read(workspace, 'fits.txt'), lines(20, { 3: 'agent', 18: 'mine' }))
    t.equal(books(workspace), before[1])
    t.same(await owed(client), ['c.txt'])
  },
)

t.test('merging keeps modes, renames, line ends and everything that git can merge, and refuses the rest', async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, '.gitattributes'), 'crlf.txt text eol=crlf\n')
    writeFileSync(join(main, 'crlf.txt'), 'a\r\nb\r\nc\r\n')
    writeFileSync(join(main, 'tool'), lines(5))
    writeFileSync(join(main, 'moved.txt'), lines(40))
    writeFileSync(join(main, 'close.txt'), lines(9))
  })
  const { copy, main } = bed
  writeFileSync(join(copy, 'crlf.txt'), 'a\r\nagent\r\nc\r\n')
  writeFileSync(join(copy, 'tool'), lines(5, { 3: 'agent' }))
  chmodSync(join(copy, 'tool'), 0o755)
  rmSync(join(copy, 'moved.txt'))
  writeFileSync(join(copy, 'there.txt'), lines(40, { 3: 'agent' }))
  writeFileSync(join(copy, 'close.txt'), lines(9, { 3: 'agent' }))
  writeFileSync(join(copy, 'both.txt'), 'agent\n')
  writeFileSync(join(main, 'crlf.txt'), 'a\r\nmine\r\nc\r\n')
  writeFileSync(join(main, 'tool'), lines(5, { 3: 'mine' }))
  writeFileSync(join(main, 'moved.txt'), lines(40, { 3: 'mine' }))
  writeFileSync(join(main, 'close.txt'), lines(9, { 5: 'mine' }))
  writeFileSync(join(main, 'both.txt'), 'mine\n')
  bed.commit(main, 'moved on')
  writeFileSync(join(main, 'close.txt'), lines(9, { 5: 'mine', 9: 'uncommitted' }))
  const index = bed.git()
  const result = await landAs(bed, undefined, 'merge')
  t.equal(result?.conflict, undefined)
  t.same([...(result?.resolving ?? [])].sort(), ['both.txt', 'crlf.txt', 'there.txt', 'tool'])
  const marked = (one: string, other: string, eol = '\n') =>
    ['<<<<<<< workspace', one, '=======', other, '>>>>>>> agent/c-1', ''].join(eol)
  t.same(treeOf(main), {
    '.gitattributes': 'file crlf.txt text eol=crlf\n',
    'crlf.txt': `file a\r\n${marked('mine', 'agent', '\r\n')}c\r\n`,
    tool: `program line 1\nline 2\n${marked('mine', 'agent')}line 4\nline 5\n`,
    'there.txt': `file line 1\nline 2\n${marked('mine', 'agent')}${lines(40).split('\n').slice(3).join('\n')}`,
    'close.txt': `file ${lines(9, { 3: 'agent', 5: 'mine', 9: 'uncommitted' })}`,
    'both.txt': `file ${marked('mine', 'agent')}`,
  })
  t.equal(bed.git(), index)
  t.equal(await landAs(bed, undefined, 'merge'), undefined)
})

t.test('merging refuses binaries, links and files that the main line removed, and then writes nothing', async t => {
  for (const what of ['binary', 'link', 'gone'] as const) {
    await t.test(what, async t => {
      const bed = new Bed(t, main => {
        writeFileSync(join(main, 'x'), what === 'binary' ? Buffer.from([0, 1]) : 'x\n')
        writeFileSync(join(main, 'text'), lines(5))
      })
      const { copy, main } = bed
      writeFileSync(join(copy, 'text'), lines(5, { 3: 'agent' }))
      rmSync(join(copy, 'x'))
      if (what === 'link') symlinkSync('text', join(copy, 'x'))
      else writeFileSync(join(copy, 'x'), what === 'binary' ? Buffer.from([0, 2]) : 'agent\n')
      writeFileSync(join(main, 'text'), lines(5, { 3: 'mine' }))
      if (what === 'gone') rmSync(join(main, 'x'))
      else writeFileSync(join(main, 'x'), what === 'binary' ? Buffer.from([0, 3]) : 'mine\n')
      bed.commit(main, 'moved on')
      const before = [treeOf(main), bed.git()]
      t.same((await landAs(bed, undefined, 'merge'))?.conflict?.paths.map(({ path }) => path).sort(), ['text', 'x'])
      t.same([treeOf(main), bed.git()], before)
    })
  }
})

t.test("twenty conversations land at once in one repository, and a person's uncommitted work is unchanged", async t => {
  const files = {
    ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`f${at}.txt`, lines(5)])),
    'shared.txt': lines(400),
    'mine.txt': 'a\n',
  }
  const { client, workspace } = await daemonWith(t, GROUPS, { files })
  const ids = Array.from({ length: 20 }, (_, at) => `c-${at}`)
  for (const [at, id] of ids.entries()) {
    await runTurn(
      client,
      id,
      `edit f${at}.txt\n| - line 3\n| + agent ${at}\nrun sed -i 's/^line ${at * 20 + 5}$/agent ${at}/' `
        + `shared.txt\nsay done`,
      { isolated: true },
    )
  }
  writeFileSync(join(workspace, 'mine.txt'), 'mine\n')
  writeFileSync(join(workspace, 'untracked.txt'), 'mine\n')
  writeFileSync(join(workspace, 'shared.txt'), lines(400, { 395: 'mine' }))
  const before = books(workspace)
  const results = await Promise.all(ids.map(id => client.call('POST /agents/{id}/land', { id })))
  t.ok(results.every(({ landed }) => landed))
  t.equal(books(workspace), before)
  const theirs = Object.fromEntries(ids.map((_, at) => [at * 20 + 5, `agent ${at}`]))
  t.same(work(workspace), {
    ...Object.fromEntries(ids.map((_, at) => [`f${at}.txt`, `file ${lines(5, { 3: `agent ${at}` })}`])),
    'shared.txt': `file ${lines(400, { ...theirs, 395: 'mine' })}`,
    'mine.txt': 'file mine\n',
    'untracked.txt': 'file mine\n',
  })
  t.ok((await client.call('GET /agents')).agents.every(({ status }) => status === 'landed'))
})

t.test('the landing of a live run reports the rest to its watchers', async t => {
  const { client } = await daemonWith(t, GROUPS)
  await client.call('POST /agent', {
    conversationId: 'c-1',
    isolated: true,
    prompt: 'write a.txt\n| a\nask Go on?\n| yes: on',
  })
  const watched = framesOf(client, 'c-1')
  await watched.until(({ kind }) => kind === 'question')
  t.match(await chosen(client, { 'a.txt': 'skip' }), {
    landed: true,
    left: exactly({ repo: 'root', paths: exactly('a.txt') }),
  })
  t.match(await watched.until(({ kind }) => kind === 'landed'), { landed: true })
  await client.call('POST /agent/stop', { conversationId: 'c-1' })
})
