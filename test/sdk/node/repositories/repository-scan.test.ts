import { ChildProcess } from 'node:child_process'
import { mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RepositoryScan } from '../../../../sdk/node/repositories/repository-scan.js'
import { folderOf, inGit, makeWorkspace } from '../../../support/daemon.js'

const place = (t: Test) => {
  const top = folderOf(t)
  const workspace = join(realpathSync(top), 'workspace')
  makeWorkspace(workspace)
  const git = (...args: string[]) => inGit(workspace, ...args).trim()
  const look = new RepositoryScan({ workspace, data: join(top, 'data') })
  const head = async () => (await look.now()).repositories[0]?.head
  const dependencies = async () => {
    const seen = await look.now()
    return look.dependencies(seen.repositories[0]!, seen)
  }
  return { workspace, git, look, head, dependencies }
}

t.test('every change of the main line is seen by the next scan, however git stores it', async t => {
  const { workspace, git, head } = place(t)
  const moves: { readonly [what: string]: () => void } = {
    'a commit': () => git('commit', '-q', '--allow-empty', '-m', 'one'),
    'refs are packed': () => git('pack-refs', '--all'),
    'a commit after that': () => git('commit', '-q', '--allow-empty', '-m', 'two'),
    'another branch': () => git('switch', '-q', '-c', 'other'),
    'a commit there': () => git('commit', '-q', '--allow-empty', '-m', 'three'),
    'back to main': () => git('switch', '-q', 'main'),
    'no branch': () => git('checkout', '-q', 'other~1'),
    'main is moved from elsewhere': () => {
      git('switch', '-q', 'other')
      git('update-ref', 'refs/heads/other', 'other~2')
    },
    'the branch points at another one': () => git('symbolic-ref', 'refs/heads/other', 'refs/heads/main'),
    'that one goes on': () => git('update-ref', 'refs/heads/main', git('commit-tree', '-m', 'x', 'HEAD^{tree}')),
    'another repository takes its place': () => {
      renameSync(join(workspace, '.git'), join(workspace, '../old.git'))
      makeWorkspace(workspace)
    },
    'a pointer leads elsewhere': () => {
      rmSync(join(workspace, '.git'), { recursive: true })
      writeFileSync(join(workspace, '.git'), 'gitdir: ../old.git\n')
    },
  }
  t.equal(await head(), git('rev-parse', 'HEAD'))
  for (const [what, move] of Object.entries(moves)) {
    move()
    for (const again of ['', ', asked again']) t.equal(await head(), git('rev-parse', 'HEAD'), what + again)
  }
  rmSync(join(workspace, '.git'), { recursive: true })
  t.equal(await head(), undefined)
})

t.test('a scan of an unchanged checkout starts no program', async t => {
  const { git, head } = place(t)
  const first = await head()
  const programs = ChildProcess.prototype as unknown as { spawn: (...args: unknown[]) => unknown }
  const spawned = t.capture(programs, 'spawn', programs.spawn) as () => { args: unknown[] }[]
  // With much memory in use, programs are started by another Node process.
  const started = () => spawned().filter(({ args }) => (args[0] as { file: string }).file !== process.execPath)
  t.equal(await head(), first)
  t.equal(started().length, 0)
  git('commit', '-q', '--allow-empty', '-m', 'on')
  t.not(await head(), first)
  t.ok(started().length <= 1)
})

t.test('ignored paths are read again once an ignore rule or the index has changed', async t => {
  const { workspace, git, dependencies, look } = place(t)
  for (const folder of ['node_modules', 'web/node_modules', 'vendor']) {
    mkdirSync(join(workspace, folder), { recursive: true })
    writeFileSync(join(workspace, folder, 'x.js'), 'x')
  }
  const rules = (name: string, text: string) => writeFileSync(join(workspace, name), text)
  rules('.gitignore', 'node_modules\n')
  await look.study((await look.now()).repositories[0]!)
  /** Sets the times of the files into the past, so that the answer may be cached. */
  const settled = async (...expected: string[]) => {
    t.same((await dependencies()).toSorted(), expected)
    const now = Date.now
    t.teardown(() => (Date.now = now))
    Date.now = () => now() + 60_000
    for (let round = 0; round < 2; round++) t.same((await dependencies()).toSorted(), expected, 'kept')
    Date.now = now
  }
  await settled('node_modules', 'web/node_modules')
  rules('.gitignore', 'node_modules\nvendor\n')
  await settled('node_modules', 'vendor', 'web/node_modules')
  rules('web/.gitignore', '!node_modules\n')
  await settled('node_modules', 'vendor')
  rules('.git/info/exclude', '/web/node_modules/\n')
  await settled('node_modules', 'vendor')
  rmSync(join(workspace, 'web/.gitignore'))
  await settled('node_modules', 'vendor', 'web/node_modules')
  git('add', '-f', 'vendor/x.js')
  await settled('node_modules', 'web/node_modules')
  rmSync(join(workspace, 'node_modules'), { recursive: true })
  await settled('web/node_modules')
  rules('everywhere', 'vendor\nnode_modules\n')
  git('rm', '-q', '--cached', 'vendor/x.js')
  git('config', 'core.excludesFile', join(workspace, 'everywhere'))
  rules('.gitignore', '')
  await settled('vendor', 'web/node_modules')
  rules('everywhere', 'vendor\n')
  rmSync(join(workspace, '.git/info/exclude'))
  await settled('vendor')
})

t.test('a repository whose index git cannot read is found, and has no ignored folders', async t => {
  const { workspace, git, head, dependencies } = place(t)
  writeFileSync(join(workspace, '.gitignore'), 'node_modules\n')
  mkdirSync(join(workspace, 'node_modules'))
  t.same(await dependencies(), ['node_modules'])
  writeFileSync(join(workspace, '.git/index'), 'DIRC\0\0\0\x09\0\0\0\0'.padEnd(100, '\0'))
  t.equal(await head(), git('rev-parse', 'HEAD'))
  t.same(await dependencies(), [])
})
