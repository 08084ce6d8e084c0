import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { placeWith, stateOf, useAll } from './git-place.js'
import { bytesOf, outside, shellTurn, walled } from '../support.js'

/** The user who runs the tests may have no git identity. */
const WHO = '-c user.name=A -c user.email=a@example.org'

t.test(
  'an isolated turn changes no ref of main and leaves no setting, hook or attribute in its git folder',
  walled(),
  async t => {
    const here = await placeWith(t)
    const { client, data, workspace, wire } = here
    const before = stateOf(here)
    const run = wire.command
    const lender = join(data, 'git/0.repository')
    const attempts = [
      `git config filter.x.smudge "${run('smudge')}"`,
      `git config filter.x.clean "${run('clean')}"`,
      `git config core.fsmonitor "${run('fsmonitor')}"`,
      `git config core.hooksPath .`,
      `git config diff.external "${run('diff')}"`,
      `git config core.sshCommand "${run('ssh')}"`,
      `git config alias.status "!${run('alias')}"`,
      `git config --worktree core.fsmonitor "${run('worktree-config')}"`,
      'git config extensions.worktreeConfig true',
      `printf '#!/bin/sh\\n${run('hook')}\\n' > "${lender}/hooks/post-checkout"`,
      `echo "* filter=x" > "${lender}/info/attributes"`,
      `echo /etc > "${lender}/objects/info/alternates"`,
      `echo x > "${lender}/packed-refs"`,
      `echo x > "${lender}/HEAD"`,
      `rm -f "${lender}/index"`,
      `git --git-dir="${lender}" update-ref refs/heads/main HEAD`,
      `git --git-dir="${lender}" tag stolen`,
      `git push "${lender}" HEAD:refs/heads/main`,
      `rm -rf "${lender}/objects"`,
      'echo /etc > "$(git rev-parse --git-dir)/objects/info/alternates"',
      'echo "* filter=x" > "$(git rev-parse --git-dir)/info/attributes"',
      'echo "gitdir: /etc" > .git',
      'rm -f .git',
      'mv .git .was',
    ]
    await shellTurn(
      client,
      'c-1',
      [`echo b > src/b.txt && git add -A && git ${WHO} commit -qm own && echo c > src/b.txt`],
      { isolated: true },
    )
    const answers = await shellTurn(
      client,
      'c-1',
      attempts.map(
        each =>
          `( ${each} ) >/dev/null 2>&1 && echo DONE; git symbolic-ref HEAD refs/heads/agent/c-1 2>/dev/null; true`,
      ),
    )
    for (const [at, answer] of answers.entries()) t.notMatch(answer, 'DONE', attempts[at]!)
    // Changes in its own folders do not redirect the daemon's git.
    const own = '"$(git rev-parse --git-dir)"'
    await shellTurn(client, 'c-1', [
      'git branch -f main HEAD',
      'git tag stolen',
      'git update-ref refs/heads/agent/c-2 HEAD',
      'git update-ref refs/replace/$(git rev-parse main) HEAD',
      'git pack-refs --all',
      'git gc -q --prune=now',
      `mkdir -p ${own}/hooks && printf '#!/bin/sh\\n${run('own-hook')}\\n' > ${own}/hooks/post-checkout && chmod `
        + `+x ${own}/hooks/*`,
      `printf '[core]\\nfsmonitor = ${run('own-config')}\\n' > ${own}/config.worktree`,
      `echo "${workspace}/.git" > ${own}/commondir; true`,
    ])
    await shellTurn(client, 'c-1', ['echo two > src/a.txt', 'echo "* filter=x diff=x merge=x" > .gitattributes'])
    t.same(stateOf(here), before)
    const told = await useAll(here, 'c-1')
    t.match(
      told,
      exactly('roster: ok', 'card: ok', 'diff: ok', /^file/, 'check: ok', 'land: ok', 'turn: ok', 'all: ok'),
    )
    t.same(stateOf(here), before)
    t.same(wire.tripped(), [])
    t.equal(readFileSync(join(workspace, 'src/a.txt'), 'utf8'), 'two\n', 'the work itself landed')
    inGit(workspace, 'config', 'core.fsmonitor', run('person'))
    outside('git status', workspace)
    t.ok(wire.sprung('person'), 'git without a wall runs such a setting')
  },
)

t.test('a landing follows no link out of the workspace', walled(), async t => {
  const here = await placeWith(t)
  const { client, workspace, elsewhere, data } = here
  const links: { [path: string]: string } = {
    out: elsewhere,
    'src/up': '../../elsewhere',
    etc: '/etc',
    data,
    'deep/er/out': '../../../elsewhere/file',
    home: '/proc/self/cwd/../elsewhere',
    one: 'two',
    two: '../elsewhere',
    three: 'four/..',
    four: '..',
    git: '.git/hooks',
    sandbox: '.sandbox/config',
    'src/git': '../.git/config',
  }
  const make = Object.entries(links).map(([path, target]) => `mkdir -p $(dirname ${path}) && ln -s ${target} ${path}`)
  await shellTurn(client, 'c-1', [...make, 'ln -s src/a.txt good'], { isolated: true })
  const before = stateOf(here)
  const result = await client.call('POST /agents/{id}/land', { id: 'c-1' })
  t.equal(result.landed, false)
  t.same(result.conflicts?.[0]?.paths.map(({ path }) => path).sort(), Object.keys(links).sort())
  t.notOk(existsSync(join(workspace, 'good')), 'nothing lands if a path is refused')
  await shellTurn(client, 'c-1', [`rm -rf ${Object.keys(links).join(' ')}`])
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.equal(readFileSync(join(workspace, 'good'), 'utf8'), 'one\n', 'a link that stays inside lands')
  t.same(stateOf(here), before)
})

t.test('a landing writes through no link that was put into the shared tree meanwhile', walled(), async t => {
  const here = await placeWith(t)
  const { client, workspace, elsewhere } = here
  await shellTurn(
    client,
    'c-1',
    ['mkdir -p new/deep && echo x > new/deep/file && echo x > src/a.txt && echo x > new/file'],
    { isolated: true },
  )
  const before = stateOf(here)
  await shellTurn(client, 'shared', [
    `ln -s ${elsewhere} new`,
    `rm -rf src && ln -s ${elsewhere} src && ln -s file ${elsewhere}/a.txt; rm -f ${elsewhere}/a.txt`,
  ])
  const result = await client.call('POST /agents/{id}/land', { id: 'c-1' })
  t.equal(result.landed, false)
  t.same(bytesOf(elsewhere), before.elsewhere)
  t.same(Object.keys(bytesOf(workspace, /^\.git(\/|$)|^\.sandbox/)).sort(), ['.gitignore', 'README.md', 'new', 'src'])
})

t.test('a handmade tree with names that no checkout can have writes no file', walled(), async t => {
  const here = await placeWith(t)
  const { client, workspace, elsewhere, wire } = here
  const names = [
    '.git',
    '.GIT',
    '.git ',
    'git~1',
    '.g\u200cit',
    '..',
    '.',
    '.sandbox',
    '.Sandbox',
    '../elsewhere',
    'a/b',
    '.git/hooks',
  ]
  // A tree object is written as bytes: mode, name, NUL, id. Its own program refuses such names, the object store does
  // not.
  const script = `
    const { execFileSync: run } = require('node:child_process')
    const git = (args, input) => run('git', args, { input }).toString().trim()
    const blob = git(['hash-object', '-w', '--stdin'], '#!/bin/sh\\n${wire.command('tree')}\\n')
    const bytesOf = ([mode, name, id]) =>
      Buffer.concat([Buffer.from(mode + ' ' + name + '\\0'), Buffer.from(id, 'hex')])
    const object = entries => git(
      ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], Buffer.concat(entries.map(bytesOf)),
    )
    const hooks = object([['100755', 'post-checkout', blob], ['100644', 'config', blob]])
    const names = ${JSON.stringify(names)}
    const kept = git(['ls-tree', 'HEAD']).split('\\n').map(line => {
      const [, mode, , id, name] = /^(\\d+) (\\w+) (\\w+)\\t(.*)$/.exec(line)
      return [mode.replace(/^0/, ''), name, id]
    })
    const bad = names.map((name, at) => at % 2 ? ['100755', name, blob] : ['40000', name, hooks])
    const entries = [...bad, ['100644', 'fine.txt', blob], ...kept]
    const tree = object(entries.sort((a, b) => a[1] < b[1] ? -1 : 1))
    const commit = git([...'${WHO}'.split(' '), 'commit-tree', '-p', 'HEAD', '-m', 'x', tree])
    git(['update-ref', 'refs/heads/agent/c-1', commit])
    console.log('MADE')`
  writeFileSync(join(workspace, 'make.cjs'), script)
  inGit(workspace, 'add', 'make.cjs')
  inGit(workspace, 'commit', '-qm', 'tool')
  const before = stateOf(here)
  const answers = await shellTurn(client, 'c-1', [`${process.execPath} make.cjs 2>&1`], { isolated: true })
  t.match(answers[0], 'MADE')
  await useAll(here, 'c-1')
  t.same(stateOf(here), before)
  t.same(wire.tripped(), [])
  const left = Object.keys(bytesOf(workspace, /^\.git(\/|$)/)).filter(path => !path.startsWith('.sandbox'))
  t.same(
    left.filter(path => !['.gitignore', 'README.md', 'make.cjs', 'src', 'src/a.txt', 'fine.txt'].includes(path)),
    [],
  )
  t.same(bytesOf(elsewhere), before.elsewhere)
})

t.test(
  "a person's filters, drivers and hooks never run outside a wall, whatever attributes a turn writes",
  walled(),
  async t => {
    const here = await placeWith(t, {
      prepare: (workspace, wire) => {
        const set = (key: string, name: string) =>
          inGit(workspace, 'config', key, `sh -c '${wire.command(name)}; cat' `)
        for (const key of ['clean', 'smudge']) set(`filter.person.${key}`, key)
        set('filter.long.process', 'process')
        set('diff.person.command', 'diff')
        set('diff.person.textconv', 'textconv')
        set('merge.person.driver', 'merge')
        for (const key of [
          'core.fsmonitor',
          'diff.external',
          'core.pager',
          'core.editor',
          'core.sshCommand',
          'gpg.program',
          'credential.helper',
          'core.alternateRefsCommand',
        ])
          set(key, key)
        inGit(workspace, 'config', 'commit.gpgSign', 'true')
        inGit(workspace, 'config', 'merge.default', 'person')
        for (const hook of [
          'pre-commit',
          'post-commit',
          'post-checkout',
          'post-index-change',
          'reference-transaction',
          'pre-rebase',
          'post-rewrite',
          'prepare-commit-msg',
          'commit-msg',
          'fsmonitor-watchman',
          'pre-auto-gc',
          'applypatch-msg',
          'post-merge',
        ]) {
          writeFileSync(join(workspace, '.git/hooks', hook), `#!/bin/sh\n${wire.command(hook)}\n`, { mode: 0o755 })
        }
      },
    })
    const { client, workspace, wire } = here
    const before = stateOf(here)
    await shellTurn(
      client,
      'c-1',
      [
        'echo "* filter=person diff=person merge=person" > .gitattributes && echo two > src/a.txt && echo new > '
          + 'src/new.txt',
        'mkdir -p sub && echo "* filter=long" > sub/.gitattributes && echo x > sub/x.txt',
      ],
      { isolated: true },
    )
    writeFileSync(join(workspace, 'README.md'), '# another line of main\n')
    outside(
      'git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c commit.gpgSign=false -c user.name=A -c '
        + 'user.email=a@example.org commit -qam main',
      workspace,
    )
    t.same(wire.tripped(), [])
    const told = await useAll(here, 'c-1')
    t.same(wire.tripped(), [], told.join('\n'))
    t.same({ ...stateOf(here).elsewhere }, before.elsewhere)
    t.match(told.join('\n'), /land: ok/)
    outside('git add -A', workspace)
    t.ok(wire.tripped().length > 0, 'git without a wall runs them')
  },
)

t.test('settings that a turn leaves in the shared tree start nothing outside a wall', walled(), async t => {
  const here = await placeWith(t)
  const { client, wire } = here
  const run = (name: string) => `"sh -c '${wire.command(name)}; cat'"`
  const settings = [
    'filter.x.clean',
    'filter.x.smudge',
    'filter.x.process',
    'core.fsmonitor',
    'diff.external',
    'core.sshCommand',
    'core.gitProxy',
    'credential.helper',
    'core.alternateRefsCommand',
    'gpg.program',
    'uploadpack.packObjectsHook',
    'remote.origin.uploadpack',
    'alias.worktree',
    'alias.rev-parse',
  ]
  await shellTurn(client, 'shared', [
    ...settings.map((key, at) => `git config ${key} ${run(`s${at}`)}`),
    'git config remote.origin.url "ext::sh -c true"',
    'git config remote.origin.promisor true',
    'git config extensions.partialClone origin',
    'git config core.repositoryFormatVersion 1',
    'for h in post-checkout reference-transaction pre-commit post-index-change; do printf '
      + `'#!/bin/sh\\n${wire.command('hook')}\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done`,
    'echo "* filter=x diff=x merge=x" > .git/info/attributes',
    `printf '[include]\\n\\tpath = ../evil.config\\n' >> .git/config`,
    `printf '[core]\\n\\tfsmonitor = ${wire.command('include')}\\n' > evil.config`,
  ])
  await shellTurn(client, 'c-1', ['echo two > src/a.txt', 'echo "* filter=x" > .gitattributes'], { isolated: true })
  const told = await useAll(here, 'c-1')
  t.same(wire.tripped(), [], told.join('\n'))
  t.match(told.join('\n'), /turn: ok/)
  outside('git add -A; git status', here.workspace)
  t.ok(wire.tripped().length > 0, 'git without a wall runs them')
})

t.test('repositories, pointers and submodules inside a copy do not lead outside', walled(), async t => {
  const here = await placeWith(t)
  const { client, workspace, wire, data, elsewhere } = here
  const before = stateOf(here)
  await shellTurn(
    client,
    'c-1',
    [
      'git init -q nested && cd nested && git config user.email a@example.org && git config user.name a && echo x '
        + `> f && git add f && git commit -qm x && git config core.fsmonitor "${wire.command('nested')}" && `
        + `printf '#!/bin/sh\\n${wire.command('nested-hook')}\\n' > .git/hooks/post-checkout && chmod +x .git/hooks/*`,
      `mkdir pointer && echo "gitdir: ${data}/plugins" > pointer/.git && echo x > pointer/f`,
      `mkdir bare && git init -q --bare bare/repo && git -C bare/repo config core.fsmonitor "${wire.command('bare')}"`,
      `mkdir linked && ln -s ${elsewhere} linked/.git && echo x > linked/f`,
      'mkdir real && mkdir real/.git && echo x > real/.git/config && echo x > real/f',
      `printf '[submodule "m"]\\n\\tpath = nested\\n\\turl = ext::sh -c "${wire.command('ext')}"\\n\\tupdate = `
        + `!${wire.command('update')}\\n' > .gitmodules`,
      `git add -A 2>&1; git ${WHO} commit -qm work 2>&1; true`,
      'git submodule update --init 2>&1; true',
      'echo two > src/a.txt',
    ],
    { isolated: true },
  )
  const told = await useAll(here, 'c-1')
  t.same(wire.tripped(), [], told.join('\n'))
  t.same(stateOf(here), before)
  t.match(told.join('\n'), /land: what agent\/c-1 of root holds does not pass git's checks .*gitmodulesUpdate/)
  await shellTurn(client, 'c-1', ['git reset -q --soft main && rm .gitmodules'])
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.same(wire.tripped(), [])
  t.same(stateOf(here), before)
  t.notOk(existsSync(join(workspace, 'nested/.git')))
  t.notOk(existsSync(join(workspace, 'pointer/.git')))
  t.equal(readFileSync(join(workspace, 'src/a.txt'), 'utf8'), 'two\n', told.join('\n'))
  const again = await runTurn(client, 'c-2', 'run ls -A', { isolated: true })
  t.ok(again.some(({ kind }) => kind === 'done'))
  t.same(wire.tripped(), [])
})
