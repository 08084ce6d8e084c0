import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { landRepo } from '../../../plugins/agents/landing/landing.js'
import { Bed, inGit, treeOf } from './support.js'

const lines = (count: number, change: { [line: number]: string } = {}): string =>
  Array.from({ length: count }, (_, at) => change[at + 1] ?? `line ${at + 1}`).join('\n') + '\n'

/** Bytes that git always treats as binary, unlike some random ones. */
const picture = (size: number): Buffer => Buffer.concat([Buffer.alloc(1), randomBytes(size)])

t.test('everything on a branch lands in the working tree, with index and HEAD byte-equal', async t => {
  const bed = new Bed(t, main => {
    mkdirSync(join(main, 'old/deep'), { recursive: true })
    writeFileSync(join(main, 'old/deep/one.txt'), 'one\n')
    writeFileSync(join(main, 'old/deep/two.txt'), 'two\n')
    writeFileSync(join(main, 'edit.txt'), lines(20))
    writeFileSync(join(main, 'move.txt'), lines(40))
    writeFileSync(join(main, 'run.sh'), 'echo\n')
    writeFileSync(join(main, 'crlf.txt'), 'a\r\nb\r\n')
    writeFileSync(join(main, 'blob.bin'), picture(100_000))
    writeFileSync(join(main, 'becomes'), 'file\n')
    mkdirSync(join(main, 'shrinks'))
    writeFileSync(join(main, 'shrinks/in'), 'in\n')
    writeFileSync(join(main, 'mine.txt'), lines(5))
  })
  writeFileSync(join(bed.main, 'mine.txt'), lines(5, { 2: 'my own edit' }))
  writeFileSync(join(bed.main, 'untracked.txt'), 'mine too\n')
  const { copy } = bed
  rmSync(join(copy, 'old'), { recursive: true })
  writeFileSync(join(copy, 'edit.txt'), lines(20, { 7: 'seven' }))
  rmSync(join(copy, 'move.txt'))
  mkdirSync(join(copy, 'new/deep'), { recursive: true })
  writeFileSync(join(copy, 'new/deep/moved.txt'), lines(40, { 3: 'three' }))
  chmodSync(join(copy, 'run.sh'), 0o755)
  writeFileSync(join(copy, 'crlf.txt'), 'a\r\nB\r\n')
  writeFileSync(join(copy, 'blob.bin'), picture(3_000_000))
  symlinkSync('edit.txt', join(copy, 'link'))
  rmSync(join(copy, 'becomes'))
  mkdirSync(join(copy, 'becomes'))
  writeFileSync(join(copy, 'becomes/folder'), 'now\n')
  rmSync(join(copy, 'shrinks'), { recursive: true })
  writeFileSync(join(copy, 'shrinks'), 'now a file\n')
  for (const name of [
    'with space',
    'ümlaut-☃',
    '-dash',
    '--',
    'quo"te\'s',
    'new\nline',
    'tab\there',
    'back\\slash',
    ':(glob)*',
    '*',
  ]) {
    writeFileSync(join(copy, name), `${name}\n`)
  }
  const before = bed.git()
  const result = await bed.land()
  t.equal(bed.git(), before, 'index, HEAD and main are unchanged')
  t.equal(result?.conflict, undefined)
  t.match(result?.outcome, { repo: 'root', landedTip: bed.tip, landedHead: bed.head })
  t.same(treeOf(bed.main), {
    ...treeOf(copy),
    'mine.txt': `file ${lines(5, { 2: 'my own edit' })}`,
    'untracked.txt': 'file mine too\n',
  })
  t.equal(await bed.land(), undefined, 'a second landing has nothing to do')
})

t.test(
  'an uncommitted edit of the same line is workspace, a committed one diverged, and nothing is written',
  async t => {
    const bed = new Bed(t, main => {
      for (const name of ['mine.txt', 'moved-on.txt', 'fits.txt', 'there.txt', 'both.txt'])
        writeFileSync(join(main, name), lines(20))
      writeFileSync(join(main, 'picture'), picture(500))
      writeFileSync(join(main, 'picture-edited'), picture(500))
    })
    const { copy, main } = bed
    for (const name of ['mine.txt', 'moved-on.txt', 'fits.txt', 'there.txt', 'both.txt'])
      writeFileSync(join(copy, name), lines(20, { 5: 'agent' }))
    for (const name of ['picture', 'picture-edited']) writeFileSync(join(copy, name), picture(500))
    writeFileSync(join(copy, 'added.txt'), 'agent\n')
    writeFileSync(join(main, 'moved-on.txt'), lines(20, { 5: 'person' }))
    writeFileSync(join(main, 'both.txt'), lines(20, { 5: 'person' }))
    writeFileSync(join(main, 'picture'), picture(600))
    bed.commit(main, 'moved on')
    writeFileSync(join(main, 'mine.txt'), lines(20, { 5: 'person' }))
    writeFileSync(join(main, 'both.txt'), lines(20, { 5: 'person', 12: 'more' }))
    writeFileSync(join(main, 'fits.txt'), lines(20, { 15: 'person' }))
    writeFileSync(join(main, 'there.txt'), lines(20, { 5: 'agent', 15: 'person' }))
    writeFileSync(join(main, 'picture-edited'), picture(700))
    writeFileSync(join(main, 'added.txt'), 'person\n')
    const before = [bed.git(), treeOf(main), inGit(main, 'status', '--porcelain')]
    const index = bed.git()
    const result = await bed.land()
    t.equal(bed.git(), index)
    t.same([bed.git(), treeOf(main), inGit(main, 'status', '--porcelain')].slice(1), before.slice(1))
    t.same(Object.fromEntries(result!.conflict!.paths.map(({ path, reason }) => [path, reason])), {
      'mine.txt': 'workspace',
      'moved-on.txt': 'diverged',
      'both.txt': 'diverged',
      picture: 'binary',
      'picture-edited': 'workspace',
      'added.txt': 'workspace',
    })
    t.match(result?.conflict, { repo: 'root', clean: 1, mainBranch: 'main' })
  },
)

t.test("a renamed file keeps a person's edit, committed or not", async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, 'one.txt'), lines(40))
    writeFileSync(join(main, 'two.txt'), lines(60))
  })
  for (const [name, count] of [
    ['one', 40],
    ['two', 60],
  ] as const) {
    rmSync(join(bed.copy, `${name}.txt`))
    mkdirSync(join(bed.copy, name))
    writeFileSync(join(bed.copy, name, 'moved.txt'), lines(count, { 30: 'agent' }))
  }
  writeFileSync(join(bed.main, 'one.txt'), lines(40, { 3: 'person' }))
  bed.commit(bed.main, 'edit')
  writeFileSync(join(bed.main, 'two.txt'), lines(60, { 3: 'person' }))
  const index = bed.git()
  t.equal((await bed.land())?.conflict, undefined)
  t.equal(bed.git(), index)
  t.same(treeOf(bed.main), {
    'one/': 'folder',
    'one/moved.txt': `file ${lines(40, { 3: 'person', 30: 'agent' })}`,
    'two/': 'folder',
    'two/moved.txt': `file ${lines(60, { 3: 'person', 30: 'agent' })}`,
  })
})

t.test('a repository without a commit and a missing one have different reasons', async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), 'a\n'))
  writeFileSync(join(bed.copy, 'b.txt'), 'b\n')
  bed.commit(bed.copy, 'work')
  inGit(bed.main, 'symbolic-ref', 'HEAD', 'refs/heads/unborn')
  const order = { conversation: 'c-1', branch: bed.branch, span: 'outstanding' as const }
  t.match(await landRepo(bed.deps, order, bed.checkout, bed.tip), { outcome: { landedTip: bed.tip } })
  t.equal(readFileSync(join(bed.main, 'b.txt'), 'utf8'), 'b\n')
  const { main: _main, ...gone } = bed.checkout
  t.same(await landRepo(bed.deps, order, gone, bed.tip), {
    repo: 'root',
    from: bed.repo.base,
    conflict: { repo: 'root', paths: [], clean: 0 },
  })
})

t.test('permissions that a person set are kept, except the executable bit, which follows the work', async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, 'secret'), 'a\n')
    writeFileSync(join(main, 'tool'), 'a\n')
  })
  chmodSync(join(bed.main, 'secret'), 0o600)
  chmodSync(join(bed.main, 'tool'), 0o640)
  writeFileSync(join(bed.copy, 'secret'), 'agent\n')
  chmodSync(join(bed.copy, 'tool'), 0o755)
  await bed.land()
  t.equal(statSync(join(bed.main, 'secret')).mode & 0o777, 0o600)
  t.equal(statSync(join(bed.main, 'tool')).mode & 0o777, 0o750)
})

t.test('work that was merged manually counts as landed', async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), lines(20)))
  writeFileSync(join(bed.copy, 'a.txt'), lines(20, { 3: 'agent' }))
  bed.commit(bed.copy, 'work')
  inGit(bed.main, 'merge', '-q', '--no-ff', '-m', 'by hand', bed.branch)
  const result = await bed.land()
  t.equal(result?.conflict, undefined)
  t.equal(result?.record, undefined, 'nothing was written')
  t.equal(inGit(bed.main, 'status', '--porcelain'), '')
})

t.test('a cumulative landing restores exactly the removed work, an outstanding one nothing', async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, 'a.txt'), lines(20))
    writeFileSync(join(main, 'gone.txt'), 'gone\n')
  })
  writeFileSync(join(bed.copy, 'a.txt'), lines(20, { 3: 'agent' }))
  writeFileSync(join(bed.copy, 'new.txt'), 'new\n')
  rmSync(join(bed.copy, 'gone.txt'))
  await bed.land()
  rmSync(join(bed.main, 'new.txt'))
  inGit(bed.main, 'checkout', '-q', '--', 'gone.txt')
  writeFileSync(join(bed.main, 'a.txt'), lines(20, { 3: 'agent', 15: 'person' }))
  t.equal(await bed.land(), undefined)
  const again = await bed.land('cumulative')
  t.equal(again?.conflict, undefined)
  t.same(treeOf(bed.main), { 'a.txt': `file ${lines(20, { 3: 'agent', 15: 'person' })}`, 'new.txt': 'file new\n' })
})

t.test('a second turn lands on top of the first, and a rewritten branch from its merge base', async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), lines(20)))
  writeFileSync(join(bed.copy, 'a.txt'), lines(20, { 3: 'one' }))
  await bed.land()
  writeFileSync(join(bed.copy, 'a.txt'), lines(20, { 3: 'one', 4: 'two' }))
  await bed.land()
  t.same(treeOf(bed.main), treeOf(bed.copy))
  inGit(bed.copy, 'reset', '-q', '--soft', bed.repo.base)
  writeFileSync(join(bed.copy, 'b.txt'), 'b\n')
  const third = await bed.land()
  t.equal(third?.conflict, undefined)
  t.same(treeOf(bed.main), treeOf(bed.copy))
})

t.test('a landing runs no hook, filter or monitor of the repository or the branch', async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, 'a.txt'), lines(20))
    writeFileSync(join(main, '.gitattributes'), 'filtered.txt filter=x\n')
    writeFileSync(join(main, 'filtered.txt'), lines(3))
  })
  const trap = join(bed.folder, 'trap')
  const script = join(bed.folder, 'trap.sh')
  writeFileSync(script, `#!/bin/sh\ntouch ${trap}\ncat\n`, { mode: 0o755 })
  writeFileSync(join(bed.copy, 'filtered.txt'), lines(3, { 2: 'agent' }))
  writeFileSync(join(bed.copy, '.gitattributes'), '* filter=x diff=x merge=x\n')
  writeFileSync(join(bed.copy, 'a.txt'), lines(20, { 3: 'agent' }))
  bed.commit(bed.copy, 'work')
  writeFileSync(join(bed.main, 'a.txt'), lines(20, { 15: 'person' }))
  for (const [key, value] of [
    ['filter.x.smudge', script],
    ['filter.x.clean', script],
    ['filter.x.process', script],
    ['diff.x.command', script],
    ['diff.x.textconv', script],
    ['merge.x.driver', script],
    ['core.fsmonitor', script],
    ['core.hooksPath', join(bed.folder, 'hooks')],
  ] as const)
    inGit(bed.main, 'config', key, value)
  mkdirSync(join(bed.folder, 'hooks'))
  for (const hook of ['post-index-change', 'pre-commit', 'post-checkout', 'applypatch-msg', 'reference-transaction']) {
    writeFileSync(join(bed.folder, 'hooks', hook), `#!/bin/sh\ntouch ${trap}\n`, { mode: 0o755 })
  }
  const landed = await landRepo(
    bed.deps,
    { conversation: 'c-1', branch: bed.branch, span: 'outstanding' },
    bed.checkout,
    readRef(bed),
  )
  t.equal(landed?.conflict, undefined)
  t.equal(readFileSync(join(bed.main, 'a.txt'), 'utf8'), lines(20, { 3: 'agent', 15: 'person' }))
  t.equal(readFileSync(join(bed.main, 'filtered.txt'), 'utf8'), lines(3, { 2: 'agent' }))
  t.notOk(existsSync(trap))
})

const readRef = (bed: Bed): string => readFileSync(join(bed.main, '.git/refs/heads', bed.branch), 'utf8').trim()

t.test('a link that leads outside and a path behind a link are blocked, a link inside lands', async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, 'a.txt'), 'a\n')
    mkdirSync(join(main, 'dir'))
    writeFileSync(join(main, 'dir/b.txt'), 'b\n')
  })
  const outside = join(bed.folder, 'outside')
  mkdirSync(outside)
  symlinkSync('/etc', join(bed.copy, 'out'))
  symlinkSync('hop/../..', join(bed.copy, 'chained'))
  symlinkSync('dir', join(bed.copy, 'hop'))
  symlinkSync('.git/hooks', join(bed.copy, 'hooks'))
  symlinkSync('dir/b.txt', join(bed.copy, 'inside'))
  writeFileSync(join(bed.copy, 'dir/b.txt'), 'agent\n')
  writeFileSync(join(bed.copy, 'dir/c.txt'), 'agent\n')
  rmSync(join(bed.main, 'dir'), { recursive: true })
  symlinkSync(outside, join(bed.main, 'dir'))
  const before = treeOf(bed.main)
  const result = await bed.land()
  t.same(
    Object.fromEntries(result!.conflict!.paths.map(({ path, reason }) => [path, reason])),
    {
      out: 'workspace',
      chained: 'workspace',
      hop: 'workspace',
      inside: 'workspace',
      hooks: 'workspace',
      'dir/b.txt': 'workspace',
      'dir/c.txt': 'workspace',
    },
    'a link to such a link leads outside too',
  )
  for (const name of ['out', 'chained', 'hooks'])
    t.match(
      result!.conflict!.paths.find(({ path }) => path === name),
      { inTheWay: { path: name, what: 'outside' } },
      'it says so',
    )
  t.same(treeOf(bed.main), before)
  t.same(treeOf(outside), {})
  rmSync(join(bed.main, 'dir'))
  inGit(bed.main, 'checkout', '-q', '--', 'dir')
  for (const name of ['out', 'chained', 'hooks']) rmSync(join(bed.copy, name))
  t.equal((await bed.land())?.conflict, undefined)
  t.same(treeOf(bed.main), treeOf(bed.copy))
})

t.test('a path below .git or .sandbox in any spelling is never work', async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), 'a\n'))
  for (const name of [
    '.sandbox/config/rules.json',
    '.Sandbox/x',
    '.sandbox./y',
    '.sand\u200Cbox/z',
    'deep/.g\u200Cit/hooks/x',
    'deep/.git./x',
    'deep/git~1',
  ]) {
    mkdirSync(join(bed.copy, name, '..'), { recursive: true })
    writeFileSync(join(bed.copy, name), 'evil\n')
  }
  mkdirSync(join(bed.copy, '.sandbox/config/workspace-extensions'), { recursive: true })
  writeFileSync(join(bed.copy, '.sandbox/config/workspace-extensions/mine.ts'), 'fine\n')
  writeFileSync(join(bed.copy, '.gitignore'), 'fine\n')
  // A tree that no ordinary program writes: with a folder named .git and one named `..`.
  inGit(bed.copy, '-c', 'core.protectNTFS=false', 'add', '-A')
  inGit(bed.copy, '-c', 'core.protectNTFS=false', 'commit', '-q', '-m', 'work')
  const blob = inGit(bed.copy, 'hash-object', '-w', 'a.txt').trim()
  const evil = rawTree(bed.copy, [['100644', 'config', blob]])
  const climbing = rawTree(bed.copy, [['100644', 'escaped', blob]])
  const top = inGit(bed.copy, 'ls-tree', '-z', 'HEAD')
    .split('\0')
    .filter(line => line !== '')
    .map(line => /^(\d+) \w+ (\w+)\t(.*)$/.exec(line)!.slice(1) as [string, string, string])
    .map(([mode, id, name]): [string, string, string] => [mode.replace(/^0/, ''), name, id])
  const tree = rawTree(bed.copy, [
    ...top,
    ['40000', '.git', rawTree(bed.copy, [['100644', 'config-evil', blob]])],
    ['40000', '..', climbing],
    ['40000', '.GIT', evil],
  ])
  inGit(
    bed.copy,
    'update-ref',
    `refs/heads/${bed.branch}`,
    inGit(bed.copy, 'commit-tree', '-p', 'HEAD', '-m', 'evil', tree).trim(),
  )
  const landed = await landRepo(
    bed.deps,
    { conversation: 'c-1', branch: bed.branch, span: 'outstanding' },
    bed.checkout,
    readRef(bed),
  )
  t.equal(landed?.conflict, undefined)
  t.same(
    Object.keys(treeOf(bed.main))
      .filter(path => !path.endsWith('/'))
      .sort(),
    ['.gitignore', '.sandbox/config/workspace-extensions/mine.ts', 'a.txt'],
  )
  t.notOk(existsSync(join(bed.main, '.git/config-evil')))
  t.notOk(existsSync(join(bed.folder, 'escaped')))
})

/** Writes a tree with any names, also invalid ones. */
const rawTree = (folder: string, entries: [mode: string, name: string, id: string][]): string => {
  const sorted = entries.toSorted(([, one], [, other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
  const bytes = Buffer.concat(
    sorted.flatMap(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]),
  )
  const file = join(folder, '..', 'raw-tree')
  writeFileSync(file, bytes)
  return inGit(folder, 'hash-object', '-w', '-t', 'tree', '--literally', file).trim()
}

t.test('a file at the path of a new one is a workspace conflict, and a nested repository is separate', async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), 'a\n'))
  for (const path of ['file/below', 'nested/below', 'folder', 'pipe']) {
    mkdirSync(join(bed.copy, path, '..'), { recursive: true })
    writeFileSync(join(bed.copy, path), 'agent\n')
  }
  writeFileSync(join(bed.main, 'file'), 'a file\n')
  mkdirSync(join(bed.main, 'folder'))
  writeFileSync(join(bed.main, 'folder/mine'), 'mine\n')
  mkdirSync(join(bed.main, 'nested'))
  inGit(join(bed.main, 'nested'), 'init', '-q')
  execFileSync('mkfifo', [join(bed.main, 'pipe')])
  const result = await bed.land()
  t.same(result?.conflict?.paths.map(({ path, reason }) => `${path} ${reason}`).sort(), [
    'file/below workspace',
    'folder workspace',
    'nested/below workspace',
    'pipe workspace',
  ])
  t.notOk(existsSync(join(bed.main, 'nested/below')))
})

t.test('a branch that changed since it was read and a main checkout in a merge are refused', async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), 'a\n'))
  writeFileSync(join(bed.copy, 'a.txt'), 'agent\n')
  bed.commit(bed.copy, 'work')
  const order = { conversation: 'c-1', branch: bed.branch, span: 'outstanding' as const }
  await t.rejects(landRepo(bed.deps, order, bed.checkout, bed.head), { message: /moved while it was landing/ })
  inGit(bed.main, 'checkout', '-q', '-b', 'other')
  writeFileSync(join(bed.main, 'a.txt'), 'other\n')
  bed.commit(bed.main, 'other')
  t.throws(() => inGit(bed.main, 'merge', bed.branch))
  await t.rejects(landRepo(bed.deps, order, bed.checkout, bed.tip), { message: /in the middle of a merge/ })
})

t.test('twenty conversations land at once, each completely', async t => {
  const bed = new Bed(t, main => {
    for (let at = 0; at < 20; at++) writeFileSync(join(main, `f${at}.txt`), lines(10))
    writeFileSync(join(main, 'shared.txt'), lines(400))
  })
  const landings = Array.from({ length: 20 }, (_, at) => {
    const copy = join(bed.folder, `copy-${at}`)
    const branch = `agent/many-${at}`
    inGit(bed.main, 'worktree', 'add', '-q', '-b', branch, copy)
    writeFileSync(join(copy, `f${at}.txt`), lines(10, { 2: `agent ${at}` }))
    writeFileSync(join(copy, 'shared.txt'), lines(400, { [at * 20 + 5]: `agent ${at}` }))
    bed.commit(copy, 'work')
    return { branch, tip: inGit(copy, 'rev-parse', 'HEAD').trim(), copy }
  })
  const before = bed.git()
  const results = await Promise.all(
    landings.map(({ branch, tip, copy }, at) =>
      landRepo(
        bed.deps,
        { conversation: `many-${at}`, branch, span: 'outstanding' },
        { repo: 'root', base: bed.head, main: bed.main, copy },
        tip,
      ),
    ),
  )
  t.same(
    results.map(result => result?.conflict),
    results.map(() => undefined),
  )
  t.equal(bed.git(), before)
  const shared = lines(400, Object.fromEntries(landings.map((_, at) => [at * 20 + 5, `agent ${at}`])))
  t.equal(readFileSync(join(bed.main, 'shared.txt'), 'utf8'), shared)
  t.ok(
    landings.every((_, at) => readFileSync(join(bed.main, `f${at}.txt`), 'utf8') === lines(10, { 2: `agent ${at}` })),
  )
})

t.test("CRLF of main's committed attributes is kept in the working tree", async t => {
  const bed = new Bed(t, main => {
    writeFileSync(join(main, '.gitattributes'), '*.txt text eol=crlf\n')
    writeFileSync(join(main, 'a.txt'), lines(10).replaceAll('\n', '\r\n'))
  })
  rmSync(join(bed.copy, 'a.txt'))
  inGit(bed.copy, 'checkout', '-q', '--', 'a.txt')
  writeFileSync(join(bed.copy, 'a.txt'), lines(10, { 3: 'agent' }).replaceAll('\n', '\r\n'))
  writeFileSync(join(bed.main, 'a.txt'), lines(10, { 9: 'person' }).replaceAll('\n', '\r\n'))
  t.equal((await bed.land())?.conflict, undefined)
  t.equal(
    readFileSync(join(bed.main, 'a.txt'), 'latin1'),
    lines(10, { 3: 'agent', 9: 'person' }).replaceAll('\n', '\r\n'),
  )
})
