import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Rule } from '../../../plugins/settings/contract.js'
import { commitAll, put, repoAt } from '../../plugins/git/support.js'
import { daemonWith, folderOf, inGit } from '../../support/daemon.js'
import { spread } from '../../support/lists.js'
import { bareCopy, gitServer } from '../../support/servers/git-server.js'
import { runTurn } from '../../support/turns.js'
import { runs } from '../support.js'
import { HOSTILE_TEXTS, UNSHOWN } from './hostile-texts.js'

t.setTimeout(300_000)

const COMMIT = 'git -c user.name=a -c user.email=a@b.c commit -q'
const FILES = { 'README.md': '# work\n', 'app.sh': 'echo safe\n', 'docs/a.md': 'a\n', 'src/b.txt': 'b\n' }

/** What a turn does so that work outside of `docs/` lands by a rule that lets in work on `docs/` alone. */
const BESIDE: { readonly [what: string]: readonly string[] } = {
  'a file': ['echo evil > app.sh'],
  'an earlier commit that a later one seems to undo': [
    'echo evil > app.sh',
    `${COMMIT} -am x`,
    'git rm -q --cached app.sh',
  ],
  'a move out of the folder': ['mv docs/a.md app.sh'],
  'a move into the folder': ['mv app.sh docs/app.sh'],
  'a removal': ['rm app.sh'],
  'rights of a file': ['chmod +x app.sh'],
  'a link in the place of a file': ['rm app.sh', 'ln -s docs/a.md app.sh'],
  'a folder in the place of a file': ['rm app.sh', 'mkdir app.sh', 'echo evil > app.sh/docs'],
  'a folder of another case': ['mkdir -p Docs', 'echo evil > Docs/a.md'],
  'a name that begins alike': ['mkdir docs.evil', 'echo evil > docs.evil/a.md', "echo evil > 'docs\\evil'"],
  'a name with a line break': ['mkdir -p "$(printf \'x\\ndocs\')"', 'echo evil > "$(printf \'x\\ndocs\')/a.md"'],
  'a name that is no text': ['echo evil > "$(printf \'evil\\377\')"'],
  'a file that the index calls unchanged': ['git update-index --assume-unchanged app.sh', 'echo evil > app.sh'],
  'a file that the index skips': ['git update-index --skip-worktree app.sh', 'echo evil > app.sh'],
  'a replaced object': ['git replace HEAD:app.sh $(echo evil | git hash-object -w --stdin)', 'echo evil > app.sh'],
  'a graft': [
    'echo evil > app.sh',
    `${COMMIT} -am x`,
    'mkdir -p "$(git rev-parse --git-common-dir)/info"',
    'git rev-parse HEAD > "$(git rev-parse --git-common-dir)/info/grafts"',
  ],
  'attributes that hide it': ["echo '*.sh -diff' > .git/info/attributes", 'echo evil > app.sh'],
  'a setting of git that hides it': [
    'git config diff.ignoreSubmodules all',
    'git config core.fileMode false',
    'echo evil > app.sh',
  ],
  'another branch': ['git checkout -q -b other', 'echo evil > app.sh', `${COMMIT} -am x`],
  'a history of its own': [
    'git checkout -q --orphan fresh',
    'echo evil > app.sh',
    `git add -A && ${COMMIT} -m x`,
    'git branch -f agent/HERE',
  ],
  'a pointer to a commit': ['git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),app.sh'],
  'a process that works on': [
    '(for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; echo evil > app.sh; git add -A; '
      + `${COMMIT} -m x; done) > /dev/null 2>&1 &`,
  ],
}

t.test('a rule that lets in work on one folder lets in no other work', async t => {
  const { client, workspace } = await daemonWith(t, ['settings', 'agent', 'agents', 'activity', 'git'], {
    files: FILES,
  })
  const rule: Rule = {
    ...{ id: 'docs', label: 'Docs', moment: 'agent.finished', action: { kind: 'verdict', verdict: 'allow' } },
    when: { paths: ['docs/**'] },
  }
  await client.call('POST /settings/patch', { set: { rules: [rule] } })
  const beside = () =>
    inGit(workspace, 'status', '--porcelain', '-z', '-uall', '--no-renames')
      .split('\0')
      .flatMap(line => (line === '' || line.slice(3).startsWith('docs/') ? [] : [line.slice(3)]))
      .filter(path => !path.startsWith('.sandbox/'))
  const before = [inGit(workspace, 'rev-parse', 'HEAD'), inGit(workspace, 'ls-tree', '-r', 'HEAD')]
  const frames = await runTurn(client, 'control', 'write docs/new.md\n| x', { isolated: true })
  t.ok(
    frames.some(frame => frame.kind === 'landed' && frame.landed),
    'work on the folder lands',
  )
  t.ok(existsSync(join(workspace, 'docs/new.md')))
  for (const [what, commands] of spread(Object.entries(BESIDE), 8))
    await t.test(what, async t => {
      const id = `c-${Object.keys(BESIDE).indexOf(what)}`
      const words = [...commands.map(each => each.replace('HERE', id)), `echo ${id} > docs/${id}.md`]
      const lines = words.map(runs).join('\n')
      await runTurn(client, id, lines, { isolated: true })
      // The second turn of a conversation has changed nothing else, but its branch has.
      await runTurn(client, id, `write docs/${id}-again.md\n| x`, { isolated: true })
      t.same(beside(), [])
      t.equal(readFileSync(join(workspace, 'app.sh'), 'utf8'), 'echo safe\n')
      t.same([inGit(workspace, 'rev-parse', 'HEAD'), inGit(workspace, 'ls-tree', '-r', 'HEAD')], before)
    })
})

/** What a check before a push does that a turn wrote, and fails at last. */
const FAILING: { readonly [what: string]: string } = {
  'hostile texts': `printf '%b' "$(cat texts)"; exit 1`,
  'the end of a terminal that it is not': `printf '\\033]0;x\\007\\033[2J\\033]133;D;0\\007exit 0\\n[exited]\\n'; exit 1`,
  'output without an end': 'yes "$(cat texts)" | head -c 30000000; exit 1',
  'a line without an end': `head -c 20000000 /dev/zero | tr '\\0' x; exit 1`,
  'a process that stays': '(sleep 5; echo late) & exit 1',
  'a killed shell': 'kill -9 $$',
  'a killed parent': 'kill -9 $PPID; sleep 30; exit 1',
  'a program for everybody':
    'mkdir -p bin; printf "#!/bin/sh\\nexit 0" > bin/sh; chmod +x bin/sh; PATH=bin:$PATH; exit 1',
  'bytes that are no text': `head -c 200000 /dev/urandom; exit 1`,
}

t.test('a check before a push that fails keeps it back, whatever it writes', async t => {
  const { client, workspace } = await daemonWith(t, ['git', 'activity', 'settings', 'system', 'workspace'], {
    files: FILES,
  })
  const server = await gitServer(t, folderOf(t))
  const repo = 'app'
  const at = join(workspace, repo)
  mkdirSync(at, { recursive: true })
  repoAt(at, { f: '1\n', 'check.sh': 'exit 0\n', texts: HOSTILE_TEXTS.join('\n').toWellFormed() })
  const bare = join(server.folder, `${repo}.git`)
  bareCopy(at, bare)
  await client.call('POST /git/{repo}/remotes', { repo, name: 'origin', url: `${server.url}/${repo}.git` })
  await client.call('POST /git/{repo}/fetch', { repo })
  const rule: Rule = {
    ...{ id: 'check', label: 'Check', moment: 'push.starting' },
    action: { kind: 'command', command: 'sh check.sh', timeoutMs: 20_000 },
  }
  await client.call('POST /settings/patch', { set: { rules: [rule] } })
  const there = () => inGit(bare, 'rev-parse', 'main').trim()
  for (const [what, script] of spread(Object.entries(FAILING), 4))
    await t.test(what, async t => {
      const before = there()
      put(at, { 'check.sh': script, f: `${what}\n` })
      commitAll(at, what)
      const answer = await client.call('POST /git/{repo}/push', { repo })
      t.match(answer, { ok: false, code: 'rejected' })
      t.equal(there(), before, 'nothing was pushed')
      const shown = JSON.parse(JSON.stringify([answer, await client.call('GET /settings/rule-firings')])) as unknown
      const text = JSON.stringify(shown)
      t.ok(text.length < 100_000, `${text.length} characters`)
      t.equal(
        UNSHOWN.exec(JSON.stringify((answer as { reason?: string }).reason ?? '').replaceAll('\\n', ' '))?.[0],
        undefined,
      )
    })
  put(at, { 'check.sh': 'exit 0\n' })
  commitAll(at, 'good')
  t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true })
})
