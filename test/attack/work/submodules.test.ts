import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { daemonWith, folderOf, inGit, makeWorkspace } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { answersOf, runs, shellTurn, tripwire } from '../support.js'

const GROUPS = ['system', 'agent', 'agents']
const LOCAL = ['-c', 'protocol.file.allow=always']

t.setTimeout(300_000)

/** A workspace whose repository has a submodule `name` at `path`, and the folder beside it. */
const withModule = (t: Test, path = 'vendor/lib', name = 'lib') => {
  const base = folderOf(t)
  const [workspace, lib, data] = ['w', 'lib', 'data'].map(each => join(base, each)) as [string, string, string]
  makeWorkspace(lib, { 'lib.txt': 'lib\n', 'deep/own.txt': 'own\n' })
  makeWorkspace(workspace, { 'a.txt': 'a\n' })
  inGit(workspace, ...LOCAL, 'submodule', '--quiet', 'add', '--name', name, lib, path)
  inGit(workspace, 'commit', '-qm', 'module')
  return { base, workspace, lib, data }
}

const noticesOf = (frames: Awaited<ReturnType<typeof runTurn>>): string =>
  frames.flatMap(frame => (frame.kind === 'notice' ? frame.text : [])).join('\n')

t.test('work in a submodule that is not checked out is shown, and lands once it is', async t => {
  const { workspace, data } = withModule(t)
  inGit(workspace, 'submodule', '--quiet', 'deinit', '-f', 'vendor/lib')
  t.notOk(existsSync(join(workspace, 'vendor/lib/lib.txt')))
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  const [read] = await shellTurn(client, 'one', ['cd vendor/lib && cat lib.txt && echo more >> lib.txt'], {
    isolated: true,
  })
  t.equal(read, 'lib', 'its files are in the private copy')
  const shown = async () => {
    const { repos } = await client.call('GET /agents/{id}/diff', { id: 'one' })
    return {
      expect: Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip])),
      paths: repos.flatMap(({ repo, changes }) => changes.map(({ path }) => `${repo}: ${path}`)),
    }
  }
  const { expect, paths } = await shown()
  t.same(paths, ['vendor/lib: lib.txt'])
  await t.rejects(client.call('POST /agents/{id}/land', { id: 'one', expect }), {
    status: 409,
    message: /submodule vendor\/lib is not checked out .*git submodule update --init/,
  })
  t.notOk(existsSync(join(workspace, 'vendor/lib/lib.txt')), 'nothing is written')
  inGit(workspace, ...LOCAL, 'submodule', '--quiet', 'update', '--init', 'vendor/lib')
  t.match(await client.call('POST /agents/{id}/land', { id: 'one', expect: (await shown()).expect }), { landed: true })
  t.equal(readFileSync(join(workspace, 'vendor/lib/lib.txt'), 'utf8'), 'lib\nmore\n')
})

t.test('work in a submodule lands again after its pointer moved in the private copy', async t => {
  const { workspace, data } = withModule(t, 'libs/lib')
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  const head = inGit(workspace, 'rev-parse', 'HEAD', 'HEAD:libs/lib')
  for (const round of ['one', 'two']) {
    const commands = [`echo ${round} >> libs/lib/lib.txt && echo ${round} >> a.txt && git status --short`]
    await shellTurn(client, 'c', commands, { isolated: true })
    const { repos } = await client.call('GET /agents/{id}/diff', { id: 'c' })
    const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
    t.match(await client.call('POST /agents/{id}/land', { id: 'c', expect }), { landed: true }, round)
    t.ok(readFileSync(join(workspace, 'libs/lib/lib.txt'), 'utf8').endsWith(`${round}\n`), round)
  }
  const commit =
    'cd libs/lib && echo three >> lib.txt && git commit -qam three && cd ../.. && git add libs/lib '
    + '&& git commit -qm pointer'
  await shellTurn(client, 'c', [`git config user.name a; git config user.email a@b.c; ${commit}`])
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'c' })
  const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
  t.match(await client.call('POST /agents/{id}/land', { id: 'c', expect }), { landed: true }, 'a commit of the turn')
  t.ok(readFileSync(join(workspace, 'libs/lib/lib.txt'), 'utf8').endsWith('two\nthree\n'))
  t.equal(inGit(workspace, 'rev-parse', 'HEAD', 'HEAD:libs/lib'), head, 'no HEAD and no pointer of people moved')
})

t.test('a submodule that the main line adds later is in a private copy that began before', async t => {
  const base = folderOf(t)
  const [workspace, lib, data] = ['w', 'lib', 'data'].map(each => join(base, each)) as [string, string, string]
  makeWorkspace(lib, { 'lib.txt': 'lib\n' })
  makeWorkspace(workspace, { 'a.txt': 'a\n' })
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  await shellTurn(client, 'one', ['echo more >> a.txt'], { isolated: true })
  inGit(workspace, ...LOCAL, 'submodule', '--quiet', 'add', lib, 'vendor/lib')
  inGit(workspace, 'commit', '-qm', 'module')
  const [read] = await shellTurn(client, 'one', ['cat vendor/lib/lib.txt && echo more >> vendor/lib/lib.txt'])
  t.equal(read, 'lib')
  await shellTurn(client, 'one', ['echo again >> vendor/lib/lib.txt'])
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'one' })
  const paths = repos.flatMap(({ repo, changes }) => changes.map(({ path }) => `${repo}: ${path}`))
  t.same(paths, ['root: a.txt', 'vendor/lib: lib.txt'])
  const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
  t.match(await client.call('POST /agents/{id}/land', { id: 'one', expect }), { landed: true })
  t.equal(readFileSync(join(workspace, 'vendor/lib/lib.txt'), 'utf8'), 'lib\nmore\nagain\n')
  await client.call('POST /agents/{id}/discard', { id: 'one' })
  t.notMatch(inGit(join(workspace, 'vendor/lib'), 'branch', '--all'), /agent/, 'no branch stays in the submodule')
})

t.test('the files of a submodule that a turn moves to another commit land, and the move is said', async t => {
  const { workspace, data, lib } = withModule(t, 'libs/lib')
  writeFileSync(join(lib, 'lib.txt'), 'two\n')
  inGit(lib, 'commit', '-qam', 'two')
  inGit(join(workspace, 'libs/lib'), ...LOCAL, 'fetch', '-q')
  const heads = inGit(workspace, 'rev-parse', 'HEAD', 'HEAD:libs/lib')
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  const commit = 'git add libs/lib && git -c user.name=a -c user.email=a@b.c commit -qm bump'
  const frames = await runTurn(client, 'one', `run git -C libs/lib checkout -q origin/HEAD && ${commit}`, {
    isolated: true,
  })
  t.match(noticesOf(frames), /a commit of this private copy moves the submodule libs\/lib to another commit: /)
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'one' })
  t.same(
    repos.flatMap(({ repo, changes }) => changes.map(({ path }) => `${repo}: ${path}`)),
    ['libs/lib: lib.txt'],
  )
  const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
  t.match(await client.call('POST /agents/{id}/land', { id: 'one', expect }), { landed: true })
  t.equal(readFileSync(join(workspace, 'libs/lib/lib.txt'), 'utf8'), 'two\n')
  t.equal(inGit(workspace, 'rev-parse', 'HEAD', 'HEAD:libs/lib'), heads, 'no HEAD and no pointer of people moved')

  const other = 'git checkout -q "$(git -c user.name=a -c user.email=a@b.c commit-tree HEAD^{tree} -m other)"'
  const back = await runTurn(client, 'two', runs(`cd libs/lib && ${other}`), { isolated: true })
  t.match(noticesOf(back), /the private copy of libs\/lib is not on its branch agent\/two, so what was done there/)
})

t.test('files that no commit can hold are named at the end of a turn', async t => {
  const { workspace, data } = withModule(t, 'libs/lib')
  inGit(workspace, 'submodule', '--quiet', 'deinit', '-f', 'libs/lib')
  inGit(workspace, 'mv', 'a.txt', 'b.txt')
  inGit(workspace, 'commit', '-qm', 'moved')

  rmSync(join(workspace, '.git/modules'), { recursive: true })
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  const places: { readonly [what: string]: readonly [string, string] } = {
    'a submodule that was never fetched': ['echo x > libs/lib/lost.txt', 'libs/lib/lost.txt'],
    'a repository of the turn': [
      'git init -q nested && cd nested && echo x > lost && git add lost '
        + '&& git -c user.name=a -c user.email=a@b.c commit -qm x',
      'nested/lost',
    ],
    'a repository of the turn without a commit': ['git init -q unborn && echo x > unborn/lost', 'unborn/lost'],
    'a name of git': ['mkdir -p sub/.Git && echo x > sub/.Git/lost', 'sub/.Git/lost'],
  }
  for (const [at, [what, [command, path]]] of Object.entries(places).entries()) {
    const frames = await runTurn(client, `c-${at}`, `run ${command}`, { isolated: true })
    t.ok(answersOf(frames)[0]?.ok, what)
    t.match(noticesOf(frames), new RegExp(`not committed and cannot land.*${path.replaceAll('.', '\\.')}`, 's'), what)
    const again = await runTurn(client, `c-${at}`, 'run true')
    t.ok(noticesOf(again).includes(path), `${what}, also after the next turn`)
  }
  const frames = await runTurn(client, 'quiet', 'run echo x > fine.txt', { isolated: true })
  t.notMatch(noticesOf(frames), /cannot land/, 'a turn that leaves nothing is told nothing')
})

t.test('whatever .gitmodules and the git dirs of submodules say, nothing outside is read, run or fetched', async t => {
  const { base, workspace, data } = withModule(t)
  const wire = tripwire(data)
  const secret = join(base, 'secret')
  makeWorkspace(secret, { 'secret.txt': 'secret\n' })
  const head = inGit(secret, 'rev-parse', 'HEAD').trim()
  const run = wire.command('ran')
  const modules: readonly (readonly [name: string, path: string])[] = [
    ['up', '../secret'],
    ['absolute', secret],
    ['hooks', '.git/hooks'],
    ['dot', './x/../../secret'],
    ['capital', '.GIT/x'],
    ['through', 'link/in'],
    ['linked', 'linked'],
    ['../../../secret/.git', 'named'],
    ['../../secret/.git', 'named-too'],
    ['-x', '-x'],
    ['new\\nline', 'new line'],
  ]
  const text = modules.map(([name, path]) =>
    [
      `[submodule "${name}"]`,
      `\tpath = ${path}`,
      `\turl = ext::sh -c ${JSON.stringify(run)}`,
      `\tupdate = !${run}`,
      '\tbranch = .',
      '\tfetchRecurseSubmodules = true',
    ].join('\n'),
  )
  writeFileSync(join(base, 'more'), '[submodule "more"]\n\tpath = ../secret\n')
  const own = readFileSync(join(workspace, '.gitmodules'), 'utf8')
  writeFileSync(join(workspace, '.gitmodules'), `${own}[include]\n\tpath = ${join(base, 'more')}\n${text.join('\n')}\n`)
  symlinkSync(base, join(workspace, 'link'))
  makeWorkspace(join(base, 'in'), { 'in.txt': 'secret\n' })
  mkdirSync(join(workspace, '.git/modules'), { recursive: true })
  symlinkSync(join(secret, '.git'), join(workspace, '.git/modules/linked'))
  for (const path of ['linked', 'named', 'named-too', '-x'])
    inGit(workspace, 'update-index', '--add', '--cacheinfo', `160000,${head},${path}`)
  inGit(workspace, 'add', '.gitmodules', 'link')
  inGit(workspace, 'commit', '-qm', 'hostile')
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  const found = await shellTurn(
    client,
    'one',
    ['find . -name secret.txt -o -name in.txt', 'git status --short', 'git fetch --all 2>&1; true'],
    {
      isolated: true,
    },
  )
  t.same(found.slice(0, 1), [''], 'no file of elsewhere is in the private copy')
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'one' })
  t.same(
    repos.map(({ repo }) => repo).sort(),
    ['root', 'vendor/lib'],
    'only what lies in the workspace is a repository',
  )
  t.same(wire.tripped(), [], 'no program ran')
  t.equal(inGit(secret, 'for-each-ref', '--format=%(refname)'), 'refs/heads/main\n', 'no ref came to be elsewhere')
})
