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
  t.equal(inGit(workspace, 'rev-parse', 'HEAD', 'HEAD:libs/lib'), head, 'no commit of the workspace is made')
  t.equal(inGit(workspace, 'log', '-1', '--format=%s', 'main').trim(), 'module')
  const lib = join(workspace, 'libs/lib')
  t.equal(inGit(lib, 'log', '-1', '--format=%s').trim(), 'three', 'the commit of the turn is checked out')
  t.equal(inGit(lib, 'status', '--porcelain'), '', 'and nothing there is uncommitted')
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

t.test('a submodule that a turn moves to another commit lands with its pointer', async t => {
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
  t.notMatch(noticesOf(frames), /pointer|submodule/, 'there is nothing to say of it')
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'one' })
  t.same(
    repos.flatMap(({ repo, changes }) => changes.map(({ path }) => `${repo}: ${path}`)),
    ['libs/lib: lib.txt'],
  )
  const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
  t.match(await client.call('POST /agents/{id}/land', { id: 'one', expect }), { landed: true })
  t.equal(readFileSync(join(workspace, 'libs/lib/lib.txt'), 'utf8'), 'two\n')
  t.equal(inGit(workspace, 'rev-parse', 'HEAD', 'HEAD:libs/lib'), heads, 'no commit of the workspace is made')
  t.equal(inGit(workspace, 'status', '--porcelain'), ' M libs/lib\n', 'the pointer is a change to commit')
  t.equal(inGit(workspace, 'status', '--porcelain=v2').split(' ')[2], 'SC..', 'of the commit, and of nothing else')

  const other = 'git checkout -q "$(git -c user.name=a -c user.email=a@b.c commit-tree HEAD^{tree} -m other)"'
  const back = await runTurn(client, 'two', runs(`cd libs/lib && ${other}`), { isolated: true })
  t.match(noticesOf(back), /the private copy of libs\/lib is not on its branch agent\/two, so what was done there/)
})

const COMMIT = 'git -c user.name=a -c user.email=a@b.c commit -q'

/** Lands what the diff of a conversation shows. */
const landSeen = async (client: Awaited<ReturnType<typeof daemonWith>>['client'], id: string) => {
  const { repos } = await client.call('GET /agents/{id}/diff', { id })
  return client.call('POST /agents/{id}/land', {
    id,
    expect: Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip])),
  })
}

t.test('commits in nested submodules land with their pointers, beside what a person changed', async t => {
  const base = folderOf(t)
  const [workspace, lib, inner, data] = ['w', 'lib', 'inner', 'data'].map(each => join(base, each)) as [
    string,
    string,
    string,
    string,
  ]
  const lines = Array.from({ length: 20 }, (_, at) => `${at}\n`).join('')
  makeWorkspace(inner, { 'inner.txt': lines })
  makeWorkspace(lib, { 'lib.txt': lines })
  inGit(lib, ...LOCAL, 'submodule', '--quiet', 'add', inner, 'deep/inner')
  inGit(lib, 'commit', '-qm', 'inner')
  makeWorkspace(workspace, { 'a.txt': 'a\n' })
  inGit(workspace, ...LOCAL, 'submodule', '--quiet', 'add', lib, 'libs/lib')
  inGit(workspace, ...LOCAL, 'submodule', '--quiet', 'update', '--init', '--recursive')
  inGit(workspace, 'commit', '-qm', 'lib')
  const [ours, deep] = [join(workspace, 'libs/lib'), join(workspace, 'libs/lib/deep/inner')]
  t.match(inGit(deep, 'status', '--branch', '--porcelain=v2'), /branch\.head \(detached\)/, 'as git leaves it')
  const { client } = await daemonWith(t, [...GROUPS, 'git'], { workspace, data })
  const before = [inGit(ours, 'rev-parse', 'HEAD').trim(), inGit(deep, 'rev-parse', 'HEAD').trim()]
  await shellTurn(
    client,
    'c',
    [
      `cd libs/lib/deep/inner && echo agent >> inner.txt && ${COMMIT} -am inner`,
      `cd libs/lib && echo agent >> lib.txt && git add . && ${COMMIT} -am lib && echo rest > rest.txt`,
    ],
    { isolated: true },
  )
  writeFileSync(join(deep, 'inner.txt'), `person\n${lines}`)
  writeFileSync(join(ours, 'mine.txt'), 'mine\n')
  const { moved, landed } = await landSeen(client, 'c')
  t.equal(landed, true)
  t.same(
    moved?.map(({ repo }) => repo),
    ['libs/lib', 'libs/lib/deep/inner'],
    'the answer names the submodules that moved',
  )
  t.equal(readFileSync(join(deep, 'inner.txt'), 'utf8'), `person\n${lines}agent\n`)
  t.equal(inGit(deep, 'status', '--porcelain'), ' M inner.txt\n')
  t.match(inGit(deep, 'diff'), /^\+person$/m, 'what the person changed is theirs to commit')
  t.notMatch(inGit(deep, 'diff'), /^\+agent$/m, 'what the agent committed is not')
  t.equal(inGit(ours, 'status', '--porcelain'), ' M deep/inner\n?? mine.txt\n?? rest.txt\n')
  t.equal(inGit(ours, 'symbolic-ref', '--short', 'HEAD'), 'main\n', 'a branch goes along')
  t.equal(inGit(workspace, 'status', '--porcelain'), ' M libs/lib\n')
  t.match(await landSeen(client, 'c'), { landed: true }, 'a second landing finds nothing')

  await client.call('POST /agents/{id}/discard', { id: 'c' })
  t.equal(inGit(ours, 'log', '-1', '--format=%s'), 'lib\n', 'what landed stays')
  for (const [at, repo] of ['libs/lib', 'libs/lib/deep/inner'].entries()) {
    const { action } = await client.call('GET /git/{repo}/undo', { repo })
    t.equal(action?.previousSha, before[at], repo)
    const undo = { repo, previousSha: before[at]!, expectHead: action!.sha, discardChanges: true }
    t.match(await client.call('POST /git/{repo}/undo', undo), { ok: true })
    t.equal(inGit(join(workspace, repo), 'rev-parse', 'HEAD').trim(), before[at], `${repo} is back`)
  }
  t.equal(inGit(workspace, 'status', '--porcelain=v2').split(' ')[2], 'S..U', 'only files of nobody are left')
})

t.test('a commit of a submodule that cannot land says why, and nothing there changes', async t => {
  const { workspace, data } = withModule(t, 'libs/lib')
  const lib = join(workspace, 'libs/lib')
  const { client } = await daemonWith(t, GROUPS, { workspace, data })
  await shellTurn(client, 'c', [`cd libs/lib && echo agent >> lib.txt && ${COMMIT} -am agent`], { isolated: true })
  const unchanged = async (why: RegExp) => {
    const state = () => [
      inGit(lib, 'status', '--porcelain=v2', '--branch'),
      inGit(lib, 'ls-files', '-s'),
      readFileSync(join(lib, 'lib.txt'), 'utf8'),
    ]
    const before = state()
    const landing = landSeen(client, 'c').then(
      ({ landed, conflicts }) => `${landed} ${JSON.stringify(conflicts)}`,
      (error: Error) => error.message,
    )
    t.match(await landing, why)
    t.same(state(), before, String(why))
  }
  writeFileSync(join(lib, 'lib.txt'), 'person\n')
  await unchanged(/false .*"lib\.txt","reason":"workspace"/)
  inGit(lib, 'checkout', '-q', 'lib.txt')
  writeFileSync(join(lib, 'lib.txt'), 'staged\n')
  inGit(lib, 'add', 'lib.txt')
  writeFileSync(join(lib, 'lib.txt'), 'lib\n')
  await unchanged(/submodule libs\/lib cannot move .* its index has other changes .*: commit or unstage them there/)
  inGit(lib, 'reset', '-q', '--hard')
  writeFileSync(join(lib, 'mine.txt'), 'mine\n')
  inGit(lib, 'add', 'mine.txt')
  inGit(lib, 'commit', '-qm', 'mine')
  await unchanged(/on which the commit \w+ of the conversation does not build: sync the conversation, then land again/)
  await client.call('POST /agents/{id}/sync', { id: 'c' })
  const { landed, moved } = await landSeen(client, 'c')
  t.same([landed, moved?.map(({ repo }) => repo)], [true, ['libs/lib']], 'after a sync it lands')
  t.equal(inGit(lib, 'log', '-2', '--format=%s'), 'agent\nmine\n')
  t.equal(inGit(lib, 'status', '--porcelain'), '')
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
